//! Wrapper programs that run the command in their arguments: `sudo`, `timeout 60`, `uv run`,
//! `docker exec NAME`, ...

/// A program that runs another, with the form of its arguments.
struct WrapperProgram {
    /// Its first words.
    words: &'static [&'static str],
    /// Its options that take a value.
    valued: &'static [&'static str],
    /// How many words are between its options and the command.
    operands: usize,
}

/// The command inside a runner.
pub(super) enum WrappedCommand<'w, 'a> {
    /// The words of the command, and the directory that the runner changes to.
    Words(&'w [&'a str], Option<&'a str>),
    /// A command line in one word.
    Line(String),
}

const fn plain(words: &'static [&'static str]) -> WrapperProgram {
    WrapperProgram { words, valued: &[], operands: 0 }
}

const fn with(words: &'static [&'static str], valued: &'static [&'static str]) -> WrapperProgram {
    WrapperProgram { words, valued, operands: 0 }
}

const fn over(
    words: &'static [&'static str],
    valued: &'static [&'static str],
    operands: usize,
) -> WrapperProgram {
    WrapperProgram { words, valued, operands }
}

const CONTAINER: &[&str] = &[
    "-v",
    "--volume",
    "-e",
    "--env",
    "-w",
    "--workdir",
    "-u",
    "--user",
    "--name",
    "--network",
    "--net",
    "--mount",
    "-p",
    "--publish",
    "--platform",
    "--entrypoint",
    "--env-file",
    "-h",
    "--hostname",
    "-m",
    "--memory",
    "--cpus",
    "--gpus",
    "--shm-size",
    "--ulimit",
    "--add-host",
    "--cap-add",
    "--security-opt",
    "--index",
    "--label",
    "-l",
    "--tmpfs",
    "--ipc",
    "--pull",
    "--device",
];
const UV: &[&str] = &[
    "--with",
    "--with-requirements",
    "--with-editable",
    "--extra",
    "--group",
    "--only-group",
    "--python",
    "-p",
    "--package",
    "--directory",
    "--project",
    "--env-file",
    "--index-url",
    "--from",
    "--no-extra",
];
const PYTHON: &[&str] = &["-W", "-X"];
const NODE: &[&str] = &["-r", "--require", "--import", "--loader", "--env-file"];
const SSH: &[&str] = &["-p", "-i", "-o", "-l", "-F", "-J", "-L", "-R", "-D"];
const COVERAGE: &[&str] = &[
    "-r",
    "--reporter",
    "-n",
    "--include",
    "-x",
    "--exclude",
    "-o",
    "--report-dir",
    "--src",
    "--lines",
    "--branches",
    "--functions",
    "--statements",
    "--temp-directory",
];
const CONDA: &[&str] = &["-n", "--name", "-p", "--prefix", "--cwd"];

