//! While the cluster cannot be read nothing is decided, and no time runs against it.
//!
//! What was read before is still there, but it may not be so any more: an upgrade that looks well
//! may have failed since, and one that looks stuck may be through.

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use wavelift_api::{
    ClusterUpgrade, ClusterUpgradeStatus, cluster_upgrade::ClusterStateName, convert::cut,
};
use wavelift_core::plan::Step;

use super::{Executor, Readiness, Seen, Wake, status};
use crate::{
    drivers::olm_v0::decide::{Memory, later},
    journal,
    mirror::{Behind, Mirror},
};

/// In the clock's time: what happens in less is seen by its traces.
const BLINK: SignedDuration = SignedDuration::from_secs(5);

/// Which kinds cannot be read.
pub(super) type Kinds = Vec<(&'static str, Behind)>;

impl Executor {
    /// What a step cannot be decided without and may be old. Once all of it is current again, the
    /// time in between is forgotten.
    pub(super) fn blind(&mut self, step: &Step, mirror: &Mirror) -> Option<Kinds> {
        let mut behind = mirror.behind();
        if let Some(watched) = self.watch(step, mirror) {
            behind.extend(watched.behind());
        }
        let now = self.clock.now();
        let running = self.running.as_mut()?;
        if behind.is_empty() {
            if let Some(since) = running.blind_since.take() {
                running.memory.forget(since, now);
            }
            return None;
        }
        running.blind_since.get_or_insert(now);
        Some(behind)
    }

    /// An upgrade that has not started waits, and says so.
    pub(super) async fn cannot_prepare(
        &mut self,
        upgrade: &ClusterUpgrade,
        behind: &Kinds,
        seen: Seen<'_>,
    ) -> Result<Readiness, journal::Error> {
        if let Some(why) = told(behind) {
            // What was found before is found anew once that is possible.
            if let Some(prepared) = self.waiting.get_mut(&upgrade.name_any()) {
                prepared.look_at = None;
            }
            let mut next = status::begin(upgrade);
            next.state.get_or_insert(ClusterStateName::Pending);
            next.message = Some(why);
            self.write(upgrade, next, seen.mirror).await?;
        }
        Ok(Readiness::Waits(Wake::default()))
    }
}

/// Says so, unless it may be over in a moment.
pub(super) fn cannot_tell(
    behind: &Kinds,
    (index, of): (usize, usize),
    next: &mut ClusterUpgradeStatus,
) {
    let Some(why) = told(behind) else { return };
    if let Some(step) = next.steps.get_mut(index) {
        step.message = Some(cut(&why, 2048));
    }
    next.message = Some(if of == 1 { why } else { format!("step {} of {of}: {why}", index + 1) });
}

fn told(behind: &Kinds) -> Option<String> {
    let (kind, behind) = behind.iter().find(|(_, behind)| behind.is_long())?;
    Some(format!("cannot tell how it stands, {kind} cannot be read: {}", behind.why))
}

impl Memory {
    /// Counts nothing of what was between two moments. A result must hold anew unless it was only
    /// for a moment that nobody looked.
    fn forget(&mut self, from: Timestamp, to: Timestamp) {
        let blind = to.duration_since(from);
        if blind >= BLINK {
            self.stable_since = None;
        }
        for at in [&mut self.since, &mut self.approved_at].into_iter().flatten() {
            *at = later(*at, blind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_nothing_could_be_seen_is_not_counted() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut memory = Memory {
            since: Some(at(100)),
            approved_at: Some(at(160)),
            stable_since: Some(at(195)),
            ..Memory::default()
        };
        memory.forget(at(200), at(1100));
        assert_eq!(memory.since, Some(at(1000)));
        assert_eq!(memory.approved_at, Some(at(1060)));
        assert_eq!(memory.stable_since, None, "the result must hold anew");
        let mut brief = Memory { stable_since: Some(at(195)), ..Memory::default() };
        brief.forget(at(200), at(204));
        assert_eq!(brief.stable_since, Some(at(195)));
        let mut untouched = Memory::default();
        untouched.forget(at(200), at(1100));
        assert_eq!(untouched, Memory::default());
    }
}
