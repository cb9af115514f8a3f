//! What a decision looks like in the status.

use wavelift_api::{
    ClusterUpgradeStatus,
    cluster_upgrade::{ClusterStateName, OperatorConditionStatus},
    convert::cut,
    shared::InsightStatus,
};

use crate::{
    drivers::olm_v0::{Action, Decision, Observed, Waiting},
    objects,
};

/// How many conditions of operators are relayed, and how many insights.
const RELAYED_MAX: usize = 64;
const INSIGHTS_MAX: usize = 20;

/// Puts a decision into the status.
pub(super) fn show(
    decision: &Decision,
    observed: &Observed,
    (index, of): (usize, usize),
    next: &mut ClusterUpgradeStatus,
) {
    let is_verifying = matches!(decision.action, Action::Wait(Waiting::Stability));
    if next.state != Some(ClusterStateName::Verifying) {
        next.state = Some(if is_verifying && index + 1 == of {
            ClusterStateName::Verifying
        } else {
            ClusterStateName::Upgrading
        });
    }
    next.message = Some(if of == 1 {
        decision.message.clone()
    } else {
        format!("step {} of {of}: {}", index + 1, decision.message)
    });
    if let Some(step) = next.steps.get_mut(index) {
        step.percent = i32::from(decision.percent);
        step.message = Some(cut(&decision.message, 2048));
        if let Some(name) = &decision.install_plan {
            step.install_plan = Some(name.clone());
        }
    }
    next.insights = decision.insights.iter().take(INSIGHTS_MAX).map(InsightStatus::from).collect();
    next.operator_conditions = relayed(observed);
}

/// What the operators of the namespace say of themselves, as it is, and what their authors' status
/// sources say of them.
fn relayed(observed: &Observed) -> Vec<OperatorConditionStatus> {
    let all = observed.operator_conditions.iter().flat_map(|condition| {
        let csv = objects::name(&**condition).to_owned();
        condition.status.conditions.iter().map(move |said| OperatorConditionStatus {
            csv: csv.clone(),
            kind: cut(&said.kind, 316),
            status: cut(&said.status, 16),
            reason: cut(&said.reason, 1024),
            message: cut(&said.message, 2048),
        })
    });
    let authored = observed.authored.iter().flat_map(|authored| {
        authored.told.conditions.iter().map(|said| OperatorConditionStatus {
            csv: authored.csv.clone(),
            kind: cut(&said.kind, 316),
            status: said.status.as_str().to_owned(),
            reason: cut(&said.reason, 1024),
            message: cut(&said.message, 2048),
        })
    });
    all.chain(authored).take(RELAYED_MAX).collect()
}
