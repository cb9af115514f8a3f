//! Starting real programs, and waiting for what they say.

use std::{
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Child,
};
use wavelift_runtime::pki::{Ca, PrivateKey, Validity, issue_server_certificate};
use wavelift_sources::{Patience, Retries};

/// A server that ends with the test.
#[derive(Debug)]
pub(crate) struct Server {
    _child: Child,
}

/// Starts the server and waits until it says `ready` on its standard error.
pub(crate) async fn start(command: Command, ready: &str) -> Server {
    let shown = format!("{command:?}");
    let mut command = tokio::process::Command::from(command);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    loop {
        match lines.next_line().await.unwrap() {
            Some(line) if line.contains(ready) => break,
            Some(line) => said.push(line),
            None => panic!("{shown} ended:\n{}", said.join("\n")),
        }
    }
    // Nobody reads further, and a full pipe would stop it.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Server { _child: child }
}

/// Runs the program to its end.
pub(crate) fn run(program: &Path, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {args:?}: {error}", program.display());
}

/// A port of 127.0.0.1 that nobody has.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A private authority.
pub(crate) fn authority() -> Ca {
    wavelift_runtime::tls::install_crypto();
    Ca::generate("a test's authority", validity()).unwrap()
}

/// A certificate of 127.0.0.1 and its key, PEM.
pub(crate) fn certificate(ca: &Ca) -> (String, String) {
    let key = PrivateKey::generate().unwrap();
    let names = ["127.0.0.1".to_owned()];
    let issued = issue_server_certificate(ca, &names, &key, validity()).unwrap();
    (issued.certificate_pem, key.key_pem())
}

fn validity() -> Validity {
    Validity::from_now(Duration::from_hours(1))
}

/// More patient than with a fake: the machine may be busy.
pub(crate) fn patience() -> Patience {
    Patience { silence: Duration::from_mins(2), ..Patience::default() }
}

/// A server that says it is ready may not quite be.
pub(crate) fn retries() -> Retries {
    let pause = Duration::from_millis(100);
    Retries { again_max: 20, first_pause: pause, pause_max: pause }
}
