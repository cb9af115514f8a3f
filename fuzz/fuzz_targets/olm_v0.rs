//! Any bytes as a namespace and the catalogs that it sees: resolution ends, and what it ends with
//! holds together.
#![no_main]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use libfuzzer_sys::{
    arbitrary::{Result, Unstructured},
    fuzz_target,
};
use serde_json::{Value, json};
use wavelift_catalog::{
    Catalog, Engine as _, Fbc, Limits, OlmV0,
    engine::{
        Answers, CatalogKey, Catalogs, Installed, InstalledProperties, Listing, Move, Next,
        Outcome, Request, ResolveError, Source, Subscription,
    },
    fbc,
    graph::{Bundle, Gvk, Property},
};
use wavelift_core::{range::Range, version::Version};

fuzz_target!(|bytes: &[u8]| {
    // Bytes that run out stand for the simplest choices.
    if let Ok(case) = case(&mut Unstructured::new(bytes)) {
        check(&case);
    }
});

/// What is asked, and the documents that it is asked of.
struct Case {
    catalogs: Vec<(CatalogKey, i64, Fbc)>,
    request: Request,
}

// === making one ===

const PACKAGES: usize = 5;
const VERSIONS: usize = 4;

fn key(index: usize) -> CatalogKey {
    let namespace = if index == 0 { "ns" } else { "global" };
    CatalogKey { name: format!("c{index}"), namespace: namespace.to_owned() }
}

fn case(u: &mut Unstructured<'_>) -> Result<Case> {
    let mut catalogs = Vec::new();
    for index in 0..u.int_in_range(1..=3)? {
        let mut fbc = Fbc::default();
        for package in 0..u.int_in_range(1..=PACKAGES)? {
            add_package(&mut fbc, u, package)?;
        }
        catalogs.push((key(index), u.int_in_range(0..=2)?, fbc));
    }
    let mut subscriptions: Vec<Subscription> = Vec::new();
    for _ in 0..u.int_in_range(1..=4)? {
        let subscription = subscription(u, catalogs.len())?;
        // A CSV is what it is: two Subscriptions could say different things of one.
        let is_known =
            |of: &Subscription| of.installed.is_some() && of.package == subscription.package;
        if !subscriptions.iter().any(is_known) {
            subscriptions.push(subscription);
        }
    }
    let mut unreferenced = Vec::new();
    if u.ratio(1, 8)? {
        unreferenced.extend(installed(u, "loose")?);
    }
    let request = Request { namespace: "ns".to_owned(), subscriptions, unreferenced };
    Ok(Case { catalogs, request })
}

fn add_package(fbc: &mut Fbc, u: &mut Unstructured<'_>, package: usize) -> Result<()> {
    let name = format!("p{package}");
    let bundle_name = |version: usize| format!("{name}.v{version}");
    fbc.packages.push(fbc::Package {
        name: name.clone(),
        default_channel: "ch0".to_owned(),
        ..fbc::Package::default()
    });
    let count = u.int_in_range(1..=VERSIONS)?;
    for channel in 0..u.int_in_range(1..=2)? {
        let mut entries = Vec::new();
        for version in 0..count {
            if u.ratio(1, 8)? {
                continue;
            }
            let mut entry = fbc::Entry { name: bundle_name(version), ..fbc::Entry::default() };
            match u.int_in_range(0..=7)? {
                0 => {}
                1 => entry.replaces = bundle_name(u.int_in_range(0..=VERSIONS)?),
                _ if version > 0 => entry.replaces = bundle_name(version - 1),
                _ => {}
            }
            if u.ratio(1, 6)? {
                entry.skips.push(bundle_name(u.int_in_range(0..=VERSIONS)?));
            }
            if u.ratio(1, 4)? {
                entry.skip_range = format!("<1.{version}.0");
            }
            entries.push(entry);
        }
        let channel = format!("ch{channel}");
        fbc.channels.push(fbc::Channel { package: name.clone(), name: channel, entries });
    }
    for version in 0..count {
        let stated = json!({"packageName": name, "version": format!("1.{version}.0")});
        let mut properties = vec![Arc::new(Property::new("olm.package", stated))];
        for _ in 0..u.int_in_range(0..=2)? {
            properties.push(Arc::new(property(u)?));
        }
        fbc.bundles.push(fbc::Bundle {
            package: name.clone(),
            name: bundle_name(version),
            image: "r/x".to_owned(),
            properties,
            ..fbc::Bundle::default()
        });
    }
    Ok(())
}

