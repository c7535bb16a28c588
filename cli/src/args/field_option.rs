//! Arguments of the verbs that add, change and list entities. Their options come from the model's
//! table of fields.

use super::value::{self, NameArg};
use clap::builder::PossibleValuesParser;
use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use forge_store::model::claim::{FieldShape, TypedRecord, fields, referenced_kind};
use forge_store::model::{FieldMap, Kind, Value};
use std::marker::PhantomData;

/// A field as an option of the command line. Its type comes from the model's table.
#[derive(Clone, Copy, Debug)]
pub struct FieldOption {
    /// The field. Its option has the same name, with `-` for `_`.
    pub name: &'static str,
    pub help: &'static str,
    /// Words of the field that the option refuses, because other verbs set them and apply rules.
    except: &'static [&'static str],
    /// The kind of the ids in it, if it is not a field of the table.
    ids_of: Option<Kind>,
    /// Its shape, if it is not a field of the table.
    shape: FieldShape,
    is_required: bool,
}

impl FieldOption {
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help, except: &[], ids_of: None, shape: FieldShape::Text, is_required: false }
    }

    pub const fn except(mut self, words: &'static [&'static str]) -> Self {
        self.except = words;
        self
    }

    pub const fn ids_of(mut self, kind: Kind) -> Self {
        self.ids_of = Some(kind);
        self.texts()
    }

    pub const fn texts(mut self) -> Self {
        self.shape = FieldShape::Texts;
        self
    }

    pub const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Returns the kind of the ids in the field, if it contains ids.
    pub fn referenced_kind(&self, kind: Kind) -> Option<Kind> {
        self.ids_of.or_else(|| referenced_kind(kind, self.name))
    }

    fn shape(&self, kind: Kind) -> FieldShape {
        let field = fields(kind).iter().find(|field| field.name == self.name);
        field.map_or(self.shape, |field| field.shape)
    }

    fn arg(&self, kind: Kind) -> Arg {
        let holds_ids = self.referenced_kind(kind).is_some();
        let last_word = self.name.rsplit('_').next().unwrap_or_default().to_uppercase();
        let arg = Arg::new(self.name).long(self.name.replace('_', "-")).help(self.help);
        let arg = arg.required(self.is_required).short(short_of(self.name));
        match self.shape(kind) {
            FieldShape::Word(words) => {
                let words = words.iter().filter(|word| !self.except.contains(word)).copied();
                arg.value_name(last_word).value_parser(PossibleValuesParser::new(words))
            }
            FieldShape::Number(least, most) => arg
                .value_name(if least < 0.0 { "STRENGTH" } else { "SHARE" })
                .allow_hyphen_values(least < 0.0)
                .value_parser(move |text: &str| value::parse_degree(text, least, most)),
            FieldShape::Texts if holds_ids => {
                arg.value_name("ID,...").value_delimiter(',').action(ArgAction::Append)
            }
            FieldShape::Texts => arg
                .value_name("TAG,...")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .value_parser(|text: &str| text.parse().map(|name: NameArg| name.to_string())),
            FieldShape::Text | FieldShape::Other if holds_ids => arg.value_name("ID"),
            FieldShape::Text | FieldShape::Other => match self.name {
                "source" | "name" => arg.value_name(last_word),
                "tag" => arg.value_name(last_word).value_parser(value::one_tag),
                "description" | "reason" | "resolution" => {
                    arg.value_name("TEXT").value_parser(value::non_empty_text)
                }
                _ => arg.value_name("TEXT"),
            },
        }
    }

    fn value(&self, kind: Kind, matches: &ArgMatches) -> Option<Value> {
        match self.shape(kind) {
            FieldShape::Number(..) => {
                matches.get_one::<f64>(self.name).map(|number| (*number).into())
            }
            FieldShape::Texts => {
                let texts = matches.get_many::<String>(self.name)?;
                Some(texts.cloned().collect::<Vec<_>>().into())
            }
            _ => matches.get_one::<String>(self.name).map(|text| text.as_str().into()),
        }
    }
}

