//! A demo's fleet, alive in this process, and what people point at it.

pub(crate) mod program;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use wavelift_api::live::PhaseName;
use wavelift_demo::{
    AfterEnd, Cast, Fleet, Options, Source, Teller,
    drive::{Driver, NAME},
    fleet::NAMESPACE,
};
use wavelift_hub::view::Upgrade;

pub(crate) use self::program::{Answer, answer, wavelift};

/// Much longer than anything takes on the slowest machine: it only ends a test that hangs.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);

/// A living fleet with its campaign.
pub(crate) struct Stage {
    pub(crate) fleet: Fleet,
    pub(crate) cast: Cast,
    pub(crate) driver: Driver,
    folder: tempfile::TempDir,
}

/// Nobody listens.
pub(crate) struct Silent;

impl Teller for Silent {
    fn line(&mut self, _: &str) {}
    fn progress(&mut self, _: u64, _: u64, _: &str) {}
    fn finish(&mut self) {}
}

/// A demo of its own operators.
pub(crate) fn options(seed: u64, clusters: usize, speed: f64) -> Options {
    Options {
        clusters,
        seed,
        speed,
        source: Source::Own,
        after_end: AfterEnd::Stop,
        http: SocketAddr::from(([127, 0, 0, 1], 0)),
    }
}

impl Stage {
    /// A fleet whose agents are all connected, without a campaign.
    pub(crate) async fn set(options: &Options) -> Self {
        let cast = Cast::of(options).unwrap();
        let fleet = Fleet::start(&cast, options.factor(), options.http).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        fleet.write_kubeconfig(&folder.path().join("kubeconfig")).unwrap();
        let mut driver = Driver::new(fleet.client(), fleet.hub().board().subscribe());
        let agents = fleet.members().iter().filter(|member| member.has_agent()).count();
        soon("the agents", driver.agents(agents)).await.unwrap();
        Self { fleet, cast, driver, folder }
    }

    /// Makes the campaign and takes it to its preview.
    pub(crate) async fn preview(&self) {
        self.driver.create(&self.cast.campaign).await.unwrap();
        self.until(|u| u.view.row.phase != PhaseName::Planning).await;
    }

    /// Takes a previewed campaign through its checks to the launch.
    pub(crate) async fn launch(&self) {
        self.driver.preflight().await.unwrap();
        self.until(|u| u.view.row.phase == PhaseName::Preflighted).await;
        self.driver.launch().await.unwrap();
        self.until(|u| u.view.row.phase == PhaseName::Running).await;
    }

    /// The campaign as soon as the hub shows what is `wanted`.
    pub(crate) async fn until(&self, wanted: impl Fn(&Upgrade) -> bool) -> Arc<Upgrade> {
        let mut board = self.fleet.hub().board().subscribe();
        let found = async {
            let there = |fleet: &Arc<wavelift_hub::view::Fleet>| {
                fleet.upgrade(NAMESPACE, NAME).is_some_and(|upgrade| wanted(upgrade))
            };
            let fleet = board.wait_for(there).await.unwrap();
            Arc::clone(fleet.upgrade(NAMESPACE, NAME).unwrap())
        };
        soon("the campaign", found).await
    }

    /// The campaign's end.
    pub(crate) async fn ended(&self) -> Arc<Upgrade> {
        self.until(|u| wavelift_demo::drive::is_ended(u.view.row.phase)).await
    }

    /// A folder of this fleet's own.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where its kubeconfig is; the hub is the current context.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// What `WAVELIFT_URL` would be.
    pub(crate) fn url(&self) -> String {
        self.fleet.page().trim_end_matches('/').to_owned()
    }

    /// A command that knows this fleet by its environment, as a person's shell would.
    pub(crate) fn command(&self, program: &Path, args: &[&str]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(program);
        command
            .args(args)
            .env("KUBECONFIG", self.kubeconfig())
            .env("WAVELIFT_URL", self.url())
            .env("HOME", self.folder())
            .env_remove("NO_COLOR")
            .kill_on_drop(true);
        command
    }

    /// Ends everything.
    pub(crate) async fn strike(self) {
        soon("the fleet's end", self.fleet.stop()).await;
    }
}

/// What comes of `future`, unless it hangs.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(done) => done,
        Err(elapsed) => panic!("waited in vain for {what}: {elapsed}"),
    }
}
