//! A real Chromium without a window, spoken to in its DevTools protocol.
//!
//! Over pipes, not over a port: nothing to find, nothing that anybody else can reach, and a browser
//! whose pipes close ends by itself, however its test ended.

use std::{
    fs::{self, File},
    path::Path,
    process::Stdio,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// Chromium reads commands from file 3 and writes answers to file 4; we have its files 0 and 1.
const EXCHANGE: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >&2"#;
/// What keeps it from doing anything but what it is told.
const FLAGS: [&str; 13] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
    // A page that asks for anything by name gets nothing, and is noticed.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--window-size=1280,900",
    "--remote-debugging-pipe",
];
/// Ends each message in both directions.
const END: u8 = 0;

/// Something that the browser says on its own.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) method: String,
    pub(super) params: Value,
}

/// A running browser. It is killed when this is dropped.
pub(super) struct Wire {
    // Before its folder, so that it is dead when the folder goes.
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// The beginning of a message whose end has not come yet.
    partial: Vec<u8>,
    last_id: u64,
    events: Vec<Event>,
    folder: tempfile::TempDir,
}

impl Wire {
    /// Starts a browser with a profile of its own.
    pub(super) fn start(chromium: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let errors = File::create(folder.path().join("errors")).unwrap();
        let mut child = Command::new("sh")
            .args(["-c", EXCHANGE, "sh"])
            .arg(chromium)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg("about:blank")
            .env("HOME", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        Self { child, to, from, partial: vec![], last_id: 0, events: vec![], folder }
    }

    /// The result of one command, in a session if it is for one page.
    pub(super) async fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Value {
        self.last_id += 1;
        let mut command = json!({"id": self.last_id, "method": method, "params": params});
        if let Some(session) = session {
            command["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&command).unwrap();
        bytes.push(END);
        if let Err(error) = self.to.write_all(&bytes).await {
            self.is_gone(&error.to_string());
        }
        loop {
            let mut message = self.receive().await;
            if message["id"] == self.last_id {
                assert!(message["error"].is_null(), "{command}: {}", message["error"]);
                return message["result"].take();
            }
            self.note(message);
        }
    }

    /// Waits for an event after the first `known` ones.
    pub(super) async fn event(&mut self, known: usize, method: &str) {
        while !self.events[known..].iter().any(|event| event.method == method) {
            let message = self.receive().await;
            self.note(message);
        }
    }

    /// All that the browser has said on its own so far.
    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }

    /// Ends the browser in order.
    pub(super) async fn close(mut self) {
        self.call(None, "Browser.close", json!({})).await;
        self.child.wait().await.unwrap();
    }

    fn note(&mut self, mut message: Value) {
        // Not an event: the answer to a command that nobody waits for any more.
        let Some(method) = message["method"].as_str() else { return };
        assert_ne!(method, "Inspector.targetCrashed", "the page crashed");
        let method = method.to_owned();
        self.events.push(Event { method, params: message["params"].take() });
    }

    /// The next message. Nothing is lost when this is dropped half way.
    async fn receive(&mut self) -> Value {
        if let Err(error) = self.from.read_until(END, &mut self.partial).await {
            self.is_gone(&error.to_string());
        }
        if self.partial.pop() != Some(END) {
            self.is_gone("it closed its pipe");
        }
        let message = serde_json::from_slice(&self.partial).unwrap();
        self.partial.clear();
        message
    }

    fn is_gone(&self, why: &str) -> ! {
        let errors = fs::read_to_string(self.folder.path().join("errors"));
        panic!("the browser is gone, {why}: {}", errors.unwrap_or_default());
    }
}
