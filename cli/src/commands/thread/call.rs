//! The calls of a thread without a result: pending, rerun.

use super::retry_while_held;
use crate::args::value::NameArg;
use crate::context::Context;
use crate::error::{CommandError, EXIT_NO};
use crate::report::thread::{ThreadPendingReport, ThreadRerunReport};
use crate::text_arg::TextArg;
use crate::workspace::{self, StoreAccess};
use forge_store::store::Store;
use forge_systems::thread::{CallResult, CallState, Thread};
use std::ffi::OsString;
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
    #[arg(long, value_name = "TEXT")]
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

pub(super) fn pending(args: &ThreadPendingArgs, context: &mut Context) -> Result<(), CommandError> {
    let act = workspace::write_context(context, "thread pending");
    let marks = args.start.is_some() || args.finish.is_some() || args.fail.is_some();
    let access = if marks { StoreAccess::Write } else { StoreAccess::Read };
    let store = workspace::open_store(context, access)?;
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
    context.out.emit(&ThreadPendingReport::new(args.thread.as_str(), status.pending))?;
    if marks {
        workspace::catch_up_index(&store);
    }
    Ok(())
}

pub(super) fn rerun(args: &ThreadRerunArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Write)?;
    let thread = Thread::open(&store, args.thread.as_str())?;
    let (call, arguments) = thread.pending_call(&args.id)?;
    let known = matches!(call.state, CallState::Finished | CallState::Failed);
    let mut report = ThreadRerunReport::new(args.thread.as_str(), &call, arguments);
    if !known {
        let safe = call.is_safe() || args.yes;
        let question = format!("run '{}' again, which may do something twice?", call.name);
        if !safe && !context.out.ask(&question, |screen| report.print_call(screen))? {
            context.exit_code = EXIT_NO;
            context.out.emit(&report)?;
            context.out.print_status(
                "not run: it is not known to be idempotent, or was begun before; '--yes' runs it",
            );
            return Ok(());
        }
        thread.start_call(&workspace::write_context(context, "thread rerun"), &args.id)?;
        report.state = CallState::Started;
        if args.command.is_empty() {
            report.done =
                "begin it now, and record its result with 'forge thread pending --finish'";
            return context.out.emit(&report);
        }
        let result = run_tool(&args.command, &call.name, &report.arguments, context)?;
        thread.finish_call(
            &workspace::write_context(context, "thread rerun"),
            &args.id,
            &result,
        )?;
    }
    insert_result(args, context, &store, &mut report)
}

/// Inserts the recorded result after the call.
fn insert_result(
    args: &ThreadRerunArgs,
    context: &mut Context,
    store: &Store,
    report: &mut ThreadRerunReport,
) -> Result<(), CommandError> {
    let writer = args.writer.as_ref().map(NameArg::as_str);
    let (call, _) = Thread::open(store, args.thread.as_str())?.pending_call(&args.id)?;
    retry_while_held(context, "thread rerun", |act| {
        Thread::open(store, args.thread.as_str())?.put_result(act, &args.id, writer)
    })?;
    report.state = call.state;
    report.result = call.result;
    report.done = "its result is in the thread";
    context.out.emit(report)?;
    workspace::catch_up_index(store);
    Ok(())
}

/// Runs the command with the arguments as input. Its output is the result; a failure is an error
/// result.
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
        // A tool may ignore its arguments.
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
