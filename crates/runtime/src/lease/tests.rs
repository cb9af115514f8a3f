//! Electors against an API server that keeps one lease, in paused time.

use std::{future::Future, pin::pin, sync::Arc};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use jiff::Timestamp;
use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime};
use parking_lot::Mutex;
use tokio::{task::JoinHandle, time::advance};
use tower::ServiceExt as _;

use super::*;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/wavelift/leases";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/wavelift/leases/hub";
const SECOND: Duration = Duration::from_secs(1);

/// What the fake API server does to one elector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Fine,
    /// Answers 500.
    Broken,
    /// Never answers.
    Silent,
    /// Carries writes out and then answers 500.
    LosesAnswers,
}

#[derive(Debug, Default)]
struct Kept {
    lease: Option<Lease>,
    version: u64,
    /// Every (holder, term) that was written, without repetitions.
    history: Vec<(String, u64)>,
}

/// One elector's view of the server: the lease is shared, the mood is its own.
#[derive(Clone)]
struct Server {
    kept: Arc<Mutex<Kept>>,
    mood: Arc<Mutex<Mood>>,
}

struct Running {
    leadership: watch::Receiver<Leadership>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Server {
    fn new() -> Self {
        Self { kept: Arc::default(), mood: Arc::new(Mutex::new(Mood::Fine)) }
    }

    /// The same lease, seen by another elector.
    fn twin(&self) -> Self {
        Self { kept: Arc::clone(&self.kept), mood: Arc::new(Mutex::new(Mood::Fine)) }
    }

    fn set_mood(&self, mood: Mood) {
        *self.mood.lock() = mood;
    }

    fn client(&self) -> Client {
        let router = Router::new()
            .route(LEASES, axum::routing::post(create))
            .route(LEASE, get(read).put(replace))
            .with_state(self.clone());
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            router.clone().oneshot(request.map(axum::body::Body::new))
        });
        Client::new(service, "wavelift")
    }

    fn elector(&self, identity: &str) -> (Elector, watch::Receiver<Leadership>) {
        let settings = Settings::new("wavelift", "hub", identity.to_owned());
        Elector::new(self.client(), settings).unwrap()
    }

    fn run(&self, identity: &str) -> Running {
        let (elector, leadership) = self.elector(identity);
        let stop = CancellationToken::new();
        let task = tokio::spawn(elector.run(stop.clone()));
        Running { leadership, stop, task }
    }

    async fn answer(&self, act: impl FnOnce(&mut Kept) -> Result<Lease, u16>) -> Response {
        let mood = *self.mood.lock();
        match mood {
            Mood::Fine => {}
            Mood::Broken => return status(500),
            Mood::Silent => std::future::pending().await,
            Mood::LosesAnswers => {
                let written = act(&mut self.kept.lock());
                assert!(written.is_ok(), "the write itself must go through");
                return status(500);
            }
        }
        let answer = act(&mut self.kept.lock());
        match answer {
            Ok(lease) => Json(lease).into_response(),
            Err(code) => status(code),
        }
    }

    fn history(&self) -> Vec<(String, u64)> {
        self.kept.lock().history.clone()
    }
}

impl Kept {
    fn store(&mut self, mut lease: Lease) -> Lease {
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
        let term = lease.metadata.annotations.as_ref().unwrap()[TERM_ANNOTATION].parse().unwrap();
        let entry = (holder.unwrap_or_default(), term);
        if self.history.last() != Some(&entry) {
            self.history.push(entry);
        }
        self.lease = Some(lease.clone());
        lease
    }
}

impl Running {
    async fn leads(&mut self) -> Claim {
        leads(&mut self.leadership, Term(1)).await
    }

