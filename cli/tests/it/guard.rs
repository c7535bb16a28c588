//! A git that does not end: none of its processes is left when forge ends, is killed, or reaches
//! its time limit.

use crate::environment::Environment;
use serde_json::json;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// Makes a checkout and a git that never ends. The git starts processes, one of them outside of its
/// process group, and they ignore SIGTERM and SIGHUP. All of them hold the pipe open.
fn place() -> Environment {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    for folder in ["objects", "refs"] {
        environment.make_directory(&format!("project/.git/{folder}"));
    }
    environment.write("project/.git/HEAD", "ref: refs/heads/main\n");
    let pipe = environment.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let program = format!(
        "#!/bin/sh\ntrap '' TERM HUP\nexec 9> '{}'\nsetsid sh -c 'trap \"\" TERM HUP; sleep 1000 & sleep 1000' &\n\
         sleep 1000 &\necho started >&9\nsleep 1000\n",
        pipe.display()
    );
    environment.write("bin/git", &program);
    fs::set_permissions(environment.path("bin/git"), fs::Permissions::from_mode(0o755)).unwrap();
    environment
}

fn start_until_git_runs(
    environment: &Environment,
    args: &[&str],
) -> (std::process::Child, BufReader<File>) {
    let mut command = environment.command(args);
    let path = format!("{}:/usr/bin:/bin", environment.path("bin").display());
    command.env("PATH", path).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let input =
        json!({"session_id": "cc", "cwd": environment.path("project"), "hook_event_name": "Stop"});
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, input.to_string().as_bytes()).unwrap();
    drop(stdin);
    // Returns once git has opened the other end.
    let mut pipe = BufReader::new(File::open(environment.path("pipe")).unwrap());
    let mut line = String::new();
    pipe.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    (child, pipe)
}

/// Waits until no process holds the pipe open.
fn wait_until_all_end(mut pipe: BufReader<File>) {
    let mut rest = Vec::new();
    pipe.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"");
}

#[cfg(target_os = "linux")]
#[test]
fn git_and_its_processes_end_when_forge_is_killed() {
    let environment = place();
    let (mut forge, pipe) = start_until_git_runs(&environment, &["code", "capture"]);
    forge.kill().unwrap();
    forge.wait().unwrap();
    wait_until_all_end(pipe);
}

#[cfg(target_os = "linux")]
#[test]
fn git_and_its_processes_end_at_the_time_limit_of_a_hook() {
    let environment = place();
    let (mut forge, pipe) = start_until_git_runs(&environment, &["hook", "claude-code", "Stop"]);
    assert!(forge.wait().unwrap().success());
    wait_until_all_end(pipe);
}