/// The runners; of two with the same beginning, the longer one is first.
const RUNNERS: &[WrapperProgram] = &[
    with(&["sudo"], &["-u", "-g", "-p", "-C", "-D"]),
    with(&["doas"], &["-u", "-C"]),
    with(&["env"], &["-u", "--unset", "-C", "--chdir"]),
    with(&["time"], &["-f", "-o"]),
    with(&["nice"], &["-n", "--adjustment"]),
    with(&["ionice"], &["-c", "-n"]),
    with(&["exec"], &["-a"]),
    plain(&["command"]),
    plain(&["builtin"]),
    plain(&["nohup"]),
    plain(&["setsid"]),
    plain(&["unbuffer"]),
    plain(&["chronic"]),
    plain(&["eatmydata"]),
    with(&["stdbuf"], &["-o", "-e", "-i"]),
    with(&["xvfb-run"], &["-s", "--server-args", "-n", "--server-num", "-e", "-f", "-w"]),
    plain(&["dbus-run-session"]),
    with(&["caffeinate"], &["-t", "-w"]),
    over(&["timeout"], &["-k", "--kill-after", "-s", "--signal"], 1),
    over(&["gtimeout"], &["-k", "--kill-after", "-s", "--signal"], 1),
    with(&["runuser"], &["-u", "--user", "-g", "--group"]),
    with(
        &["xargs"],
        &[
            "-n",
            "-I",
            "-P",
            "-L",
            "-d",
            "-a",
            "-s",
            "-E",
            "--max-args",
            "--max-procs",
            "--arg-file",
        ],
    ),
    with(&["nyc"], COVERAGE),
    with(&["c8"], COVERAGE),
    with(
        &["devcontainer", "exec"],
        &["--workspace-folder", "--config", "--container-id", "--id-label", "--remote-env"],
    ),
    with(&["npx"], &["-p", "--package"]),
    plain(&["bunx"]),
    plain(&["pnpx"]),
    with(&["npm", "exec"], &["-p", "--package"]),
    with(&["npm", "x"], &["-p", "--package"]),
    plain(&["pnpm", "exec"]),
    with(&["pnpm", "dlx"], &["--package"]),
    plain(&["yarn", "exec"]),
    with(&["yarn", "dlx"], &["-p", "--package"]),
    plain(&["bun", "x"]),
    plain(&["yarn", "run"]),
    plain(&["yarn"]),
    plain(&["pnpm"]),
    plain(&["bun", "run"]),
    with(&["uv", "run"], UV),
    with(&["uv", "tool", "run"], UV),
    with(&["uvx"], UV),
    with(&["pipx", "run"], &["--spec"]),
    plain(&["poetry", "run"]),
    plain(&["pipenv", "run"]),
    plain(&["hatch", "run"]),
    plain(&["rye", "run"]),
    plain(&["pdm", "run"]),
    with(&["pixi", "run"], &["-e", "--environment", "--manifest-path"]),
    with(&["conda", "run"], CONDA),
    with(&["mamba", "run"], CONDA),
    with(&["micromamba", "run"], CONDA),
    plain(&["bundle", "exec"]),
    plain(&["mise", "exec"]),
    plain(&["mise", "x"]),
    over(&["direnv", "exec"], &[], 1),
    plain(&["devbox", "run"]),
    plain(&["flox", "activate"]),
    plain(&["opam", "exec"]),
    plain(&["stack", "exec"]),
    plain(&["cabal", "exec"]),
    plain(&["corepack"]),
    plain(&["volta", "run"]),
    over(&["nvm", "exec"], &[], 1),
    over(&["rustup", "run"], &[], 1),
    with(&["coverage", "run"], &["--source", "--rcfile", "--omit", "--include"]),
    plain(&["dotenv", "run"]),
    plain(&["dotenv"]),
    with(&["dotenvx", "run"], &["-f", "--env-file", "-e", "--env"]),
    with(&["doppler", "run"], &["-p", "--project", "-c", "--config"]),
    with(&["infisical", "run"], &["--env", "--path", "--projectId"]),
    with(&["op", "run"], &["--env-file"]),
    over(&["aws-vault", "exec"], &["-d", "--duration"], 1),
    over(&["chamber", "exec"], &[], 1),
    plain(&["asdf", "exec"]),
    plain(&["pyenv", "exec"]),
    plain(&["rbenv", "exec"]),
    with(&["taskset"], &["-c", "--cpu-list"]),
    over(&["flock"], &["-w", "--timeout", "-E"], 1),
    plain(&["cross-env"]),
    plain(&["docker-php-entrypoint"]),
    with(&["php"], &["-d", "-c"]),
    plain(&["ddev", "exec"]),
    over(&["docker", "exec"], CONTAINER, 1),
    over(&["docker", "run"], CONTAINER, 1),
    over(&["podman", "exec"], CONTAINER, 1),
    over(&["podman", "run"], CONTAINER, 1),
    over(&["docker-compose", "run"], CONTAINER, 1),
    over(&["docker-compose", "exec"], CONTAINER, 1),
    over(&["docker", "compose", "run"], CONTAINER, 1),
    over(&["docker", "compose", "exec"], CONTAINER, 1),
    over(&["podman", "compose", "run"], CONTAINER, 1),
    over(&["podman", "compose", "exec"], CONTAINER, 1),
    over(&["kubectl", "exec"], &["-n", "--namespace", "-c", "--container"], 1),
];

/// Programs with options that take a value before their subcommand.
const BEFORE_SUBCOMMAND: &[(&str, &[&str])] = &[
    ("dotenv", &["-e", "-f", "-p", "--file"]),
    ("hatch", &["-e", "--env", "-p", "--project"]),
    ("npm", &["--prefix", "-C", "-w", "--workspace"]),
    ("pdm", &["-p", "--project"]),
    ("pipenv", &["--python"]),
    ("pnpm", &["-C", "--dir", "-F", "--filter"]),
    ("poetry", &["-C", "--directory", "-P", "--project"]),
    ("uv", &["--directory", "--project", "--config-file", "--cache-dir"]),
    ("yarn", &["--cwd"]),
];

