//! Finds the command that a runner runs. A runner is a program that runs the command in its
//! arguments, such as `sudo`, `timeout 60`, `uv run` or `docker exec NAME`.

use super::call_arguments::sets_option;
use super::program_words::words_of;
use forge_store::const_table::{count, parts, rows};

/// The command that a runner runs.
pub(super) enum InnerCommand<'w, 'a> {
    /// The words of the command, and the directory that the runner changes to.
    Words(&'w [&'a str], Option<&'a str>),
    /// A command line in one word.
    Line(String),
}

const PYTHON: &[&str] = &["-W", "-X"];
const NODE: &[&str] = &["-r", "--require", "--import", "--loader", "--env-file"];
const SSH: &[&str] = &["-p", "-i", "-o", "-l", "-F", "-J", "-L", "-R", "-D"];

const LINES: &str = include_str!("runners.tsv");
/// The runners: the calls, the options with a value, and the number of words between the options
/// and the command.
pub(super) const RUNNERS: &[[&str; 3]] = &rows::<{ count(LINES) }, 3>(LINES);
/// The calls of all runners, each with the index of its runner.
static CALLS: [(&str, usize); parts::<0, 3>(RUNNERS, b',').1] = parts(RUNNERS, b',').0;

/// Runners whose command is only the words after `--`, if there is a `--`.
const AFTER_DASHES: &[&str] = &["distrobox", "guix", "kubectl", "mise", "oc", "rtx"];

/// Options before a subcommand whose value is the directory or package in which the command runs.
const PLACES: &[&str] = &[
    "-C", "--cwd", "--dir", "--directory", "-F", "--filter", "-p", "--prefix", "-w", "--workspace",
];

/// Options of `su` and `vagrant ssh` whose value is a command line.
const COMMAND: &[&str] = &["-c", "--command"];

/// Options that `docker compose` takes before its subcommand.
const COMPOSE: &[&str] =
    &["-f", "--file", "-p", "--project-name", "--profile", "--env-file", "--project-directory"];

