//! The ways in: a client in the same process, or HTTP on a loopback socket with a kubeconfig.

use std::{io, net::SocketAddr, path::Path};

use axum::body::Body;
use http::{HeaderValue, Request, header};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    ApiServer,
    http::{Dropped, respond},
};

/// A server that listens. It stops when this is dropped.
#[derive(Debug)]
pub struct Served {
    /// Where it listens.
    pub addr: SocketAddr,
    stop: CancellationToken,
    _guard: DropGuard,
}

impl ApiServer {
    /// A client in this process, without a socket. Needs a running tokio runtime.
    ///
    /// # Panics
    /// When called outside of a runtime, as the client's queue is a task.
    pub fn client(&self, user_agent: &str) -> kube::Client {
        let server = self.clone();
        let agent = HeaderValue::from_str(user_agent)
            .unwrap_or_else(|_| HeaderValue::from_static("unnamed"));
        let service = tower::service_fn(move |mut request: Request<kube::client::Body>| {
            request.headers_mut().entry(header::USER_AGENT).or_insert_with(|| agent.clone());
            let server = server.clone();
            async move { respond(&server, request).await }
        });
        kube::Client::new(service, "default")
    }

    /// Listens on an address (port 0 for any) until the answer is dropped or told to stop.
    pub async fn serve(&self, addr: SocketAddr) -> io::Result<Served> {
        self.serve_on(TcpListener::bind(addr).await?)
    }

    /// The same on a listener that is there already.
    pub fn serve_on(&self, listener: TcpListener) -> io::Result<Served> {
        let addr = listener.local_addr()?;
        let stop = CancellationToken::new();
        let task = accept(self.clone(), listener, stop.clone());
        drop(tokio::spawn(task));
        Ok(Served { addr, _guard: stop.clone().drop_guard(), stop })
    }
}

impl Served {
    /// The server's URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Stops listening and cuts every connection.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// The text of a kubeconfig that points here.
    pub fn kubeconfig(&self, name: &str) -> String {
        let url = self.url();
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {name}\n\
             clusters:\n- name: {name}\n  cluster:\n    server: {url}\n\
             users:\n- name: {name}\n  user: {{}}\n\
             contexts:\n- name: {name}\n  context:\n    cluster: {name}\n    user: {name}\n    \
             namespace: default\n"
        )
    }

    /// Writes such a kubeconfig to a file.
    pub fn write_kubeconfig(&self, name: &str, path: &Path) -> io::Result<()> {
        std::fs::write(path, self.kubeconfig(name))
    }
}

async fn accept(server: ApiServer, listener: TcpListener, stop: CancellationToken) {
    // Dropping the set ends every connection.
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::task::yield_now().await;
                    continue;
                }
            },
        };
        while connections.try_join_next().is_some() {}
        connections.spawn(connection(server.clone(), TokioIo::new(stream)));
    }
}

async fn connection(server: ApiServer, io: TokioIo<tokio::net::TcpStream>) {
    let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
        let server = server.clone();
        async move {
            let response: Result<http::Response<Body>, Dropped> = respond(&server, request).await;
            response
        }
    });
    let served = auto::Builder::new(TokioExecutor::new()).serve_connection(io, service).await;
    if let Err(error) = served {
        tracing::debug!(error = &*error as &dyn std::error::Error, "connection ended");
    }
}
