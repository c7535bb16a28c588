//! Finds the command that a runner runs. A runner is a program that runs the command in its
//! arguments, such as `sudo`, `timeout 60`, `uv run` or `docker exec NAME`.

/// A runner, with the form of its arguments.
struct RunnerProgram {
    /// The first words of its call: the program and a subcommand.
    words: &'static [&'static str],
    /// The options that take a value.
    valued: &'static [&'static str],
    /// The number of words between the options and the command, such as the name of a container.
    operands: usize,
}

/// The command that a runner runs.
pub(super) enum InnerCommand<'w, 'a> {
    /// The words of the command, and the directory that the runner changes to.
    Words(&'w [&'a str], Option<&'a str>),
    /// A command line in one word.
    Line(String),
}

/// Creates a runner whose options take no values.
const fn plain(words: &'static [&'static str]) -> RunnerProgram {
    RunnerProgram { words, valued: &[], operands: 0 }
}

/// Creates a runner with options that take a value.
const fn with_options(
    words: &'static [&'static str],
    valued: &'static [&'static str],
) -> RunnerProgram {
    RunnerProgram { words, valued, operands: 0 }
}

/// Creates a runner with words between its options and the command.
const fn with_operands(
    words: &'static [&'static str],
    valued: &'static [&'static str],
    operands: usize,
) -> RunnerProgram {
    RunnerProgram { words, valued, operands }
}

const CONTAINER: &[&str] = &[
    "-v", "--volume", "-e", "--env", "-w", "--workdir", "-u", "--user", "--name", "--network",
    "--net", "--mount", "-p", "--publish", "--platform", "--entrypoint", "--env-file", "-h",
    "--hostname", "-m", "--memory", "--cpus", "--gpus", "--shm-size", "--ulimit", "--add-host",
    "--cap-add", "--security-opt", "--index", "--label", "-l", "--tmpfs", "--ipc", "--pull",
    "--device", "--cap-drop", "--dns", "--expose", "--group-add", "--link", "--memory-swap",
    "--network-alias", "--pid", "--pids-limit", "--restart", "--runtime", "--stop-timeout",
    "--sysctl", "--userns", "--volumes-from",
];
const UV: &[&str] = &[
    "--with", "--with-requirements", "--with-editable", "--extra", "--group", "--only-group",
    "--python", "-p", "--package", "--directory", "--project", "--env-file", "--index-url",
    "--from", "--no-extra", "--no-group", "--index", "--default-index", "--extra-index-url",
    "--find-links", "--resolution", "--prerelease", "--link-mode", "--exclude-newer", "--color",
    "--cache-dir", "--config-file", "--upgrade-package", "-P", "--python-platform",
];
const NPM: &[&str] = &["-p", "--package", "--prefix", "-w", "--workspace"];
const PYTHON: &[&str] = &["-W", "-X"];
const NODE: &[&str] = &["-r", "--require", "--import", "--loader", "--env-file"];
const SSH: &[&str] = &["-p", "-i", "-o", "-l", "-F", "-J", "-L", "-R", "-D"];
const COVERAGE: &[&str] = &[
    "-r", "--reporter", "-n", "--include", "-x", "--exclude", "-o", "--report-dir", "--src",
    "--lines", "--branches", "--functions", "--statements", "--temp-directory",
];
const CONDA: &[&str] = &["-n", "--name", "-p", "--prefix", "--cwd"];

