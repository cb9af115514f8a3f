//! Any files as the bundles of a path: an error or a preview in every form, never a crash.
//!
//! A line that begins with `%% ` names the file that follows; one with `%%%` begins the next bundle;
//! after `%% documents` come the catalog's documents about the package.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use wavelift_catalog::{
    Manifests, crd,
    manifests::Limits,
    preview::{
        self, Facts, Preview, Step,
        render::{self, Detail},
    },
};

const LIMITS: Limits = Limits {
    files: 50,
    file_bytes: 1 << 16,
    total_bytes: 1 << 17,
    file_documents: 50,
    depth: 64,
    file_nodes: 10_000,
};

fuzz_target!(|text: &str| {
    let mut bundles: Vec<BTreeMap<String, Vec<u8>>> = vec![BTreeMap::new()];
    let mut documents: Vec<Value> = Vec::new();
    let mut file = "manifests/a.yaml".to_owned();
    for line in text.split_inclusive('\n') {
        if line.starts_with("%%%") {
            if bundles.len() == 4 {
                return;
            }
            bundles.push(BTreeMap::new());
        } else if let Some(name) = line.strip_prefix("%% ") {
            file = name.trim_end().to_owned();
        } else if file == "documents" {
            documents.extend(serde_json::from_str::<Value>(line).ok());
        } else if let Some(files) = bundles.last_mut() {
            files.entry(file.clone()).or_default().extend_from_slice(line.as_bytes());
        }
    }
    let read: Vec<Manifests> = bundles
        .iter()
        .filter_map(|files| Manifests::from_files(files, BTreeMap::new(), &LIMITS).ok())
        .collect();
    for manifests in &read {
        assert!(Step::of_manifests(manifests).is_some() || manifests.csv().is_some());
    }
    definitions(&read);
    let preview = path(&read, &documents);
    shown(&preview);
    // As it stands in a catalog, or in files: the same objects, so the same changes.
    let inline: Vec<Manifests> = read
        .iter()
        .map(|manifests| Manifests::from_encoded(manifests.encoded().map(|text| text.into_owned())))
        .collect();
    let same = path(&inline, &documents);
    assert_eq!(same.overall.permissions, preview.overall.permissions);
    assert_eq!(same.overall.crds, preview.overall.crds);
    assert_eq!(same.overall.webhooks, preview.overall.webhooks);
    assert_eq!(same.overall.deployments, preview.overall.deployments);
});

fn path(bundles: &[Manifests], documents: &[Value]) -> Preview {
    let steps: Vec<Step<'_>> = bundles
        .iter()
        .filter_map(Step::of_manifests)
        .map(|step| {
            let facts = Facts { documents: documents.iter().collect(), ..Facts::default() };
            Step { facts, ..step }
        })
        .collect();
    let preview = preview::path(&steps);
    assert_eq!(preview.hops.len(), steps.len().saturating_sub(1));
    preview
}

/// Writes a preview in every form.
fn shown(preview: &Preview) {
    for detail in [Detail::Summary, Detail::All] {
        let text = render::text(preview, detail);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
    let html = render::html(preview).to_lowercase();
    assert!(!html.contains("<script") && !html.contains("<img") && !html.contains("<iframe"));
    let markdown = render::markdown(preview).to_lowercase();
    assert!(!markdown.contains("<script"), "{markdown}");
    let json = serde_json::to_string(preview).expect("a preview is JSON");
    let again: Preview = serde_json::from_str(&json).expect("it can be read back");
    assert_eq!(again, *preview);
}

/// Each definition against itself and the later ones.
fn definitions(bundles: &[Manifests]) {
    let all: Vec<Value> = bundles.iter().flat_map(Manifests::crds).take(3).collect();
    for (index, old) in all.iter().enumerate() {
        for new in &all[index..] {
            let Ok(diff) = crd::diff(old, new) else { continue };
            assert_eq!(diff.refused_by_v1, diff.v1 != crd::V1::Accepts);
            if old == new && diff.v1 != crd::V1::Crashes {
                assert!(!diff.refused_by_v1, "{diff:?}");
            }
        }
    }
}
