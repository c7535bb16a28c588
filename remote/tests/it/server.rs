//! Servers of object storage. Each has its own process, folder and ports. `scripts/object-servers`
//! installs them and names their programs in the environment.

use forge_remote::{Environment, ObjectDepot};
use forge_store::store::remote::{Depot, DepotWrite};
use forge_testkit::skip::skipped;
use object_store::azure::{AzureAccessKey, AzureAuthorizer, AzureCredential};
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take to start while other tests run.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
pub(crate) const PAUSE: Duration = Duration::from_millis(50);
/// How long a request of a depot may take: longer than by default, because the machine may be busy.
const LIMIT: Duration = Duration::from_secs(60);
const BUCKET: &str = "team";
const ACCOUNT: &str = "acme";
/// The base64 text of a key that opens only the server of a test.
const ACCOUNT_KEY: &str = "Zm9yZ2U=";

/// Runs moto in one thread. With several, it sometimes lets two writers win.
const MOTO: &str = "import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
run_simple('127.0.0.1', int(sys.argv[1]), DomainDispatcherApplication(create_backend_app))
";

/// A server that can be tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// A distributed store with the protocol of S3.
    SeaweedFs,
    /// An imitation of S3 in Python.
    Moto,
    /// Microsoft's own imitation of Azure Blob Storage.
    Azurite,
    /// A server with the protocol of S3 that ignores conditions.
    Rclone,
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    kind: ServerKind,
    program: OsString,
    folder: TempDir,
    ports: Vec<u16>,
    process: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Server {
    /// Starts a server with an empty bucket. Reports a skip and returns `None` if it is not
    /// installed here.
    pub(crate) fn start(kind: ServerKind, test: &str) -> Option<Self> {
        let variable = match kind {
            ServerKind::SeaweedFs => "FORGE_WEED",
            ServerKind::Moto => "FORGE_MOTO",
            ServerKind::Azurite => "FORGE_AZURITE",
            ServerKind::Rclone => "FORGE_RCLONE",
        };
        let Some(program) = std::env::var_os(variable).filter(|path| !path.is_empty()) else {
            skipped(
                test,
                format!("no {kind:?}; run it with scripts/object-servers, or set {variable}"),
            );
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        if kind == ServerKind::Rclone {
            // rclone creates buckets only for signed requests. A bucket is a folder.
            std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        }
        let ports = free_ports(kind);
        let process = command(kind, &program, &folder, &ports).spawn().unwrap();
        let server = Self { kind, program, folder, ports, process };
        server.wait_until_ready();
        Some(server)
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts a killed server again, on its folder and its ports.
    pub(crate) fn restart(&mut self) {
        let mut command = command(self.kind, &self.program, &self.folder, &self.ports);
        self.process = command.spawn().unwrap();
        self.wait_until_ready();
    }

    /// Returns the address of a folder in the bucket.
    pub(crate) fn address(&self, folder: &str) -> String {
        let scheme = if self.kind == ServerKind::Azurite { "az" } else { "s3" };
        format!("{scheme}://{BUCKET}/{folder}")
    }

    /// Returns the variables with which a depot finds this server.
    pub(crate) fn environment(&self) -> Environment {
        let endpoint = format!("http://127.0.0.1:{}", self.ports[0]);
        let azure = format!("{endpoint}/{ACCOUNT}");
        let variables = match self.kind {
            ServerKind::Azurite => vec![
                ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT),
                ("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY),
                ("AZURE_STORAGE_ENDPOINT", azure.as_str()),
            ],
            _ => vec![
                ("AWS_ENDPOINT_URL", endpoint.as_str()),
                ("AWS_ACCESS_KEY_ID", "name"),
                ("AWS_SECRET_ACCESS_KEY", "secret"),
                ("AWS_REGION", "us-east-1"),
            ],
        };
        variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Opens the depot in a folder of the bucket.
    pub(crate) fn depot(&self, folder: &str) -> ObjectDepot {
        ObjectDepot::open(&self.address(folder), &self.environment(), LIMIT).unwrap()
    }

    /// Waits until the bucket is there and can be written.
    fn wait_until_ready(&self) {
        let until = Instant::now() + PATIENCE;
        let mut last = String::new();
        while Instant::now() < until {
            match self.try_bucket() {
                Ok(()) => return,
                Err(error) => last = error,
            }
            thread::park_timeout(PAUSE);
        }
        panic!("{:?} did not start: {last}", self.kind);
    }

    fn try_bucket(&self) -> Result<(), String> {
        self.create_bucket().map_err(|error| error.to_string())?;
        let depot = self.depot("ready");
        match depot.put_new("object", b"").map_err(|error| format!("{error:?}"))? {
            DepotWrite::Done(_) | DepotWrite::Conflict => Ok(()),
        }
    }

    /// Creates the bucket. It is no error if the bucket exists already.
    fn create_bucket(&self) -> io::Result<()> {
        let host = format!("127.0.0.1:{}", self.ports[0]);
        let request = if self.kind == ServerKind::Azurite {
            let uri = format!("http://{host}/{ACCOUNT}/{BUCKET}?restype=container");
            let mut request = http::Request::put(uri).body(Vec::new().into()).unwrap();
            let key = AzureAccessKey::try_new(ACCOUNT_KEY).unwrap();
            let key = AzureCredential::AccessKey(key);
            request.headers_mut().insert("content-length", "0".parse().unwrap());
            AzureAuthorizer::new(&key, ACCOUNT).try_authorize(&mut request).unwrap();
            request
        } else {
            let uri = format!("http://{host}/{BUCKET}");
            http::Request::put(uri).header("content-length", "0").body(Vec::new().into()).unwrap()
        };
        let target = request.uri().path_and_query().unwrap();
        let mut text = format!("PUT {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        for (name, value) in request.headers() {
            text.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
        }
        let mut stream = TcpStream::connect(&host)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(format!("{text}\r\n").as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(())
    }
}

/// Returns ports that no program uses now. SeaweedFS has four parts, each of which needs a port and
/// another one for gRPC.
fn free_ports(kind: ServerKind) -> Vec<u16> {
    let count = if kind == ServerKind::SeaweedFs { 8 } else { 1 };
    let listen = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let listeners: Vec<_> = (0..count).map(listen).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

fn command(kind: ServerKind, program: &OsString, folder: &TempDir, ports: &[u16]) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder.path()).env("HOME", folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let arguments = match kind {
        ServerKind::SeaweedFs => seaweed_arguments(ports),
        ServerKind::Moto => {
            command.args(["-c", MOTO]);
            ports[0].to_string()
        }
        ServerKind::Azurite => {
            command.env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{ACCOUNT_KEY}"));
            let port = ports[0];
            format!(
                "--inMemoryPersistence --silent --skipApiVersionCheck --disableTelemetry \
                 --blobHost 127.0.0.1 --blobPort {port}"
            )
        }
        ServerKind::Rclone => {
            format!("serve s3 --addr 127.0.0.1:{} --auth-key name,secret .", ports[0])
        }
    };
    command.args(arguments.split_whitespace());
    command
}

fn seaweed_arguments(ports: &[u16]) -> String {
    let options = [
        "s3.port", "s3.port.grpc", "master.port", "master.port.grpc", "volume.port",
        "volume.port.grpc", "filer.port", "filer.port.grpc",
    ];
    let with_ports = options.iter().zip(ports).map(|(option, port)| format!("-{option}={port}"));
    let with_ports: Vec<_> = with_ports.collect();
    format!(
        "server -dir=. -ip=127.0.0.1 -ip.bind=127.0.0.1 -master.telemetry=false -filer -s3 -iam=false \
         -s3.port.iceberg=0 -s3.port.lance=0 -volume.max=20 -master.volumeSizeLimitMB=64 {}",
        with_ports.join(" ")
    )
}
