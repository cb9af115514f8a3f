//! The page in a real browser: it follows a campaign, and the keyboard alone goes everywhere.

mod strict;
mod tab;
mod wire;
mod witness;

use std::collections::BTreeMap;

use serde::Serialize;
use wavelift_api::{cluster_upgrade::ClusterStateName, live::ClusterView};
use wavelift_demo::{Scenario, drive::NAME};
use wavelift_hub::view::Upgrade;
use wavelift_runtime::testing::chromium_or_skip;

use self::tab::{Key, Tab};
use crate::stage::{Stage, options};

/// Enough that every fault happens once.
const CLUSTERS: usize = 8;
/// Times the default pace. A step that fails still takes twenty real seconds, so that the page has
/// time to be seen following.
const SPEED: f64 = 10.0;
/// Follows the hub's events, and shows what they said.
const LIVE: &str = "has('#link[data-state=live]') && !has('main[aria-busy]')";
/// What the page says that the whole campaign is doing.
const PHASE: &str = "text('main .lead .pill')";
/// How many clusters it says are done.
const DONE: &str = "text('.progress .bar-label .num')";
/// Each cluster in its table and the state that it says the cluster is in.
const ROWS: &str = "Object.fromEntries([...document.querySelectorAll('.clusters tbody tr')]
    .map((row) => [row.dataset.key, row.querySelector('.pill').textContent]).sort())";
/// Each wave and what it says of it.
const WAVES: &str = "[...document.querySelectorAll('.waves > li')]
    .map((wave) => `${wave.dataset.key} ${wave.querySelector('.word').textContent}`)";
/// What it says of each step of a cluster.
const STEPS: &str = "texts('section[aria-labelledby=steps] tbody tr .pill')";

/// The first seed whose first cluster, alone in its wave, has work to do and no fault.
fn calm_seed() -> (u64, String) {
    let calm = |seed| {
        let first = Scenario::new(seed, CLUSTERS).clusters.remove(0);
        (first.fault.is_none() && !first.is_at_target()).then_some((seed, first.name))
    };
    (1..).find_map(calm).unwrap()
}

/// States by cluster, as the hub has them.
fn states(upgrade: &Upgrade) -> BTreeMap<&str, ClusterStateName> {
    upgrade.clusters.iter().map(|c| (c.row.name.as_str(), c.row.state)).collect()
}

/// Waits until `expression` is `value` on the page.
async fn until_is(tab: &mut Tab, expression: &str, value: impl Serialize) {
    let value = serde_json::to_string(&value).unwrap();
    tab.until(&format!("JSON.stringify({expression}) === JSON.stringify({value})")).await;
}