/// Returns the command that a runner runs; `None` if these words call no runner. `scratch` must be
/// empty; it gets the words of the call without the options before the subcommand.
pub(super) fn inner<'w, 'a>(
    words: &'w [&'a str],
    scratch: &'w mut Vec<&'a str>,
) -> Option<InnerCommand<'w, 'a>> {
    let (first, rest) = words.split_first()?;
    let program = first.rsplit(['/', '\\']).next()?;
    let endings = [".exe", ".cmd", ".bat"];
    let program = endings.iter().find_map(|it| program.strip_suffix(it)).unwrap_or(program);
    match program {
        "powershell" | "pwsh" => return windows_shell(rest, &["-c", "-command", "-file", "-f"]),
        "cmd" => return windows_shell(rest, &["/c", "/k"]),
        "eval" => return Some(InnerCommand::Line(rest.join(" "))),
        "su" | "runuser" if rest.iter().any(|word| COMMAND.contains(word)) => {
            return value_of(rest, COMMAND).map(|line| InnerCommand::Line(line.to_owned()));
        }
        "bash" | "sh" | "zsh" | "dash" | "ash" | "ksh" | "fish" => return shell(rest),
        "env" if let Some(at) = line_option(rest, 'S', "--split-string") => {
            return Some(InnerCommand::Line((*rest.get(at)?).to_owned()));
        }
        "npx" | "script" if let Some(at) = line_option(rest, 'c', "--command") => {
            return Some(InnerCommand::Line((*rest.get(at)?).to_owned()));
        }
        "vagrant" if rest.first() == Some(&"ssh") => {
            return value_of(rest, COMMAND).map(|line| InnerCommand::Line(line.to_owned()));
        }
        "nix" | "nix-shell" => return nix(rest),
        "ssh" => {
            let command = after_options(rest, SSH).get(1..).filter(|words| !words.is_empty())?;
            let command = command.strip_prefix(&["--"]).unwrap_or(command);
            return Some(InnerCommand::Line(command.join(" ")));
        }
        "node" | "tsx" | "ruby" | "deno" | "dotnet" if rest.is_empty() => return None,
        "node" | "tsx" => return Some(InnerCommand::Words(after_options(rest, NODE), None)),
        _ => {}
    }
    if matches!(program, "python" | "py")
        || (program.starts_with("python") && is_version(program.get(6..)?))
    {
        let inner = after_options(rest, PYTHON);
        return (!rest.starts_with(&["-c"])).then_some(InnerCommand::Words(inner, None));
    }
    scratch.push(program);
    let mut place = None;
    let valued = words_of("before-subcommand", program);
    // `docker compose -f FILE run` is found in the table as `docker compose run`.
    if matches!(program, "docker" | "podman") && rest.first() == Some(&"compose") {
        scratch.push("compose");
        scratch.extend(after_options(rest.get(1..)?, COMPOSE));
    } else if program == "docker-compose" {
        scratch.extend(after_options(rest, COMPOSE));
    } else if valued.is_empty() {
        scratch.extend(rest);
    } else {
        let after = after_options(rest, &valued);
        let options = rest.get(..rest.len() - after.len()).unwrap_or_default();
        place = value_of(options, PLACES);
        scratch.extend(after);
    }
    let words: &'w [&'a str] = scratch;
    let is_here = |(call, _): &&(&str, usize)| {
        let mut wanted = call.split(' ').enumerate();
        call.starts_with(program) && wanted.all(|(at, word)| words.get(at) == Some(&word))
    };
    let found = CALLS.iter().filter(is_here).map(|(call, row)| (call.split(' ').count(), *row));
    let (count, row) = found.max_by_key(|(count, _)| *count)?;
    let [_, valued, operands] = RUNNERS.get(row)?;
    let rest = words.get(count..)?;
    // `command -v NAME` only finds the program.
    if program == "command" && matches!(rest.first(), Some(&("-v" | "-V"))) {
        return None;
    }
    let dashes = rest.iter().position(|word| *word == "--");
    let command = match dashes.filter(|_| AFTER_DASHES.contains(&program)) {
        Some(at) => rest.get(at + 1..)?,
        None => {
            let valued: Vec<&str> = valued.split_whitespace().collect();
            let command = after_options(rest, &valued);
            after_options(command.get(operands.parse().ok()?..).unwrap_or_default(), &[])
        }
    };
    // The options of the command itself are not the runner's.
    let options = rest.get(..rest.len() - command.len()).unwrap_or_default();
    let folders: &[&str] = match program {
        "npx" | "npm" => &["--prefix"],
        _ => &["--directory", "--chdir", "--cwd"],
    };
    Some(InnerCommand::Words(command, value_of(options, folders).or(place)))
}

/// Returns the place in which a runner runs its command: a host, a container, an environment or a
/// toolchain. `words` are the words of the runner without the command.
pub(super) fn place_of(words: &[&str]) -> Option<String> {
    let (program, rest) = words.split_first()?;
    let after = |option: &str| {
        let at = rest.iter().position(|word| *word == option)?;
        rest.get(at + 1).copied()
    };
    match program.rsplit('/').next()? {
        "ssh" => Some(format!("ssh {}", after_options(rest, SSH).first()?)),
        "vagrant" => Some("vagrant".to_owned()),
        "docker" | "podman" | "docker-compose" | "kubectl" | "oc" | "nerdctl" | "apptainer"
        | "singularity" | "lxc" | "incus" | "multipass" | "limactl" => {
            let operand =
                rest.iter().rev().find(|word| **word != "--" && !word.starts_with('-'))?;
            Some(format!("container {operand}"))
        }
        "xargs" => Some("xargs".to_owned()),
        "yarn" if rest.first() == Some(&"workspace") => Some(format!("workspace {}", rest.get(1)?)),
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

/// Returns whether a runner with these words ends with 0 whatever the exit code of its command is:
/// `script -c LINE` of Linux, without `-e`.
pub(super) fn hides_exit_code(words: &[&str]) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    program.rsplit('/').next() == Some("script")
        && line_option(rest, 'c', "--command").is_some()
        && !rest.iter().any(|word| sets_option(word, 'e', "--return"))
}

/// Returns whether a runner with these words does not wait for the end of its command.
pub(super) fn detaches(words: &[&str]) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    let program = program.rsplit('/').next().unwrap_or_default();
    // The words of a command line on another host follow the options.
    let rest = match program {
        "ssh" => rest.get(..rest.len() - after_options(rest, SSH).len()).unwrap_or_default(),
        _ => rest,
    };
    let (long, letter, switches) = match program {
        "docker" | "podman" | "docker-compose" | "nerdctl" => ("--detach", 'd', "ditPqT"),
        "setsid" => ("--fork", 'f', "cfw"),
        "ssh" => ("", 'f', "46AaCfGgKkMNnqsTtVvXxYy"),
        "sudo" => ("--background", 'b', "AbEeHKknPSs"),
        "systemd-run" => {
            let waits = ["--scope", "--wait", "--pipe", "--pty", "-P", "-t"];
            return !rest.iter().any(|word| waits.contains(word));
        }
        _ => return false,
    };
    let detaches = |word: &&str| match word.strip_prefix('-') {
        Some(rest) if !rest.starts_with('-') => {
            rest.contains(letter) && rest.chars().all(|switch| switches.contains(switch))
        }
        _ => !long.is_empty() && (*word == long || **word == *format!("{long}=true")),
    };
    rest.iter().any(detaches)
}

