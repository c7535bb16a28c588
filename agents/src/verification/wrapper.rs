//! Finds the command that a runner runs. A runner is a program that runs the command in its
//! arguments, such as `sudo`, `timeout 60`, `uv run` or `docker exec NAME`.

use super::call_arguments::sets_option;

/// The command that a runner runs.
pub(super) enum InnerCommand<'w, 'a> {
    /// The words of the command, and the directory that the runner changes to.
    Words(&'w [&'a str], Option<&'a str>),
    /// A command line in one word.
    Line(String),
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

/// The runners: the first words of their calls (a program and a subcommand), their options with a
/// value, and the number of words between the options and the command, such as the name of a
/// container. If several match a command, the one with the most words counts.
const RUNNERS: &[(&[&str], &[&str], usize)] = &[
    (
        &[
            "command", "builtin", "call", "winpty", "noglob", "nohup", "arch", "fvm", "symfony",
            "lando", "composer exec", "go tool", "go run", "busybox", "catchsegv", "fakeroot",
            "distrobox enter", "guix shell", "devenv shell", "jenv exec", "prlimit", "sail",
            "setsid", "unbuffer", "chronic", "eatmydata", "dbus-run-session", "bunx", "pnpx",
            "pnpm exec", "yarn exec", "bun x", "yarn run", "yarn", "pnpm", "bun run", "poetry run",
            "pipenv run", "hatch run", "rye run", "pdm run", "bundle exec", "mise exec", "mise x",
            "devbox run", "flox activate", "opam exec", "stack exec", "cabal exec", "corepack",
            "dotenv run", "dotenv", "asdf exec", "pyenv exec", "rbenv exec", "cross-env",
            "ddtrace-run", "firejail", "rtk", "rtk err", "rtk test", "rtk proxy",
            "docker-php-entrypoint", "ddev exec",
        ],
        &[],
        0,
    ),
    (&["sudo"], &["-u", "-g", "-p", "-C", "-D"], 0),
    (&["doas"], &["-u", "-C"], 0),
    (&["env"], &["-u", "--unset", "-C", "--chdir"], 0),
    (&["time"], &["-f", "-o"], 0),
    (&["nice"], &["-n", "--adjustment"], 0),
    (&["ionice"], &["-c", "-n"], 0),
    (&["exec"], &["-a"], 0),
    (&["xcrun"], &["--sdk", "-sdk", "--toolchain"], 0),
    (
        &["yarn workspace", "direnv exec", "nvm exec", "rustup run", "chamber exec", "faketime"],
        &[],
        1,
    ),
    (&["chrt", "chruby-exec", "setarch"], &[], 1),
    (&["fnm exec"], &["--using"], 0),
    (&["railway run"], &["-s", "--service", "-e", "--environment"], 0),
    (&["toolbox run"], &["-c", "--container"], 0),
    (&["volta run"], &["--node", "--npm", "--pnpm", "--yarn"], 0),
    (&["perf stat"], &["-e", "--event", "-o", "--output", "-r", "--repeat"], 0),
    (&["strace"], &["-o", "-e", "-s", "-P"], 0),
    // The form of macOS: `script FILE COMMAND`.
    (&["script"], &["-t"], 1),
    (&["wsl"], &["-d", "--distribution", "-u", "--user", "--cd"], 0),
    (&["stdbuf"], &["-o", "-e", "-i"], 0),
    (&["xvfb-run"], &["-s", "--server-args", "-n", "--server-num", "-e", "-f", "-w"], 0),
    (&["sshpass"], &["-p", "-f"], 0),
    (&["srun"], &["-n", "-N", "-c", "-p", "-t", "-J", "-A"], 0),
    (&["mpirun", "mpiexec"], &["-n", "-np", "-H", "--hostfile"], 0),
    (&["numactl"], &["-N", "-m", "-C"], 0),
    (&["caffeinate"], &["-t", "-w"], 0),
    (&["timeout", "gtimeout"], &["-k", "--kill-after", "-s", "--signal"], 1),
    (&["runuser"], &["-u", "--user", "-g", "--group"], 0),
    (
        &["xargs"],
        &[
            "-n", "-I", "-P", "-L", "-d", "-a", "-s", "-E", "--max-args", "--max-procs",
            "--arg-file",
        ],
        0,
    ),
    (&["nyc", "c8"], COVERAGE, 0),
    (
        &["devcontainer exec"],
        &["--workspace-folder", "--config", "--container-id", "--id-label", "--remote-env"],
        0,
    ),
    (&["npx", "npm exec", "npm x"], NPM, 0),
    (&["pnpm dlx"], &["--package"], 0),
    (&["yarn dlx"], &["-p", "--package"], 0),
    (&["uv run", "uv tool run", "uvx"], UV, 0),
    (&["pipx run"], &["--spec"], 0),
    (&["pixi run"], &["-e", "--environment", "--manifest-path"], 0),
    (&["conda run", "mamba run", "micromamba run"], CONDA, 0),
    (
        &["coverage run"],
        &[
            "--source", "--rcfile", "--omit", "--include", "--concurrency", "--data-file",
            "--context",
        ],
        0,
    ),
    (&["dotenvx run"], &["-f", "--env-file", "-e", "--env"], 0),
    (&["doppler run"], &["-p", "--project", "-c", "--config"], 0),
    (&["infisical run"], &["--env", "--path", "--projectId"], 0),
    (&["op run"], &["--env-file"], 0),
    (&["aws-vault exec"], &["-d", "--duration"], 1),
    (&["taskset"], &["-c", "--cpu-list"], 0),
    (&["flock"], &["-w", "--timeout", "-E"], 1),
    (&["env-cmd"], &["-f", "--file", "-e", "--environments", "-r", "--rc-file"], 0),
    (&["dotenv-cli"], &["-e", "-v", "-p", "-c"], 0),
    (&["systemd-run"], &["-p", "--property", "-u", "--unit", "-E", "--setenv"], 0),
    (&["php"], &["-d", "-c"], 0),
    (
        &[
            "docker exec", "docker run", "docker container exec", "docker container run",
            "nerdctl exec", "nerdctl run", "podman exec", "podman run", "docker-compose run",
            "docker-compose exec", "docker compose run", "docker compose exec",
            "podman compose run", "podman compose exec",
        ],
        CONTAINER,
        1,
    ),
    (&["lxc exec", "incus exec", "multipass exec"], &["--env", "--cwd"], 1),
    (&["limactl shell"], &["--workdir"], 1),
    (&["apptainer exec", "singularity exec"], &["-B", "--bind", "--pwd"], 1),
    (&["kubectl exec", "oc exec"], &["-n", "--namespace", "-c", "--container"], 1),
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
    let is_here = |call: &&&str| {
        let mut wanted = call.split(' ').enumerate();
        call.starts_with(program) && wanted.all(|(at, word)| words.get(at) == Some(&word))
    };
    let found = RUNNERS.iter().flat_map(|(calls, valued, operands)| {
        let found = calls.iter().filter(is_here);
        found.map(move |call| (call.split(' ').count(), *valued, *operands))
    });
    let (count, valued, operands) = found.max_by_key(|(count, ..)| *count)?;
    let rest = words.get(count..)?;
    // `command -v NAME` only finds the program.
    if program == "command" && matches!(rest.first(), Some(&("-v" | "-V"))) {
        return None;
    }
    let dashes = rest.iter().position(|word| *word == "--");
    let command = match dashes.filter(|_| AFTER_DASHES.contains(&program)) {
        Some(at) => rest.get(at + 1..)?,
        None => {
            let command = after_options(rest, valued);
            after_options(command.get(operands..).unwrap_or_default(), &[])
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
