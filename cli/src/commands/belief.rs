//! `forge belief`.

use crate::args::select::{ClaimList, Show};
use crate::args::value::{self, Name};
use crate::context::Context;
use crate::error::CommandError;
use forge_store::model::claim::{BeliefKind, DependencyType};

/// How one belief may rest on another; that it contradicts another is said by `contradict`.
const DEPENDENCY_TYPES: &[DependencyType] = &[
    DependencyType::Requires,
    DependencyType::DerivesFrom,
    DependencyType::Assumes,
    DependencyType::Supports,
];

/// Record what is held to be true and what it rests on.
#[derive(Debug, clap::Subcommand)]
pub enum BeliefCommand {
    /// State a belief
    Add(AddArgs),
    /// Change fields of a belief
    Update(UpdateArgs),
    /// Say that one belief rests on another
    Depend(DependArgs),
    /// Say that two beliefs cannot both be true
    Contradict(ContradictArgs),
    /// Say what a belief rests on and what rests on it
    Why(WhyArgs),
    /// List beliefs
    List(ClaimList),
    /// Show one belief
    Show(Show),
}

/// Arguments of `forge belief add`.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// Say what is held to be true
    #[arg(value_name = "DESCRIPTION")]
    pub description: String,

    /// Give it this id instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<Name>,

    /// Say what kind of belief it is
    #[arg(long, value_name = "KIND", value_parser = value::words::<BeliefKind>())]
    pub kind: Option<BeliefKind>,

    /// Say how sure it is, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = value::share, allow_negative_numbers = true)]
    pub confidence: Option<f64>,

    /// Say where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// Name the hypothesis it is about
    #[arg(long, value_name = "ID")]
    pub hypothesis: Option<String>,

    /// Name the evidence for it
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub evidence: Vec<String>,

    /// Say which beliefs it rests on
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub on: Vec<String>,
}

/// Arguments of `forge belief update`.
#[derive(Debug, clap::Args)]
pub struct UpdateArgs {
    /// Name it by its id or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// Say it in other words
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,

    /// Say what kind of belief it is
    #[arg(long, value_name = "KIND", value_parser = value::words::<BeliefKind>())]
    pub kind: Option<BeliefKind>,

    /// Say how sure it is, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = value::share, allow_negative_numbers = true)]
    pub confidence: Option<f64>,

    /// Say where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
}

/// Arguments of `forge belief depend`.
#[derive(Debug, clap::Args)]
pub struct DependArgs {
    /// Name the belief that rests on another
    #[arg(value_name = "ID")]
    pub id: String,

    /// Name the belief it rests on
    #[arg(value_name = "ON")]
    pub on: String,

    /// Say what kind of dependency it is
    #[arg(long = "type", value_name = "TYPE", value_parser = value::words_of(DEPENDENCY_TYPES))]
    pub dependency_type: Option<DependencyType>,

    /// Say how much it depends, from -1 to 1
    #[arg(
        long,
        value_name = "STRENGTH",
        value_parser = value::strength,
        allow_negative_numbers = true
    )]
    pub strength: Option<f64>,
}

/// Arguments of `forge belief contradict`.
#[derive(Debug, clap::Args)]
pub struct ContradictArgs {
    /// Name one belief
    #[arg(value_name = "ID")]
    pub id: String,

    /// Name the other belief
    #[arg(value_name = "OTHER")]
    pub other: String,

    /// Say why they cannot both be true
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Arguments of `forge belief why`.
#[derive(Debug, clap::Args)]
pub struct WhyArgs {
    /// Name it by its id or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,
}

/// Does it.
pub fn run(command: &BeliefCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        BeliefCommand::Add(args) => add(args, context),
        BeliefCommand::Update(args) => update(args, context),
        BeliefCommand::Depend(args) => depend(args, context),
        BeliefCommand::Contradict(args) => contradict(args, context),
        BeliefCommand::Why(args) => why(args, context),
        BeliefCommand::List(args) => list(args, context),
        BeliefCommand::Show(args) => show(args, context),
    }
}

fn add(_args: &AddArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn update(_args: &UpdateArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn depend(_args: &DependArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn contradict(_args: &ContradictArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn why(_args: &WhyArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn list(_args: &ClaimList, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn show(_args: &Show, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}