/// The runners. If several match a command, the one with the most words counts.
const RUNNERS: &[RunnerProgram] = &[
    with_options(&["sudo"], &["-u", "-g", "-p", "-C", "-D"]),
    with_options(&["doas"], &["-u", "-C"]),
    with_options(&["env"], &["-u", "--unset", "-C", "--chdir"]),
    with_options(&["time"], &["-f", "-o"]),
    with_options(&["nice"], &["-n", "--adjustment"]),
    with_options(&["ionice"], &["-c", "-n"]),
    with_options(&["exec"], &["-a"]),
    plain(&["command"]),
    plain(&["builtin"]),
    plain(&["call"]),
    plain(&["winpty"]),
    plain(&["noglob"]),
    plain(&["nohup"]),
    plain(&["arch"]),
    plain(&["fvm"]),
    with_options(&["xcrun"], &["--sdk", "-sdk", "--toolchain"]),
    plain(&["symfony"]),
    plain(&["lando"]),
    plain(&["composer", "exec"]),
    with_operands(&["yarn", "workspace"], &[], 1),
    plain(&["go", "tool"]),
    plain(&["go", "run"]),
    plain(&["busybox"]),
    plain(&["catchsegv"]),
    plain(&["fakeroot"]),
    with_options(&["perf", "stat"], &["-e", "--event", "-o", "--output", "-r", "--repeat"]),
    with_options(&["strace"], &["-o", "-e", "-s", "-P"]),
    // The form of macOS: `script FILE COMMAND`.
    with_operands(&["script"], &["-t"], 1),
    with_options(&["wsl"], &["-d", "--distribution", "-u", "--user", "--cd"]),
    plain(&["distrobox", "enter"]),
    plain(&["guix", "shell"]),
    plain(&["toolbox", "run"]),
    plain(&["devenv", "shell"]),
    plain(&["sail"]),
    plain(&["setsid"]),
    plain(&["unbuffer"]),
    plain(&["chronic"]),
    plain(&["eatmydata"]),
    with_options(&["stdbuf"], &["-o", "-e", "-i"]),
    with_options(&["xvfb-run"], &["-s", "--server-args", "-n", "--server-num", "-e", "-f", "-w"]),
    plain(&["dbus-run-session"]),
    with_options(&["sshpass"], &["-p", "-f"]),
    with_options(&["srun"], &["-n", "-N", "-c", "-p", "-t", "-J", "-A"]),
    with_options(&["mpirun"], &["-n", "-np", "-H", "--hostfile"]),
    with_options(&["mpiexec"], &["-n", "-np", "-H", "--hostfile"]),
    with_options(&["numactl"], &["-N", "-m", "-C"]),
    with_options(&["caffeinate"], &["-t", "-w"]),
    with_operands(&["timeout"], &["-k", "--kill-after", "-s", "--signal"], 1),
    with_operands(&["gtimeout"], &["-k", "--kill-after", "-s", "--signal"], 1),
    with_options(&["runuser"], &["-u", "--user", "-g", "--group"]),
    with_options(
        &["xargs"],
        &[
            "-n", "-I", "-P", "-L", "-d", "-a", "-s", "-E", "--max-args", "--max-procs",
            "--arg-file",
        ],
    ),
    with_options(&["nyc"], COVERAGE),
    with_options(&["c8"], COVERAGE),
    with_options(
        &["devcontainer", "exec"],
        &["--workspace-folder", "--config", "--container-id", "--id-label", "--remote-env"],
    ),
    with_options(&["npx"], NPM),
    plain(&["bunx"]),
    plain(&["pnpx"]),
    with_options(&["npm", "exec"], NPM),
    with_options(&["npm", "x"], NPM),
    plain(&["pnpm", "exec"]),
    with_options(&["pnpm", "dlx"], &["--package"]),
    plain(&["yarn", "exec"]),
    with_options(&["yarn", "dlx"], &["-p", "--package"]),
    plain(&["bun", "x"]),
    plain(&["yarn", "run"]),
    plain(&["yarn"]),
    plain(&["pnpm"]),
    plain(&["bun", "run"]),
    with_options(&["uv", "run"], UV),
    with_options(&["uv", "tool", "run"], UV),
    with_options(&["uvx"], UV),
    with_options(&["pipx", "run"], &["--spec"]),
    plain(&["poetry", "run"]),
    plain(&["pipenv", "run"]),
    plain(&["hatch", "run"]),
    plain(&["rye", "run"]),
    plain(&["pdm", "run"]),
    with_options(&["pixi", "run"], &["-e", "--environment", "--manifest-path"]),
    with_options(&["conda", "run"], CONDA),
    with_options(&["mamba", "run"], CONDA),
    with_options(&["micromamba", "run"], CONDA),
    plain(&["bundle", "exec"]),
    plain(&["mise", "exec"]),
    plain(&["mise", "x"]),
    with_operands(&["direnv", "exec"], &[], 1),
    plain(&["devbox", "run"]),
    plain(&["flox", "activate"]),
    plain(&["opam", "exec"]),
    plain(&["stack", "exec"]),
    plain(&["cabal", "exec"]),
    plain(&["corepack"]),
    plain(&["volta", "run"]),
    with_operands(&["nvm", "exec"], &[], 1),
    with_operands(&["rustup", "run"], &[], 1),
    with_options(
        &["coverage", "run"],
        &[
            "--source", "--rcfile", "--omit", "--include", "--concurrency", "--data-file",
            "--context",
        ],
    ),
    plain(&["dotenv", "run"]),
    plain(&["dotenv"]),
    with_options(&["dotenvx", "run"], &["-f", "--env-file", "-e", "--env"]),
    with_options(&["doppler", "run"], &["-p", "--project", "-c", "--config"]),
    with_options(&["infisical", "run"], &["--env", "--path", "--projectId"]),
    with_options(&["op", "run"], &["--env-file"]),
    with_operands(&["aws-vault", "exec"], &["-d", "--duration"], 1),
    with_operands(&["chamber", "exec"], &[], 1),
    plain(&["asdf", "exec"]),
    plain(&["pyenv", "exec"]),
    plain(&["rbenv", "exec"]),
    with_options(&["taskset"], &["-c", "--cpu-list"]),
    with_operands(&["flock"], &["-w", "--timeout", "-E"], 1),
    plain(&["cross-env"]),
    with_options(&["env-cmd"], &["-f", "--file", "-e", "--environments", "-r", "--rc-file"]),
    with_options(&["dotenv-cli"], &["-e", "-v", "-p", "-c"]),
    plain(&["ddtrace-run"]),
    with_operands(&["faketime"], &[], 1),
    plain(&["firejail"]),
    with_options(&["systemd-run"], &["-p", "--property", "-u", "--unit", "-E", "--setenv"]),
    // It shortens the output of the command for agents.
    plain(&["rtk"]),
    plain(&["rtk", "err"]),
    plain(&["rtk", "test"]),
    plain(&["rtk", "proxy"]),
    plain(&["docker-php-entrypoint"]),
    with_options(&["php"], &["-d", "-c"]),
    plain(&["ddev", "exec"]),
    with_operands(&["docker", "exec"], CONTAINER, 1),
    with_operands(&["docker", "run"], CONTAINER, 1),
    with_operands(&["docker", "container", "exec"], CONTAINER, 1),
    with_operands(&["docker", "container", "run"], CONTAINER, 1),
    with_operands(&["lxc", "exec"], &["--env", "--cwd"], 1),
    with_operands(&["incus", "exec"], &["--env", "--cwd"], 1),
    with_operands(&["limactl", "shell"], &["--workdir"], 1),
    with_operands(&["nerdctl", "exec"], CONTAINER, 1),
    with_operands(&["nerdctl", "run"], CONTAINER, 1),
    with_operands(&["apptainer", "exec"], &["-B", "--bind", "--pwd"], 1),
    with_operands(&["singularity", "exec"], &["-B", "--bind", "--pwd"], 1),
    with_operands(&["podman", "exec"], CONTAINER, 1),
    with_operands(&["podman", "run"], CONTAINER, 1),
    with_operands(&["docker-compose", "run"], CONTAINER, 1),
    with_operands(&["docker-compose", "exec"], CONTAINER, 1),
    with_operands(&["docker", "compose", "run"], CONTAINER, 1),
    with_operands(&["docker", "compose", "exec"], CONTAINER, 1),
    with_operands(&["podman", "compose", "run"], CONTAINER, 1),
    with_operands(&["podman", "compose", "exec"], CONTAINER, 1),
    with_operands(&["kubectl", "exec"], &["-n", "--namespace", "-c", "--container"], 1),
    with_operands(&["oc", "exec"], &["-n", "--namespace", "-c", "--container"], 1),
];

