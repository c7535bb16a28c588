//! The verbs of each kind, and the options of each verb. Most options are fields of the model.

use super::field_option::{FieldOption, ListedKind};
use forge_store::model::Kind;
use forge_store::model::claim::{
    Agent, Belief, CodeState, Dependency, Evidence, ExecutedCommand, Gap, Hypothesis, Inference,
    Measurement, Message, Note, Notice, Prompt, Task, ToolUse, VerificationResult,
};

const fn option(name: &'static str, help: &'static str) -> FieldOption {
    FieldOption::new(name, help)
}

const CONFIDENCE: FieldOption =
    option("confidence", "Confidence, 0 to 1; also 80%, low, even, high");
const SOURCE: FieldOption = option("source", "Where it comes from");
const NEW_DESCRIPTION: FieldOption = option("description", "New description");
const STATUS_FILTER: FieldOption = option("status", "Only those with this status");

/// The status of a hypothesis, without the two words that only the verbs `confirm` and `reject`
/// set, because rules follow from them.
const HYPOTHESIS_STATUS: FieldOption =
    option("status", "Status of the work on it").except(&["confirmed", "rejected"]);
const PARENT: FieldOption = option("parent", "Hypothesis that it is a special case of");
const ABOUT: FieldOption = option("hypothesis", "Hypothesis that it is about");
const STRENGTH: FieldOption = option(
    "strength",
    "Strength for the hypothesis, from -1 (refutes) to 1 (proves); also weak, moderate, \
     strong, -strong",
);
const EVIDENCE_KIND: FieldOption = option("kind", "Kind of evidence");
const EVIDENCE_SOURCE: FieldOption =
    option("source", "Source: a file and line, a command, a document");
const BELIEF_KIND: FieldOption = option("kind", "Kind of belief");
const GAP_TYPE: FieldOption = option("type", "Kind of gap");
const CRITICALITY: FieldOption = option("criticality", "How much depends on it");
const BLOCKING: FieldOption = option("blocking", "Hypotheses that it blocks, or 'all' or 'none'");
const FILL_STRATEGY: FieldOption = option("fill_strategy", "How it could be filled");
const EFFORT: FieldOption = option("effort", "How much work that is");

macro_rules! kinds {
    ($($record:ident: $name:literal $({ $($constant:ident: $type:ty = $value:expr;)+ })?)+) => {
        $(impl ListedKind for $record {
            const LIST: &'static str = concat!($name, " list");
            const SHOW: &'static str = concat!($name, " show");
            const ADD: &'static str = concat!($name, " add");
            const UPDATE: &'static str = concat!($name, " update");
            const RETRACT: &'static str = concat!($name, " retract");
            $($(const $constant: $type = $value;)+)?
        })+
    };
}

type Options = &'static [FieldOption];

kinds! {
    Hypothesis: "hypothesis" {
        DESCRIPTION: &'static str = "What might explain the problem";
        DEFAULT_STATUS: Option<&'static str> = Some("active");
        ADD_OPTIONS: Options =
            &[CONFIDENCE, HYPOTHESIS_STATUS, PARENT, SOURCE, option("tags", "Tags")];
        UPDATE_OPTIONS: Options = &[
            NEW_DESCRIPTION,
            CONFIDENCE,
            HYPOTHESIS_STATUS,
            option("reason", "Why it has its status"),
            PARENT,
            option("add_tags", "Tags to add").texts(),
            option("remove_tags", "Tags to remove").texts(),
        ];
        LIST_OPTIONS: Options = &[STATUS_FILTER, option("tag", "Only those with this tag")];
    }
    Evidence: "evidence" {
        DESCRIPTION: &'static str = "What was observed";
        ADD_OPTIONS: Options = &[
            ABOUT.required(),
            STRENGTH.required(),
            EVIDENCE_KIND,
            EVIDENCE_SOURCE,
            option("from", "Command that showed it, by its id; 'last' is the last one"),
        ];
        UPDATE_OPTIONS: Options =
            &[NEW_DESCRIPTION, ABOUT, STRENGTH, EVIDENCE_KIND, EVIDENCE_SOURCE];
        LIST_OPTIONS: Options = &[option("hypothesis", "Only those about this hypothesis")];
    }
    Belief: "belief" {
        DESCRIPTION: &'static str = "What is believed to be true";
        ADD_OPTIONS: Options = &[
            BELIEF_KIND,
            CONFIDENCE,
            SOURCE,
            option("hypothesis", "Hypothesis that it rests on"),
            option("evidence", "Evidence for it"),
            option("on", "Beliefs that it rests on").ids_of(Kind::Belief),
        ];
        UPDATE_OPTIONS: Options = &[NEW_DESCRIPTION, BELIEF_KIND, CONFIDENCE, SOURCE];
    }
    Gap: "gap" {
        DESCRIPTION: &'static str = "What is not known";
        DEFAULT_STATUS: Option<&'static str> = Some("open");
        ADD_OPTIONS: Options = &[GAP_TYPE, CRITICALITY, BLOCKING, FILL_STRATEGY, EFFORT];
        UPDATE_OPTIONS: Options = &[
            NEW_DESCRIPTION,
            // Only the verb `fill` sets `filled`: it records the answer too.
            option("status", "Status of the work on it").except(&["filled"]),
            option("resolution", "Why nothing can fill it, or why it no longer matters"),
            GAP_TYPE,
            CRITICALITY,
            BLOCKING,
            FILL_STRATEGY,
            EFFORT,
        ];
        LIST_OPTIONS: Options = &[STATUS_FILTER];
    }
    Note: "note" {
        ADD_OPTIONS: Options = &[SOURCE];
        UPDATE_OPTIONS: Options = &[NEW_DESCRIPTION, SOURCE];
    }
    VerificationResult: "verification" {
        DEFAULT_STATUS: Option<&'static str> = Some("unknown");
        LIST_OPTIONS: Options = &[STATUS_FILTER];
    }
    Measurement: "measurement" {
        LIST_OPTIONS: Options = &[option("name", "Only those with this name")];
    }
    Agent: "agent" {
        NOUN: &'static str = "sub-agent";
    }
    CodeState: "code"
    Dependency: "dependency"
    ExecutedCommand: "command"
    Inference: "inference"
    Message: "message"
    Notice: "notice"
    Prompt: "prompt"
    Task: "task"
    ToolUse: "tool" {
        NOUN: &'static str = "tool call";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forge_store::model::claim::fields;

    /// Options that are not fields of the model. The verbs read them by name.
    const OTHER_OPTIONS: [&str; 5] = ["add_tags", "remove_tags", "on", "tag", "from"];

    #[test]
    fn every_other_option_is_a_field_of_the_model() {
        fn check<K: ListedKind>() {
            let options = [K::ADD_OPTIONS, K::UPDATE_OPTIONS, K::LIST_OPTIONS].concat();
            for option in options.iter().filter(|option| !OTHER_OPTIONS.contains(&option.name)) {
                let known = fields(K::KIND).iter().any(|field| field.name == option.name);
                assert!(known, "{}: {}", K::KIND, option.name);
            }
        }
        check::<Hypothesis>();
        check::<Evidence>();
        check::<Belief>();
        check::<Gap>();
        check::<Note>();
        check::<VerificationResult>();
        check::<Measurement>();
    }
}
