//! Finds which check a script or target runs, by the words in its name.

use super::CheckKind;
use super::call_arguments::{plain_words, rest_of};
use super::check_call::CheckCall;
use super::non_checking::{checks_nothing, is_non_checking};
use super::tools::{
    CHECK_WORDS, DirectNames, FORMAT_WORDS, MAKING_WORDS, OTHER_WORDS, SCRIPT_WORDS, ScriptTool,
    tools_of,
};

/// Returns the check that a tool for scripts runs, such as `npm run test` or `make lint`.
pub(super) fn script_call(
    scripts: &'static ScriptTool,
    program: &str,
    arguments: &[&str],
) -> Option<CheckCall> {
    // These pass the words after the name of the script on to it.
    let passes_on = matches!(program, "just" | "mise" | "rtx");
    let own = arguments.iter().take_while(|word| !passes_on || script_check(word).is_none());
    let own: Vec<&str> = own.copied().collect();
    let listed = arguments.iter().any(|word| is_non_checking(program, word));
    if listed || checks_nothing(program, "script", &own) {
        return None;
    }
    let tool = scripts.programs.first()?;
    let run = scripts.runs.iter().find_map(|run| Some((*run, rest_of(tool, run, arguments)?)));
    let (run, rest) = run.map_or((None, arguments.to_vec()), |(run, rest)| (Some(run), rest));
    let many = matches!(run, Some("run-many" | "affected"));
    // These also run programs, whose words and summaries are known.
    let runs_programs = match program {
        "pnpm" => run.is_none(),
        "yarn" | "bun" | "hatch" | "pdm" | "pixi" | "devbox" | "rye" | "poetry" | "pipenv" => true,
        _ => false,
    };
    let mut plain = plain_words(tool, &rest, many);
    let at = plain.iter().position(|(_, word)| {
        let direct = match scripts.direct {
            _ if runs_programs && is_tool(word) => false,
            _ if run.is_some() => true,
            DirectNames::All => !matches!(*word, "ci" if matches!(*tool, "pnpm" | "yarn")),
            DirectNames::Only(names) => names.contains(word),
        };
        direct && check_of(scripts, word).is_some()
    })?;
    // Before the name there is another word, such as a subcommand: it decides what the name means.
    if at > 0 && (run.is_some() || !RUN_MANY.contains(tool)) && !many {
        return None;
    }
    let (index, script) = plain.remove(at);
    let skips_tests = |word: &&str| {
        (word.starts_with("-DskipTests") || word.starts_with("-Dmaven.test.skip"))
            && !word.ends_with("=false")
    };
    let check = if *tool == "mvn" && arguments.iter().any(skips_tests) {
        CheckKind::Build
    } else {
        check_of(scripts, script)?
    };
    let name = match run {
        Some(run) => format!("{program} {run} {script}"),
        None => format!("{program} {script}"),
    };
    let mut rest = rest;
    rest.remove(index);
    let found = CheckCall::new(check, tool, full_name(scripts, script), name, &rest);
    Some(CheckCall { may_not_run: arguments.contains(&"--if-present"), ..found })
}

/// The tools that accept several names and run each of them.
const RUN_MANY: [&str; 12] = [
    "make", "just", "mise", "task", "mvn", "gradle", "rake", "ant", "gulp", "grunt", "turbo",
    "npm-run-all",
];

/// Returns the kind of check that a script with this name is, if it is one.
fn check_of(scripts: &ScriptTool, name: &str) -> Option<CheckKind> {
    let name = full_name(scripts, name);
    // The path of a project does not say what its task does. A task of nx may have a colon in its
    // name: `test:integration`.
    let name = match (scripts.programs.first(), name.split_once(':')) {
        (Some(&"gradle"), _) => name.rsplit(':').next().unwrap_or(name),
        (Some(&"nx"), Some((project, task))) if script_word(project).is_none() => {
            task.split(':').next().unwrap_or(task)
        }
        _ => name,
    };
    let own = scripts.names.iter().find(|(own, _)| *own == name);
    own.map(|(_, check)| *check).or_else(|| script_check(name))
}

/// Returns the full name of a script. npm and pnpm have short names for `test`.
fn full_name<'n>(scripts: &ScriptTool, name: &'n str) -> &'n str {
    match name {
        "t" | "tst" if scripts.programs.contains(&"npm") => "test",
        "t" if scripts.programs.contains(&"pnpm") => "test",
        name => name,
    }
}

