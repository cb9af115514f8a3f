//! ClusterUpgrades whose campaign is gone: deleted, or made again under its old name.
//!
//! What its agent is at work on is told to stop, is tracked to its end like any other, and holds
//! its cluster until then. Nothing of it is ever mixed with the new campaign: names and fences
//! carry the uid.

use wavelift_core::ids::Uid;

use super::{Commands, Driver, writes::Verb};
use crate::link::{Control, ControlAction, HubCommand, UpgradeKey};

impl<C: Commands> Driver<C> {
    /// Looks after the parts of campaigns that are gone.
    pub(super) fn orphans(&mut self) {
        let is_gone = |uid: &Uid| {
            self.objects
                .campaign(uid)
                .is_none_or(|(_, fleet)| fleet.metadata.deletion_timestamp.is_some())
        };
        let orphans: Vec<UpgradeKey> = self
            .objects
            .parts
            .iter()
            .filter(|(_, part)| part.is_started() && is_gone(&part.campaign))
            .map(|(key, _)| key.clone())
            .collect();
        for key in orphans {
            self.orphan(&key);
        }
    }

    fn orphan(&mut self, key: &UpgradeKey) {
        let Some(part) = self.objects.parts.get(key).cloned() else { return };
        if let Some(object) = self.heard_word(&part, key, false) {
            self.write_part(key, Verb::ReplaceStatus, object);
            return;
        }
        let known = self.clusters.get(&part.cluster);
        let Some((session, _)) = known.and_then(|known| known.session.clone()) else { return };
        if part.is_in_flight() {
            self.assign(key, &part, session, ControlAction::Cancel);
            return;
        }
        // Its end is durable: the agent may drop its own object. Only one that this process was
        // told about; what is long past is left alone.
        let told = (session, ControlAction::Forget);
        let Some(track) = self.memory.tracks.get(key).filter(|track| track.newest.is_some()) else {
            return;
        };
        if track.told == Some(told) {
            return;
        }
        let control = Control {
            fence: part.fence.clone(),
            upgrade: key.clone(),
            action: ControlAction::Forget,
        };
        if self.send(&part.cluster, HubCommand::Control(control)) {
            self.memory.tracks.entry(key.clone()).or_default().told = Some(told);
        }
    }
}
