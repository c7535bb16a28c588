//! The commands for the calls in a thread that have no result: `pending` and `rerun`.

use super::{open_thread, retry_while_held};
use crate::args::value::NameArg;
use crate::context::Context;
use crate::error::CommandError;
use crate::integration::binary::is_program;
use crate::report::thread::{ThreadPendingReport, ThreadRerunReport};
use crate::text_arg::TextArg;
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::StoreAccess;
use forge_store::shell::quoted;
use forge_systems::thread::{CallResult, CallState, Thread};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::process::{Command, Stdio};

/// Arguments of `forge thread pending`.
#[derive(Debug, clap::Args)]
pub struct ThreadPendingArgs {
    /// Thread
    #[arg(long, value_name = "THREAD")]
    pub thread: NameArg,

    /// Call to record as started, before it runs
    #[arg(long, value_name = "ID", conflicts_with_all = ["finish", "fail"])]
    pub start: Option<String>,

    /// Call to record as finished
    #[arg(long, value_name = "ID", requires = "result", conflicts_with = "fail")]
    pub finish: Option<String>,

    /// Call to record as failed
    #[arg(long, value_name = "ID", requires = "result")]
    pub fail: Option<String>,

    /// Result: a text, '@FILE', or '-' for standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub result: Option<TextArg>,
}

/// Arguments of `forge thread rerun`.
#[derive(Debug, clap::Args)]
pub struct ThreadRerunArgs {
    /// Call
    #[arg(value_name = "ID")]
    pub id: String,

    /// Thread
    #[arg(long, value_name = "THREAD")]
    pub thread: NameArg,

    /// Run it, although that can do something twice
    #[arg(long)]
    pub yes: bool,

    /// Name of the writer
    #[arg(long, value_name = "NAME")]
    pub writer: Option<NameArg>,

    /// Command that runs the tool: it reads the arguments on its input and prints the result
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<OsString>,
}

impl Verb for ThreadPendingArgs {
    const NAME: &'static str = "thread pending";
    type Opened = OpenedStore;
    type Report = ThreadPendingReport;

    fn access(&self) -> StoreAccess {
        let marks = self.start.is_some() || self.finish.is_some() || self.fail.is_some();
        if marks { StoreAccess::Write } else { StoreAccess::Read }
    }

    fn check(&self, _: &Context) -> Result<(), CommandError> {
        if self.result.is_some() && self.finish.is_none() && self.fail.is_none() {
            let hint = match self.start {
                Some(_) => "use '--finish ID' or '--fail ID' instead of '--start'",
                None => "add '--finish ID' or '--fail ID'",
            };
            return Err(
                CommandError::invalid("a result needs the call that it belongs to").hinted(hint)
            );
        }
        Ok(())
    }

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let OpenedStore { store, write_context, .. } = opened;
        let thread = open_thread(store, &self.thread)?;
        if let Some(id) = &self.start {
            thread.start_call(write_context, id)?;
        }
        for (id, is_error) in [(&self.finish, false), (&self.fail, true)] {
            if let (Some(id), Some(result)) = (id, &self.result) {
                let content = result.read(context)?;
                thread.finish_call(write_context, id, &CallResult { content, is_error })?;
            }
        }
        let status = thread.status(&thread.session().head()?)?;
        Ok(ThreadPendingReport::new(self.thread.as_str(), status.pending))
    }
}

