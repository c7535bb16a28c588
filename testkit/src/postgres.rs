//! PostgreSQL servers for tests, and pgbouncer in front of them. Each has its own folder and port.
//! `scripts/database-servers` installs the programs and names them in the environment.
//!
//! A server ends with the test, even if the test is killed: a shell waits for the end of the test's
//! process, stops the server and removes its folder.

#![expect(clippy::unwrap_used, reason = "a test fails if its server cannot be started")]

use crate::skip::skipped;
use std::env;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take to start or stop while all other tests run.
const PATIENCE: Duration = Duration::from_secs(180);
/// The pause between two checks whether something has happened.
const PAUSE: Duration = Duration::from_millis(10);
/// How many ports are tried, because another program may take a port before the server does.
const PORT_TRIES: usize = 20;
/// The superuser. It needs no password.
const USER: &str = "forge";
/// The database that exists on each server from the start.
const DATABASE: &str = "postgres";
/// Settings that replace the ones of `initdb`. Dynamic shared memory is in files in the folder,
/// because a killed server would leave it behind elsewhere.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
shared_buffers = 64MB
max_connections = 100
dynamic_shared_memory_type = mmap
";
/// Stops process $1 with signal $0, and removes folder $2, when the test's process has ended.
const GUARD: &str = r#"
read -r _
kill -"$0" "$1"
for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$1" || break; sleep 0.5; done
kill -KILL "$1"
rm -rf -- "$2" || { sleep 1; rm -rf -- "$2"; }
"#;

/// A PostgreSQL server for tests, in a temporary folder. It is stopped and removed when it is
/// dropped.
///
/// It writes to the disk as in production (`fsync`). Servers of one version usually have the same
/// system identifier, because their data are copies.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    port: u16,
    process: Option<ServerProcess>,
    folder: ServerFolder,
}

impl PostgresServer {
    /// Starts a server of the system's version. Its programs are in the folder that
    /// `FORGE_POSTGRES` names, else in that of the newest installed package of Debian. If there are
    /// none, reports the test `what` as skipped and returns `None`.
    ///
    /// # Panics
    /// If it is installed and does not start.
    #[must_use]
    pub fn start(what: &str) -> Option<Self> {
        Some(Self::start_with(&named("FORGE_POSTGRES").or_else(packaged).or_else(|| {
            report_missing(what, "PostgreSQL", "FORGE_POSTGRES");
            None
        })?))
    }

    /// Starts a server of the newer version, from the folder that `FORGE_POSTGRES_NEWER` names. If
    /// that is not set, reports the test `what` as skipped and returns `None`.
    ///
    /// # Panics
    /// If it is installed and does not start.
    #[must_use]
    pub fn start_newer(what: &str) -> Option<Self> {
        Some(Self::start_with(&named("FORGE_POSTGRES_NEWER").or_else(|| {
            report_missing(what, "newer PostgreSQL", "FORGE_POSTGRES_NEWER");
            None
        })?))
    }

    fn start_with(programs: &Path) -> Self {
        let mut server = Self::without_data(programs);
        server.fill_data();
        let mut settings = File::options().append(true).open(server.data("postgresql.conf"));
        settings.as_mut().unwrap().write_all(SETTINGS.as_bytes()).unwrap();
        server.start_on_free_port();
        server
    }

    fn without_data(programs: &Path) -> Self {
        let folder = ServerFolder::new();
        Self { programs: programs.to_owned(), port: free_port(), process: None, folder }
    }

    /// Returns the address of the database that exists from the start.
    #[must_use]
    pub fn address(&self) -> String {
        address(self.port, DATABASE)
    }

    /// Creates a database with a new name, and returns its address.
    ///
    /// # Panics
    /// If the server refuses.
    #[must_use]
    pub fn new_database(&self) -> String {
        // A standby has the databases of its primary, so the names differ in the whole process.
        static CREATED: AtomicU32 = AtomicU32::new(1);
        let name = format!("forge_{}", CREATED.fetch_add(1, Ordering::Relaxed));
        self.run(&format!("create database {name}"));
        address(self.port, &name)
    }

