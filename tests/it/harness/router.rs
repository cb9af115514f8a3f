//! The way from agents to the hub: to whichever hub leads, as a Service sends them to the replica
//! that is ready. It counts the TLS records that pass, and can call somebody at the n-th.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::door;

/// The content type of a TLS record that holds something encrypted.
const APPLICATION_DATA: u8 = 23;
const HEADER: usize = 5;

/// The hub that new connections go to; they wait while there is none.
pub(crate) type Target = watch::Sender<Option<SocketAddr>>;

/// Whether something happens right before or right after another thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Before,
    After,
}

type Spring = Box<dyn FnOnce(String) + Send>;

struct Trap {
    at: u64,
    moment: Moment,
    spring: Spring,
}

/// Counts records, over any number of routers.
#[derive(Default)]
pub(crate) struct Meter {
    seen: AtomicU64,
    trap: Mutex<Option<Trap>>,
}

/// A listener whose connections go on to the hub.
#[derive(Debug)]
pub(crate) struct Router {
    /// Where agents connect to.
    pub(crate) addr: SocketAddr,
    cut: watch::Sender<u64>,
    _guard: DropGuard,
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("seen", &self.seen()).finish_non_exhaustive()
    }
}

impl Meter {
    /// How many records have passed, both ways.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::SeqCst)
    }

    /// Calls `spring` around the `at`-th record, counted from 1 and from the very beginning.
    pub(crate) fn set(
        &self,
        at: u64,
        moment: Moment,
        spring: impl FnOnce(String) + Send + 'static,
    ) {
        *self.trap.lock() = Some(Trap { at, moment, spring: Box::new(spring) });
    }

    fn count(&self) -> Option<(u64, Moment, Spring)> {
        let number = self.seen.fetch_add(1, Ordering::SeqCst) + 1;
        let mut trap = self.trap.lock();
        let is_hit = trap.as_ref().is_some_and(|trap| trap.at == number);
        trap.take_if(|_| is_hit).map(|trap| (number, trap.moment, trap.spring))
    }
}

impl Router {
    /// Listens on loopback and sends everybody on to `target`.
    pub(crate) async fn start(target: &Target, meter: &Arc<Meter>) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let addr = listener.local_addr()?;
        let stop = CancellationToken::new();
        let cut = watch::Sender::new(0);
        let way = Way { target: target.subscribe(), meter: Arc::clone(meter) };
        let serve = move |stream| carry(stream, way.clone());
        drop(tokio::spawn(door::open(listener, cut.subscribe(), stop.clone(), serve)));
        Ok(Self { addr, cut, _guard: stop.drop_guard() })
    }

    /// Ends every connection that is open now.
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|cut| *cut += 1);
    }
}

#[derive(Clone)]
struct Way {
    target: watch::Receiver<Option<SocketAddr>>,
    meter: Arc<Meter>,
}

async fn carry(agent: TcpStream, mut way: Way) -> io::Result<()> {
    let hub = loop {
        let target = *way.target.borrow_and_update();
        if let Some(addr) = target
            && let Ok(hub) = TcpStream::connect(addr).await
        {
            break hub;
        }
        // Nobody is ready, or not any more.
        if way.target.changed().await.is_err() {
            return Ok(());
        }
    };
    agent.set_nodelay(true)?;
    hub.set_nodelay(true)?;
    let (from_agent, to_agent) = agent.into_split();
    let (from_hub, to_hub) = hub.into_split();
    tokio::select! {
        ended = pump(from_agent, to_hub, &way.meter, "agent to hub") => ended,
        ended = pump(from_hub, to_agent, &way.meter, "hub to agent") => ended,
    }
}

/// Carries records until one side ends, or a trap springs.
async fn pump(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    meter: &Meter,
    way: &str,
) -> io::Result<()> {
    let mut from = BufReader::new(from);
    loop {
        let mut record = vec![0; HEADER];
        from.read_exact(&mut record).await?;
        let length = u16::from_be_bytes([record[3], record[4]]);
        record.resize(HEADER + usize::from(length), 0);
        from.read_exact(&mut record[HEADER..]).await?;
        let trap = if record[0] == APPLICATION_DATA { meter.count() } else { None };
        let Some((number, moment, spring)) = trap else {
            to.write_all(&record).await?;
            continue;
        };
        let told = format!("record {number} of the link, {way}");
        if moment == Moment::After {
            to.write_all(&record).await?;
        }
        spring(told);
        return Ok(());
    }
}
