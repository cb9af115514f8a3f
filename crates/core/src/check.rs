//! Preflight results: the outcome says what was found, the disposition what is done about it.

use serde::{Deserialize, Serialize};

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// As it should be.
    Pass,
    /// Worth knowing, no reason to wait.
    Warn,
    /// In the way of the upgrade.
    Fail,
    /// Could not tell. Never success.
    Unknown,
    /// Does not apply to this cluster.
    Skipped,
}

/// What the engine does about an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Disposition {
    /// Nothing in the way.
    Clear,
    /// Goes on, and says so.
    Warned,
    /// Holds the cluster.
    Blocked,
    /// Would hold the cluster, but the user said to go on and why.
    Waived,
}

/// What the user wants done about a Fail or an Unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnOutcome {
    /// Hold the cluster.
    #[default]
    Block,
    /// Go on; the reason is kept in the history.
    Proceed,
}

/// `spec.preflight` of a campaign, without the reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// What a Fail does.
    pub on_fail: OnOutcome,
    /// What an Unknown does.
    pub on_unknown: OnOutcome,
}

/// One check's result on one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The check's stable name, e.g. `catalog-ready`.
    pub check: String,
    /// What it found.
    pub outcome: Outcome,
    /// CamelCase reason, stable.
    pub reason: String,
    /// One sentence for people, with what to do.
    pub message: String,
    /// Stable ids of what it is about (namespaces, CSVs, catalogs).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
}

/// What a set of findings means for a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing holds it.
    Clear {
        /// How many findings are warnings or waived.
        warnings: usize,
    },
    /// It is held.
    Blocked {
        /// The checks that hold it, in the order of the findings.
        checks: Vec<String>,
        /// True when one of them could not tell.
        unknown: bool,
    },
}

impl Outcome {
    /// All outcomes, in the order in which they are shown.
    pub const ALL: [Self; 5] = [Self::Pass, Self::Warn, Self::Fail, Self::Unknown, Self::Skipped];

    /// As the API, the metrics and the CLI write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "Pass",
            Self::Warn => "Warn",
            Self::Fail => "Fail",
            Self::Unknown => "Unknown",
            Self::Skipped => "Skipped",
        }
    }

    /// What is done about this outcome under `policy`.
    pub fn disposition(self, policy: Policy) -> Disposition {
        let held = |on| match on {
            OnOutcome::Block => Disposition::Blocked,
            OnOutcome::Proceed => Disposition::Waived,
        };
        match self {
            Self::Pass | Self::Skipped => Disposition::Clear,
            Self::Warn => Disposition::Warned,
            Self::Fail => held(policy.on_fail),
            Self::Unknown => held(policy.on_unknown),
        }
    }
}

impl Disposition {
    /// As the API and the CLI write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clear => "Clear",
            Self::Warned => "Warned",
            Self::Blocked => "Blocked",
            Self::Waived => "Waived",
        }
    }
}

/// Judges all findings of a cluster. No findings at all is "could not tell", never clear.
pub fn verdict(findings: &[Finding], policy: Policy) -> Verdict {
    if findings.is_empty() {
        return match Outcome::Unknown.disposition(policy) {
            Disposition::Blocked => Verdict::Blocked { checks: vec![], unknown: true },
            Disposition::Clear | Disposition::Warned | Disposition::Waived => {
                Verdict::Clear { warnings: 0 }
            }
        };
    }
    let mut checks = vec![];
    let mut unknown = false;
    let mut warnings = 0;
    for finding in findings {
        match finding.outcome.disposition(policy) {
            Disposition::Clear => {}
            Disposition::Warned | Disposition::Waived => warnings += 1,
            Disposition::Blocked => {
                unknown |= finding.outcome == Outcome::Unknown;
                checks.push(finding.check.clone());
            }
        }
    }
    if checks.is_empty() {
        Verdict::Clear { warnings }
    } else {
        Verdict::Blocked { checks, unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(check: &str, outcome: Outcome) -> Finding {
        Finding {
            check: check.to_owned(),
            outcome,
            reason: "R".to_owned(),
            message: String::new(),
            subjects: vec![],
        }
    }

    #[test]
    fn fail_and_unknown_hold_unless_the_user_says_proceed() {
        let findings = [
            finding("a", Outcome::Pass),
            finding("b", Outcome::Fail),
            finding("c", Outcome::Unknown),
            finding("d", Outcome::Warn),
            finding("e", Outcome::Skipped),
        ];
        let block = Policy::default();
        let fail_only = Policy { on_fail: OnOutcome::Block, on_unknown: OnOutcome::Proceed };
        let proceed = Policy { on_fail: OnOutcome::Proceed, on_unknown: OnOutcome::Proceed };
        let blocked = |checks: &[&str], unknown| Verdict::Blocked {
            checks: checks.iter().map(|&c| c.to_owned()).collect(),
            unknown,
        };
        assert_eq!(verdict(&findings, block), blocked(&["b", "c"], true));
        assert_eq!(verdict(&findings, fail_only), blocked(&["b"], false));
        assert_eq!(verdict(&findings, proceed), Verdict::Clear { warnings: 3 });
    }

    #[test]
    fn no_findings_are_not_a_pass() {
        assert_eq!(
            verdict(&[], Policy::default()),
            Verdict::Blocked { checks: vec![], unknown: true }
        );
    }
}
