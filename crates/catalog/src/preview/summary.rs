//! A preview in a screenful: what to know first, the most important on top.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Aspect, Change, Changes, Crd, CrdRefusal, Danger, DependencyChange, Deployment, ObjectChange,
    Permission, Preview, Section,
};
use crate::release::{Impact, When};

/// How much something matters to whoever decides on an upgrade.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Importance {
    /// It may stop the upgrade, or what runs on the cluster; or nobody could look.
    High,
    /// Somebody should look at it before.
    Medium,
    /// Good to know.
    Low,
}

/// A line of the summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Headline {
    /// How much it matters.
    pub importance: Importance,
    /// Where there is more about it.
    pub section: Section,
    /// In words.
    pub text: String,
}

/// Dangers that are named in a line.
const NAMED_MAX: usize = 5;

/// What to know first.
pub(super) fn of(preview: &Preview) -> Vec<Headline> {
    let changes = &preview.overall;
    let mut lines = Lines(Vec::new());
    lines.missing(changes);
    lines.notes(changes);
    lines.permissions(changes);
    lines.crds(preview);
    lines.webhooks(changes);
    lines.compatibility(preview);
    lines.deployments(changes);
    lines.images(changes);
    lines.objects(changes);
    let mut lines = lines.0;
    lines.sort_by_key(|line| line.importance);
    lines
}

struct Lines(Vec<Headline>);

impl Lines {
    fn add(&mut self, importance: Importance, section: Section, text: impl Into<String>) {
        self.0.push(Headline { importance, section, text: text.into() });
    }

    fn missing(&mut self, changes: &Changes) {
        for missing in &changes.missing {
            let Some(section) = missing.sections.first() else { continue };
            let text = format!("not known for {}: {}", missing.bundle, missing.reason);
            self.add(Importance::High, *section, text);
        }
    }

    fn notes(&mut self, changes: &Changes) {
        let notes = &changes.notes;
        for assessment in notes.assessments.iter().filter(|a| a.impact != Impact::None) {
            let importance = match assessment.impact {
                Impact::High => Importance::High,
                Impact::Medium => Importance::Medium,
                Impact::Low | Impact::None => Importance::Low,
            };
            let text = format!("impact {:?}: {}", assessment.impact, assessment.title);
            self.add(importance, Section::Assessments, text);
        }
        for (when, word) in [(When::Before, "before"), (When::After, "after")] {
            let count = notes.manual_steps.iter().filter(|step| step.when == when).count();
            if count > 0 {
                let text = format!("{} to do by hand {word} the upgrade", some(count, "step"));
                self.add(Importance::High, Section::ManualSteps, text);
            }
        }
        for unreadable in &notes.unreadable {
            let text = format!("a release document can't be read: {unreadable}");
            self.add(Importance::Medium, Section::ReleaseNotes, text);
        }
        let (told, untold) = (notes.release_notes.len(), notes.without_release_notes.len());
        let text = match (told, untold) {
            (0, 0) => return,
            (0, _) => "no release notes found".to_owned(),
            (told, 0) => some(told, "release note"),
            (told, untold) => {
                format!("{}; none for {}", some(told, "release note"), some(untold, "version"))
            }
        };
        self.add(Importance::Low, Section::ReleaseNotes, text);
    }

    fn permissions(&mut self, changes: &Changes) {
        let counts = |change: Change| {
            let of = changes.permissions.iter().filter(move |p| p.change == change);
            (of.clone().count(), of.filter(|p| p.covered_by.is_some()).count())
        };
        let ((gained, covered), (lost, _)) = (counts(Change::Gained), counts(Change::Lost));
        let really = changes
            .permissions
            .iter()
            .filter(|p| p.change == Change::Gained && p.covered_by.is_none());
        let dangers: BTreeSet<Danger> = really.flat_map(|p| p.dangers.iter().copied()).collect();
        if gained + lost > 0 {
            let mut text = format!("{} gained, {lost} lost", some(gained, "permission"));
            if covered > 0 {
                text.push_str(&format!("; {covered} of the gained were given before already"));
            }
            if !dangers.is_empty() {
                text.push_str(&format!("; dangerous: {}", words(&dangers)));
            }
            let importance = changes.permissions.iter().map(Permission::importance).min();
            let importance = importance.unwrap_or(Importance::Low);
            self.add(importance, Section::Permissions, text);
        }
        let on_the_way: &[Permission] = &changes.permissions_on_the_way;
        if !on_the_way.is_empty() {
            let text = format!("{} needed only on the way", some(on_the_way.len(), "permission"));
            self.add(Importance::Medium, Section::Permissions, text);
        }
    }