/// Options before a subcommand that name the directory or the package in which it runs.
const PLACES: &[&str] = &[
    "-C",
    "--cwd",
    "--dir",
    "--directory",
    "-F",
    "--filter",
    "-p",
    "--prefix",
    "-w",
    "--workspace",
];

/// Options that `docker compose` takes before its subcommand.
const COMPOSE: &[&str] =
    &["-f", "--file", "-p", "--project-name", "--profile", "--env-file", "--project-directory"];

/// Returns the command that these words run through a wrapper, if they do.
pub(super) fn inner<'w, 'a>(
    words: &'w [&'a str],
    scratch: &'w mut Vec<&'a str>,
) -> Option<WrappedCommand<'w, 'a>> {
    let (first, rest) = words.split_first()?;
    let program = first.rsplit(['/', '\\']).next()?;
    let program = program.strip_suffix(".exe").unwrap_or(program);
    match program {
        "powershell" | "pwsh" => return other_shell(rest, &["-c", "-command"]),
        "cmd" => return other_shell(rest, &["/c", "/k"]),
        "eval" => return Some(WrappedCommand::Line(rest.join(" "))),
        "su" | "runuser" if rest.iter().any(|word| matches!(*word, "-c" | "--command")) => {
            let at = rest.iter().position(|word| matches!(*word, "-c" | "--command"))?;
            return Some(WrappedCommand::Line((*rest.get(at + 1)?).to_owned()));
        }
        "bash" | "sh" | "zsh" | "dash" | "ksh" | "fish" => return shell(rest),
        "env" if let Some(at) = line_option(rest, 'S', "--split-string") => {
            return Some(WrappedCommand::Line((*rest.get(at)?).to_owned()));
        }
        "npx" | "script" if let Some(at) = line_option(rest, 'c', "--command") => {
            return Some(WrappedCommand::Line((*rest.get(at)?).to_owned()));
        }
        "nix" | "nix-shell" => return nix(rest),
        "ssh" => {
            let command = after_options(rest, SSH).get(1..).filter(|words| !words.is_empty())?;
            return Some(WrappedCommand::Line(command.join(" ")));
        }
        "node" | "tsx" | "ruby" | "deno" | "dotnet" if rest.is_empty() => return None,
        "node" | "tsx" => return Some(WrappedCommand::Words(after_options(rest, NODE), None)),
        _ => {}
    }
    if program == "python" || (program.starts_with("python") && is_version(program.get(6..)?)) {
        let inner = after_options(rest, PYTHON);
        return (!rest.starts_with(&["-c"])).then_some(WrappedCommand::Words(inner, None));
    }
    scratch.push(program);
    let mut place = None;
    let before = BEFORE_SUBCOMMAND.iter().find(|(name, _)| *name == program);
    // `docker compose -f FILE run` is `docker compose run`.
    if matches!(program, "docker" | "podman") && rest.first() == Some(&"compose") {
        scratch.push("compose");
        scratch.extend(after_options(rest.get(1..)?, COMPOSE));
    } else if program == "docker-compose" {
        scratch.extend(after_options(rest, COMPOSE));
    } else if let Some((_, valued)) = before {
        let after = after_options(rest, valued);
        let options = rest.get(..rest.len() - after.len()).unwrap_or_default();
        place = value_of(options, PLACES);
        scratch.extend(after);
    } else {
        scratch.extend(rest);
    }
    let words: &'w [&'a str] = scratch;
    let runner = RUNNERS.iter().filter(|runner| words.starts_with(runner.words));
    let runner = runner.max_by_key(|runner| runner.words.len())?;
    let rest = words.get(runner.words.len()..)?;
    // `command -v NAME` only looks it up.
    if program == "command" && matches!(rest.first(), Some(&("-v" | "-V"))) {
        return None;
    }
    let directory = value_of(rest, &["--directory", "--chdir", "--cwd"]).or(place);
    let mut command = after_options(rest, runner.valued);
    command = command.get(runner.operands..).unwrap_or_default();
    Some(WrappedCommand::Words(after_options(command, &[]), directory))
}

