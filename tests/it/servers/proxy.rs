//! The way from an agent to its API server: every request is seen, writes are counted, and any of
//! them may come to harm.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Result;
use axum::body::Body;
use futures::StreamExt as _;
use http::{Method, Request, Response, header};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::sleep,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::api::ApiServer;
use crate::harness::door;

/// A request is no larger.
const BODY_MAX: usize = 3 << 20;

/// A request on its way.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// Its place among the writes, counted from 1.
    pub(crate) write: Option<usize>,
    pub(crate) is_watch: bool,
}

/// What becomes of a request.
#[derive(Clone)]
pub(crate) enum Harm {
    /// Nothing.
    None,
    /// It goes nowhere, and is not answered.
    DropBefore,
    /// It is carried out, then somebody is called, and it is not answered.
    After(Arc<dyn Fn() + Send + Sync>),
    /// Its answer comes so much later.
    Late(Duration),
    /// It goes nowhere, and this is the answer: a status, and when to come again, in seconds.
    Answer(u16, Option<u32>),
    /// A watch that begins well and says at once that its beginning is too old.
    Gone,
    /// A watch that breaks off in the middle after so long.
    Broken(Duration),
}

type Script = Box<dyn FnMut(&Asked) -> Harm + Send>;

/// A listener whose requests go on to an API server. It is gone when this is dropped.
pub(crate) struct Proxy {
    addr: SocketAddr,
    way: Way,
    cut: watch::Sender<u64>,
    _guard: DropGuard,
}

#[derive(Clone)]
struct Way {
    client: Client,
    writes: Arc<Mutex<Vec<String>>>,
    script: Arc<Mutex<Script>>,
}

/// The connection is dropped.
#[derive(Debug, Clone, Copy)]
struct Dropped;

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("dropped")
    }
}

impl std::error::Error for Dropped {}

impl std::fmt::Display for Asked {
    /// `PATCH kiln/installplans/install-x`, for people.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.rsplit('/').take(3).collect();
        let last: Vec<&str> = parts.into_iter().rev().collect();
        write!(f, "{} {}", self.method, last.join("/"))
    }
}

// === impl Proxy ===

impl Proxy {
    /// Listens on loopback. Whoever asks must say who it is: nothing is added on the way.
    pub(crate) async fn start(api: &ApiServer) -> Result<Self> {
        let mut kubeconfig = Kubeconfig::read_from(api.kubeconfig())?;
        kubeconfig.auth_infos.clear();
        for context in kubeconfig.contexts.iter_mut().filter_map(|named| named.context.as_mut()) {
            context.user = None;
        }
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        config.default_retry = false;
        let way = Way {
            client: Client::try_from(config)?,
            writes: Arc::default(),
            script: Arc::new(Mutex::new(Box::new(|_| Harm::None))),
        };
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let addr = listener.local_addr()?;
        let (stop, cut) = (CancellationToken::new(), watch::Sender::new(0));
        let own = way.clone();
        let serve = move |stream| serve(stream, own.clone());
        drop(tokio::spawn(door::open(listener, cut.subscribe(), stop.clone(), serve)));
        Ok(Self { addr, way, cut, _guard: stop.drop_guard() })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What happens from now on.
    pub(crate) fn set(&self, script: impl FnMut(&Asked) -> Harm + Send + 'static) {
        *self.way.script.lock() = Box::new(script);
    }

    /// Ends every connection that is open now.
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|cut| *cut += 1);
    }

    /// The writes so far, in their order.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.way.writes.lock().clone()
    }
}

async fn serve(stream: TcpStream, way: Way) {
    let service = service_fn(move |request: Request<Incoming>| way.clone().answer(request));
    let io = TokioIo::new(stream);
    // It ends when either side does.
    drop(auto::Builder::new(TokioExecutor::new()).serve_connection(io, service).await);
}

// === impl Way ===

impl Way {
    async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, Dropped> {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(Body::new(body), BODY_MAX).await.map_err(|_| Dropped)?;
        let asked = self.note(&parts.method, &parts.uri.to_string());
        let harm = (self.script.lock())(&asked);
        match harm {
            Harm::DropBefore => return Err(Dropped),
            Harm::Answer(code, after) => return refusal(code, after),
            Harm::None | Harm::After(_) | Harm::Late(_) | Harm::Gone | Harm::Broken(_) => {}
        }
        let mut onward = Request::from_parts(parts, kube::client::Body::from(body));
        onward.headers_mut().remove(header::HOST);
        onward.headers_mut().remove(header::CONNECTION);
        // An API server that is not there: as if nobody listened.
        let answer = self.client.send(onward).await.map_err(|_| Dropped)?;
        let (parts, body) = answer.into_parts();
        let body = Body::new(body);
        let body = match harm {
            Harm::After(then) => {
                then();
                return Err(Dropped);
            }
            Harm::Late(by) => {
                sleep(by).await;
                body
            }
            Harm::Gone => Body::from(too_old()),
            Harm::Broken(after) => broken(body, after),
            Harm::None | Harm::DropBefore | Harm::Answer(..) => body,
        };
        Ok(Response::from_parts(parts, body))
    }

    fn note(&self, method: &Method, path: &str) -> Asked {
        let is_write = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(method);
        let mut asked = Asked {
            method: method.clone(),
            path: path.to_owned(),
            write: None,
            is_watch: path.contains("watch=true"),
        };
        if is_write {
            let mut writes = self.writes.lock();
            writes.push(asked.to_string());
            asked.write = Some(writes.len());
        }
        asked
    }
}

fn refusal(code: u16, after: Option<u32>) -> Result<Response<Body>, Dropped> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "the API server is not well", "reason": "InternalError", "code": code});
    let mut answer =
        Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
    if let Some(after) = after {
        answer = answer.header(header::RETRY_AFTER, after);
    }
    answer.body(Body::from(status.to_string())).map_err(|_| Dropped)
}

/// The event of a watch whose beginning has been compacted away.
fn too_old() -> String {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410});
    format!("{}\n", json!({"type": "ERROR", "object": status}))
}

/// Breaks off without an end.
fn broken(body: Body, after: Duration) -> Body {
    let events = body.into_data_stream().take_until(sleep(after));
    let end = futures::stream::once(async { Err(axum::Error::new(io::Error::other("broken"))) });
    Body::from_stream(events.chain(end))
}
