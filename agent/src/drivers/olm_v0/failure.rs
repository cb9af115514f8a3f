//! How a step can fail, and what a person does about it.

use std::fmt;

use wavelift_core::campaign;

/// Why a step ended short of its CSVs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Dead end or deadline.
    pub kind: campaign::Failure,
    /// What it was.
    pub reason: Reason,
    /// What happened, with OLM's own text.
    pub message: String,
}

/// The reason of an insight that is no failure: a step takes longer than such steps usually do.
pub const UPGRADE_SLOW: &str = "UpgradeSlow";

/// The reasons, each with a page in `docs/runbooks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// OLM gave the InstallPlan up.
    InstallPlanFailed,
    /// The new CSV does not get what it requires.
    RequirementsNotMet,
    /// The operator says that it must not be upgraded now.
    OperatorNotUpgradeable,
    /// The new version does not come up.
    DeploymentNotAvailable,
    /// The installed version is not healthy, so that OLM does not replace it.
    InstalledNotHealthy,
    /// OLM cannot install the new CSV and will not try again.
    InstallComponentFailed,
    /// A catalog that the namespace sees is not READY.
    CatalogUnavailable,
    /// OLM cannot resolve the namespace.
    ResolutionFailed,
    /// OLM offers another set of CSVs than the plan has.
    PlanMismatch,
    /// Somebody else approved an InstallPlan with another set of CSVs.
    ForeignInstallPlan,
    /// OLM offers no InstallPlan.
    PlanNotOffered,
    /// OLM cannot unpack the bundle.
    BundleUnpackFailed,
    /// The namespace has more than one OperatorGroup.
    TooManyOperatorGroups,
    /// The namespace has no OperatorGroup.
    NoOperatorGroup,
    /// Somebody keeps setting `installPlanApproval` back.
    ApprovalContested,
    /// What the cluster resolves is not what was consented to.
    PlanChanged,
    /// The new definition is without a version that objects are stored in.
    StoredVersionRemoved,
    /// Custom resources do not fit the new definition.
    CustomResourcesInvalid,
    /// OLM cannot put up the conversion webhook of the new version.
    ConversionWebhookRefused,
    /// It could not be told whether OLM takes the new definitions.
    ApisNotChecked,
    /// The API server cannot give the custom resources of the new version.
    CustomResourcesUnreadable,
    /// There can be no pinned catalog for the step.
    PinnedCatalogRefused,
    /// The pinned catalog was not in place in time.
    PinnedCatalogNotReady,
    /// The API server refuses what has to be written or read.
    ApiError,
    /// None of the others explains it.
    StepTimedOut,
}

// === impl Failure ===

impl Failure {
    /// A dead end.
    pub fn failed(reason: Reason, message: impl Into<String>) -> Self {
        Self { kind: campaign::Failure::Failed, reason, message: message.into() }
    }

    /// A missed deadline.
    pub fn stalled(reason: Reason, message: impl Into<String>) -> Self {
        Self { kind: campaign::Failure::Stalled, reason, message: message.into() }
    }
}

