//! Recognises runs in which the check never started because the program that should run it failed.

use super::CheckKind;
use super::check_call::CheckCall;
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A message with which programs report that they ran nothing: the programs that print it, and the
/// pattern of its line. `{}` is the name of what the program should run. Either every alternative
/// of the pattern has `{}`, or none has it.
type RunnerMessage = (&'static [&'static str], &'static str);

/// Programs that run commands in containers.
const CONTAINERS: &[&str] =
    &["docker", "docker-compose", "podman", "podman-compose", "kubectl", "devcontainer"];
/// Programs that run scripts of Node packages.
const NODE: &[&str] = &["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"];
const MAKE: &[&str] = &["make", "gmake"];
const MAVEN: &[&str] = &["mvn", "mvnw", "mvnd"];
/// Programs that need a Java runtime.
const JAVA: &[&str] = &["gradle", "gradlew", "mvn", "mvnw", "mvnd", "ant", "sbt", "lein"];
const CMAKE: &[&str] = &["cmake", "ctest"];

/// Messages with which a program reports that it could not run the check.
static FAILURES: &[RunnerMessage] = &[
    (&["python"], r"^\S*python[\d.]*(?:\.exe)?: No module named '?{}\b"),
    (&["python"], r"^\S*python[\d.]*(?:\.exe)?: can't open file \S*{}"),
    (&["ssh"], r"^ssh: |^Host key verification failed|: Permission denied \(publickey"),
    // Without `sshpass`, the next password may be right.
    (&["sshpass"], r"^Permission denied, please try again\.$"),
    // In any language, the last line of the message has a code.
    (&["wsl"], r"^\S[^:：]*[:：] ?Wsl/\S+$"),
    (
        CONTAINERS,
        r"^(?:docker: |ERROR: )?(?:Error response from daemon|Cannot connect to the Docker)",
    ),
    (
        CONTAINERS,
        r"^(?:docker: |ERROR: )?(?:(?:Got )?permission denied while trying to connect|error during connect: )",
    ),
    (CONTAINERS, r"^ERROR: (?:failed to build: )?failed to solve: failed to read dockerfile: "),
    (CONTAINERS, r#"^(?:service "?\S+"? is not running|no such service: |no configuration file)"#),
    (
        CONTAINERS,
        r"^Error: (?:No such container|no container with name|can only create exec sessions )",
    ),
    (
        CONTAINERS,
        r"^(?:the input device is not a TTY|cannot (?:enable tty mode on non tty input|attach stdin to a TTY-enabled ))",
    ),
    (
        CONTAINERS,
        r"^(?:dependency failed to start: |env file \S+ not found|validating \S+\.ya?ml: )",
    ),
    (&["kubectl"], r"^(?:Error from server|error: unable to upgrade connection|The connection to)"),
    (&["kubectl"], r"^error: cannot exec into a container "),
    (
        &["sudo"],
        r"^sudo: (?:a password is required|a terminal is required|\S+: command not found|unknown user |no tty present )",
    ),
    (
        &["sudo"],
        r"^\S+ is not in the sudoers file|^Sorry, user \S+ (?:is not allowed|may not run) ",
    ),
    (&["su", "runuser"], r"^(?:su|runuser): (?:user |Authentication failure|must be run from a )"),
    (&["srun"], r"^srun: error: (?:Unable to|Invalid) "),
    (&["doppler"], r"^Doppler Error: "),
    // Programs written in Go log lines of this form too.
    (
        &["op"],
        r"^\[ERROR\] [\d/]+ [\d:]+ (?:You are not |account is not |could not (?:find item|read secret|resolve item)|error initializing client|authorization |.*\bop://)",
    ),
    (&["infisical"], r"^error: You must be logged in "),
    (NODE, r#"^npm (?:ERR!|error) [Mm]issing script: "?{}(?:"|$)"#),
    (&["node"], r#"^Missing script: "{}""#),
    (
        &["node", "tsx"],
        r"^Error: Cannot find module '(?:/|[A-Z]:\\)(?:[^']*[/\\])?{}(?:\.[cm]?js)?'$",
    ),
    // The package `tsc` is not the compiler. Without a project, the compiler prints its options.
    (
        &["tsc"],
        r"^\s*This is not the tsc command you are looking for|^tsc: The TypeScript Compiler - Version ",
    ),
    (
        NODE,
        r"^npm (?:ERR!|error) (?:could not determine executable|enoent Could not read package|npx canceled due to missing packages)",
    ),
    (NODE, r"^npm (?:ERR!|error) code (?:EJSONPARSE|EBADDEVENGINES|ENOWORKSPACES)$"),
    (
        NODE,
        r"^\s*ERR_PNPM_(?:NO_SCRIPT|NO_IMPORTER_MANIFEST_FOUND|VERIFY_DEPS_BEFORE_RUN|UNSUPPORTED_ENGINE|BAD_PM_VERSION)\b",
    ),
    (NODE, r#"^(?:error|\s*ERR_PNPM_\S+\s+)?\s*Command "{}" not found"#),
    (NODE, r#"^(?:Usage Error: Couldn't find a script named|error: Script not found) "{}""#),
    (NODE, r"^error: could not (?:find package\.json|determine executable to run for package )"),
    (
        NODE,
        r"^Usage Error: (?:The project in |This project is configured to use |Couldn't find the node_modules state file)",
    ),
    (
        NODE,
        r"^error Couldn't find a package\.json file |^Internal Error: \S+: This package doesn't ",
    ),
    // In any language, the message has only one name, which is in quotes, and its last sentence is
    // one word.
    (
        MAKE,
        r#"^g?make(?:\[\d+\])?: \*\*\* [^\['‘`“„«"]*['‘`“„«"][ \x{a0}]?{}[ \x{a0}]?['’”“»"][^'‘`“„«"]*[.。] +\S+[.。]$"#,
    ),
    (MAKE, r"^g?make: \*\*\* No targets specified and no makefile found"),
    // The makefile cannot be read, or stops with `$(error)`. The last sentence is one word.
    (MAKE, r"^(?:\S*[Mm]akefile\S*|\S+\.ma?k\w*):\d+: \*\*\* .+[.。] +\S+[.。]$"),
    // Without `needed by`, the name is that of another target, or of a makefile.
    (MAKE, r"^g?make: \*\*\* No rule to make target '[^']+'\.\s+Stop\.$"),
    (MAKE, r"^g?make: \*\*\* \S+: (?:No such file or directory|Not a directory)\.\s+Stop"),
    (
        &["nix", "nix-shell"],
        r"^error: (?:getting status of|path '|flake '|attribute '|cached failure)",
    ),
    (
        &["nix", "nix-shell"],
        r"^error: (?:unable to download|file '\S+' was not found|undefined variable)",
    ),
    (&["dotenv"], r"^Error: Invalid value for '-f'|^dotenv: "),
    (&["bun"], r"^error: (?:0 test files matching|No tests found)"),
    (&["flock"], r"^flock: (?:cannot|failed)"),
    (&["just"], r"^error: [Jj]ustfile does not contain recipe [`']{}[`']"),
    (&["just"], r"^error: No justfile found"),
    // The place of an error in the file, which is not that of a recipe that failed.
    (&["just"], r"^\s*(?:-->|——▶) (?:\S*[/\\])?\.?[Jj]ustfile:\d+:\d+$"),
    (&["task", "go-task"], r#"^task: Task "{}" does not exist"#),
    (&["task", "go-task"], r"^task: (?:No Taskfile found|Failed to parse )"),
    (&["mise", "rtx"], r"^(?:mise )?(?:ERROR )?no task(?:s)? .*\b{}\b.* found"),
    (&["gradle", "gradlew"], r"^Task '{}' not found in "),
    (&["mise", "rtx"], r#"^mise ERROR "{}" couldn't exec process"#),
    (
        &["mise", "rtx"],
        r"^mise ERROR (?:error parsing config file|Config files? in |failed to install )",
    ),
    (&["gradle", "gradlew"], r"^Cannot locate tasks that match '{}'"),
    (
        &["gradle", "gradlew"],
        r"^> Unknown command-line option '|^Unable to start the daemon process",
    ),
    (&["gradle", "gradlew"], r"^Project '\S+' not found in (?:root )?project "),
    (MAVEN, r"^Unable to parse command line options: |^\[ERROR\] The goal you specified requires"),
    (MAVEN, r#"^\[ERROR\] Unknown lifecycle phase "{}""#),
    (
        MAVEN,
        r"^\[ERROR\] (?:\[(?:ERROR|FATAL)\] )?(?:Could not find (?:a|the) selected project in|Some problems were encountered while processing the POMs|Non-(?:resolvable|parseable|readable) )",
    ),
    (&["ant"], r#"^Buildfile: \S+ does not exist!|^Target "\S+" does not exist in the project"#),
    (JAVA, r"^(?:ERROR|Error): JAVA_HOME is |^The JAVA_HOME environment variable is not "),
    (
        JAVA,
        r"Unable to locate a Java Runtime|^Error: (?:Could not find or load main class|Unable to access jarfile) ",
    ),
    (&["sbt"], r"^\[error\] Neither build\.sbt nor a 'project' directory "),
    // The wrapper could not download the tool, or could not write it.
    (&["gradlew", "mvnw"], r#"^Exception in thread "main" java\.(?:io|net)\."#),
    (&["rake"], r"^(?:rake aborted!\s*)?Don't know how to build task '{}'"),
    (&["composer"], r#"Command "{}" is not defined"#),
    (&["composer"], r"^Composer could not find a composer\.json file "),
    (&["deno"], r"^Task not found: {}"),
    (&["deno"], r"^error: deno task couldn't find deno\.json"),
    (&["poetry"], r"^Command not found: {}"),
    (&["poetry"], r"^Poetry could not find a pyproject\.toml|^The Poetry configuration is invalid"),
    (&["uv", "uvx"], r"^error: Failed to spawn: `{}`"),
    (
        &["uv", "uvx"],
        r"^error: (?:Failed to (?:fetch|initialize|download|build|resolve|prepare|install|inspect) |failed to (?:open|create|remove|read from|write to) (?:file|directory) |Request failed after |No interpreter found )",
    ),
    (
        &["uv", "uvx"],
        r"^error: (?:Group `|Extra `|Project virtual environment directory |Unable to find lockfile |The lockfile at |No virtual environment found|Failed to parse: `|No `|The requested interpreter |The Python request |Broken virtual environment )",
    ),
    (&["uv", "uvx"], r"^\s*× (?:No solution found when|Failed to (?:build|download|fetch)) "),
    (&["pipenv"], r"^Error: the command (?:\S+ \(from )?{}\)? could not be found"),
    (&["pdm"], r"Command '{}' is not found in your PATH"),
    (&["bundle"], r"^bundler: (?:command not found|failed to load command): {}"),
    (&["bundle"], r"^Could not locate Gemfile|^Your Ruby version is "),
    (
        &["bundle"],
        r"^Could not find .+ in (?:any of the sources|(?:locally installed|cached) gems)",
    ),
    (&["php"], r"^Could not open input file: |\brequire(?:_once)?\(\S*vendor/autoload\.php\)"),
    (&["mix"], r"^\*\* \(Mix\) (?:Could not find a Mix\.Project|Could not invoke task|The task )"),
    (&["mix"], r"^Unchecked dependencies for environment |^Could not find Hex, which is needed "),
    (&["swift"], r"^error: Could not find Package\.swift in "),
    (&["swift"], r"^error: package '\S+' is using Swift tools version "),
    (
        &["xcodebuild"],
        r"^{}: error: (?:Unable to (?:find|read) |The (?:project|workspace|directory|scheme|flag) |'|invalid option )",
    ),
    (
        &["ninja", "cmake", "meson"],
        r"^ninja: (?:error: (?:loading|unknown target|chdir) |fatal: )|^Error: could not load cache",
    ),
    (CMAKE, r"^CMake Error: (?:Could not read presets |No such (?:build|test) preset )"),
    (CMAKE, r"^CMake Error: Could not find CMAKE_PROJECT_NAME|^Error: \S+ is not a directory$"),
    (CMAKE, r"^Failed to change working directory to "),
    (&["flutter", "dart"], r"^(?:Error: )?No pubspec\.yaml file found"),
    (&["turbo"], r"^\s*[×x] [Cc]ould not find (?:the following tasks|task |turbo\.json)"),
    (
        &["nx"],
        r"^\s*(?:>\s*)?NX\s+(?:Cannot find (?:configuration for|project) |Could not find project )",
    ),
    (&["conda", "mamba"], r"^EnvironmentLocationNotFound: "),
    (&["cargo"], r"^error: no such (?:sub)?command: `{}`"),
    (&["cargo"], r"^error: could not find `Cargo\.toml` in "),
    (
        &["cargo"],
        r"^error: no (?:test|bin|example|bench) target named |^error: unexpected argument ",
    ),
    (&["cargo"], r"^error: package ID specification |^error: manifest path `\S+` does not exist"),
    (
        &["cargo"],
        r"^error: (?:failed to (?:parse (?:manifest|lock file) at|load (?:manifest|source) for|read `\S*Cargo\.|get `|select a version for)|no matching package )",
    ),
    (
        &["cargo"],
        r"^error: (?:the lock file \S+ needs to be updated |cannot (?:update|create) the lock file )",
    ),
    // The place of an error in the manifest.
    (&["cargo"], r"^\s*--> (?:\S*[/\\])?Cargo\.toml:\d+:\d+$"),
    (&["cargo", "rustup"], r"^error: rustup could not choose a version of "),
    (&["cargo", "rustup"], r"^error: toolchain '\S+' is not installed"),
    (&["cargo", "rustup"], r"^error: 'cargo-{}(?:\.exe)?' is not installed for the toolchain"),
    (
        &["go"],
        r"^go: (?:go\.mod file not found|cannot find (?:main module|GOROOT)|errors parsing go\.)",
    ),
    (&["go"], r"^go: (?:go\.mod requires go >= |download go\S+ .*: toolchain not available)"),
    (&["dotnet"], r"^Could not execute because the (?:specified|application)"),
    (&["dotnet"], r"^The command could not be loaded, |^You must install or update \.NET"),
    (&["dotnet"], r"^MSBUILD : error MSB10\d\d: |^A compatible \.NET SDK was not found"),
    (&["timeout", "gtimeout"], r"^g?timeout: (?:invalid|failed to run)"),
    (&["xvfb-run"], r"^xvfb-run: error: "),
    (&["direnv"], r"^direnv: error "),
    (&["devcontainer"], r"^Error: (?:Dev container|Command failed: docker)"),
    (
        &["cargo"],
        r"^error: (?:the package '\S+' does not contain|none of the selected packages contains) (?:this|these) features?: ",
    ),
    (&["go"], r"^no required module provides package |^package \S+ is not in (?:std|GOROOT)\b"),
    (&["rake"], r"^No Rakefile found "),
    (&["gradle", "gradlew"], r"^Directory '.+' does not contain a Gradle build"),
    (&["flutter", "dart"], r#"^Test directory "\S+" not found"#),
    (&["meson"], r"^ERROR: No such build data file as "),
    (
        &["bazel", "bazelisk"],
        r"^ERROR: The '\S+' command is only supported from within a workspace",
    ),
    (&["yarn"], r#"^Usage Error: Workspace |^error Unknown workspace ""#),
    (NODE, r"^npm (?:ERR!|error) No workspaces found:"),
    (
        &["jest", "react-scripts"],
        r"^● Validation Error:|^(?:Error: )?Can't find a root directory while resolving ",
    ),
    (
        &["jest", "react-scripts"],
        r"^Error: (?:Jest: Failed to parse |Could not find a config file based on )",
    ),
    (&["jest", "react-scripts"], r"^(?:● )?Multiple config(?:uration)?s found:"),
    // ESLint has no configuration, or stopped on an error of its own.
    (&["eslint", "npm", "pnpm", "yarn", "bun"], r"^Oops! Something went wrong! :\($"),
    (&["vitest"], r"^failed to load config from |^⎯+ Startup Error ⎯+$"),
    (&["vitest"], r"^\s*MISSING DEP(?:ENDENCY)?  Can ?not find dependency '"),
    (&["playwright"], r"^Error: Cannot find module '@playwright/test'|^Error: \S+ does not exist$"),
    (&["playwright"], r"^Error: (?:Project\(s\) .+ not found|http\S+ is already used, )"),
    (
        &["cypress"],
        r"^The cypress npm package is installed, but |^Cypress (?:verification failed|failed to start)|^Could not find a Cypress configuration file",
    ),
    (
        &["phpunit"],
        r#"^Test file "\S+" not found|^(?:Could not read|Cannot open (?:bootstrap|file)) "#,
    ),
    (&["mypy", "dmypy"], r"^mypy: (?:can't read file |error: )"),
    (&["flake8"], r"^There was a critical error during execution of Flake8"),
    (&["stestr"], r"^No \.stestr\.conf file found "),
    (&["poe"], r"^Error: Unrecogni[sz]ed task '{}'"),
    (&["invoke", "inv"], r"^No idea what '{}' is!"),
    (&["invoke", "inv"], r"^Can't find any collection named "),
    (&["grunt"], r#"^Warning: Task "{}" not found"#),
    (&["gulp"], r"^(?:\[[\d:]+\] )?Task never defined: {}$"),
    (&["ng"], r"^(?:Error: )?This command is not available when running the Angular CLI outside "),
    (&["rebar3"], r"^===> Command \S+ not found"),
    (&["lein"], r"^Couldn't find project\.clj, which is needed "),
    (&["pixi"], r"^\s*× could not find pixi\.toml "),
    (&["black"], r"^Error: Invalid value for 'SRC"),
    (&["ruff"], r"^ruff failed$"),
    (&["golangci-lint"], r"^Error: can't load config: "),
    (&["pre-commit"], r"^(?:An error has occurred: )?(?:InvalidConfigError|FatalError):"),
    (
        &["nox"],
        r"^nox > (?:Error while collecting sessions|Sessions not found|Failed to load Noxfile)",
    ),
    (
        &["pytest", "py.test"],
        r"^ERROR: (?:usage: |file or directory not found: |not found: \S+::)|^INTERNALERROR> |^ImportError while loading conftest ",
    ),
];

/// The patterns of what shells, in any language, and runners say about a program that they cannot
/// run.
const NOT_FOUND: [&str; 7] = [
    r"^(?:\S*sh: (?:line )?(?:\d+: )?)?(?:\S*/)?{}: (?:(?:command )?not found|No such file or directory|Permission denied)$",
    r"^-?(?:\S*/)?(?:ba|da|k|z)?sh: (?:\S+ \d+ ?: )?{} ?: \S",
    r"^(?:\S*sh|\(eval\)):(?:\d+:)? (?:command not found|no such file or directory|permission denied): (?:\S*/)?{}$",
    r"^fish: Unknown command: {}$|^(?:\S.*)?exec: .{}.: executable file not found in ",
    r"^'?{}'?(?: is not recognized as | ?: The term )|\| The term '{}' is not recognized as ",
    r": ObjectNotFound: \({}:String\) \[\], CommandNotFoundException|^{} ?: .*[/\\]{}\.ps1\b",
    r"^(?:timeout|gtimeout|env|nice|nohup|stdbuf|setsid|xargs|time|pyenv|rbenv): (?:failed to run command |cannot run )?['‘]?(?:\S*/)?{}['’]?: (?:No such file or directory|command not found)$",
];

/// What `cmd` says, in its languages, about a program that it does not find. It ends with 1 then.
const NOT_FOUND_BY_CMD: &str = r#"^(?:(?:Der Befehl|Název|Nazwa) )?['"]{}['"](?: is not recognized as an internal| n.est pas reconnu en tant que| no se reconoce como un comando| não é reconhecido como um comando| ist entweder falsch geschrieben| non è riconosciuto come comando| is niet herkend als een interne| känns inte igen som| nie jest rozpoznawana jako| není názvem vnitřního| iç ya da dış komut| не является внутренней|은\(는\) 내부| ?は、内部コマンド| ?不是内部或外部命令| ?不是內部或外部命令)"#;

/// The patterns of what tools say about an option that they do not know.
const UNKNOWN_OPTION: &str = r"^(?:\S+ )*{}(?: \S+)*: error: (?:unrecognized arguments: |the following arguments are required: |argument -|ambiguous option: )|^{}: (?:unrecognized|invalid|illegal|unknown) option ";
/// The same without the name of the tool.
const UNKNOWN_OPTIONS: &str = r#"^error: (?:unexpected argument|unknown option|Unknown option|Found argument) ['`]|^Error: (?:unknown (?:shorthand )?flag|No such option): |^flag provided but not defined: |^CACError: Unknown option |^● Unrecognized CLI Parameter|^(?:Invalid|Unknown|invalid) option:? ['"]?-|^Unknown option: |^\s*The "-\S+" option does not exist|^Could not find an option named "|^ERROR: \S+ :: Unrecognized option: "#;

/// What programs that choose the version of a tool say if there is none.
const NO_VERSION: &str = r"^(?:rbenv|pyenv|nodenv|goenv|jenv): version [`'‘]|^No version is set for command |^Volta error: |^xcrun: error: invalid active developer path|^xcode-select: (?:error|note): |^You have not agreed to the Xcode |^Python was not found; run without arguments ";

/// What npm prints if the package with the tool could not be downloaded.
const NO_PACKAGE: &str = r"^npm (?:ERR!|error) code (?:ENOTFOUND|EAI_AGAIN|E[45]\d\d|ECONN[A-Z]+|ETIMEDOUT|ENOTCACHED|EACCES|EPERM|EROFS)$";

/// What Jest and Vitest print if there are no tests.
const NO_TESTS_FOUND: &str =
    r"^No test(?:s| files) found(?:, exiting with code \d| related to files changed)";

/// Messages with which a program reports that there was nothing to run.
static NOTHING_RAN: &[RunnerMessage] = &[
    (NODE, r"^No projects matched the filters"),
    (NODE, r"^None of the selected packages has a "),
    (&["nx"], r"No tasks were run|^No projects with target"),
    (&["dbt"], r"\bNothing to do\. Try checking your model configs "),
    (&["lerna"], r"^lerna \S+ .*No packages found with the lifecycle script "),
    (&["turbo"], r"^\s*No tasks were executed as part of this run"),
    // Runs without tests. Some of these programs then fail, and some do not.
    (NODE, NO_TESTS_FOUND),
    (NODE, r"^Error: no test specified$"),
    (&["jest", "vitest", "react-scripts"], NO_TESTS_FOUND),
    (&["node", "tsx"], r"^(?:#|ℹ) tests 0$|^Could not find '[^']*'$"),
    (&["bun", "lein"], r"^Ran 0 tests "),
    (&["playwright"], r"^Error: No tests found"),
    (&["mocha", "mochapack"], r"^Error: No test files found"),
    (&["jasmine"], r"^Incomplete: No specs found"),
    (&["cypress"], r"^Can't run because no spec files were found"),
    (&["wtr", "web-test-runner"], r"\bCould not find any test files with pattern"),
    (&["ava"], r"^\s*\S+ Couldn.t find any (?:files to test|matching tests)"),
    (&["deno"], r"^error: No (?:test modules|target files) found"),
    (
        &["python", "unittest", "nose2", "manage.py", "runtests.py"],
        r"^NO TESTS RAN|^Ran 0 tests in ",
    ),
    (&["nox"], r"^nox > Session \S+ skipped: "),
    (&["cargo"], r"^error: no tests to run"),
    (&["go"], r"^\?\s+\S+\s+\[no test files\]$|^no packages to test|matched no packages$"),
    (&["go"], r"^no Go files in |^package \S+: no Go files in "),
    (&["golangci-lint"], r"\bno go files to analyze\b"),
    (&["mypy", "dmypy"], r"^There are no \.py\[i\] files in directory "),
    (&["ctest"], r"^No tests were found!!!|^No test configuration file found!"),
    (&["meson"], r"^No (?:suitable )?tests defined\."),
    (&["bazel", "bazelisk"], r"^ERROR: No test targets were found, yet testing was requested"),
    (&["biome"], r"\bNo files were processed in the specified paths\b"),
    (&["black"], r"^No Python files are present to be formatted"),
    (&["dotnet"], r"^No test (?:is available in|matches the given testcase filter)"),
    (&["dotnet"], r"^Test run summary: Zero tests ran"),
    (&["gradle", "gradlew"], r"^\s*> No tests found for given includes: "),
    (&["mvn", "mvnw", "mvnd"], r"^\[ERROR\] .*\bNo tests (?:were executed|matching pattern )"),
    (&["forge"], r"^No tests (?:found in project|match the provided pattern)"),
    (&["phpunit", "paratest", "composer"], r"^No tests executed!"),
    (&["pest", "artisan"], r"^\s*INFO\s+No tests found\."),
    (
        &["mix"],
        r"^There are no tests to run|^The --only option was given to .+ no test was executed",
    ),
    (
        &["bun"],
        r"^The following filters did not match any test files:|^error: regex .+ matched 0 tests",
    ),
    (&["swift"], r"No matching test cases were run"),
    (&["pants"], r"\bNo applicable files or targets matched"),
    (&["opa"], r"^no test cases found"),
    (&["ginkgo"], r"^Found no test suites"),
    (&["phpstan"], r"^\s*\[ERROR\] No files found to analyse"),
    (&["ktlint"], r"^No files matched"),
    (&["staticcheck"], r#"^warning: "\S+" matched no packages"#),
    (&["flutter", "dart"], r"^No tests (?:ran\.|were found\.|match )"),
];

/// The messages with which `make`, `task` and `mise` report that they ran nothing for a target. If
/// there is a folder with the name of a target of tests that is not in `.PHONY`, `make` finds it up
/// to date.
const UP_TO_DATE: &str = r#"^g?make: (?:Nothing to be done for ['‘`]{}['’]|['‘`]{}['’] is up to date)\.$|^task: Task "{}" is up to date$|^\[{}\] sources up-to-date, skipping$"#;

/// Messages with which a build tool reports that a part of the project has no tests, each before
/// the pattern of the lines that it prints about a part with tests.
const NO_TESTS_IN_PART: &[(&[&str], &str, &str)] = &[
    (MAVEN, r"^\[INFO\] (?:No tests to run|Tests are skipped)\.$", r"^\[\S+\] Tests run: [1-9]"),
    (
        &["gradle", "gradlew"],
        r"^> Task \S*[Tt]est NO-SOURCE$",
        r"^> Task \S*[Tt]est(?: UP-TO-DATE| FROM-CACHE)?$",
    ),
    (
        &["sbt"],
        r"^\[info\] No tests (?:to run for |were executed)",
        r"^\[info\] Passed: Total [1-9]",
    ),
    (
        &["xcodebuild"],
        r"^\s*Executed 0 tests, with 0 failures",
        r"^\s*Executed [1-9]|^Test [Cc]ase '.+' (?:passed|failed)|Test run with [1-9]",
    ),
];

/// Messages with which a program reports that there was nothing to check, although it then prints
/// the summary of a pass.
static NOTHING_CHECKED: &[RunnerMessage] = &[
    (&["ruff"], r"^warning: No Python files found under the given path"),
    (&["pyright", "basedpyright"], r"^No source files found\."),
    (&["oxlint"], r"^Finished in \S+ on 0 files "),
];

/// The patterns of the summary lines of runs whose filter matched no test, each after a part of the
/// line. Only a line that has the part is compared with the pattern.
const EMPTY_RUNS: &[(&str, &str)] = &[
    (
        "ok. 0 passed; 0 failed; ",
        r"^test result: ok\. 0 passed; 0 failed; 0 ignored; 0 measured; [1-9]\d* filtered out",
    ),
    ("[no tests to run]", r"^ok  \t\S+\t.*\[no tests to run\]$"),
    (" skipped, ", r"^\s*Tests: +\d+ skipped, \d+ total$"),
    (" skipped (", r"^\s*Tests  +\d+ skipped \(\d+\)$"),
    ("0 passing (", r"^\s*0 passing \("),
    ("0 examples, 0 failures", r"^0 examples, 0 failures"),
    (", 0 assertions, ", r"^0 (?:runs|tests), 0 assertions, 0 failures, 0 errors"),
    ("ok | 0 passed | 0 failed ", r"^ok \| 0 passed \| 0 failed "),
    ("Executed 0 tests, ", r"^\s*Executed 0 tests, with 0 failures"),
    ("Test run with 0 tests", r"Test run with 0 tests(?: in \d+ suites?)? passed after "),
    ("SUCCESS! -- 0 Passed |", r"^SUCCESS! -- 0 Passed \|"),
    (" 0 tests", r"^DONE (?:\d+ runs, )?0 tests"),
    (" passed, 0 failed", r"^0 (?:features?|scenarios?|steps?) passed, 0 failed"),
    ("0 scenarios", r"^0 scenarios$"),
    ("All 0 tests passed", r"^All 0 tests passed"),
    ("0 files inspected, no ", r"^0 files inspected, no offenses"),
    (" 0 tests run: 0 passed", r"^\s*Summary \[[^\]]*\] +0 tests run: 0 passed"),
    ("Result: NOTESTS", r"^Result: NOTESTS$"),
    ("1..0", r"^1\.\.0(?: +#.*)?$"),
    ("0 tests, 0 failures", r"^0 tests, 0 failures"),
    (", no failures", r"^0 (?:tests|passed), no failures$"),
    ("Executed 0 of 0 ", r"Executed 0 of 0 .*\bSUCCESS\b"),
    ("0 successes / 0 failures", r"^0 successes / 0 failures / 0 errors"),
    ("! 0 passed, 0 failed", r"^Success! 0 passed, 0 failed"),
    (" PASS=0 ", r"\bDone\. PASS=0 WARN=0 ERROR=0 .*\bTOTAL=0$"),
    (" 0 passed, 0 total", r"^Tests: +0 passed, 0 total$"),
    ("(no files to check)", r"\.\(no files to check\)Skipped$"),
    ("0 tests, 0 passed, ", r"^0 tests, 0 passed, 0 warnings, 0 failures"),
    ("PASS: 0/0", r"^PASS: 0/0$"),
    (" in 0 source files", r"^Success: no issues found in 0 source files"),
    (" 0 serious in 0 files", r"^Done linting! Found 0 violations, 0 serious in 0 files"),
    ("Linting: 0 file", r"^Linting: 0 file\(s\)$"),
    ("Files checked: 0, ", r"^CSpell: Files checked: 0, Issues found: 0 "),
];

/// Returns the number of tests that ran, if this line counts them but does not say whether they
/// passed.
pub(super) fn tests_of_run(line: &str) -> Option<u64> {
    let counts = ["Ran ", "# tests ", "ℹ tests "];
    let rest = counts.iter().find_map(|count| line.strip_prefix(*count))?;
    let (number, unit) = rest.split_once(' ').unwrap_or((rest, "test"));
    number.parse().ok().filter(|_| unit.starts_with("test") && !unit.starts_with("test suite"))
}

/// Returns whether one of these lines is the summary of a run whose filter matched no test.
pub(super) fn has_empty_run(lines: &[&str]) -> bool {
    // Most outputs have none of the parts: one search in all lines is faster than one in each.
    let text = lines.join("\n");
    let mut likely = EMPTY_RUNS.iter().filter(|(part, _)| text.contains(part));
    likely.any(|row| lines.iter().any(|line| is_summary_of(row, line)))
}

/// Returns whether this is the summary of a run whose filter matched no test.
pub(super) fn is_empty_run(line: &str) -> bool {
    EMPTY_RUNS.iter().any(|row| is_summary_of(row, line))
}

/// Returns whether a line is a summary by a row of [`EMPTY_RUNS`].
fn is_summary_of((part, pattern): &(&str, &'static str), line: &str) -> bool {
    line.contains(part) && any_name(pattern).is_some_and(|regex| regex.is_match(line))
}

/// The exit codes with which programs report their own failure, not that of the command they run.
const RUNNER_CODES: &[(&[&str], &[i64])] = &[
    (&["ssh"], &[255]),
    (&["docker", "docker-compose", "podman"], &[125]),
    (&["timeout", "gtimeout", "env", "nice", "nohup", "stdbuf", "chroot", "xvfb-run"], &[125]),
    // The tools themselves: wrong options, data or configuration, or an error of their own.
    (&["actionlint"], &[2, 3]),
    (&["bandit"], &[2]),
    (&["bazel", "bazelisk"], &[2, 36, 37]),
    (&["eslint"], &[2]),
    (&["flutter", "dart"], &[64]),
    (&["golangci-lint"], &[3, 6]),
    (&["luacheck"], &[4]),
    (&["markdownlint-cli2"], &[2]),
    (&["pre-commit"], &[3]),
    (&["pyright", "basedpyright"], &[2, 3, 4]),
    (&["rubocop", "standardrb"], &[2]),
    (&["ruff"], &[2]),
    (&["sqlfluff"], &[2]),
    (&["stylelint"], &[64, 78]),
    (&["tox"], &[254]),
    (&["vale"], &[2]),
    (&["robot", "pabot"], &[252, 255]),
    (&["pylint"], &[32]),
    (&["shellcheck"], &[3, 4]),
];

/// The exit codes with which tools report that the user stopped them.
const STOP_CODES: &[(&[&str], &[i64])] =
    &[(&["bazel", "bazelisk"], &[8]), (&["robot", "pabot"], &[253])];

/// The number of non-blank lines, from the first one on, that are searched for a message without a
/// name.
const FIRST_LINES: usize = 4;

/// Returns whether one of these programs is the check's own program or runs it.
fn is_run_by(call: &CheckCall, programs: &[&str]) -> bool {
    let own = call.name.split(' ').next().unwrap_or_default();
    let own = own.rsplit('/').next().unwrap_or_default();
    let of = |known: &&str| {
        *known == own
            || call.runners.iter().any(|runner| {
                runner == known || (*known == "python" && runner.starts_with("python"))
            })
    };
    programs.iter().any(of)
}

/// Returns whether this exit code is the code with which a runner of the check reports its own
/// failure.
pub(super) fn is_runner_code(call: &CheckCall, code: i64) -> bool {
    RUNNER_CODES.iter().any(|(programs, codes)| codes.contains(&code) && is_run_by(call, programs))
}

/// Returns whether with this exit code the check reports that the user stopped it.
pub(super) fn is_stop_code(call: &CheckCall, code: i64) -> bool {
    STOP_CODES.iter().any(|(programs, codes)| codes.contains(&code) && is_run_by(call, programs))
}

/// Returns the compiled pattern of a message with any text in place of the names. A pattern with
/// the names is compiled only if a line matches this one.
fn any_name(message: &'static str) -> Option<Arc<Regex>> {
    static COMPILED: Mutex<BTreeMap<&str, Arc<Regex>>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(regex) = compiled.get(message) {
        return Some(Arc::clone(regex));
    }
    let regex = Regex::new(&super::summary::ascii(message).replace("{}", ".+")).ok()?;
    let regex = Arc::new(regex);
    compiled.insert(message, Arc::clone(&regex));
    Some(regex)
}

/// Returns whether one of these lines is a message, with one of these names (a pattern) as `{}`.
fn is_said<'l>(message: &'static str, names: &str, lines: impl Iterator<Item = &'l str>) -> bool {
    let Some(regex) = any_name(message) else { return false };
    let mut similar = lines.filter(|line| regex.is_match(line)).peekable();
    let found = similar.peek().is_some();
    if !found || !message.contains("{}") {
        return found;
    }
    // The names are inserted after the call of `ascii`, which would replace a `\d` in a path.
    let pattern = super::summary::ascii(message).replace("{}", names);
    Regex::new(&pattern).is_ok_and(|regex| similar.any(|line| regex.is_match(line)))
}

/// Returns whether the output says that a runner, or the tool itself, could not run the check. A
/// message without the name of the check counts only in the first lines, and only if the command
/// line has no other check (`alone`). Unless the end with the summary is visible (`ends`), a
/// program under test may have printed a message about an option. Unless the line certainly came
/// to the check (`reached`), a program before it may have printed a message about a package or a
/// version.
pub(super) fn says_not_started(
    call: &CheckCall,
    lines: &[&str],
    alone: bool,
    ends: bool,
    reached: bool,
) -> bool {
    let own = call.name.split(' ').next().unwrap_or_default();
    let first = call.call.split(' ').next().unwrap_or_default();
    let any_of = |names: &[&str]| {
        let names = names.iter().filter(|name| !name.is_empty());
        let mut names: Vec<String> = names.map(|name| regex::escape(name)).collect();
        names.dedup();
        format!("(?:{})", names.join("|"))
    };
    // A shell looks for the program. What the program runs is not the check.
    let programs = any_of(&[own, call.tool]);
    let names = any_of(&[own, call.tool, call.call.as_str(), first]);
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    // zsh does not run a command with a pattern of files that matches none.
    let mut shown = filled.clone();
    let (only, more) = (shown.next(), shown.next());
    let is_no_match =
        |line: &&str| line.starts_with("zsh:") && line.contains(" no matches found: ");
    if alone && more.is_none() && only.is_some_and(is_no_match) {
        return true;
    }
    // The names of the programs that a script runs are not known.
    let any = r"[^'\x22]+".to_owned();
    let known = FAILURES.iter().filter(|(programs, _)| is_run_by(call, programs));
    let known = known.map(|(_, message)| (*message, &names));
    let known = known.chain(NOT_FOUND.map(|message| (message, &programs)));
    let known = known.chain([(NOT_FOUND_BY_CMD, &programs)]);
    // In the output of a script, the tool that does not know an option may be any of several.
    let options = call.summary.filter(|_| ends).map(|_| (UNKNOWN_OPTIONS, &names));
    // A script with more output went on without the tool.
    let ended = call.summary.is_some() || filled.clone().count() <= FIRST_LINES;
    let version = (reached && ended).then_some((NO_VERSION, &names));
    let of_script = (alone && ended && call.summary.is_none()).then_some((NOT_FOUND_BY_CMD, &any));
    let package = (reached && is_run_by(call, &["npx"])).then_some((NO_PACKAGE, &names));
    let known = known.chain([(UNKNOWN_OPTION, &programs)]).chain(version).chain(of_script);
    let mut known = known.chain(package).chain(options);
    known.any(|(message, names)| {
        let named = message.contains("{}");
        if !named && !alone {
            return false;
        }
        let count = if named { usize::MAX } else { FIRST_LINES };
        is_said(message, names, filled.clone().take(count).copied())
    })
}

/// Returns whether the output says that there was nothing to run.
pub(super) fn says_nothing_ran(call: &CheckCall, lines: &[&str]) -> bool {
    // What is built may really be up to date.
    let is_up_to_date = || {
        call.check != CheckKind::Build
            && is_run_by(call, &["make", "gmake", "task", "go-task", "mise", "rtx"])
            && is_said(UP_TO_DATE, &regex::escape(&call.call), lines.iter().copied())
    };
    says_any(NOTHING_RAN, call, lines) || is_up_to_date()
}

/// Returns whether the whole output of a build tool says that no part of the project has tests.
pub(super) fn says_no_part_has_tests(call: &CheckCall, lines: &[&str]) -> bool {
    let says = |message: &'static str| is_said(message, "", lines.iter().copied());
    let none = |&(programs, message, other): &(&[&str], &'static str, &'static str)| {
        is_run_by(call, programs) && says(message) && !says(other)
    };
    call.call.to_ascii_lowercase().contains("test") && NO_TESTS_IN_PART.iter().any(none)
}

/// Returns whether the output says that there was nothing to check, whatever its summary is.
pub(super) fn says_nothing_checked(call: &CheckCall, lines: &[&str]) -> bool {
    says_any(NOTHING_CHECKED, call, lines)
}

fn says_any(known: &[RunnerMessage], call: &CheckCall, lines: &[&str]) -> bool {
    let mut known = known.iter().filter(|(programs, _)| is_run_by(call, programs));
    known.any(|(_, message)| is_said(message, "", lines.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_a_runner_failure_is_a_valid_pattern() {
        let compiled = |message: &str| {
            let pattern = super::super::summary::ascii(message).replace("{}", "(?:a|b)");
            Regex::new(&pattern).unwrap()
        };
        assert!(compiled(NOT_FOUND[0]).is_match("sh: 1: a: not found"));
        let general =
            [UNKNOWN_OPTION, UNKNOWN_OPTIONS, NO_VERSION, NO_PACKAGE, UP_TO_DATE, NOT_FOUND_BY_CMD];
        let of_parts = NO_TESTS_IN_PART.iter().flat_map(|(_, message, other)| [*message, *other]);
        for message in NOT_FOUND.into_iter().chain(general).chain(of_parts) {
            compiled(message);
            assert!(any_name(message).is_some(), "{message}");
        }
        for (programs, message) in FAILURES.iter().chain(NOTHING_RAN).chain(NOTHING_CHECKED) {
            compiled(message);
            assert!(any_name(message).is_some(), "{message}");
            assert!(!programs.is_empty(), "{message}");
        }
    }

    #[test]
    fn every_form_of_an_empty_run_is_seen() {
        let lines = [
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 12 filtered out; finished in 0.00s",
            "ok  \tacme/a\t0.002s [no tests to run]",
            "Tests:       4 skipped, 4 total",
            "      Tests  4 skipped (4)",
            "  0 passing (1ms)",
            "0 examples, 0 failures",
            "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips",
            "ok | 0 passed | 0 failed (2ms)",
            "\t Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.000) seconds",
            "✔ Test run with 0 tests in 0 suites passed after 0.001 seconds.",
            "SUCCESS! -- 0 Passed | 0 Failed | 0 Pending | 4 Skipped",
            "DONE 2 runs, 0 tests in 0.1s",
            "0 features passed, 0 failed, 1 skipped",
            "0 scenarios",
            "All 0 tests passed (0.01s)",
            "0 files inspected, no offenses detected",
            "     Summary [   0.000s] 0 tests run: 0 passed, 2 skipped",
            "Result: NOTESTS",
            "1..0",
            "0 tests, 0 failures",
            "0 passed, no failures",
            "Chrome 120.0.0.0 (Linux): Executed 0 of 0 SUCCESS (0.002 secs / 0 secs)",
            "0 successes / 0 failures / 0 errors / 0 pending : 0.0 seconds",
            "Success! 0 passed, 0 failed.",
            "12:00:01  Done. PASS=0 WARN=0 ERROR=0 SKIP=0 NO-OP=0 TOTAL=0",
            "Tests:       0 passed, 0 total",
            "ruff.................................................(no files to check)Skipped",
            "0 tests, 0 passed, 0 warnings, 0 failures, 0 exceptions",
            "PASS: 0/0",
            "Success: no issues found in 0 source files",
            "Done linting! Found 0 violations, 0 serious in 0 files.",
            "Linting: 0 file(s)",
            "CSpell: Files checked: 0, Issues found: 0 in 0 files.",
        ];
        for ((part, pattern), line) in EMPTY_RUNS.iter().zip(lines) {
            assert!(line.contains(part) && any_name(pattern).unwrap().is_match(line), "{line}");
        }
        assert_eq!(lines.len(), EMPTY_RUNS.len());
        assert!(!is_empty_run("1 examples, 0 failures") && !has_empty_run(&["0", "passing ("]));
        assert!(has_empty_run(&["a", "  0 passing (2ms)", "b"]));
    }
}