/// Returns the short form of the option for a field. It is the same for every kind.
fn short_of(field: &str) -> Option<char> {
    Some(match field {
        "confidence" => 'c',
        "description" => 'm',
        "hypothesis" => 'H',
        "strength" => 's',
        "tag" | "tags" | "add_tags" => 't',
        "parent" => 'p',
        _ => return None,
    })
}

/// A kind that has its own verbs on the command line.
pub trait ListedKind: TypedRecord {
    /// The noun for one entity of the kind in the help of its verbs. The plural adds an `s`.
    const NOUN: &'static str = Self::KIND.name();
    /// The name of its verb `list`.
    const LIST: &'static str;
    /// The name of its verb `show`.
    const SHOW: &'static str;
    /// The name of its verb `add`, if it has one.
    const ADD: &'static str;
    /// The name of its verb `update`, if it has one.
    const UPDATE: &'static str;
    /// The name of its verb `retract`, if it has one.
    const RETRACT: &'static str;
    /// The help of the argument with the description of a new entity.
    const DESCRIPTION: &'static str = "Text";
    /// The status of a new entity, and of an entity without a status.
    const DEFAULT_STATUS: Option<&'static str> = None;
    /// The options of `add`, besides the description.
    const ADD_OPTIONS: &'static [FieldOption] = &[];
    /// The options of `update`.
    const UPDATE_OPTIONS: &'static [FieldOption] = &[];
    /// The options that select the entities to list.
    const LIST_OPTIONS: &'static [FieldOption] = &[];
}

/// The verb that has fields as options.
pub trait FieldUse {
    fn options<K: ListedKind>() -> &'static [FieldOption];
}

/// Fields of a claim or fact that were given as options.
#[derive(Clone, Debug)]
pub struct FieldArgs<K, U> {
    /// The fields that were given.
    pub fields: FieldMap,
    kind: PhantomData<fn() -> (K, U)>,
}

impl<K, U> From<FieldMap> for FieldArgs<K, U> {
    fn from(fields: FieldMap) -> Self {
        Self { fields, kind: PhantomData }
    }
}

impl<K: ListedKind, U: FieldUse> Args for FieldArgs<K, U> {
    fn augment_args(command: Command) -> Command {
        U::options::<K>().iter().fold(command, |command, option| command.arg(option.arg(K::KIND)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<K: ListedKind, U: FieldUse> FromArgMatches for FieldArgs<K, U> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let options = U::options::<K>().iter();
        let given = options
            .filter_map(|option| Some((option.name.to_owned(), option.value(K::KIND, matches)?)));
        Ok(given.collect::<FieldMap>().into())
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Fields of a new claim.
#[derive(Clone, Debug)]
pub enum Added {}
/// Fields of a claim to change.
#[derive(Clone, Debug)]
pub enum Changed {}
/// Fields that listed entities have.
#[derive(Clone, Debug)]
pub enum Listed {}

impl FieldUse for Added {
    fn options<K: ListedKind>() -> &'static [FieldOption] {
        K::ADD_OPTIONS
    }
}

impl FieldUse for Changed {
    fn options<K: ListedKind>() -> &'static [FieldOption] {
        K::UPDATE_OPTIONS
    }
}

impl FieldUse for Listed {
    fn options<K: ListedKind>() -> &'static [FieldOption] {
        K::LIST_OPTIONS
    }
}

impl<K: ListedKind> FieldArgs<K, Listed> {
    /// Whether an entity has all these fields. `tag` is one of its tags, and an absent status is
    /// the kind's default.
    pub fn match_value(&self, value: &Value) -> bool {
        self.fields.iter().all(|(name, wanted)| match (name.as_str(), wanted.as_text()) {
            ("tag", wanted) => {
                let tags = value.field("tags").and_then(Value::as_list).unwrap_or_default();
                tags.iter().any(|tag| tag.as_text() == wanted)
            }
            (name, wanted) => {
                value.field(name).and_then(Value::as_text).or(match name {
                    "status" => K::DEFAULT_STATUS,
                    _ => None,
                }) == wanted
            }
        })
    }
}
