//! The calls of a thread that have no result: pending, rerun.

use super::when_free;
use crate::args::value::Name;
use crate::context::Context;
use crate::error::{CommandError, EXIT_NO};
use crate::given::Given;
use crate::report::thread::{PendingShown, Rerun};
use crate::workplace::{self, Access};
use forge_store::store::Store;
use forge_systems::thread::{CallResult, CallState, Thread};
use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};

/// Arguments of `forge thread pending`.
#[derive(Debug, clap::Args)]
pub struct PendingArgs {
    /// Name the thread
    #[arg(long, value_name = "THREAD")]
    pub thread: Name,

    /// Record that this call is about to be run, before it is
    #[arg(long, value_name = "ID", conflicts_with_all = ["finish", "fail"])]
    pub start: Option<String>,

    /// Record that this call is over
    #[arg(long, value_name = "ID", requires = "result", conflicts_with = "fail")]
    pub finish: Option<String>,

    /// Record that this call has failed
    #[arg(long, value_name = "ID", requires = "result")]
    pub fail: Option<String>,

    /// Give what came of it: a text, '@FILE', or '-' for standard input
    #[arg(long, value_name = "TEXT")]
    pub result: Option<Given>,
}

/// Arguments of `forge thread rerun`.
#[derive(Debug, clap::Args)]
pub struct RerunArgs {
    /// Name the call
    #[arg(value_name = "ID")]
    pub id: String,

    /// Name the thread
    #[arg(long, value_name = "THREAD")]
    pub thread: Name,

    /// Run it although that may do something twice
    #[arg(long)]
    pub yes: bool,

    /// Say who writes
    #[arg(long, value_name = "NAME")]
    pub writer: Option<Name>,

    /// The command that runs the tool: it reads the arguments on its input and prints the result
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<OsString>,
}

pub(super) fn pending(args: &PendingArgs, context: &mut Context) -> Result<(), CommandError> {
    let act = workplace::act(context, "thread pending");
    let marks = args.start.is_some() || args.finish.is_some() || args.fail.is_some();
    let access = if marks { Access::Write } else { Access::Read };
    let store = workplace::open(context, access)?;
    let thread = Thread::open(&store, args.thread.as_str())?;
    if let Some(id) = &args.start {
        thread.start_call(&act, id)?;
    }
    for (id, is_error) in [(&args.finish, false), (&args.fail, true)] {
        if let (Some(id), Some(result)) = (id, &args.result) {
            let content = result.read(context)?;
            thread.finish_call(&act, id, &CallResult { content, is_error })?;
        }
    }
    let status = thread.status(&thread.session().head()?)?;
    context.out.emit(&PendingShown::new(args.thread.as_str(), status.pending))?;
    if marks {
        workplace::finish(&store);
    }
    Ok(())
}

pub(super) fn rerun(args: &RerunArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Write)?;
    let thread = Thread::open(&store, args.thread.as_str())?;
    let (call, arguments) = thread.pending_call(&args.id)?;
    let known = matches!(call.state, CallState::Finished | CallState::Failed);
    let mut report = Rerun::new(args.thread.as_str(), &call, arguments);
    if !known {
        let safe = call.is_safe() || args.yes;
        let question = format!("run '{}' again, which may do something twice?", call.name);
        if !safe && !context.out.ask(&question, |screen| report.told(screen))? {
            context.exit_code = EXIT_NO;
            context.out.emit(&report)?;
            context.out.say(
                "not run: it is not known to be idempotent, or was begun before; '--yes' runs it",
            );
            return Ok(());
        }
        thread.start_call(&workplace::act(context, "thread rerun"), &args.id)?;
        report.state = CallState::Started;
        if args.command.is_empty() {
            report.done =
                "begin it now, and record its result with 'forge thread pending --finish'";
            return context.out.emit(&report);
        }
        let result = run_tool(&args.command, &call.name, &report.arguments, context)?;
        thread.finish_call(&workplace::act(context, "thread rerun"), &args.id, &result)?;
    }
    put_in(args, context, &store, &mut report)
}

/// Puts the recorded result behind the call.
fn put_in(
    args: &RerunArgs,
    context: &mut Context,
    store: &Store,
    report: &mut Rerun,
) -> Result<(), CommandError> {
    let writer = args.writer.as_ref().map(Name::as_str);
    let (call, _) = Thread::open(store, args.thread.as_str())?.pending_call(&args.id)?;
    when_free(context, "thread rerun", |act| {
        Thread::open(store, args.thread.as_str())?.put_result(act, &args.id, writer)
    })?;
    report.state = call.state;
    report.result = call.result;
    report.done = "its result stands behind it";
    context.out.emit(report)?;
    workplace::finish(store);
    Ok(())
}

/// Runs the command with the arguments on its input. What it prints is the result; a failure is an error result.
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
        .map_err(|error| CommandError::io(&format!("cannot run '{}'", program.display()), error))?;
    if let Some(mut input) = child.stdin.take() {
        // A tool need not read its arguments.
        let _ = input.write_all(arguments.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| CommandError::io("cannot wait for the command", error))?;
    let mut content = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    let is_error = !output.status.success();
    if is_error && content.is_empty() {
        content = format!("the tool ended with {}", output.status);
    }
    Ok(CallResult { content, is_error })
}