    async fn stands_by(&mut self) {
        let standby = |now: &Leadership| matches!(now, Leadership::Standby { .. });
        until(&mut self.leadership, standby).await;
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// Waits, in paused time, until this process leads with `term` or a higher one.
async fn leads(leadership: &mut watch::Receiver<Leadership>, term: Term) -> Claim {
    let leads = |now: &Leadership| now.claim().is_some_and(|claim| claim.term() >= term);
    until(leadership, leads).await.claim().unwrap().clone()
}

/// An hour of paused time is enough for anything here.
async fn until(
    leadership: &mut watch::Receiver<Leadership>,
    is_so: impl FnMut(&Leadership) -> bool,
) -> Leadership {
    let so = tokio::time::timeout(3600 * SECOND, leadership.wait_for(is_so)).await;
    so.expect("it never came to that").unwrap().clone()
}

async fn read(State(server): State<Server>) -> Response {
    if *server.mood.lock() == Mood::LosesAnswers {
        let lease = server.kept.lock().lease.clone();
        return lease.map_or_else(|| status(404), |lease| Json(lease).into_response());
    }
    server.answer(|kept| kept.lease.clone().ok_or(404)).await
}

async fn create(State(server): State<Server>, Json(lease): Json<Lease>) -> Response {
    server.answer(|kept| if kept.lease.is_some() { Err(409) } else { Ok(kept.store(lease)) }).await
}

async fn replace(State(server): State<Server>, Json(lease): Json<Lease>) -> Response {
    server
        .answer(|kept| {
            let current = kept.lease.as_ref().ok_or(404_u16)?;
            if current.metadata.resource_version != lease.metadata.resource_version {
                return Err(409);
            }
            Ok(kept.store(lease))
        })
        .await
}

fn status(code: u16) -> Response {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        _ => "InternalError",
    };
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": "as the test wants it",
    });
    (StatusCode::from_u16(code).unwrap(), Json(body)).into_response()
}