fn api(u: &mut Unstructured<'_>) -> Result<Value> {
    let kind = format!("K{}", u.int_in_range(0..=3)?);
    Ok(json!({"group": "g", "version": "v1", "kind": kind}))
}

fn package_range(u: &mut Unstructured<'_>) -> Result<Value> {
    let package = format!("p{}", u.int_in_range(0..=PACKAGES - 1)?);
    let range = format!(">=1.{}.0", u.int_in_range(0..=VERSIONS)?);
    Ok(json!({"packageName": package, "versionRange": range}))
}

fn property(u: &mut Unstructured<'_>) -> Result<Property> {
    let (kind, value) = match u.int_in_range(0..=9)? {
        0..=2 => ("olm.gvk", api(u)?),
        3 | 4 => ("olm.gvk.required", api(u)?),
        5 | 6 => ("olm.package.required", package_range(u)?),
        7 => ("olm.deprecated", json!({})),
        8 => ("olm.label", json!({"label": "tall"})),
        _ => ("olm.constraint", constraint(u, 0)?),
    };
    Ok(Property::new(kind, value))
}

fn constraint(u: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let kinds = if depth < 2 { 5 } else { 2 };
    Ok(match u.int_in_range(0..=kinds)? {
        0 => json!({"gvk": api(u)?}),
        1 => {
            let of = package_range(u)?;
            json!({"package": of})
        }
        // A rule is read in a thread of its own, which takes its time.
        2 if u.ratio(1, 8)? => {
            json!({"cel": {"rule": "properties.exists(p, p.type == 'olm.label')"}})
        }
        2 => json!({"gvk": api(u)?}),
        kind => {
            let mut constraints = Vec::new();
            for _ in 0..u.int_in_range(0..=2)? {
                constraints.push(constraint(u, depth + 1)?);
            }
            let name = ["all", "any", "not"][kind - 3];
            json!({name: {"constraints": constraints}})
        }
    })
}

fn subscription(u: &mut Unstructured<'_>, catalogs: usize) -> Result<Subscription> {
    let package = format!("p{}", u.int_in_range(0..=PACKAGES - 1)?);
    let installed = installed(u, &package)?;
    let starting = u.ratio(1, 8)?;
    Ok(Subscription {
        channel: ["ch0", "", "ch1"][u.int_in_range(0..=2)?].to_owned(),
        catalog: key(u.int_in_range(0..=catalogs - 1)?),
        installed,
        starting_csv: starting.then(|| format!("{package}.v1")),
        package,
    })
}

fn installed(u: &mut Unstructured<'_>, package: &str) -> Result<Option<Installed>> {
    let version: u64 = u.int_in_range(0..=VERSIONS as u64)?;
    if version == 0 {
        return Ok(None);
    }
    let number = version - 1;
    let properties = if u.ratio(1, 4)? {
        InstalledProperties::Known(vec![property(u)?])
    } else {
        InstalledProperties::AsInCatalog
    };
    Ok(Some(Installed {
        csv: format!("{package}.v{number}"),
        version: Version::parse(&format!("1.{number}.0")).ok(),
        properties,
    }))
}

// === checking it ===

fn catalogs(case: &Case, turn: impl Fn(&mut Fbc)) -> Option<Catalogs> {
    let mut catalogs = Catalogs::default();
    for (key, priority, fbc) in &case.catalogs {
        let mut fbc = fbc.clone();
        turn(&mut fbc);
        let catalog = Arc::new(Catalog::from_fbc(fbc, &Limits::default()).ok()?);
        catalogs.insert(key.clone(), Source { catalog, priority: *priority });
    }
    Some(catalogs)
}

/// Everything in the opposite order.
fn reverse(fbc: &mut Fbc) {
    fbc.packages.reverse();
    fbc.channels.reverse();
    fbc.channels.iter_mut().for_each(|channel| channel.entries.reverse());
    fbc.bundles.reverse();
}

fn check(case: &Case) {
    let Some(catalogs) = catalogs(case, |_| {}) else { return };
    let request = &case.request;
    let answers = OlmV0.answers(&catalogs, request);
    let next = OlmV0.next(&catalogs, request);
    assert_eq!(answers.as_ref().map(|answers| &answers.next), next.as_ref());
    if let Ok(answers) = &answers {
        for next in std::iter::once(&answers.next).chain(&answers.alternatives) {
            holds_together(&catalogs, request, next);
        }
    }
    order_does_not_matter(case, &answers);
    explained(&catalogs, request, &next);
    // A path ends too, wherever it leads.
    drop(OlmV0.path(&catalogs, request, &BTreeMap::new()));
}

