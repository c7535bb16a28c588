//! The trait of verbs, and the functions that run them: they open what a verb works on, run the
//! verb, and print or return its report.

use crate::args::lazy::LazyArgs;
use crate::context::Context;
use crate::error::{CommandError, EXIT_OK};
use crate::output::{Report, ReportForm, Screen};
use crate::session_reader::SessionReader;
use crate::session_writer::SessionWriter;
use crate::workspace::{self, SessionNeed, StoreAccess};
use forge_store::store::{Store, WriteContext};
use serde::Serialize;

/// A verb of the command line. The type that implements it holds its arguments.
pub trait Verb {
    /// Its name on the command line: `gap fill`. The operations that it writes have this name, and
    /// its JSON has the schema `forge.gap.fill/1`.
    const NAME: &'static str;
    /// The thing that it works on.
    type Opened: Opened;
    /// The description of what it found or did.
    type Report: Report;

    /// How it uses an [`OpenedStore`].
    const ACCESS: StoreAccess = StoreAccess::Read;
    /// Whether a [`SessionWriter`] may begin a session for it.
    const SESSION: SessionNeed = SessionNeed::Existing;

    /// Returns how it uses an [`OpenedStore`] with these arguments.
    fn access(&self) -> StoreAccess {
        Self::ACCESS
    }

    /// Returns whether a [`SessionWriter`] may begin a session for it with these arguments.
    fn session_need(&self) -> SessionNeed {
        Self::SESSION
    }

    /// Checks, before anything is opened or begun, what can be checked without the store.
    fn check(&self, _: &Context) -> Result<(), CommandError> {
        Ok(())
    }

    fn run(&self, opened: &Self::Opened, context: &mut Context) -> VerbResult<Self>;

    /// Does the work of this verb that follows the printing of its report.
    fn after_report(&self, _: Self::Report, _: &mut Context) -> Result<(), CommandError> {
        Ok(())
    }
}

pub type VerbResult<V> = Result<<V as Verb>::Report, CommandError>;

/// The thing that a verb works on: nothing, a store, or a session to read or to write.
pub trait Opened: Sized {
    /// Opens it for a verb.
    fn open<V: Verb>(verb: &V, context: &Context) -> Result<Self, CommandError>;

    /// Does the work that can wait until the report is printed, such as updating the index.
    fn finish(&self, _: &Context) {}
}

impl Opened for () {
    fn open<V: Verb>(_: &V, _: &Context) -> Result<Self, CommandError> {
        Ok(())
    }
}

/// A store without a chosen session.
pub struct OpenedStore {
    pub store: Store,
    /// The author, verb and time of what is written to it.
    pub write_context: WriteContext,
    access: StoreAccess,
}

impl Opened for OpenedStore {
    fn open<V: Verb>(verb: &V, context: &Context) -> Result<Self, CommandError> {
        let access = verb.access();
        let store = workspace::open_store(context, access)?;
        Ok(Self { store, write_context: workspace::write_context(context, V::NAME), access })
    }

    fn finish(&self, _: &Context) {
        if self.access == StoreAccess::Write {
            workspace::catch_up_index(&self.store);
        }
    }
}

impl Opened for SessionReader {
    fn open<V: Verb>(_: &V, context: &Context) -> Result<Self, CommandError> {
        Self::begin(context)
    }

    fn finish(&self, context: &Context) {
        workspace::catch_up_index(&self.store);
        if context.is_process {
            self.store.skip_cleanup();
        }
    }
}

impl Opened for SessionWriter {
    fn open<V: Verb>(verb: &V, context: &Context) -> Result<Self, CommandError> {
        Self::begin(context, V::NAME, verb.session_need())
    }

    fn finish(&self, _: &Context) {
        workspace::catch_up_index(&self.store);
    }
}

/// Checks the arguments of a verb, and then opens what it works on.
fn open<V: Verb>(verb: &V, context: &Context) -> Result<V::Opened, CommandError> {
    verb.check(context)?;
    V::Opened::open(verb, context)
}

/// Runs a verb and prints its report.
pub fn run_verb<V: Verb>(verb: &V, context: &mut Context) -> Result<(), CommandError> {
    let opened = open(verb, context)?;
    let mut report = verb.run(&opened, context)?;
    context.out.emit(V::NAME, &report)?;
    if report.exit_code() != EXIT_OK {
        context.exit_code = report.exit_code();
    }
    let done = match report.take_failure() {
        Some(error) => Err(error),
        None => verb.after_report(report, context),
    };
    opened.finish(context);
    done
}

/// Runs a verb and returns its report, without printing it.
pub fn find_report<V: Verb>(verb: &V, context: &mut Context) -> VerbResult<V> {
    let opened = open(verb, context)?;
    let report = verb.run(&opened, context)?;
    opened.finish(context);
    Ok(report)
}

/// A verb, or a group of verbs, as clap parses it.
pub trait Command {
    /// Runs the verb and prints its report.
    fn execute(&self, context: &mut Context) -> Result<(), CommandError>;

    /// Adds the names of its verbs.
    fn add_names(names: &mut Vec<&'static str>);
}

impl<V: Verb> Command for V {
    fn execute(&self, context: &mut Context) -> Result<(), CommandError> {
        run_verb(self, context)
    }

    fn add_names(names: &mut Vec<&'static str>) {
        names.push(V::NAME);
    }
}

impl<C: Command> Command for LazyArgs<C> {
    fn execute(&self, context: &mut Context) -> Result<(), CommandError> {
        C::execute(self, context)
    }