/// Returns the host, the container or the toolchain in the words of a runner.
pub(super) fn place_of(words: &[&str]) -> Option<String> {
    let (program, rest) = words.split_first()?;
    let after = |option: &str| {
        let at = rest.iter().position(|word| *word == option)?;
        rest.get(at + 1).copied()
    };
    match program.rsplit('/').next()? {
        "ssh" => Some(format!("ssh {}", after_options(rest, SSH).first()?)),
        "docker" | "podman" | "docker-compose" | "kubectl" => {
            let operand =
                rest.iter().rev().find(|word| **word != "--" && !word.starts_with('-'))?;
            Some(format!("container {operand}"))
        }
        "xargs" => Some("xargs".to_owned()),
        "devcontainer" => Some("devcontainer".to_owned()),
        "rustup" => Some(format!("+{}", rest.last()?)),
        "nvm" => Some(format!("nvm {}", rest.last()?)),
        "conda" | "mamba" | "micromamba" => {
            Some(format!("conda {}", after("-n").or_else(|| after("--name"))?))
        }
        "uv" | "uvx" => Some(format!("--python {}", after("--python").or_else(|| after("-p"))?)),
        _ => None,
    }
}

/// The value of the first of these options among the words.
fn value_of<'a>(words: &[&'a str], options: &[&str]) -> Option<&'a str> {
    let mut pairs = words.iter().zip(words.iter().skip(1));
    pairs.find_map(|(option, value)| options.contains(option).then_some(*value))
}

/// The index of the command line that an option takes: `-c LINE`, also as the last of several
/// letters.
fn line_option(words: &[&str], letter: char, long: &str) -> Option<usize> {
    let first = words.iter().position(|word| !word.starts_with('-')).unwrap_or(words.len());
    let options = words.get(..first)?;
    let is_option = |word: &&str| {
        *word == long || (!word.starts_with("--") && word.len() > 1 && word.ends_with(letter))
    };
    options.iter().position(is_option).map(|at| at + 1)
}

fn is_version(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// The words after the options, the assignments and the `--`.
fn after_options<'w, 'a>(mut words: &'w [&'a str], valued: &[&str]) -> &'w [&'a str] {
    while let Some((first, rest)) = words.split_first() {
        words = if valued.contains(first) {
            rest.get(1..).unwrap_or_default()
        } else if *first == "--" {
            return rest;
        } else if first.starts_with('-') || forge_store::shell::is_assignment(first) {
            rest
        } else {
            return words;
        };
    }
    words
}

/// The command line that a shell gets with `-c`.
fn shell<'w, 'a>(words: &[&'a str]) -> Option<WrappedCommand<'w, 'a>> {
    let mut words = words.iter();
    let mut before = String::new();
    while let Some(word) = words.next() {
        match *word {
            "-o" | "-O" => {
                let option = words.next()?;
                if *option == "pipefail" {
                    before.push_str("set -o pipefail; ");
                }
            }
            long if long.starts_with("--") => {}
            flags if flags.starts_with('-') => {
                if flags.contains('e') {
                    before.push_str("set -e; ");
                }
                if flags.ends_with('o') {
                    before.push_str("set -o pipefail; ");
                    words.next()?;
                }
                if flags.contains('c') {
                    return Some(WrappedCommand::Line(before + words.next()?));
                }
            }
            _ => return None,
        }
    }
    None
}

/// The command line that a shell of Windows gets after one of these options.
fn other_shell<'w, 'a>(words: &[&'a str], options: &[&str]) -> Option<WrappedCommand<'w, 'a>> {
    let is_option = |word: &&str| options.contains(&word.to_ascii_lowercase().as_str());
    let at = words.iter().position(is_option)?;
    let line = words.get(at + 1..).filter(|line| !line.is_empty())?.join(" ");
    Some(WrappedCommand::Line(line))
}

/// The command that a Nix shell runs.
fn nix<'w, 'a>(words: &'w [&'a str]) -> Option<WrappedCommand<'w, 'a>> {
    let at = words.iter().position(|word| matches!(*word, "-c" | "--command" | "--run"))?;
    let rest = words.get(at + 1..)?;
    if words.get(at) == Some(&"--run") {
        return Some(WrappedCommand::Line((*rest.first()?).to_owned()));
    }
    Some(WrappedCommand::Words(rest, None))
}