/// Fails unless the page was good all the time and was loaded once.
async fn assert_good(tab: &mut Tab) {
    let witness = tab.witness().await;
    assert!(witness.complaints.is_empty(), "{:#?}", witness.complaints);
    assert_eq!(witness.documents, 1, "{:#?}", witness.requests);
    // Nothing wrong was seen, but not because nothing was seen.
    let events = |url: &&String| url.contains("/api/v1/events?");
    assert!(witness.requests.iter().any(|url| events(&url)), "{:#?}", witness.requests);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_follows_a_campaign_to_its_end() {
    let Some(chromium) = chromium_or_skip() else { return };
    let stage = Stage::set(&options(7, CLUSTERS, SPEED)).await;
    let mut tab = Tab::open(&chromium, &stage.fleet.page()).await;
    tab.until(&format!("{LIVE} && text('main h2') === 'No campaign yet'")).await;
    stage.preview().await;
    tab.until(&format!("text('a.row-link') === '{NAME}' && text('tbody .pill') === 'Previewed'"))
        .await;
    tab.press(&[Key::Char('j'), Key::Enter]).await;
    tab.until(&format!("{LIVE} && {PHASE} === 'Previewed'")).await;
    tab.keep(&[PHASE, DONE]).await;

    stage.launch().await;
    tab.until(&format!("{PHASE} === 'Running'")).await;
    tab.until("text('.waves .now .word') === 'Running'").await;
    // One of the clusters never gets well.
    tab.until(&format!("{PHASE} === 'Succeeded with failures'")).await;

    let ended = stage.ended().await;
    let states = states(&ended);
    assert_eq!(states.len(), CLUSTERS);
    let done = format!("{} of {CLUSTERS} done", ended.view.row.summary.succeeded);
    until_is(&mut tab, DONE, done).await;
    until_is(&mut tab, ROWS, states).await;
    until_is(&mut tab, WAVES, ["canary Complete", "early Complete", "broad Complete"]).await;
    // It also says what to do about the one that failed.
    tab.until("has('section[aria-labelledby=needs] tbody .do')").await;

    let [phases, counts] = &tab.kept().await[..] else { panic!("two things were kept") };
    assert_eq!(phases.first().unwrap(), "Previewed");
    assert_eq!(phases[phases.len() - 2..], ["Running", "Succeeded with failures"]);
    assert!(counts.len() > 2, "it was seen to go on: {counts:?}");
    assert_good(&mut tab).await;
    tab.close().await;
    stage.strike().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_keyboard_alone_reaches_the_steps_of_a_cluster() {
    let Some(chromium) = chromium_or_skip() else { return };
    let (seed, cluster) = calm_seed();
    let stage = Stage::set(&options(seed, CLUSTERS, SPEED)).await;
    stage.preview().await;
    let mut tab = Tab::open(&chromium, &stage.fleet.page()).await;
    tab.until(&format!("{LIVE} && text('a.row-link') === '{NAME}'")).await;
    to_campaign(&mut tab).await;
    along_rows(&mut tab).await;

    // The filter leaves one row, and Enter opens it.
    tab.press(&[Key::Char('/')]).await;
    tab.until("focused('#filter')").await;
    tab.write(&cluster).await;
    until_is(&mut tab, "texts('a.row-link')", [&cluster]).await;
    tab.press(&[Key::Down]).await;
    tab.until("focused('a.row-link')").await;
    tab.press(&[Key::Enter]).await;
    tab.until(&format!("{LIVE} && text('main h1') === '{cluster}'")).await;
    let before = stage.until(|_| true).await;
    let steps = view(&before, &cluster).steps.len();
    assert_ne!(steps, 0);
    until_is(&mut tab, STEPS, vec!["Pending"; steps]).await;

    // The steps are done while one looks.
    stage.launch().await;
    tab.until(&format!("{PHASE} === 'Succeeded'")).await;
    until_is(&mut tab, STEPS, vec!["Done"; steps]).await;

    // Past the steps to the button that asks the cluster, and back up.
    tab.press(&[Key::Tab]).await;
    tab.until("focused('#ask')").await;
    tab.press(&[Key::Enter]).await;
    tab.until("text('section[aria-labelledby=live] pre').startsWith('{')").await;
    tab.press(&[Key::Escape]).await;
    tab.until(&format!("{LIVE} && text('main h1').startsWith('{NAME}')")).await;
    tab.press(&[Key::Escape]).await;
    tab.until(&format!("{LIVE} && text('main h1') === 'Campaigns'")).await;
    assert_good(&mut tab).await;
    tab.close().await;
    stage.strike().await;
}

/// One cluster of a campaign.
fn view<'a>(upgrade: &'a Upgrade, cluster: &str) -> &'a ClusterView {
    upgrade.clusters.iter().find(|view| view.row.name == cluster).unwrap()
}

/// From a list that was just opened into its only campaign, by Tab and Enter.
async fn to_campaign(tab: &mut Tab) {
    tab.press(&[Key::Tab]).await;
    tab.until("focused('#skip')").await;
    tab.press(&[Key::Enter]).await;
    tab.until("focused('#main')").await;
    tab.press(&[Key::Tab]).await;
    tab.until("focused('a.row-link')").await;
    tab.press(&[Key::Enter]).await;
    tab.until(&format!("{LIVE} && has('.clusters a.row-link')")).await;
}

/// Down and up the rows of a campaign at rest, and the help on keys.
async fn along_rows(tab: &mut Tab) {
    let at = "[...document.querySelectorAll('a.row-link')].indexOf(document.activeElement)";
    for (key, row) in [
        (Key::Char('j'), 0),
        (Key::Char('j'), 1),
        (Key::Down, 2),
        (Key::Up, 1),
        (Key::Char('k'), 0),
        (Key::Char('k'), 0),
    ] {
        tab.press(&[key]).await;
        assert_eq!(tab.look(at).await, row, "after {key:?}");
    }
    tab.press(&[Key::Char('?')]).await;
    tab.until("has('#help[open]')").await;
    tab.press(&[Key::Escape]).await;
    tab.until("!has('#help[open]')").await;
}