    fn add_names(names: &mut Vec<&'static str>) {
        C::add_names(names);
    }
}

/// Adds the names of the verbs of a variant.
pub(crate) fn add_names_of<G, C: Command>(_: fn(C) -> G, names: &mut Vec<&'static str>) {
    C::add_names(names);
}

/// Implements [`Command`] for an enum of clap: each variant holds a verb or a group of verbs.
macro_rules! commands {
    ($group:ident $(<$kind:ident>)?: $($variant:ident),+ $(,)?) => {
        impl $(<$kind: crate::args::field_option::ListedKind>)? crate::verb::Command
            for $group $(<$kind>)?
        {
            fn execute(
                &self,
                context: &mut crate::context::Context,
            ) -> Result<(), crate::error::CommandError> {
                match self {
                    $(Self::$variant(verb) => crate::verb::Command::execute(verb, context),)+
                }
            }

            fn add_names(names: &mut Vec<&'static str>) {
                $(crate::verb::add_names_of(Self::$variant, names);)+
            }
        }
    };
}
pub(crate) use commands;

/// The report of a verb that prints its results while it runs.
#[derive(Debug, Serialize)]
pub struct PrintedReport;

impl Report for PrintedReport {
    fn form(&self) -> ReportForm<'_> {
        ReportForm::Printed
    }
}

/// A report that is `None` if the verb has printed its results while it ran.
impl<R: Report> Report for Option<R> {
    fn schema(&self) -> Option<&'static str> {
        self.as_ref().and_then(Report::schema)
    }

    fn form(&self) -> ReportForm<'_> {
        self.as_ref().map_or(ReportForm::Printed, Report::form)
    }

    fn exit_code(&self) -> u8 {
        self.as_ref().map_or(EXIT_OK, Report::exit_code)
    }

    fn take_failure(&mut self) -> Option<CommandError> {
        self.as_mut().and_then(Report::take_failure)
    }

    fn human(&self, screen: &mut Screen) {
        if let Some(report) = self {
            report.human(screen);
        }
    }
}

/// A report that consists of bytes, such as a script or a manual page.
#[derive(Debug, Serialize)]
pub struct RawReport(pub Vec<u8>);

impl Report for RawReport {
    fn form(&self) -> ReportForm<'_> {
        ReportForm::Bytes(&self.0)
    }
}

/// One of two reports, depending on the arguments.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum EitherReport<A, B> {
    First(A),
    Second(B),
}

impl<A: Report, B: Report> Report for EitherReport<A, B> {
    fn schema(&self) -> Option<&'static str> {
        match self {
            Self::First(report) => report.schema(),
            Self::Second(report) => report.schema(),
        }
    }

    fn form(&self) -> ReportForm<'_> {
        match self {
            Self::First(report) => report.form(),
            Self::Second(report) => report.form(),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::First(report) => report.exit_code(),
            Self::Second(report) => report.exit_code(),
        }
    }

    fn take_failure(&mut self) -> Option<CommandError> {
        match self {
            Self::First(report) => report.take_failure(),
            Self::Second(report) => report.take_failure(),
        }
    }

    fn human(&self, screen: &mut Screen) {
        match self {
            Self::First(report) => report.human(screen),
            Self::Second(report) => report.human(screen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{ForgeArgs, GlobalArgs};
    use crate::commands::ForgeCommand;
    use crate::context::Environment;
    use clap::CommandFactory;

    /// A report with an exit code and a failure.
    #[derive(Serialize)]
    struct FailingReport {}

    impl Report for FailingReport {
        fn exit_code(&self) -> u8 {
            9
        }

        fn take_failure(&mut self) -> Option<CommandError> {
            Some(CommandError::invalid("it failed"))
        }
    }

    struct FailingVerb;

    /// Notes in the context that it was finished.
    struct FinishedThing;

    impl Opened for FinishedThing {
        fn open<V: Verb>(_: &V, _: &Context) -> Result<Self, CommandError> {
            Ok(Self)
        }

        fn finish(&self, context: &Context) {
            context.unverified.set(true);
        }
    }

    impl Verb for FailingVerb {
        const NAME: &'static str = "fail";
        type Opened = FinishedThing;
        type Report = Option<EitherReport<FailingReport, PrintedReport>>;

        fn run(&self, _: &FinishedThing, _: &mut Context) -> VerbResult<Self> {
            Ok(Some(EitherReport::First(FailingReport {})))
        }
    }

    /// Regression: a report inside another one lost its exit code and its failure, and after a
    /// failure the index was not brought up to date.
    #[test]
    fn a_verb_whose_report_has_a_failure_fails_and_the_index_is_still_updated() {
        let environment = Environment::default();
        let mut context = Context::capturing(GlobalArgs::default(), environment).unwrap();
        let failed = run_verb(&FailingVerb, &mut context).unwrap_err();
        assert_eq!((failed.message(), context.exit_code), ("it failed", 9));
        assert!(context.unverified.get());
    }

    fn add_leaves(command: &clap::Command, name: &str, leaves: &mut Vec<String>) {
        let mut subcommands = command.get_subcommands().peekable();
        if subcommands.peek().is_none() {
            leaves.push(name.to_owned());
        }
        for sub in subcommands {
            add_leaves(sub, format!("{name} {}", sub.get_name()).trim(), leaves);
        }
    }

    #[test]
    fn every_command_of_clap_is_one_verb_with_its_name() {
        let mut tree = ForgeArgs::command();
        tree.build();
        let mut leaves = Vec::new();
        add_leaves(&tree, "", &mut leaves);
        let mut names = Vec::new();
        ForgeCommand::add_names(&mut names);
        assert!(names.len() > 100, "{names:?}");
        leaves.sort();
        names.sort_unstable();
        assert_eq!(leaves, names);
    }
}
