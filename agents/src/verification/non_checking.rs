//! The words with which a program checks nothing, such as `--help`.

use super::call_arguments::has_make_flag;
use super::program_words::words_of;

/// Options with which a tool does not check anything.
const NON_CHECKING_OPTIONS: &[&str] = &[
    "--help", "-h", "--version", "-V", "--collect-only", "--co", "--list", "-list", "--listTests",
    "--list-tests", "--dry-run", "--just-print", "--showConfig", "--show-config", "--print-config",
    "--init", "--fixtures", "--markers", "--clearCache", "--show-files", "--show-settings",
    "-help", "-version",
];

/// Programs for which one of these options means something else.
const OTHER_MEANINGS: &[(&[&str], &str)] = &[
    // It prints the version, or more, and the run goes on. For Robot Framework it names a file.
    (&["ctest", "gradle", "gradlew", "mvn", "mvnd", "mvnw", "pabot", "robot"], "-V"),
    // It names a host.
    (&["pg_prove"], "-h"),
];

/// Whether a program with this option prints something and checks nothing.
pub(super) fn is_non_checking(program: &str, option: &str) -> bool {
    let mut others = OTHER_MEANINGS.iter().filter(|(programs, _)| programs.contains(&program));
    NON_CHECKING_OPTIONS.contains(&option) && !others.any(|(_, other)| *other == option)
}

/// Returns whether this program checks nothing if it gets these arguments besides its subcommand.
pub(super) fn checks_nothing(program: &str, call: &str, rest: &[&str]) -> bool {
    let known = words_of("non-checking", program);
    let options = rest.iter().take_while(|word| **word != "--");
    let mut options = options.filter(|word| word.starts_with('-'));
    let has_more = matches!(call, "" | "deny" | "llvm-cov") || program == "swift";
    let first = rest.first().filter(|_| has_more);
    let makes = matches!(program, "make" | "gmake");
    options.any(|word| {
        let name = word.split_once('=').map_or(*word, |(name, _)| name);
        is_non_checking(program, name) || known.contains(&name)
    }) || first.is_some_and(|word| known.contains(word))
        || (makes && (rest.contains(&"--question") || rest.contains(&"--touch")))
        || (makes && has_make_flag(rest, &['n', 'q', 't']))
        || (program == "go" && call == "test" && rest.contains(&"-c"))
        || (program == "cmake"
            && rest.windows(2).any(|pair| matches!(pair, ["--target" | "-t", "clean"])))
}