impl Verb for ThreadRerunArgs {
    const NAME: &'static str = "thread rerun";
    type Opened = OpenedStore;
    type Report = ThreadRerunReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let thread = open_thread(&opened.store, &self.thread)?;
        let (call, arguments) = thread.pending_call(&self.id).map_err(|error| {
            CommandError::from(error)
                .hinted("'forge thread pending --thread NAME' lists the calls without a result")
        })?;
        let has_result = matches!(call.state, CallState::Finished | CallState::Failed);
        let mut report = ThreadRerunReport::new(self.thread.as_str(), &call, arguments);
        if !has_result {
            self.check_program(context)?;
            let safe = call.is_safe() || self.yes;
            let question = format!("run '{}' again, which may do something twice?", call.name);
            if !safe && !context.out.ask(&question, |screen| report.print_call(screen))? {
                report.is_refused = true;
                return Ok(report);
            }
            thread.start_call(&opened.write_context, &self.id)?;
            report.state = CallState::Started;
            if self.command.is_empty() {
                report.done =
                    "begin it now, and record its result with 'forge thread pending --finish'";
                return Ok(report);
            }
            let result = run_tool(&self.command, &call.name, &report.arguments, context)?;
            thread.finish_call(&opened.write_context, &self.id, &result)?;
        }
        insert_result(self, context, &thread, &mut report)?;
        Ok(report)
    }

    fn after_report(
        &self,
        report: Self::Report,
        context: &mut Context,
    ) -> Result<(), CommandError> {
        if report.is_refused {
            context.out.print_status(
                "not run: it is not known to be idempotent, or was begun before; '--yes' runs it",
            );
        }
        Ok(())
    }
}

impl ThreadRerunArgs {
    /// Refuses a program that is missing, before anyone is asked and the call counts as started.
    fn check_program(&self, context: &Context) -> Result<(), CommandError> {
        let Some(program) = self.command.first().filter(|program| is_missing(program, context))
        else {
            return Ok(());
        };
        let (thread, id) = (quoted(self.thread.as_str()), quoted(&self.id));
        let missing = format!("there is no program '{}': the call was not run", program.display());
        Err(CommandError::not_found(missing)
            .hinted("name a program after '--', by its path if it is not on PATH")
            .hinted(format!(
                "or run the tool yourself: 'forge thread pending --thread {thread} --finish {id} \
                 --result TEXT' records its result"
            )))
    }
}

/// Whether there is no file that the program of a command can be.
fn is_missing(program: &OsStr, context: &Context) -> bool {
    if program.as_encoded_bytes().contains(&b'/') {
        return !context.cwd.join(program).is_file();
    }
    let Some(path) = context.environment.value("PATH") else { return false };
    let mut folders = std::env::split_paths(path).map(|folder| context.cwd.join(folder));
    !folders.any(|folder| is_program(&folder.join(program)))
}

/// Inserts the recorded result of the call into the thread.
fn insert_result(
    args: &ThreadRerunArgs,
    context: &Context,
    thread: &Thread,
    report: &mut ThreadRerunReport,
) -> Result<(), CommandError> {
    let writer = args.writer.as_ref().map(NameArg::as_str);
    let (call, _) = thread.pending_call(&args.id)?;
    retry_while_held(context, ThreadRerunArgs::NAME, |act| {
        thread.put_result(act, &args.id, writer)
    })?;
    report.state = call.state;
    report.result = call.result;
    report.done = "its result is in the thread";
    Ok(())
}

/// Runs the command with the arguments as input. Its output is the result, which is an error if the
/// command fails.
fn run_tool(
    command: &[OsString],
    tool: &str,
    arguments: &str,
    context: &Context,
) -> Result<CallResult, CommandError> {
    let (program, rest) = command.split_first().expect("it is not empty");
    let mut child = Command::new(program)
        .args(rest)
        .current_dir(&context.cwd)
        .env("FORGE_TOOL", tool)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| {
            CommandError::io(&format!("cannot run '{}'", program.display()), error).hinted(
                "nothing ran, though the call counts as started: '--yes' with a program that can \
                 be run runs it",
            )
        })?;
    let input = child.stdin.take();
    let output = std::thread::scope(|scope| {
        // A tool may print before it has read all of its arguments, and may ignore them.
        scope.spawn(move || input.map(|mut input| input.write_all(arguments.as_bytes())));
        child.wait_with_output()
    });
    let output = output.map_err(|error| CommandError::io("cannot wait for the command", error))?;
    let mut content = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    let is_error = !output.status.success();
    if is_error && content.is_empty() {
        content = format!("the tool ended with {}", output.status);
    }
    Ok(CallResult { content, is_error })
}
