//! A preview of a campaign as one document that stands for itself: Markdown, or HTML to attach to a
//! change request. The HTML loads nothing and runs nothing.

use wavelift_api::live::{DifferenceKind, DifferenceView, ImportanceName, SectionView};
pub use wavelift_catalog::preview::render::Form;
use wavelift_catalog::preview::{
    Importance,
    render::{self, Item, Page, Part},
};

use super::{
    Counted, GroupPreview, Made, Preview,
    differ::each,
    summary::{counts, number},
};

/// Groups in one document, blockers, and lines of one section.
const GROUPS_MAX: usize = 50;
const BLOCKERS_MAX: usize = 500;
const LINES_MAX: usize = 2_000;
const DIFFERENCES_MAX: usize = 200;

/// A document about one campaign, of all groups or of some.
pub fn report(title: &str, preview: &Preview, only: Option<&GroupPreview>, form: Form) -> String {
    let counted = Counted::of(preview);
    let mut page = Page::new(form, title);
    let all = preview.groups.iter().map(AsRef::as_ref);
    let groups: Vec<&GroupPreview> = match only {
        Some(one) => vec![one],
        None => all.take(GROUPS_MAX).collect(),
    };
    if only.is_none() {
        head(&mut page, preview);
    }
    for shown in &groups {
        group(&mut page, shown, &counted);
    }
    if only.is_none() {
        let more = preview.groups.len() - groups.len() + preview.left_out.0 as usize;
        if more > 0 {
            page.line(&format!("{more} smaller groups are not in this document."));
        }
        blockers(&mut page, preview);
    }
    page.end()
}

fn head(page: &mut Page, preview: &Preview) {
    let planned: usize = preview.groups.iter().map(|shown| shown.group.clusters.len()).sum();
    page.line(&format!(
        "{} clusters: {planned} with a plan in {} groups, {} at the target, {} blocked.",
        preview.clusters,
        preview.groups.len(),
        preview.at_target,
        preview.blockers.len()
    ));
    if preview.is_making() {
        page.line("Not complete: some changes are still being found out.");
    }
}

fn group(page: &mut Page, shown: &GroupPreview, counted: &Counted<'_>) {
    let group = &shown.group;
    let examples: Vec<&str> = group.clusters.iter().take(5).map(AsRef::as_ref).collect();
    let more = group.clusters.len().saturating_sub(5);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    page.heading(2, &format!("Group {}: {} clusters", group.id, group.clusters.len()));
    page.line(&format!("{}{more}", examples.join(", ")));
    let ways: Vec<String> = group
        .ways
        .iter()
        .map(|way| format!("{} in {}: {}", way.package, way.namespace, way.text()))
        .collect();
    list(page, &ways);
    let catalogs = group.catalogs();
    let catalogs: Vec<String> =
        catalogs.iter().map(|seen| format!("catalog {} {}", seen.source, seen.digest)).collect();
    list(page, &catalogs);
    if shown.made.is_none() {
        page.line("Its changes are still being found out.");
        return;
    }
    let counts = counts(shown);
    page.line(&format!(
        "{} permissions gained ({} deserve a look), {} lost, {} CRD changes ({} refused), {} \
         images, {} manual steps, {} release notes, {} not looked at.",
        counts.permissions_gained,
        counts.dangerous_total,
        counts.permissions_lost,
        counts.crd_changes,
        counts.crds_refused.len(),
        counts.images,
        counts.manual_steps_total,
        counts.release_notes,
        counts.missing_total
    ));
    let important = Importance::High;
    section(page, important, "Could not be looked at: nothing is said of it", &counts.missing);
    section(page, important, "Refused by OLM", &counts.crds_refused);
    section(page, important, "Manual steps", &counts.manual_steps);
    section(page, Importance::Medium, "Deserves a look", &counts.dangerous);
    let differences = counted.differences(shown);
    let differences: Vec<String> =
        differences.iter().take(DIFFERENCES_MAX).map(difference).collect();
    section(page, Importance::Low, "Unlike other groups", &differences);
    for (way, (package, made)) in group.ways.iter().zip(each(shown)) {
        page.heading(3, &format!("{package} in {}: {}", way.namespace, way.text()));
        operator(page, made);
    }
}

fn operator(page: &mut Page, made: &Made) {
    let parts = parts(made);
    if parts.is_empty() {
        page.line("Nothing changes.");
    }
    for part in parts {
        page.part(4, &bounded(part));
    }
}

/// Lines under a name; nothing where there are none.
fn section(page: &mut Page, importance: Importance, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let items = lines.iter().map(|line| item(importance, line.clone())).collect();
    page.part(3, &bounded(Part { importance, title: title.to_owned(), items }));
}

fn item(importance: Importance, text: String) -> Item {
    Item { importance, text, lines: vec![], url: None }
}

/// The same with no more items than one looks at.
fn bounded(mut part: Part) -> Part {
    let more = part.items.len().saturating_sub(LINES_MAX);
    if more > 0 {
        part.items.truncate(LINES_MAX);
        part.items.push(item(Importance::Low, format!("and {more} more")));
    }
    part
}

fn list(page: &mut Page, lines: &[String]) {
    page.list(lines.iter().map(|line| (Importance::Low, line.as_str())));
}

/// What a way changes over all, the most important sections first.
fn parts(made: &Made) -> Vec<Part> {
    let mut parts = render::parts(&made.preview.overall);
    if !made.moving.is_empty() {
        parts.push(Part {
            title: "Looked at under a tag, which may be another image by now".to_owned(),
            importance: Importance::Low,
            items: made.moving.iter().map(|line| item(Importance::Low, line.clone())).collect(),
        });
    }
    parts
}

/// The same in lines.
pub(crate) fn sections(made: &Made) -> Vec<SectionView> {
    parts(made).into_iter().map(view).collect()
}

fn view(Part { importance, title, items }: Part) -> SectionView {
    let total = number(items.len());
    let mut lines = vec![];
    for Item { text, lines: below, url, .. } in items {
        lines.push(text);
        lines.extend(below.into_iter().chain(url).map(|line| format!("  {line}")));
    }
    SectionView {
        title,
        importance: match importance {
            Importance::High => ImportanceName::High,
            Importance::Medium => ImportanceName::Medium,
            Importance::Low => ImportanceName::Low,
        },
        total,
        lines,
    }
}

/// One line about a difference.
fn difference(one: &DifferenceView) -> String {
    let DifferenceView { kind, package, section, text, groups } = one;
    match kind {
        DifferenceKind::Has => {
            format!(
                "only here and in {groups} others: {package}, {}: {text}",
                section.to_lowercase()
            )
        }
        DifferenceKind::Lacks => {
            format!("in all others, not here: {package}, {}: {text}", section.to_lowercase())
        }
    }
}

fn blockers(page: &mut Page, preview: &Preview) {
    if preview.blockers.is_empty() {
        return;
    }
    page.heading(2, &format!("In the way of {} clusters", preview.blockers.len()));
    let lines: Vec<String> = preview
        .blockers
        .iter()
        .take(BLOCKERS_MAX)
        .map(|one| format!("{}: {:?}: {}", one.cluster, one.kind, one.why))
        .collect();
    list(page, &lines);
    if preview.blockers.len() > lines.len() {
        page.line(&format!("and {} more.", preview.blockers.len() - lines.len()));
    }
}