fn order_does_not_matter(case: &Case, answers: &std::result::Result<Answers, ResolveError>) {
    let turned = catalogs(case, reverse).expect("it was read before");
    assert_eq!(OlmV0.answers(&turned, &case.request), *answers, "order of documents");
    let mut request = case.request.clone();
    request.subscriptions.reverse();
    let other = OlmV0.answers(&turned, &request);
    match (answers, &other) {
        (Ok(one), Ok(other)) if one.listing == Listing::All && other.listing == Listing::All => {
            assert_eq!(all(one), all(other), "order of subscriptions");
        }
        (Ok(_), Ok(_)) => {}
        (Err(ResolveError::TooHard { .. }), _) | (_, Err(ResolveError::TooHard { .. })) => {}
        (one, other) => assert_eq!(one.is_ok(), other.is_ok(), "{one:?} {other:?}"),
    }
}

/// All that may come, without what a move took the place of: of several Subscriptions to one package
/// the first one counts.
fn all(answers: &Answers) -> BTreeSet<BTreeSet<(String, CatalogKey, String)>> {
    let of = |next: &Next| {
        let places = next.moves().iter();
        places.map(|step| (step.to.clone(), step.catalog.clone(), step.channel.clone())).collect()
    };
    std::iter::once(&answers.next).chain(&answers.alternatives).map(of).collect()
}

fn explained(
    catalogs: &Catalogs,
    request: &Request,
    next: &std::result::Result<Next, ResolveError>,
) {
    let Ok(explanations) = OlmV0.explain(catalogs, request) else { return };
    assert_eq!(explanations.len(), request.subscriptions.len());
    for explanation in explanations {
        match (&explanation.outcome, next) {
            (Outcome::Moves { to }, Ok(next)) => assert!(next.csvs().contains(to.as_str())),
            (Outcome::Fails, next) => assert!(next.is_err()),
            (Outcome::Stays, next) => assert!(next.is_ok()),
            (Outcome::Moves { .. }, Err(_)) => panic!("{explanation} though nothing moves"),
        }
    }
}

/// What one CSV after the InstallPlan is, by its own word.
struct Fact {
    name: String,
    packages: BTreeSet<String>,
    apis: BTreeSet<Gvk>,
    versions: Vec<(String, Version)>,
    needs: Vec<Need>,
}

enum Need {
    Api(Gvk),
    Package(String, Range),
}

impl Fact {
    fn of<'a>(name: &str, properties: impl Iterator<Item = &'a Property>) -> Self {
        let mut fact = Self {
            name: name.to_owned(),
            packages: BTreeSet::new(),
            apis: BTreeSet::new(),
            versions: Vec::new(),
            needs: Vec::new(),
        };
        for Property { kind, value, .. } in properties {
            let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
            match kind.as_str() {
                "olm.package" => {
                    fact.packages.insert(text("packageName"));
                    let version = Version::parse(&text("version"));
                    fact.versions
                        .extend(version.ok().map(|version| (text("packageName"), version)));
                }
                "olm.gvk" => fact.apis.extend(gvk(value)),
                "olm.gvk.required" => fact.needs.extend(gvk(value).map(Need::Api)),
                "olm.package.required" => {
                    let range = Range::parse(&text("versionRange"));
                    fact.needs
                        .extend(range.ok().map(|range| Need::Package(text("packageName"), range)));
                }
                _ => {}
            }
        }
        fact
    }

    fn of_bundle(name: &str, bundle: &Bundle) -> Self {
        Self::of(name, bundle.properties.iter().map(Arc::as_ref))
    }

    fn meets(&self, need: &Need) -> bool {
        match need {
            Need::Api(api) => self.apis.contains(api),
            Need::Package(package, range) => {
                self.versions.iter().any(|(of, version)| of == package && range.contains(version))
            }
        }
    }
}

fn gvk(value: &Value) -> Option<Gvk> {
    serde_json::from_value(value.clone()).ok()
}