/// Runners whose command is only the words after `--`, if there is a `--`.
const AFTER_DASHES: &[&str] = &["distrobox", "guix", "kubectl", "mise", "oc", "rtx"];

/// Programs with options that take a value before their subcommand.
const BEFORE_SUBCOMMAND: &[(&str, &[&str])] = &[
    ("docker", &["-c", "--context", "-H", "--host", "--config"]),
    ("kubectl", &["-n", "--namespace", "--context", "--kubeconfig"]),
    ("dotenv", &["-e", "-f", "-p", "--file"]),
    ("hatch", &["-e", "--env", "-p", "--project"]),
    ("npm", &["--prefix", "-C", "-w", "--workspace"]),
    ("pdm", &["-p", "--project"]),
    ("pipenv", &["--python"]),
    ("pnpm", &["-C", "--dir", "-F", "--filter"]),
    ("poetry", &["-C", "--directory", "-P", "--project"]),
    ("uv", &["--directory", "--project", "--config-file", "--cache-dir", "--color"]),
    ("yarn", &["--cwd"]),
];

/// Options before a subcommand whose value is the directory or package in which the command runs.
const PLACES: &[&str] = &[
    "-C", "--cwd", "--dir", "--directory", "-F", "--filter", "-p", "--prefix", "-w", "--workspace",
];

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
        "su" | "runuser" if rest.iter().any(|word| matches!(*word, "-c" | "--command")) => {
            let at = rest.iter().position(|word| matches!(*word, "-c" | "--command"))?;
            return Some(InnerCommand::Line((*rest.get(at + 1)?).to_owned()));
        }
        "bash" | "sh" | "zsh" | "dash" | "ash" | "ksh" | "fish" => return shell(rest),
        "env" if let Some(at) = line_option(rest, 'S', "--split-string") => {
            return Some(InnerCommand::Line((*rest.get(at)?).to_owned()));
        }
        "npx" | "script" if let Some(at) = line_option(rest, 'c', "--command") => {
            return Some(InnerCommand::Line((*rest.get(at)?).to_owned()));
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
    let before = BEFORE_SUBCOMMAND.iter().find(|(name, _)| *name == program);
    // `docker compose -f FILE run` is found in the table as `docker compose run`.
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
    // `command -v NAME` only finds the program.
    if program == "command" && matches!(rest.first(), Some(&("-v" | "-V"))) {
        return None;
    }
    let dashes = rest.iter().position(|word| *word == "--");
    let command = match dashes.filter(|_| AFTER_DASHES.contains(&program)) {
        Some(at) => rest.get(at + 1..)?,
        None => {
            let command = after_options(rest, runner.valued);
            after_options(command.get(runner.operands..).unwrap_or_default(), &[])
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
        "docker" | "podman" | "docker-compose" | "kubectl" | "oc" | "nerdctl" | "apptainer"
        | "singularity" | "lxc" | "incus" | "limactl" => {
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