// === impl Reason ===

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 25] = [
        Self::InstallPlanFailed,
        Self::RequirementsNotMet,
        Self::OperatorNotUpgradeable,
        Self::DeploymentNotAvailable,
        Self::InstalledNotHealthy,
        Self::InstallComponentFailed,
        Self::CatalogUnavailable,
        Self::ResolutionFailed,
        Self::PlanMismatch,
        Self::ForeignInstallPlan,
        Self::PlanNotOffered,
        Self::BundleUnpackFailed,
        Self::TooManyOperatorGroups,
        Self::NoOperatorGroup,
        Self::ApprovalContested,
        Self::PlanChanged,
        Self::StoredVersionRemoved,
        Self::CustomResourcesInvalid,
        Self::ConversionWebhookRefused,
        Self::ApisNotChecked,
        Self::CustomResourcesUnreadable,
        Self::PinnedCatalogRefused,
        Self::PinnedCatalogNotReady,
        Self::ApiError,
        Self::StepTimedOut,
    ];

    /// As the API, the metrics and the runbooks write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InstallPlanFailed => "InstallPlanFailed",
            Self::RequirementsNotMet => "RequirementsNotMet",
            Self::OperatorNotUpgradeable => "OperatorNotUpgradeable",
            Self::DeploymentNotAvailable => "DeploymentNotAvailable",
            Self::InstalledNotHealthy => "InstalledNotHealthy",
            Self::InstallComponentFailed => "InstallComponentFailed",
            Self::CatalogUnavailable => "CatalogUnavailable",
            Self::ResolutionFailed => "ResolutionFailed",
            Self::PlanMismatch => "PlanMismatch",
            Self::ForeignInstallPlan => "ForeignInstallPlan",
            Self::PlanNotOffered => "PlanNotOffered",
            Self::BundleUnpackFailed => "BundleUnpackFailed",
            Self::TooManyOperatorGroups => "TooManyOperatorGroups",
            Self::NoOperatorGroup => "NoOperatorGroup",
            Self::ApprovalContested => "ApprovalContested",
            Self::PlanChanged => "PlanChanged",
            Self::StoredVersionRemoved => "StoredVersionRemoved",
            Self::CustomResourcesInvalid => "CustomResourcesInvalid",
            Self::ConversionWebhookRefused => "ConversionWebhookRefused",
            Self::ApisNotChecked => "ApisNotChecked",
            Self::CustomResourcesUnreadable => "CustomResourcesUnreadable",
            Self::PinnedCatalogRefused => "PinnedCatalogRefused",
            Self::PinnedCatalogNotReady => "PinnedCatalogNotReady",
            Self::ApiError => "ApiError",
            Self::StepTimedOut => "StepTimedOut",
        }
    }

    /// What to do about it, in one or two sentences.
    #[expect(clippy::too_many_lines, reason = "a table: one text a reason")]
    pub fn remediation(self) -> &'static str {
        match self {
            Self::InstallPlanFailed => {
                "Remove the cause that the message names. OLM does not try this InstallPlan again by \
                 itself: allow the remedy RetryFailedInstallPlan in spec.remedies, or set its \
                 status.phase back to Installing by hand; then retry the cluster."
            }
            Self::RequirementsNotMet => {
                "Give the new CSV what its requirementStatus asks for. A Kubernetes version that is too \
                 low can only be cured by upgrading the platform first."
            }
            Self::OperatorNotUpgradeable => {
                "Finish what the operator is doing, or set spec.overrides Upgradeable=True on its \
                 OperatorCondition if you know better; OLM goes on by itself, then retry the cluster."
            }
            Self::DeploymentNotAvailable => {
                "Look at the pods of the Deployment (image pull, scheduling, crashes). Once they are \
                 available OLM finishes by itself; then retry the cluster."
            }
            Self::InstalledNotHealthy => {
                "Heal the version that is installed: OLM replaces it only when it is Succeeded. Then \
                 retry the cluster."
            }
            Self::InstallComponentFailed => {
                "The new version cannot be installed as it is. Report the message to its author and \
                 choose another version."
            }
            Self::CatalogUnavailable => {
                "Bring the CatalogSource back to READY (registry pod, image pull, network), or remove \
                 it if nobody needs it; then retry the cluster."
            }
            Self::ResolutionFailed => {
                "Read the message: it names the Subscription, package or CSV that contradicts the rest \
                 of the namespace. Resolve that, then retry the cluster."
            }
            Self::PlanMismatch => {
                "The catalog or the namespace is not what it was when the plan was made. Preview again \
                 and consent to the new plan."
            }
            Self::ForeignInstallPlan => {
                "Find out who approved it (managedFields of the InstallPlan) and let it finish; then \
                 preview again."
            }
            Self::PlanNotOffered => {
                "Check that the catalog the cluster sees holds the next version in the Subscription's \
                 channel, then retry the cluster."
            }
            Self::BundleUnpackFailed => {
                "Make the bundle image pullable from the cluster (mirror, pull secret), delete the \
                 failed unpack Job, then retry the cluster."
            }
            Self::TooManyOperatorGroups => {
                "Leave one OperatorGroup in the namespace and delete the others; OLM goes on by itself."
            }
            Self::NoOperatorGroup => {
                "Make an OperatorGroup in the namespace; OLM goes on by itself."
            }
            Self::ApprovalContested => {
                "Let whatever manages the Subscription set installPlanApproval: Manual, or exclude that \
                 field from it; then retry the cluster."
            }
            Self::PlanChanged => {
                "Nothing was touched. Preview again and consent to the new plan with a new campaign."
            }
            Self::StoredVersionRemoved => {
                "Nothing was approved. Migrate the objects to a version that stays (read and write \
                 each once), take the old one out of status.storedVersions of the CRD, then retry \
                 the cluster."
            }
            Self::CustomResourcesInvalid => {
                "Nothing was approved. Correct the objects that the message names so that they fit \
                 the new schema, then retry the cluster."
            }
            Self::ConversionWebhookRefused => {
                "Nothing was approved. This version cannot be installed as it is: report it to its \
                 author and choose another version."
            }
            Self::ApisNotChecked => {
                "Nothing was approved. Let the agent read what the message names, or set \
                 spec.preflight.onUnknown: Proceed with a reason; then retry the cluster."
            }
            Self::CustomResourcesUnreadable => {
                "The new version is installed, and its API does not answer. Look at the pods and the \
                 Service of its conversion webhook and at the certificate that it shows; the stored \
                 objects are whole. Then retry the cluster."
            }
            Self::PinnedCatalogRefused => {
                "Do what the message names: let whatever manages the Subscription leave spec.source \
                 alone, or give the agent an address to serve at; or choose a target that OLM goes to \
                 by itself. Then retry the cluster."
            }
            Self::PinnedCatalogNotReady => {
                "Check that OLM reaches the agent's address (Service, NetworkPolicy) and the agent the \
                 registries of the catalogs; the message says which. Then retry the cluster."
            }
            Self::ApiError => {
                "Read the API server's words: most often a missing permission of the agent or an \
                 admission rule. Then retry the cluster."
            }
            Self::StepTimedOut => {
                "Look at the InstallPlan, the new CSV and the Events of the namespace, then retry the \
                 cluster."
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