    /// Runs SQL as the superuser. Returns the rows as lines, with `|` between the columns.
    ///
    /// # Panics
    /// If the server returns an error.
    pub fn run(&self, sql: &str) -> String {
        self.run_in(&self.address(), sql)
    }

    /// Runs SQL as [`run`](Self::run) does, in the database with this address.
    ///
    /// # Panics
    /// If the server returns an error.
    pub fn run_in(&self, address: &str, sql: &str) -> String {
        let options = ["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", address, "-c", sql];
        run(self.command("psql").args(options)).trim_end_matches('\n').to_owned()
    }

    /// Kills the server and all its processes without any warning.
    ///
    /// # Panics
    /// If one of them does not end.
    pub fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        process.child.kill().unwrap();
        let until = Instant::now() + PATIENCE;
        loop {
            let processes = processes_in(&self.data(""));
            if processes.is_empty() {
                break;
            }
            assert!(Instant::now() < until, "processes {processes:?} do not end");
            signal("KILL", &processes);
            thread::park_timeout(PAUSE);
        }
        process.wait();
    }

    /// Stops the server cleanly: sessions end, and everything is written.
    ///
    /// # Panics
    /// If it does not stop.
    pub fn stop(&mut self) {
        self.stop_with("INT");
    }

    fn stop_with(&mut self, signal_name: &str) {
        let Some(mut process) = self.process.take() else { return };
        signal(signal_name, &[process.child.id()]);
        let until = Instant::now() + PATIENCE;
        while process.child.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                self.process = Some(process);
                self.kill();
                panic!("the server did not stop: {}", self.folder.log());
            }
            thread::park_timeout(PAUSE);
        }
        process.wait();
    }

    /// Starts a killed or stopped server again, with its folder and its port.
    ///
    /// # Panics
    /// If it runs, or does not start.
    pub fn restart(&mut self) {
        assert!(self.process.is_none(), "the server runs");
        let until = Instant::now() + PATIENCE;
        while let Err(log) = self.try_start() {
            // Another program may use the port for a while.
            assert!(port_taken(&log) && Instant::now() < until, "no restart: {log}");
            thread::park_timeout(PAUSE);
        }
    }

    /// Starts a standby of this server, and waits until it receives all that this server writes.
    /// If it is synchronous, this server acknowledges from now on only what the standby has on its
    /// disk. A later synchronous standby takes the place of an earlier one.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn standby(&self, synchronous: bool) -> Self {
        let mut standby = Self::without_data(&self.programs);
        let name = format!("standby_{}", standby.port);
        let primary =
            format!("host=127.0.0.1 port={} user={USER} application_name={name}", self.port);
        let options = ["-R", "-X", "stream", "-c", "fast", "--no-sync", "-D", "data", "-d"];
        run(standby.command("pg_basebackup").args(options).args([&primary, "-C", "-S", &name]));
        // The copy has the primary's setting. With it, a promoted server would wait for a standby
        // that it does not have.
        let mut settings = File::options().append(true).open(standby.data("postgresql.auto.conf"));
        settings.as_mut().unwrap().write_all(b"synchronous_standby_names = ''\n").unwrap();
        standby.start_on_free_port();
        if synchronous {
            self.run(&format!("alter system set synchronous_standby_names = '{name}'"));
            self.run("select pg_reload_conf()");
        }
        let wanted = if synchronous { "streaming|sync" } else { "streaming|async" };
        let question = format!(
            "select state, sync_state from pg_stat_replication where application_name = '{name}'"
        );
        let until = Instant::now() + PATIENCE;
        while self.run(&question) != wanted {
            assert!(Instant::now() < until, "no replication: {}", standby.folder.log());
            thread::park_timeout(PAUSE);
        }
        // Before the checkpointer makes a checkpoint, it applies the setting, so that from now on
        // all sessions wait for this standby.
        self.run("checkpoint");
        standby
    }

    /// Makes this standby a primary, and waits until it is one.
    ///
    /// # Panics
    /// If it is not a standby, or does not become a primary.
    pub fn promote(&self) {
        assert_eq!(self.run("select pg_promote(true, 180)"), "t", "{}", self.folder.log());
    }

    /// Returns the port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    fn data(&self, name: &str) -> PathBuf {
        self.folder.path.join("data").join(name)
    }

    fn command(&self, program: &str) -> Command {
        self.folder.command(&self.programs.join(program))
    }

    /// Fills the folder with the data of a new server. Copies them from the cache if an earlier
    /// test put them there, which is faster.
    fn fill_data(&self) {
        let version = run(self.command("postgres").arg("--version"));
        let version: String = version.chars().filter(|c| c.is_alphanumeric()).collect();
        let user = fs::metadata(&self.folder.path).unwrap().uid();
        let made = forge_cache().map(|cache| cache.join(format!("postgres-data-{version}-{user}")));
        let copy = |from: &Path, to: &Path| run(Command::new("cp").arg("-Rp").arg(from).arg(to));
        if let Some(made) = made.as_ref().filter(|made| made.exists()) {
            copy(made, &self.data(""));
            return;
        }
        let options = ["--auth=trust", "--locale=C", "--encoding=UTF8", "--no-sync", "-D", "data"];
        run(self.command("initdb").args(options).args(["-U", USER]));
        let Some(made) = made else { return };
        let cache = made.parent().unwrap();
        fs::create_dir_all(cache).unwrap();
        let part = tempfile::Builder::new().prefix("postgres-data-part-").tempdir_in(cache);
        let part = part.unwrap();
        copy(&self.data(""), &part.path().join("data"));
        // If two tests do this at the same time, the first wins.
        let _ = fs::rename(part.path().join("data"), &made);
    }

    fn start_on_free_port(&mut self) {
        let mut last = String::new();
        for _ in 0..PORT_TRIES {
            match self.try_start() {
                Ok(()) => return,
                Err(log) if port_taken(&log) => last = log,
                Err(log) => panic!("PostgreSQL did not start: {log}"),
            }
            self.port = free_port();
        }
        panic!("PostgreSQL found no port: {last}");
    }

    /// Starts the server and waits until it accepts connections. If it ends instead, returns what
    /// it wrote to its log.
    fn try_start(&mut self) -> Result<(), String> {
        let logged = self.folder.log().len();
        let mut command = self.command("postgres");
        command.args(["-D", "data", "-p", &self.port.to_string(), "-k"]).arg(&self.folder.path);
        let mut process = self.folder.spawn(command, "QUIT");
        let until = Instant::now() + PATIENCE;
        while !self.is_ready(process.child.id()) {
            if process.child.try_wait().unwrap().is_some() {
                process.wait();
                return Err(self.folder.log().split_off(logged));
            }
            if Instant::now() > until {
                self.process = Some(process);
                self.kill();
                panic!("PostgreSQL did not start in time: {}", self.folder.log());
            }
            thread::park_timeout(PAUSE);
        }
        self.process = Some(process);
        Ok(())
    }

    /// Returns whether this process accepts connections. The server writes it where `pg_ctl` reads
    /// it.
    fn is_ready(&self, process: u32) -> bool {
        let text = fs::read_to_string(self.data("postmaster.pid")).unwrap_or_default();
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        lines.first() == Some(&process.to_string().as_str()) && lines.get(7) == Some(&"ready")
    }

    /// Removes the System V shared memory that a killed server leaves behind.
    fn remove_shared_memory(&self) {
        let text = fs::read_to_string(self.data("postmaster.pid")).unwrap_or_default();
        let Some(id) = text.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)) else {
            return;
        };
        let _ = Command::new("ipcrm").args(["-m", id]).stderr(Stdio::null()).status();
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // An immediate shutdown: sessions are ended, and nothing is written.
        self.stop_with("QUIT");
        self.remove_shared_memory();
    }
}

