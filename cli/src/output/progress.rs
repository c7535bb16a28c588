//! Progress of long work, drawn on stderr if that is a terminal and neither `--json` nor `--quiet`
//! is given.

use super::OutputSink;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The maximum number of redraws per second.
const DRAWS_PER_SECOND: u8 = 10;

/// A progress bar, which disappears when the work ends.
#[derive(Debug)]
pub struct ProgressIndicator(ProgressBar);

impl ProgressIndicator {
    /// Starts a bar. `label` says what is being done, and `steps` is their number, if it is known.
    pub fn new(out: &OutputSink, label: &'static str, steps: Option<u64>) -> Self {
        let target = if out.shows_progress() {
            ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(steps, target).with_message(label);
        let template = match steps {
            Some(_) => "{msg} [{bar:30}] {percent} %, {eta} left",
            None => "{msg} {spinner} {pos}",
        };
        let style = ProgressStyle::with_template(template).expect("the templates are valid");
        bar.set_style(style.progress_chars("=> "));
        Self(bar)
    }

    /// Sets how many steps are finished.
    pub fn set_finished(&self, steps: u64) {
        self.0.set_position(steps);
    }
}

impl Drop for ProgressIndicator {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
