//! The name of a program, and its arguments without the words that name a call.

use super::program_words::words_of;

/// Returns the name of a program without its folder, its version and script extensions.
pub(super) fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let name =
        name.split_once('@').map_or(name, |(name, _)| if name.is_empty() { word } else { name });
    let endings = [".exe", ".cmd", ".bat", ".phar", ".js", ".mjs", ".cjs"];
    endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// Returns the arguments without the words of this call; `None` if it is another call.
pub(super) fn rest_of<'a>(
    program: &str,
    call: &str,
    arguments: &[&'a str],
) -> Option<Vec<&'a str>> {
    let mut rest: Vec<&str> = arguments.to_vec();
    if rest.first().is_some_and(|first| first.starts_with('+')) {
        rest.remove(0);
    }
    for wanted in call.split(' ').filter(|wanted| !wanted.is_empty()) {
        let at = if wanted.starts_with('-') {
            rest.iter().position(|word| {
                wanted.split('|').any(|option| {
                    *word == option
                        || word.strip_prefix(option).is_some_and(|value| value.starts_with('='))
                })
            })?
        } else {
            let at = first_plain(program, &rest)?;
            if rest.get(at) != Some(&wanted) {
                return None;
            }
            at
        };
        rest.remove(at);
    }
    Some(rest)
}

/// Returns the index of the first word that is neither an option nor the value of one.
fn first_plain(program: &str, words: &[&str]) -> Option<usize> {
    let mut at = 0;
    loop {
        let word = words.get(at)?;
        if word.starts_with('-') && words_of("valued", program).contains(word) {
            at += 2;
        } else if word.starts_with(['-', '+']) {
            at += 1;
        } else {
            return Some(at);
        }
    }
}

/// Returns the words that are not options, each with its index. With `many` (as in `nx run-many`),
/// an option names the target.
pub(super) fn plain_words<'a>(tool: &str, words: &[&'a str], many: bool) -> Vec<(usize, &'a str)> {
    let valued = words_of("valued", tool);
    let mut plain = Vec::new();
    let mut at = 0;
    // Words after `--` belong to the script.
    while let Some(word) = words.get(at).filter(|word| **word != "--") {
        if many && (word.starts_with("--target=") || word.starts_with("--targets=")) {
            plain.push((at, word.split_once('=').map_or(*word, |(_, target)| target)));
        } else if valued.contains(word) && !(many && matches!(*word, "-t" | "--target")) {
            at += 1;
        } else if !word.starts_with('-') && !word.contains('=') {
            plain.push((at, *word));
        }
        at += 1;
    }
    // `yarn workspace NAME test`
    if tool == "yarn" && plain.first().is_some_and(|(_, word)| *word == "workspace") {
        plain.drain(..2.min(plain.len()));
        if plain.first().is_some_and(|(_, word)| *word == "run") {
            plain.remove(0);
        }
    }
    // `yarn workspaces foreach -A run test`
    if tool == "yarn"
        && plain.first().is_some_and(|(_, word)| *word == "workspaces")
        && let Some(run) = plain.iter().position(|(_, word)| *word == "run")
    {
        plain.drain(..=run);
    }
    plain
}

/// Returns the arguments of the last check among the commands of sbt. A command is one word, or is
/// between semicolons. A failed command ends the run, so all checks passed if the last one passed.
pub(super) fn sbt_arguments<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    const TASKS: [&str; 5] = ["test", "testOnly", "testQuick", "compile", "Test/compile"];
    let (options, words): (Vec<&str>, Vec<&str>) =
        arguments.iter().partition(|word| word.starts_with(['-', '+']));
    let (mut project, mut found) = (None, None);
    for command in words.iter().flat_map(|word| word.split(';')) {
        let mut parts = command.split_whitespace();
        let name = parts.next().unwrap_or_default();
        if name == "project" {
            project = parts.next();
            continue;
        }
        let (scope, task) = name.rsplit_once(['/', ':']).unwrap_or(("", name));
        let configuration = scope.rsplit(['/', ':']).next().unwrap_or_default();
        let of_tests = task == "compile" && configuration.eq_ignore_ascii_case("test");
        let task = if of_tests { "Test/compile" } else { task };
        if TASKS.contains(&task) {
            let scope = Some(scope).filter(|scope| !scope.is_empty());
            found = Some(
                [task].into_iter().chain(parts).chain(project).chain(scope).collect::<Vec<_>>(),
            );
        }
    }
    let mut all = options;
    all.extend(found.unwrap_or(words));
    all
}

/// Whether a word sets an option by its long name, or by its letter alone or with others (`-xe`).
pub(super) fn sets_option(word: &str, letter: char, long: &str) -> bool {
    word == long || word.starts_with('-') && !word.starts_with("--") && word.contains(letter)
}

/// Whether one of these flags of `make` is set, alone or with others in one word (`-kn`).
pub(super) fn has_make_flag(arguments: &[&str], flags: &[char]) -> bool {
    // The letters of options that take the rest of the word as their value.
    const VALUED: [char; 9] = ['C', 'f', 'I', 'j', 'l', 'o', 'O', 'W', 'E'];
    arguments.iter().filter_map(|word| word.strip_prefix('-')).any(|word| {
        let mut set = word.chars().take_while(|flag| !VALUED.contains(flag));
        !word.starts_with('-') && set.any(|flag| flags.contains(&flag))
    })
}
