//! What a preview looks like. The texts are read through by eye; these tests keep what must never be.

use serde_json::json;

use super::{bundle, preview};
use crate::{
    preview::{
        Facts, Preview, Step, path,
        render::{Detail, html, markdown, text},
    },
    release::SCHEMA,
};

/// Two hops with something in most sections, and words that would like to be more than words.
fn sample() -> Preview {
    let spec = |verb: &str, image: &str, version: &str| {
        let rule = json!({"apiGroups": [""], "resources": ["secrets", "pods"], "verbs": [verb]});
        let pod = json!({
            "serviceAccountName": "pump", "containers": [{"name": "manager", "image": image}],
        });
        json!({"minKubeVersion": version, "install": {"spec": {
            "permissions": [{"serviceAccountName": "pump", "rules": [rule]}],
            "deployments": [{"name": "pump", "spec": {"template": {"spec": pod}}}],
        }}})
    };
    let bundles = [
        bundle("1.0.0", spec("get", "r.example/pump:1", "1.25.0"), &[]),
        bundle("1.1.0", spec("list", "r.example/pump@sha256:aa", "1.25.0"), &[]),
        bundle("1.2.0", spec("watch", "r.example/pump@sha256:bb", "1.27.0"), &[]),
    ];
    let document = json!({"schema": SCHEMA, "package": "pump", "assessments": [{
        "id": "a", "version": "1.2.0", "impact": "High",
        "title": "<script>alert(1)</script> \u{1b}[31m & **bold**",
        "url": "javascript:alert(1)", "action": "Say \"hello\"\nand wait",
    }, {
        "id": "b", "version": "1.2.0", "impact": "Low", "title": "b",
        "url": "https://pump.example/?a=1&b=\"2\"",
    }]});
    let mut steps: Vec<Step<'_>> = bundles.iter().map(|b| Step::of_manifests(b).unwrap()).collect();
    steps[2].facts = Facts { documents: vec![&document], ..Facts::default() };
    path(&steps)
}

#[test]
fn text_shows_what_matters_first() {
    let preview = sample();
    let summary = text(&preview, Detail::Summary);
    assert_eq!(
        summary,
        "Preview: pump.v1.0.0 -> pump.v1.2.0 (2 hops)

!! impact High: <script>alert(1)</script> [31m & **bold**
!! 2 permissions gained, 2 lost; dangerous: secrets
!  2 permissions needed only on the way
!  least Kubernetes version: 1.27.0 (was 1.25.0)
   impact Low: b
   no release notes found
   1 Deployment changed: images
   2 images to pull, 2 of them new
"
    );
    let important = text(&preview, Detail::Important);
    assert!(important.starts_with(&summary));
    assert!(
        important.contains("!! pump gains [secrets] in its namespaces (1)\n     secrets: watch\n")
    );
    assert!(important.contains("     What to do: Say \"hello\"\n     and wait\n"));
    assert!(important.contains("Folded: Deployments 1, Images 3, Release notes 1"), "{important}");
    let all = text(&preview, Detail::All);
    assert!(all.contains("\nHop 2 of 2: pump.v1.1.0 -> pump.v1.2.0\n====="));
    assert!(all.contains("     secrets: list (until pump.v1.2.0)\n"), "{all}");
}

#[test]
fn words_of_a_catalog_stay_words() {
    let preview = sample();
    let (page, marked) = (html(&preview), markdown(&preview));
    let all = text(&preview, Detail::All);
    for written in [&page, &marked, &all] {
        assert!(!written.contains('\u{1b}'));
        assert!(!written.contains("javascript:"), "{written}");
    }
    assert!(!page.contains("<script"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("href=\"https://pump.example/?a=1&amp;b=&quot;2&quot;\""));
    assert!(!marked.contains("<script"));
    assert!(marked.contains(r"&amp; \*\*bold\*\*"));
}

#[test]
fn a_page_loads_nothing_and_is_whole() {
    let page = html(&sample());
    for bad in ["src=", "@import", "url(", "<link", "<iframe", "onclick"] {
        assert!(!page.contains(bad), "{bad}");
    }
    assert!(page.contains("default-src 'none'"));
    for tag in ["details", "ul", "li", "body", "html", "summary", "small", "a", "h2"] {
        let (opened, closed) = (format!("<{tag}"), format!("</{tag}>"));
        let opened = page.matches(&opened).filter(|_| true).count();
        let opened = opened
            - page
                .match_indices(&format!("<{tag}"))
                .filter(|(at, of)| {
                    let next = page.as_bytes().get(at + of.len()).copied().unwrap_or_default();
                    next != b'>' && next != b' '
                })
                .count();
        assert_eq!(opened, page.matches(&closed).count(), "{tag}");
    }
}

#[test]
fn markdown_folds_what_matters_less() {
    let marked = markdown(&sample());
    assert!(marked.starts_with("# Preview: pump.v1.0.0 -&gt; pump.v1.2.0 (2 hops)\n"));
    assert!(marked.contains("\n## Permissions\n"));
    assert!(marked.contains("\n<details><summary>Images (3)</summary>\n"));
    assert_eq!(marked.matches("<details>").count(), marked.matches("</details>").count());
}

#[test]
fn no_change_is_said_in_words() {
    let same = || bundle("1.0.0", json!({}), &[]);
    let preview = preview(&[same(), same()]);
    let summary = text(&preview, Detail::Summary);
    assert!(summary.ends_with("no release notes found\n"), "{summary}");
    assert!(text(&path(&[]), Detail::Summary).ends_with("No change found.\n"));
}

#[test]
fn json_reads_back_as_it_was_written() {
    let preview = sample();
    let json = serde_json::to_string(&preview).unwrap();
    assert_eq!(serde_json::from_str::<Preview>(&json).unwrap(), preview);
}