    fn crds(&mut self, preview: &Preview) {
        let of = |change: ObjectChange| {
            preview.overall.crds.iter().filter(|crd| crd.change == change).count()
        };
        let counts = [
            (of(ObjectChange::Added), "added"),
            (of(ObjectChange::Changed), "changed"),
            (of(ObjectChange::Removed), "no longer in the bundle"),
        ];
        let counts: Vec<String> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
        if !counts.is_empty() {
            let text = format!("CRDs: {}", counts.join(", "));
            // What may stop the upgrade has a line of its own.
            let is_gone = of(ObjectChange::Removed) > 0;
            let importance = if is_gone { Importance::Medium } else { Importance::Low };
            self.add(importance, Section::Crds, text);
        }
        for hop in &preview.hops {
            self.refused_crds(hop);
        }
    }

    /// Each hop is looked at: what it takes may be gone again at the target.
    fn refused_crds(&mut self, hop: &Changes) {
        let named = |of: &dyn Fn(&Crd) -> bool| -> Vec<&str> {
            hop.crds.iter().filter(|crd| of(crd)).map(|crd| crd.name.as_str()).collect()
        };
        let stored = named(&|crd| crd.refused_by_v0 == CrdRefusal::IfStored);
        let invalid = named(&|crd| crd.refused_by_v0 == CrdRefusal::IfObjectsInvalid);
        let unknown = named(&|crd| crd.refused_by_v0 == CrdRefusal::Unknown);
        let waiting = named(&|crd| !crd.owned_not_served.is_empty());
        let by_v1 = named(&|crd| crd.refused_by_v1);
        for (importance, crds, why) in [
            (Importance::High, stored, "OLM v0 refuses it if objects are stored in what goes"),
            (Importance::High, waiting, "the old version needs what is no longer served"),
            (Importance::High, unknown, "CRDs could not be compared"),
            (Importance::Medium, invalid, "OLM v0 refuses it if objects do not fit the new schema"),
            (Importance::Medium, by_v1, "OLM v1 refuses it"),
        ] {
            if let Some(first) = crds.first() {
                let more = match crds.len() {
                    1 => String::new(),
                    count => format!(" and {} more CRDs", count - 1),
                };
                self.add(importance, Section::Crds, format!("{}: {why}: {first}{more}", hop.to));
            }
        }
    }

    fn webhooks(&mut self, changes: &Changes) {
        let mut groups: BTreeMap<(Importance, bool, ObjectChange), usize> = BTreeMap::new();
        for webhook in &changes.webhooks {
            let key = (webhook.importance(), webhook.is_conversion(), webhook.change);
            *groups.entry(key).or_default() += 1;
        }
        for ((importance, is_conversion, change), count) in groups {
            let text = match (is_conversion, change) {
                (true, _) => format!(
                    "{} {change}: objects can't be read while it does not answer",
                    some(count, "conversion webhook")
                ),
                (false, ObjectChange::Added) if importance == Importance::Medium => format!(
                    "{} added: requests are refused while it does not answer",
                    some(count, "webhook")
                ),
                (false, _) => format!("{} {change}", some(count, "webhook")),
            };
            self.add(importance, Section::Webhooks, text);
        }
        if !changes.api_services.is_empty() {
            let text = format!("{} changed", some(changes.api_services.len(), "aggregated API"));
            self.add(Importance::Medium, Section::ApiServices, text);
        }
    }