/// A pgbouncer in front of a server, in transaction mode: each transaction of a client may run in
/// another session of the server.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    process: ServerProcess,
    _folder: ServerFolder,
}

impl PgBouncer {
    /// Starts a pgbouncer in front of a server. It also works after a restart of the server. The
    /// program is the one that `FORGE_PGBOUNCER` names, else that of Debian's package. Without it,
    /// reports pgbouncer as skipped and returns `None`.
    ///
    /// # Panics
    /// If it is installed and does not start.
    #[must_use]
    pub fn start(server: &PostgresServer) -> Option<Self> {
        let packaged = || Some(PathBuf::from("/usr/sbin/pgbouncer")).filter(|path| path.exists());
        let Some(program) = named("FORGE_PGBOUNCER").or_else(packaged) else {
            report_missing("pgbouncer", "pgbouncer", "FORGE_PGBOUNCER");
            return None;
        };
        let mut last = String::new();
        for _ in 0..PORT_TRIES {
            match Self::try_start(&program, server.port) {
                Ok(started) => return Some(started),
                Err(log) if port_taken(&log) => last = log,
                Err(log) => panic!("pgbouncer did not start: {log}"),
            }
        }
        panic!("pgbouncer found no port: {last}");
    }

    fn try_start(program: &Path, server: u16) -> Result<Self, String> {
        let folder = ServerFolder::new();
        let port = free_port();
        let settings = format!(
            "[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = users
admin_users = {USER}
pool_mode = transaction
max_client_conn = 100
"
        );
        fs::write(folder.path.join("settings"), settings).unwrap();
        fs::write(folder.path.join("users"), format!("\"{USER}\" \"\"\n")).unwrap();
        let mut command = folder.command(program);
        command.arg("settings");
        let mut process = folder.spawn(command, "KILL");
        let until = Instant::now() + PATIENCE;
        while !folder.log().contains("process up") {
            if process.child.try_wait().unwrap().is_some() || Instant::now() > until {
                process.kill();
                return Err(folder.log());
            }
            thread::park_timeout(PAUSE);
        }
        Ok(Self { port, process, _folder: folder })
    }

