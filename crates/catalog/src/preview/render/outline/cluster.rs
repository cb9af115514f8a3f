//! What the cluster must have, pull and watch.

use super::Item;
use crate::preview::{
    Change, Changes, Confidence, DependencyChange, Importance, Lifecycle, ObjectChange, Requirement,
};

pub(super) fn missing(changes: &Changes) -> Vec<Item> {
    let items = changes.missing.iter().filter(|missing| !missing.sections.is_empty());
    let items = items.map(|missing| {
        let sections: Vec<String> = missing.sections.iter().map(ToString::to_string).collect();
        let text = format!("{}: {}", missing.bundle, missing.reason);
        Item::new(Importance::High, &text).with_lines([sections.join(", ").as_str()])
    });
    items.collect()
}

pub(super) fn compatibility(changes: &Changes) -> Vec<Item> {
    let of = &changes.compatibility;
    let mut items = Vec::new();
    let bounds = [
        ("least Kubernetes version", &of.min_kube_version),
        ("last OpenShift minor", &of.max_openshift_version),
        ("published for OpenShift", &of.openshift_versions),
    ];
    for (name, bound) in bounds {
        items.extend(bound.as_ref().map(|bound| requirement(name, bound)));
    }
    for mode in &of.install_modes {
        let (importance, word) = match mode.change {
            Change::Lost => (Importance::High, "no longer supported"),
            Change::Gained => (Importance::Low, "supported now"),
        };
        items.push(Item::new(importance, &format!("install mode {}: {word}", mode.mode)));
    }
    for dependency in &of.dependencies {
        let (importance, word) = match dependency.change {
            DependencyChange::Gained => (Importance::Medium, "needed now"),
            DependencyChange::Changed => (Importance::Medium, "needed in another version"),
            DependencyChange::Lost => (Importance::Low, "no longer needed"),
        };
        let mut text = format!("{:?} {}: {word}", dependency.kind, dependency.name);
        match (&dependency.old, &dependency.new) {
            (Some(old), Some(new)) if old != new => text.push_str(&format!(", {new} (was {old})")),
            (_, Some(new)) => text.push_str(&format!(", {new}")),
            (_, None) => {}
        }
        items.push(Item::new(importance, &text));
    }
    for deprecation in &of.deprecations {
        let text = format!("deprecated: {} ({})", deprecation.of, deprecation.bundle);
        items.push(Item::new(Importance::Medium, &text).with_text(Some(&deprecation.message)));
    }
    items.extend(of.lifecycle.iter().map(lifecycle));
    items
}

fn requirement(name: &str, bound: &Requirement) -> Item {
    let any = |text: &Option<String>| text.clone().unwrap_or_else(|| "any".to_owned());
    let (old, new) = (any(&bound.old), any(&bound.new));
    let mut text =
        if old == new { format!("{name}: {new}") } else { format!("{name}: {new} (was {old})") };
    if let Some(meaning) = bound.meaning.as_ref().filter(|meaning| **meaning != new) {
        text.push_str(&format!(", that is {meaning}"));
    }
    let importance = match (&bound.problem, old == new) {
        (Some(_), _) => Importance::High,
        (None, true) => Importance::Low,
        (None, false) => Importance::Medium,
    };
    let problem = bound.problem.as_ref().map(|problem| format!("means nothing: {problem}"));
    Item::new(importance, &text).with_text(problem.as_ref())
}

fn lifecycle(of: &Lifecycle) -> Item {
    let ends = of.ends.as_deref().unwrap_or("nobody says when");
    let text = format!("lifecycle of {}: ends {ends}", of.version);
    let phases = of.phases.iter().map(|phase| {
        let day = |day: &Option<String>| day.clone().unwrap_or_else(|| "?".to_owned());
        format!("{}: {} to {}", phase.name, day(&phase.start_date), day(&phase.end_date))
    });
    let platforms = of.platforms.iter();
    let platforms =
        platforms.map(|of| format!("works with {} {}", of.name, of.versions.join(", ")));
    let lines: Vec<String> = phases.chain(platforms).collect();
    Item::new(Importance::Low, &text).with_lines(lines.iter().map(String::as_str))
}

pub(super) fn alerts(changes: &Changes) -> Vec<Item> {
    let items = changes.alerts.iter().map(|alert| {
        let change = match alert.change {
            None => "stays".to_owned(),
            Some(ObjectChange::Added) => "new".to_owned(),
            Some(change) => change.to_string(),
        };
        let (importance, word) = if alert.is_precheck {
            (Importance::Medium, ", to be looked at before the upgrade")
        } else {
            (Importance::Low, "")
        };
        let text = format!("{}: {change}{word} (PrometheusRule {})", alert.alert, alert.object);
        Item::new(importance, &text)
            .with_text(alert.summary.as_ref())
            .with_url(alert.runbook_url.as_ref())
    });
    items.collect()
}

pub(super) fn images(changes: &Changes) -> Vec<Item> {
    let all = changes.images.iter().chain(&changes.images_in_environment);
    let items = all.map(|image| {
        let mark = if image.is_new { "new " } else { "" };
        let tag = if image.digest.is_none() { " (by tag)" } else { "" };
        let sure =
            if image.confidence == Confidence::Inferred { ", most likely pulled" } else { "" };
        let used: Vec<&str> = image.used_by.iter().map(String::as_str).collect();
        Item::new(Importance::Low, &format!("{mark}{}{tag}{sure}", image.image)).with_lines(used)
    });
    let gone = changes.images_gone.iter();
    let gone = gone.map(|image| Item::new(Importance::Low, &format!("no longer pulled: {image}")));
    items.chain(gone).collect()
}
