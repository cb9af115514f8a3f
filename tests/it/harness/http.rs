//! One look at an HTTP endpoint, without a client to speak of.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// The status code of a GET.
pub(crate) async fn status(addr: SocketAddr, path: &str) -> Result<u16> {
    let answer = get(addr, path).await?;
    let code = answer.split(' ').nth(1).context("no status line")?;
    code.parse().with_context(|| format!("not a status code: {code}"))
}

/// The JSON that a GET is answered with.
pub(crate) async fn json(addr: SocketAddr, path: &str) -> Result<serde_json::Value> {
    let answer = get(addr, path).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no body")?;
    ensure!(head.split(' ').nth(1) == Some("200"), "{answer}");
    Ok(serde_json::from_str(body)?)
}

async fn get(addr: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(addr).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
