//! Labels, annotations, finalizers and field managers that we own.

/// On ClusterUpgrades: the uid of the FleetUpgrade they belong to.
pub const FLEETUPGRADE_UID: &str = "wavelift.io/fleetupgrade-uid";
/// On ClusterUpgrades: the name of the FleetUpgrade they belong to.
pub const FLEETUPGRADE_NAME: &str = "wavelift.io/fleetupgrade-name";
/// On ClusterUpgrades: the namespace of the FleetUpgrade they belong to.
pub const FLEETUPGRADE_NAMESPACE: &str = "wavelift.io/fleetupgrade-namespace";
/// On ClusterUpgrades that were started: the wave they were started in.
pub const WAVE: &str = "wavelift.io/wave";
/// On Subscriptions that we made Manual: what `spec.installPlanApproval` was before.
pub const APPROVAL_BEFORE: &str = "wavelift.io/install-plan-approval-before";
/// On Subscriptions that we made Manual: the upgrade that did it, `<namespace>/<name>`.
pub const HELD_BY: &str = "wavelift.io/held-by";
/// On Subscriptions that read a pinned catalog: the catalog that they read by themselves,
/// `<namespace>/<name>`.
pub const SOURCE_BEFORE: &str = "wavelift.io/catalog-source-before";
/// On Subscriptions that read a pinned catalog: the upgrade that did it, `<namespace>/<name>`.
pub const PINNED_BY: &str = "wavelift.io/pinned-by";
/// On CatalogSources that an agent serves itself.
pub const PINNED_CATALOG: &str = "wavelift.io/pinned-catalog";
/// On CatalogSources that an agent serves itself: what they hold, for which step of which upgrade.
pub const PIN: &str = "wavelift.io/pin";
/// On our lease: the leader's term.
pub const TERM: &str = "wavelift.io/term";

/// Field manager of the hub.
pub const MANAGER_HUB: &str = "wavelift-hub";
/// Field manager of the agent.
pub const MANAGER_AGENT: &str = "wavelift-agent";
/// Field manager of the CLI.
pub const MANAGER_CLI: &str = "wavelift-cli";

/// The ClusterUpgrade's name for a FleetUpgrade: its name and the first 8 hex digits of its uid, so
/// that one made again under an old name does not meet the old one's objects.
pub fn cluster_upgrade_name(fleet_upgrade: &str, uid: &str) -> String {
    let short: String = uid.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    format!("{fleet_upgrade}-{short}")
}