    /// Returns the address of a database through pgbouncer. `database` is its name, or its address
    /// at the server.
    #[must_use]
    pub fn address_of(&self, database: &str) -> String {
        let name = database.rsplit_once('/').map_or(database, |(_, name)| name);
        address(self.port, name)
    }

    /// Returns the port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        self.process.kill();
    }
}

/// A temporary folder, and its owner. PostgreSQL and pgbouncer refuse to run as root, so a test
/// that runs as root gives the folder to another user.
#[derive(Debug)]
struct ServerFolder {
    path: PathBuf,
    /// The ids of the owner and its group, if the test runs as root.
    owner: Option<(u32, u32)>,
    _removed: TempDir,
}

impl ServerFolder {
    fn new() -> Self {
        let mut removed = make_folder(&env::temp_dir());
        let owner = (fs::metadata(removed.path()).unwrap().uid() == 0).then(unprivileged_user);
        if let Some((user, group)) = owner {
            if !removed.path().ancestors().skip(1).all(is_open) {
                removed = make_folder(Path::new("/tmp"));
            }
            chown(removed.path(), Some(user), Some(group)).unwrap();
        }
        // In the form in which `/proc` shows the working folders of processes.
        let path = removed.path().canonicalize().unwrap();
        Self { path, owner, _removed: removed }
    }

