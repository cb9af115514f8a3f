//! What a campaign over a scenario must come to, worked out from the scenario's JSON alone.

use std::collections::BTreeMap;

use serde_json::Value;

/// The newest version of every package, and how many hops each older one is away from it.
const AWAY: [(&str, &[(&str, u32)]); 5] = [
    ("lantern-operator", &[("1.4.0", 1), ("1.5.0", 0)]),
    ("ferry-operator", &[("2.0.0", 3), ("2.1.0", 2), ("2.2.0", 1), ("2.3.0", 0)]),
    ("loom-operator", &[("3.1.0", 1), ("3.2.0", 0)]),
    ("spindle-operator", &[("5.0.2", 1), ("5.1.0", 0)]),
    ("kiln-operator", &[("0.9.0", 1), ("1.0.0", 0)]),
];
/// These two share a namespace, and so every InstallPlan.
const TOGETHER: [&str; 2] = ["loom-operator", "spindle-operator"];

/// What the numbers must be.
#[derive(Debug, Default)]
pub(super) struct Expected {
    seed: u64,
    numbers: BTreeMap<&'static str, u64>,
    /// Clusters, succeeded and failed by wave.
    waves: BTreeMap<String, [u64; 3]>,
    /// All writes of ClusterUpgrades together.
    writes_max: u64,
    writes_min: u64,
}

impl Expected {
    /// From the list of faults, as `demo --list-faults` prints it.
    pub(super) fn of(scenario: &Value) -> Self {
        let mut expected = Self { seed: scenario["seed"].as_u64().unwrap_or(0), ..Self::default() };
        for name in ["succeeded", "failed", "skipped", "unreachable", "notStarted"] {
            expected.numbers.insert(name, 0);
        }
        for cluster in scenario["clusters"].as_array().unwrap() {
            expected.add(cluster);
        }
        expected
    }

    fn add(&mut self, cluster: &Value) {
        let hops = hops(&cluster["installed"]);
        let end = match cluster["fault"]["type"].as_str() {
            None | Some("slow" | "notUpgradeable") => "succeeded",
            Some("offline") => "unreachable",
            Some("neverAvailable") => "failed",
            Some(other) => panic!("no rule for the fault {other}"),
        };
        *self.numbers.get_mut(end).unwrap() += 1;
        let wave = self.waves.entry(cluster["ring"].as_str().unwrap().to_owned()).or_default();
        wave[0] += 1;
        wave[1] += u64::from(end == "succeeded");
        wave[2] += u64::from(end == "failed");
        // Created, checked, started, one a hop, ended. What has nothing to do needs no object.
        if hops > 0 {
            self.writes_max += 4 + u64::from(if end == "unreachable" { 0 } else { hops });
        }
        if end == "succeeded" && hops > 0 {
            self.writes_min += 2 + u64::from(hops);
        }
    }

    fn clusters(&self) -> u64 {
        self.numbers.values().sum()
    }
}

/// InstallPlans from what is installed to the newest.
fn hops(installed: &Value) -> u32 {
    let away = |package: &str| {
        let version = installed[package].as_str().unwrap();
        let (_, versions) = AWAY.iter().find(|(name, _)| *name == package).unwrap();
        versions.iter().find(|(name, _)| *name == version).unwrap().1
    };
    let alone = AWAY.iter().filter(|(package, _)| !TOGETHER.contains(package));
    let together = TOGETHER.iter().map(|package| away(package)).max().unwrap();
    together + alone.map(|(package, _)| away(package)).sum::<u32>()
}

/// What is otherwise in a summary, one line each.
pub(super) fn compare(summary: &Value, expected: &Expected) -> Vec<String> {
    let mut lines = vec![];
    let mut check = |what: &str, is: &Value, wanted: Value| {
        if *is != wanted {
            lines.push(format!("seed {}: {what} is {is}, not {wanted}", expected.seed));
        }
    };
    for (name, number) in &expected.numbers {
        check(name, &summary[*name], (*number).into());
    }
    check("clusters", &summary["clusters"], expected.clusters().into());
    check("unexpected", &summary["unexpected"], Value::Array(vec![]));
    let all_good = expected.numbers["succeeded"] == expected.clusters();
    let phase = if all_good { "Succeeded" } else { "SucceededWithFailures" };
    check("phase", &summary["phase"], phase.into());
    let waves = summary["waves"].as_array().unwrap();
    check("waves", &waves.len().into(), expected.waves.len().into());
    for wave in waves {
        let name = wave["name"].as_str().unwrap();
        let [clusters, succeeded, failed] = expected.waves.get(name).copied().unwrap_or_default();
        check(&format!("{name} clusters"), &wave["clusters"], clusters.into());
        check(&format!("{name} succeeded"), &wave["succeeded"], succeeded.into());
        check(&format!("{name} failed"), &wave["failed"], failed.into());
        check(&format!("{name} state"), &wave["state"], "Complete".into());
    }
    lines.extend(writes(summary, expected));
    lines
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn writes(summary: &Value, expected: &Expected) -> Option<String> {
    /// The summary has two digits.
    const ROUNDING: f64 = 0.005;
    let Some(is) = summary["writesPerCluster"].as_f64() else {
        return Some("writesPerCluster is no number".to_owned());
    };
    let clusters = expected.clusters() as f64;
    let least = expected.writes_min as f64 / clusters - ROUNDING;
    let most = expected.writes_max as f64 / clusters + ROUNDING;
    let seed = expected.seed;
    (!(least..=most).contains(&is))
        .then(|| format!("seed {seed}: {is} writes a cluster, not {least:.2} to {most:.2}"))
}