/// Returns the kind of check that a word in a script's name means, if it means one.
fn script_word(word: &str) -> Option<CheckKind> {
    SCRIPT_WORDS.iter().find(|(_, words)| words.contains(&word)).map(|(check, _)| *check)
}

/// Returns the kind of check that the words in a script's name mean, if they mean one.
fn script_check(name: &str) -> Option<CheckKind> {
    let parts = parts(name);
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(&part.as_str()));
    let checks = has(CHECK_WORDS);
    if has(OTHER_WORDS) || !checks && has(MAKING_WORDS) {
        return None;
    }
    let known = parts.iter().filter_map(|part| script_word(part));
    let format = (checks && has(FORMAT_WORDS)).then_some(CheckKind::Lint);
    let check = known.max().or(format);
    // A word such as `type` makes a check only together with `check`.
    let only_kind = parts.iter().all(|part| matches!(part.as_str(), "type" | "types" | "style"));
    let check = check.filter(|_| !only_kind).or(checks.then_some(CheckKind::Test))?;
    Some(if only_builds(&parts) { CheckKind::Build } else { check })
}

/// Whether these words of a script's name mean that it builds what the other words name:
/// `compileTestKotlin`, `testClasses`, `build:test`. `build-and-test` also tests.
fn only_builds(parts: &[String]) -> bool {
    let is = |part: Option<&String>, words: &[&str]| {
        part.is_some_and(|part| words.contains(&part.as_str()))
    };
    (is(parts.first(), &["assemble", "build", "compile"]) || is(parts.last(), &["classes"]))
        && !parts.iter().any(|part| part == "and")
}

/// Splits a name such as `test:unit`, `lint-all` or `:app:testDebugUnitTest` into words in lower
/// case.
fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for piece in name.split([':', '-', '_', '.', '/', '+', '@']) {
        let mut part = String::new();
        for character in piece.chars() {
            if character.is_ascii_uppercase() && part.ends_with(|c: char| c.is_ascii_lowercase()) {
                parts.push(std::mem::take(&mut part));
            }
            part.push(character.to_ascii_lowercase());
        }
        parts.push(part);
    }
    parts
}

/// Returns the check of a project script whose file is named after a check: `./scripts/test.sh`,
/// `ci.sh`.
pub(super) fn script_file_call(words: &[&str]) -> Option<CheckCall> {
    let (file, rest) = words.split_first()?;
    let name = file.rsplit(['/', '\\']).next()?;
    let endings = [".sh", ".bash", ".ps1", ".bat", ".cmd"];
    let stem = endings.iter().find_map(|ending| name.strip_suffix(ending));
    if stem.is_none() && (name.contains('.') || !file.contains(['/', '\\'])) {
        return None;
    }
    let stem = stem.unwrap_or(name);
    let word = stem.strip_prefix("run-").or_else(|| stem.strip_prefix("run_")).unwrap_or(stem);
    let known = script_word(word).is_some()
        || CHECK_WORDS.contains(&word)
        || (stem.len() < name.len() && is_name_of_tests(word) && script_check(word).is_some());
    // `/usr/bin/test` does not check a project.
    if !known || is_tool(name) || file.starts_with("/usr/") || file.starts_with("/bin/") {
        return None;
    }
    let check = script_check(word).unwrap_or(CheckKind::Test);
    let call = file.trim_start_matches("./").trim_start_matches(".\\");
    Some(CheckCall::new(check, "script", call, (*file).to_owned(), rest))
}

/// Whether the name of a script begins with `test` or `lint` (`test-all`), or is that of a kind of
/// tests (`unit_tests`).
fn is_name_of_tests(name: &str) -> bool {
    const TESTS: [&str; 3] = ["test", "tests", "e2e"];
    const KINDS: [&str; 9] = [
        "all", "unit", "integration", "e2e", "smoke", "system", "functional", "acceptance",
        "regression",
    ];
    let parts = parts(name);
    let is = |part: Option<&String>, words: &[&str]| {
        part.is_some_and(|part| words.contains(&part.as_str()))
    };
    is(parts.first(), &TESTS)
        || is(parts.first(), &["lint"])
        || is(parts.first(), &KINDS) && is(parts.last(), &TESTS)
}

/// Whether this is the name of a program in the table of tools.
fn is_tool(name: &str) -> bool {
    tools_of(name).next().is_some()
}