    /// Returns a command that runs in the folder as its owner, without the variables of the
    /// environment that change how PostgreSQL's programs work.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        command.env("HOME", &self.path).env("LC_ALL", "C").current_dir(&self.path);
        if let Some((user, group)) = self.owner {
            command.uid(user).gid(group);
        }
        command
    }

    /// Starts a server that writes to the log of the folder. If the test is killed, `signal` stops
    /// the server.
    fn spawn(&self, mut command: Command, signal: &str) -> ServerProcess {
        let log = File::options().append(true).create(true).open(self.path.join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        // In a separate process group, because Ctrl-C must reach only the test.
        let child = command.process_group(0).spawn();
        let child = child.unwrap_or_else(|error| cannot_run(&command, &error));
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, signal, &child.id().to_string()]).arg(&self.path);
        guard.current_dir("/").process_group(0);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        ServerProcess { child, guard: guard.spawn().unwrap() }
    }

    fn log(&self) -> String {
        let log = fs::read(self.path.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }
}

/// The first process of a server, and the shell that stops it if the test is killed.
#[derive(Debug)]
struct ServerProcess {
    child: Child,
    guard: Child,
}

impl ServerProcess {
    fn kill(&mut self) {
        let _ = self.child.kill();
        self.wait();
    }

    /// Ends the guard, and then waits for the end of the process, which was signalled before. The
    /// guard must end first: it would stop another process that later gets the same id.
    fn wait(&mut self) {
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        let _ = self.child.wait();
    }
}

fn make_folder(place: &Path) -> TempDir {
    tempfile::Builder::new().prefix("forge-postgres-").tempdir_in(place).unwrap()
}

/// Returns whether other users can enter the folder.
fn is_open(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|metadata| metadata.mode() & 0o001 != 0)
}

/// Returns the id of an unprivileged user, and of its group: the user that the package of
/// PostgreSQL creates, else a user that every system has.
fn unprivileged_user() -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let find = |wanted: &str| {
        let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let fields = lines.find(|fields| fields.first() == Some(&wanted))?;
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    };
    find("postgres").or_else(|| find("nobody")).expect("a user that is not root")
}

fn named(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns the programs of the newest server among Debian's packages.
fn packaged() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok);
    let version = |name: &str| name.split('.').map(|part| part.parse().ok()).collect();
    let versions = versions.filter_map(|entry| {
        let version: Option<Vec<u32>> = version(&entry.file_name().to_string_lossy());
        let programs = entry.path().join("bin");
        programs.join("initdb").exists().then_some((version?, programs))
    });
    versions.max().map(|(_, programs)| programs)
}

fn report_missing(what: &str, server: &str, variable: &str) {
    skipped(what, format!("no {server}; run it with scripts/database-servers, or set {variable}"));
}

/// Returns the folder in which the scripts cache what they fetch or build.
fn forge_cache() -> Option<PathBuf> {
    let below = |folder: PathBuf| folder.join("forge");
    let home = || named("HOME").map(|home| home.join(".cache"));
    named("FORGE_CACHE").or_else(|| named("XDG_CACHE_HOME").or_else(home).map(below))
}

fn address(port: u16, database: &str) -> String {
    format!("postgres://{USER}@127.0.0.1:{port}/{database}")
}

/// Returns a port that no program uses now.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn port_taken(log: &str) -> bool {
    log.contains("Address already in use")
}

/// Returns the ids of the processes whose working folder is this one. PostgreSQL's processes work
/// in the data folder. Empty on a system without `/proc`, where they end soon after the first
/// process.
fn processes_in(folder: &Path) -> Vec<u32> {
    let folder: PathBuf = folder.components().collect();
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let entries = entries.filter(|entry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|working| working == folder)
    });
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Sends a signal to processes. It is not an error if one has ended.
fn signal(name: &str, processes: &[u32]) {
    let mut command = Command::new("sh");
    command.args(["-c", "kill -\"$0\" \"$@\"", name]);
    command.args(processes.iter().map(u32::to_string));
    command.stderr(Stdio::null()).status().unwrap();
}

/// Runs a program to its end, and returns what it prints.
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| cannot_run(command, &error));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} ended with {}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn cannot_run<T>(command: &Command, error: &io::Error) -> T {
    panic!("cannot run {command:?} (as root, it runs as another user that must reach it): {error}")
}
