//! One look at an HTTP endpoint, without a client to speak of.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// The status code of a GET.
pub(crate) async fn status(addr: SocketAddr, path: &str) -> Result<u16> {
    let mut stream = TcpStream::connect(addr).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let code = answer.split(' ').nth(1).context("no status line")?;
    code.parse().with_context(|| format!("not a status code: {code}"))
}