/// Polls `future` until `other` is done, and no longer: it stands still from then on.
async fn drive<T>(
    future: &mut (impl Future<Output = ()> + Unpin),
    other: impl Future<Output = T>,
) -> T {
    tokio::select! {
        () = future => panic!("the elector ended by itself"),
        answer = other => answer,
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_contenders_one_leads_and_the_other_follows_its_release() {
    let server = Server::new();
    let mut anna = server.run("anna");
    let first = anna.leads().await;
    assert_eq!(first.term(), Term(1));
    let mut bert = server.twin().run("bert");
    bert.stands_by().await;
    assert_eq!(*bert.leadership.borrow(), Leadership::Standby { holder: Some("anna".to_owned()) });

    let before = Instant::now();
    anna.stop().await;
    assert!(first.check().is_err(), "a released claim is over");
    assert_eq!(bert.leads().await.term(), Term(2));
    assert!(before.elapsed() <= 2 * SECOND, "a release is taken up at the next look");
    assert_eq!(
        server.history(),
        [("anna".to_owned(), 1), (String::new(), 1), ("bert".to_owned(), 2)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_can_renew_leads_for_ever() {
    let server = Server::new();
    let mut anna = server.run("anna");
    let mut bert = server.twin().run("bert");
    anna.leads().await;
    sleep(3600 * SECOND).await;
    let claim = anna.leads().await;
    assert_eq!(claim.check(), Ok(Term(1)));
    bert.stands_by().await;
    assert_eq!(server.history(), [("anna".to_owned(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_steps_down_before_anybody_steps_up() {
    for mood in [Mood::Broken, Mood::Silent] {
        let server = Server::new();
        let mut anna = server.run("anna");
        let claim = anna.leads().await;
        let mut bert = server.twin().run("bert");
        bert.stands_by().await;

        server.set_mood(mood);
        let (down, up) = tokio::join!(
            async {
                anna.stands_by().await;
                assert!(claim.check().is_err());
                Instant::now()
            },
            async {
                assert_eq!(bert.leads().await.term(), Term(2));
                assert!(claim.check().is_err());
                Instant::now()
            },
        );
        // 10 s of renew deadline against 15 s of lease, each counted from the same renewal.
        assert!(up - down >= 4 * SECOND, "{mood:?}: down to up took {:?}", up - down);
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_leader_finds_its_claim_over_before_its_elector_had_a_turn() {
    let server = Server::new();
    let (elector, mut leadership) = server.elector("anna");
    let stop = CancellationToken::new();
    let mut anna = pin!(elector.run(stop.clone()));
    let claim = drive(&mut anna, leads(&mut leadership, Term(1))).await;

    // From here on nobody polls anna: the process stands still while the world goes on.
    let mut bert = server.twin().run("bert");
    assert_eq!(bert.leads().await.term(), Term(2));
    assert!(leadership.borrow().claim().is_some(), "anna still believes that it leads");
    assert_eq!(claim.check(), Err(Expired { term: Term(1) }), "but may not write any more");

    drive(&mut anna, until(&mut leadership, |now| now.claim().is_none())).await;
    bert.stop().await;
    let again = drive(&mut anna, leads(&mut leadership, Term(1))).await;
    assert_eq!(again.term(), Term(3));
    assert_eq!(claim.check(), Err(Expired { term: Term(1) }), "the old claim stays over");
}

#[tokio::test(start_paused = true)]
async fn a_paused_leader_that_nobody_replaced_leads_again_under_a_new_term() {
    let server = Server::new();
    let (elector, mut leadership) = server.elector("anna");
    let mut anna = pin!(elector.run(CancellationToken::new()));
    let claim = drive(&mut anna, leads(&mut leadership, Term(1))).await;
    advance(60 * SECOND).await;
    assert!(claim.check().is_err());
    let again = drive(&mut anna, leads(&mut leadership, Term(2))).await;
    assert_eq!(again.term(), Term(2));
}

#[tokio::test(start_paused = true)]
async fn clocks_of_others_make_no_difference() {
    for renewed in [Timestamp::UNIX_EPOCH, Timestamp::MAX] {
        let server = Server::new();
        let mut bert = server.run("bert");
        bert.leads().await;
        // bert is gone without a release, and its clock was far off.
        bert.task.abort();
        {
            let mut kept = server.kept.lock();
            let spec = kept.lease.as_mut().unwrap().spec.as_mut().unwrap();
            spec.renew_time = Some(MicroTime(renewed));
        }
        let start = Instant::now();
        let mut anna = server.twin().run("anna");
        assert_eq!(anna.leads().await.term(), Term(2));
        let waited = start.elapsed();
        assert!(waited >= 15 * SECOND, "took over after {waited:?}");
        assert!(waited <= 18 * SECOND, "took over only after {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_aborted_elector_leaves_no_claim_behind() {
    let server = Server::new();
    let mut anna = server.run("anna");
    let claim = anna.leads().await;
    anna.task.abort();
    assert!(anna.task.await.unwrap_err().is_cancelled());
    assert!(claim.check().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_does_not_make_a_leader() {
    let server = Server::new();
    server.set_mood(Mood::LosesAnswers);
    let mut anna = server.run("anna");
    sleep(SECOND / 4).await;
    assert_eq!(server.history(), [("anna".to_owned(), 1)], "the write went through");
    assert_eq!(*anna.leadership.borrow(), Leadership::Unknown);
    server.set_mood(Mood::Fine);
    // Taken anew, under a term of its own.
    assert!(anna.leads().await.term() > Term(1));
}

#[tokio::test(start_paused = true)]
async fn of_many_that_start_at_once_exactly_one_leads() {
    let server = Server::new();
    let running: Vec<_> = (0..8).map(|n| server.twin().run(&format!("r{n}"))).collect();
    sleep(10 * SECOND).await;
    let leaders = running.iter().filter(|one| one.leadership.borrow().claim().is_some()).count();
    assert_eq!(leaders, 1);
    assert_eq!(server.history().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_does_not_lower_the_term() {
    let server = Server::new();
    let mut anna = server.run("anna");
    anna.leads().await;
    anna.stop().await;
    let mut bert = server.twin().run("bert");
    let claim = bert.leads().await;
    assert_eq!(claim.term(), Term(2));
    server.kept.lock().lease = None;
    let again = leads(&mut bert.leadership, Term(3)).await;
    assert_eq!(again.term(), Term(3));
    assert!(claim.check().is_err());
}

#[tokio::test]
async fn contradicting_settings_are_refused() {
    let check = |change: fn(&mut Settings)| {
        let mut settings = Settings::new("wavelift", "hub", unique_identity("pod"));
        change(&mut settings);
        Elector::new(Server::new().client(), settings).map(drop).map_err(|error| error.kind())
    };
    assert_eq!(check(|_| {}), Ok(()));
    assert_eq!(check(|s| s.identity.clear()), Err("settings"));
    assert_eq!(check(|s| s.renew_deadline = s.duration), Err("settings"));
    assert_eq!(check(|s| s.retry = s.renew_deadline), Err("settings"));
    assert_eq!(check(|s| s.duration = Duration::from_millis(10_500)), Err("settings"));
}
