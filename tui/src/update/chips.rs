//! The chips of the filter that is being typed.

use super::{index_after, input};
use crate::app::App;
use crate::chip::FILTER_CHIPS;
use crate::effect::AppEffect;
use crate::panes::{InputPurpose, OverlayPane};

/// Selects the chip this many steps after the selected one.
pub(super) fn select(app: &mut App, steps: isize) {
    if is_open(app) {
        app.chip = index_after(app.chip, steps, FILTER_CHIPS.len());
    }
}

/// Switches the selected chip on or off, and applies the filter.
pub(super) fn switch(app: &mut App) -> Vec<AppEffect> {
    let Some(OverlayPane::Input { purpose: InputPurpose::Filter, text }) = app.overlays.last_mut()
    else {
        return Vec::new();
    };
    if let Some(chip) = FILTER_CHIPS.get(app.chip) {
        *text = chip.switched(text);
    }
    input::apply_filter(app)
}

/// Selects the chip at a column of the screen, and switches it on or off.
pub(super) fn click(app: &mut App, x: u16) -> Vec<AppEffect> {
    let places = crate::view::chip_places(app);
    let found = places.iter().position(|place| (place.x..place.right()).contains(&x));
    let Some(chip) = found else { return Vec::new() };
    app.chip = chip;
    switch(app)
}

/// Returns whether the filter is being typed.
pub(super) fn is_open(app: &App) -> bool {
    matches!(app.overlays.last(), Some(OverlayPane::Input { purpose: InputPurpose::Filter, .. }))
}