/// At most one bundle of a package and one provider of an API; who alone can meet a need is there.
fn holds_together(catalogs: &Catalogs, request: &Request, next: &Next) {
    let moved: Vec<Fact> =
        next.moves().iter().map(|step| of_move(catalogs, request, step)).collect();
    let staying = staying(catalogs, request, next);
    let after: Vec<&Fact> = moved.iter().chain(&staying).collect();
    let (mut packages, mut apis) = (BTreeSet::new(), BTreeSet::new());
    for fact in &after {
        for package in &fact.packages {
            assert!(packages.insert(package), "two of {package}: {next:?}");
        }
        for api in &fact.apis {
            assert!(apis.insert(api), "two for {api}: {next:?}");
        }
    }
    let visible = visible(catalogs);
    for fact in &moved {
        for need in &fact.needs {
            // OLM itself may leave a need unmet where several bundles could meet it.
            let could = visible.iter().chain(&staying).filter(|other| other.meets(need));
            let is_met = after.iter().any(|other| other.meets(need));
            assert!(is_met || could.count() > 1, "{} has not what it needs: {next:?}", fact.name);
        }
    }
}

fn of_move(catalogs: &Catalogs, request: &Request, step: &Move) -> Fact {
    let source = catalogs.get(&step.catalog).expect("it comes from one of the catalogs");
    let catalog = &source.catalog;
    let bundle = catalog.bundle(&step.package, &step.to).expect("it is in its catalog");
    // A CSV that is asked for by name may be one that its channel skips, or a channel without order.
    let is_named = request.subscriptions.iter().any(|of| {
        of.package == step.package
            && of.installed.is_none()
            && of.starting_csv.as_ref() == Some(&step.to)
    });
    // It is on the chain of one of its channels. OLM then takes it from any of them, also from one
    // that skips it.
    let channels = catalog.graph().packages[&step.package].channels.keys();
    let mut chains = channels.filter_map(|channel| catalog.chain(&step.package, channel).ok());
    assert!(
        is_named || chains.any(|chain| chain.contains(&step.to.as_str())),
        "{step:?} is on no chain"
    );
    Fact::of_bundle(&step.to, bundle)
}

/// The CSVs that no move takes the place of.
fn staying(catalogs: &Catalogs, request: &Request, next: &Next) -> Vec<Fact> {
    let mut staying: BTreeMap<&str, Fact> = BTreeMap::new();
    let subscribed =
        request.subscriptions.iter().filter_map(|of| Some((of.installed.as_ref()?, Some(of))));
    let loose = request.unreferenced.iter().map(|installed| (installed, None));
    // The first word on a CSV counts, and the one that no Subscription names comes first.
    for (installed, subscription) in loose.chain(subscribed) {
        let fact = match (&installed.properties, subscription) {
            (InstalledProperties::Known(known), _) => Fact::of(&installed.csv, known.iter()),
            (InstalledProperties::AsInCatalog, subscription) => subscription
                .and_then(|of| Some((of, catalogs.get(&of.catalog)?)))
                .filter(|(of, source)| {
                    is_in_a_channel(&source.catalog, &of.package, &installed.csv)
                })
                .and_then(|(of, source)| source.catalog.bundle(&of.package, &installed.csv))
                .map_or_else(
                    || Fact::of(&installed.csv, std::iter::empty()),
                    |bundle| Fact::of_bundle(&installed.csv, bundle),
                ),
        };
        staying.entry(&installed.csv).or_insert(fact);
    }
    for subscription in &request.subscriptions {
        let is_replaced = next.moves().iter().any(|step| {
            step.package == subscription.package && step.catalog == subscription.catalog
        });
        if let Some(installed) = subscription.installed.as_ref().filter(|_| is_replaced) {
            staying.remove(installed.csv.as_str());
        }
    }
    staying.into_values().collect()
}

fn is_in_a_channel(catalog: &Catalog, package: &str, name: &str) -> bool {
    let channels = catalog.graph().packages.get(package).map(|package| &package.channels);
    channels.is_some_and(|channels| channels.values().any(|of| of.entries.contains_key(name)))
}

/// Every bundle that OLM could take for a need.
fn visible(catalogs: &Catalogs) -> Vec<Fact> {
    let mut visible = Vec::new();
    for (_, source) in catalogs.iter() {
        let catalog = &source.catalog;
        for (package, of) in &catalog.graph().packages {
            for channel in of.channels.keys() {
                let chain = catalog.chain(package, channel).unwrap_or_default();
                let bundles =
                    chain.into_iter().filter_map(|name| Some((name, of.bundles.get(name)?)));
                visible.extend(bundles.map(|(name, bundle)| Fact::of_bundle(name, bundle)));
            }
        }
    }
    visible
}