    fn compatibility(&mut self, preview: &Preview) {
        let section = Section::Compatibility;
        let compatibility = &preview.overall.compatibility;
        for mode in compatibility.install_modes.iter().filter(|mode| mode.change == Change::Lost) {
            let text = format!("install mode {} no longer supported", mode.mode);
            self.add(Importance::High, section, text);
        }
        for (changes, max) in std::iter::once(&preview.overall)
            .chain(&preview.hops)
            .filter_map(|c| Some((c, c.compatibility.max_openshift_version.as_ref()?)))
        {
            if let Some(problem) = &max.problem {
                let text =
                    format!("olm.maxOpenShiftVersion of {} means nothing: {problem}", changes.to);
                self.add(Importance::High, section, text);
            }
        }
        if let Some(max) = &compatibility.max_openshift_version
            && max.old != max.new
            && let Some(meaning) = &max.meaning
        {
            let old = max.old.as_deref().unwrap_or("any");
            let text = format!("last OpenShift minor: {meaning} (was {old})");
            self.add(Importance::Medium, section, text);
        }
        if let Some(min) = &compatibility.min_kube_version
            && min.old != min.new
        {
            let text = format!(
                "least Kubernetes version: {} (was {})",
                min.new.as_deref().unwrap_or("any"),
                min.old.as_deref().unwrap_or("any")
            );
            self.add(Importance::Medium, section, text);
        }
        let gained = compatibility.dependencies.iter();
        for dependency in gained.filter(|d| d.change != DependencyChange::Lost) {
            let word = match dependency.change {
                DependencyChange::Gained => "is needed now",
                DependencyChange::Changed | DependencyChange::Lost => {
                    "is needed in another version"
                }
            };
            let range = dependency.new.as_deref().unwrap_or_default();
            let text = format!("{:?} {} {range} {word}", dependency.kind, dependency.name);
            self.add(Importance::Medium, section, text.replace("  ", " "));
        }
        for deprecation in &compatibility.deprecations {
            let text = format!("deprecated: {}", deprecation.of);
            self.add(Importance::Medium, section, text);
        }
        if let Some((to, ends)) =
            compatibility.lifecycle.last().and_then(|l| Some((l, l.ends.as_ref()?)))
        {
            self.add(Importance::Low, section, format!("{} is supported until {ends}", to.version));
        }
    }

    fn deployments(&mut self, changes: &Changes) {
        let deployments = &changes.deployments;
        if deployments.is_empty() {
            return;
        }
        let aspects: BTreeSet<Aspect> =
            deployments.iter().flat_map(|deployment| deployment.aspects.iter().copied()).collect();
        let mut text = format!("{} changed", some(deployments.len(), "Deployment"));
        if !aspects.is_empty() {
            text.push_str(&format!(": {}", words(&aspects)));
        }
        let importance = deployments.iter().map(Deployment::importance).min();
        let importance = importance.unwrap_or(Importance::Low);
        self.add(importance, Section::Deployments, text);
    }

    fn images(&mut self, changes: &Changes) {
        let images = &changes.images;
        if images.is_empty() {
            return;
        }
        let new = images.iter().filter(|image| image.is_new).count();
        let tagged = images.iter().filter(|image| image.digest.is_none()).count();
        let mut text = format!("{} to pull, {new} of them new", some(images.len(), "image"));
        if tagged > 0 {
            text.push_str(&format!("; {tagged} by tag, without a digest"));
        }
        self.add(Importance::Low, Section::Images, text);
    }

    fn objects(&mut self, changes: &Changes) {
        let count = changes.rbac_objects.len();
        let is_dangerous =
            changes.rbac_objects.iter().flat_map(|o| &o.gained).any(|of| !of.dangers.is_empty());
        if count > 0 {
            let importance = if is_dangerous { Importance::Medium } else { Importance::Low };
            let text = format!("{} of the bundle changed", some(count, "role or binding"));
            self.add(importance, Section::Objects, text);
        }
        if !changes.objects.is_empty() {
            let text = format!("{} of the bundle changed", some(changes.objects.len(), "object"));
            self.add(Importance::Low, Section::Objects, text);
        }
        let prechecks = changes.alerts.iter().filter(|alert| alert.is_precheck).count();
        if prechecks > 0 {
            let text = format!("{} to look at before the upgrade", some(prechecks, "alert rule"));
            self.add(Importance::Medium, Section::Alerts, text);
        }
        let others = changes.alerts.len() - prechecks;
        if others > 0 {
            self.add(
                Importance::Low,
                Section::Alerts,
                format!("{} changed", some(others, "alert rule")),
            );
        }
    }
}

/// `1 image`, `2 images`.
fn some(count: usize, what: &str) -> String {
    match (count, what) {
        (1, _) => format!("1 {what}"),
        (_, "role or binding") => format!("{count} roles and bindings"),
        _ => format!("{count} {what}s"),
    }
}

fn words<T: std::fmt::Display>(of: &BTreeSet<T>) -> String {
    let mut words: Vec<String> = of.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    if of.len() > NAMED_MAX {
        words.push(format!("and {} more", of.len() - NAMED_MAX));
    }
    words.join(", ")
}
