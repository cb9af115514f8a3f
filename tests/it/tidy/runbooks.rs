//! Every reason that a person can be told has a page that says what to do.

use std::collections::BTreeSet;

use wavelift_agent::{
    checks::HOLDING,
    drivers::olm_v0::failure::{Reason, UPGRADE_SLOW},
    upgrade::NO_PATH,
};

use super::{File, files, mk_file, report};

const FOLDER: &str = "docs/runbooks/";
const INDEX: &str = "docs/runbooks/README.md";

/// What a page says, in this order.
const SECTIONS: [&str; 4] = ["## Meaning", "## Impact", "## Diagnosis", "## Mitigation"];

fn reasons() -> BTreeSet<&'static str> {
    let failures = Reason::ALL.into_iter().map(Reason::as_str);
    failures.chain([UPGRADE_SLOW, NO_PATH]).chain(HOLDING).collect()
}

#[test]
fn every_reason_has_its_page() {
    report(&lacking(&files(), &reasons()));
}

#[test]
fn the_check_finds_what_it_looks_for() {
    let page = |text: &str| mk_file("docs/runbooks/Oak.md", text);
    let index = |text: &str| mk_file(INDEX, text);
    let whole = "## Meaning\na\n## Impact\na\n## Diagnosis\na\n## Mitigation\na\n";
    let oak = BTreeSet::from(["Oak"]);
    let good = [page(whole), index("[Oak](Oak.md)")];
    assert!(lacking(&good, &oak).is_empty(), "{:?}", lacking(&good, &oak));
    assert_eq!(lacking(&[index("")], &oak), ["docs/runbooks/Oak.md is missing"]);
    assert_eq!(
        lacking(&[page("## Meaning\na\n## Impact\n"), index("")], &oak),
        [
            "docs/runbooks/README.md does not link Oak.md",
            "docs/runbooks/Oak.md lacks `## Diagnosis`"
        ]
    );
    assert_eq!(
        lacking(&good, &BTreeSet::new()),
        ["docs/runbooks/Oak.md is about nothing that anybody is told"]
    );
}

fn lacking(files: &[File], reasons: &BTreeSet<&str>) -> Vec<String> {
    let text = |name: &str| files.iter().find(|file| file.name() == name).map(|file| &*file.text);
    let index = text(INDEX).unwrap_or_default();
    let mut findings = vec![];
    for reason in reasons {
        let name = format!("{FOLDER}{reason}.md");
        let Some(page) = text(&name) else {
            findings.push(format!("{name} is missing"));
            continue;
        };
        if !index.contains(&format!("({reason}.md)")) {
            findings.push(format!("{INDEX} does not link {reason}.md"));
        }
        let mut rest = page;
        for section in SECTIONS {
            let Some((_, after)) = rest.split_once(section) else {
                findings.push(format!("{name} lacks `{section}`"));
                break;
            };
            rest = after;
        }
    }
    let pages = files.iter().map(File::name).filter(|name| name != INDEX);
    for name in pages {
        let reason = name.strip_prefix(FOLDER).and_then(|page| page.strip_suffix(".md"));
        if reason.is_some_and(|reason| !reasons.contains(reason)) {
            findings.push(format!("{name} is about nothing that anybody is told"));
        }
    }
    findings
}