/// Returns the value of the first word that is one of these options.
fn value_of<'a>(words: &[&'a str], options: &[&str]) -> Option<&'a str> {
    let mut pairs = words.iter().zip(words.iter().skip(1));
    pairs.find_map(|(option, value)| options.contains(option).then_some(*value))
}

/// Returns the index of the command line that an option takes: `-c LINE`, or the same letter as the
/// last of several (`-xc LINE`).
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

/// Returns the words after the options, the assignments and `--`. `valued` are the options that
/// take a value.
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

/// Returns the command line that a shell gets with `-c`, after a `set` command for each option that
/// changes how a failure ends the line; or the script that it runs, with its arguments.
fn shell<'w, 'a>(words: &'w [&'a str]) -> Option<InnerCommand<'w, 'a>> {
    let mut rest = words;
    let mut before = String::new();
    while let Some((word, after)) = rest.split_first() {
        rest = match *word {
            "-o" | "-O" => {
                let (option, after) = after.split_first()?;
                if *option == "pipefail" {
                    before.push_str("set -o pipefail; ");
                }
                after
            }
            long if long.starts_with("--") => after,
            // The script is the input, and the words after it are its arguments.
            flags if flags.starts_with('-') && flags.contains('s') => return None,
            flags if flags.starts_with('-') => {
                if flags.contains('e') {
                    before.push_str("set -e; ");
                }
                let after = if flags.ends_with('o') {
                    before.push_str("set -o pipefail; ");
                    after.get(1..)?
                } else {
                    after
                };
                if flags.contains('c') {
                    return Some(InnerCommand::Line(before + after.first()?));
                }
                after
            }
            _ => return Some(InnerCommand::Words(rest, None)),
        };
    }
    None
}

/// Returns the command line that `powershell` or `cmd` gets after one of these options.
fn windows_shell<'w, 'a>(words: &[&'a str], options: &[&str]) -> Option<InnerCommand<'w, 'a>> {
    let is_option = |word: &&str| options.contains(&word.to_ascii_lowercase().as_str());
    let at = words.iter().position(is_option)?;
    let line = words.get(at + 1..).filter(|line| !line.is_empty())?.join(" ");
    Some(InnerCommand::Line(line))
}

/// Returns the command that a Nix shell runs.
fn nix<'w, 'a>(words: &'w [&'a str]) -> Option<InnerCommand<'w, 'a>> {
    let at = words.iter().position(|word| matches!(*word, "-c" | "--command" | "--run"))?;
    let rest = words.get(at + 1..)?;
    if words.get(at) == Some(&"--run") {
        return Some(InnerCommand::Line((*rest.first()?).to_owned()));
    }
    Some(InnerCommand::Words(rest, None))
}
