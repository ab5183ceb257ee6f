//! The binary under test, and the directory it keeps its data in.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_cosmolabe");
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// A data directory. It goes away with the test, unless the test fails: then it is evidence.
pub struct DataDir {
    root: Option<tempfile::TempDir>,
    durability: &'static str,
}

impl DataDir {
    pub fn new(durability: &'static str) -> DataDir {
        let root = tempfile::Builder::new().prefix("crash-").tempdir().unwrap();
        DataDir { root: Some(root), durability }
    }

    fn path(&self) -> PathBuf {
        self.root.as_ref().expect("there until it is dropped").path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.path().with_file_name("server.log")
    }

    /// D8.
    pub fn verify(&self) {
        let output = cosmolabe().arg("verify").arg("--data-dir").arg(self.path()).output();
        let output = output.unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "D8: {out}{errors}");
        println!("{}: {}", self.durability, out.trim());
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(20).collect();
        let path = self.root.take().map(tempfile::TempDir::keep);
        println!("the data is kept in {path:?}; last lines of its log:");
        tail.iter().rev().for_each(|line| println!("  {line}"));
    }
}

/// A server that was started.
pub struct Server {
    child: Child,
    endpoint: String,
}

impl Server {
    /// Starts a server and waits until it is ready.
    pub fn start(data: &DataDir) -> Server {
        let mut server = Server::spawn(data);
        let out = server.child.stdout.take().expect("piped");
        let (sender, receiver) = mpsc::channel();
        // Reads to the end, so that the server never writes to a closed pipe.
        std::thread::spawn(move || {
            BufReader::new(out).lines().map_while(Result::ok).for_each(|line| {
                let _ = sender.send(line);
            });
        });
        let line = receiver.recv_timeout(READY_TIMEOUT).expect("the server says that it is ready");
        let endpoint = line.split_whitespace().find(|word| word.starts_with("http://"));
        server.endpoint = endpoint.unwrap_or_else(|| panic!("no endpoint in {line:?}")).to_owned();
        server
    }

    /// Starts a server without waiting for it.
    pub fn spawn(data: &DataDir) -> Server {
        let log = File::options().create(true).append(true).open(data.log()).unwrap();
        let child = cosmolabe()
            .args(["serve", "--listen", "127.0.0.1:0", "--durability", data.durability])
            .arg("--data-dir")
            .arg(data.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn();
        Server { child: child.unwrap(), endpoint: String::new() }
    }

    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of a server that was killed.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn kill_after(self, time: Duration) {
        std::thread::sleep(time);
        self.kill();
    }

    /// Asks it to stop; it must end well.
    pub fn stop(mut self) {
        signal(self.id(), "TERM");
        assert!(self.child.wait().unwrap().success(), "an orderly stop");
    }
}

impl Drop for Server {
    /// For tests that fail; otherwise the process is gone by now.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary, in an environment without our variables.
fn cosmolabe() -> Command {
    let mut command = Command::new(BINARY);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("COSMOLABE_")) {
        command.env_remove(name);
    }
    command
}

/// Sends a signal to a process of ours.
pub fn signal(process: u32, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(process.to_string()).status();
    assert!(status.unwrap().success());
}
