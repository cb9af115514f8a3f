use std::sync::Arc;

use serde_json::{Value, json};
use wavelift_core::version::Version;

use super::*;
use crate::{
    Catalog, Fbc, Limits,
    catalog::ChainError,
    engine::{
        CatalogKey, Installed, InstalledProperties, Outcome, Reason, Source, Subscription, Unmet,
    },
};

/// A catalog of packages, each with channel `stable` and a bundle `<package>.v<version>` for every
/// entry: (name after `v`, edges, further properties).
struct Package<'a> {
    name: &'a str,
    channels: &'a [(&'a str, &'a [(&'a str, Value)])],
    properties: &'a [(&'a str, Value)],
}

fn mk_catalog(packages: &[Package<'_>]) -> Catalog {
    let mut text = String::new();
    for Package { name, channels, properties } in packages {
        let default = channels[0].0;
        text +=
            &json!({"schema": "olm.package", "name": name, "defaultChannel": default}).to_string();
        let mut versions = BTreeSet::new();
        for (channel, entries) in *channels {
            let entries: Vec<Value> = entries
                .iter()
                .map(|(version, edges)| {
                    versions.insert(*version);
                    let mut entry = edges.clone();
                    entry["name"] = json!(format!("{name}.v{version}"));
                    entry
                })
                .collect();
            text += &json!({"schema": "olm.channel", "package": name, "name": channel, "entries": entries})
                .to_string();
        }
        for version in versions {
            let mut all = vec![
                json!({"type": "olm.package", "value": {"packageName": name, "version": version}}),
            ];
            let own = properties.iter().filter(|(of, _)| *of == version);
            all.extend(own.map(|(_, property)| property.clone()));
            text += &json!({"schema": "olm.bundle", "package": name, "name": format!("{name}.v{version}"),
                "image": "registry.example.com/x", "properties": all})
            .to_string();
        }
    }
    let fbc = Fbc::parse("test", text.as_bytes(), &Limits::default()).unwrap();
    Catalog::from_fbc(fbc, &Limits::default()).unwrap()
}

fn alpha<'a>(entries: &'a [(&'a str, Value)]) -> Catalog {
    mk_catalog(&[Package { name: "alpha", channels: &[("stable", entries)], properties: &[] }])
}

fn key() -> CatalogKey {
    CatalogKey { name: "cat".to_owned(), namespace: "global".to_owned() }
}

fn subscription(package: &str, channel: &str, installed: Option<&str>) -> Subscription {
    Subscription {
        package: package.to_owned(),
        channel: channel.to_owned(),
        catalog: key(),
        installed: installed.map(|version| Installed {
            csv: format!("{package}.v{version}"),
            version: Some(Version::parse(version).unwrap()),
            properties: InstalledProperties::AsInCatalog,
        }),
        starting_csv: None,
    }
}

fn request(subscriptions: Vec<Subscription>) -> Request {
    Request { namespace: "ns".to_owned(), subscriptions, unreferenced: Vec::new() }
}

fn ask(catalog: Catalog, subscriptions: Vec<Subscription>) -> Result<Vec<String>, ResolveError> {
    let catalogs = Catalogs::one(key(), Arc::new(catalog));
    let next = OlmV0.next(&catalogs, &request(subscriptions))?;
    Ok(next.csvs().into_iter().map(str::to_owned).collect())
}

fn from(catalog: Catalog, installed: &str) -> Result<Vec<String>, ResolveError> {
    ask(catalog, vec![subscription("alpha", "stable", Some(installed))])
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_skip_range_on_the_head_jumps_over_the_chain() {
    let entries = [
        ("1.0.0", json!({})),
        ("1.1.0", json!({"replaces": "alpha.v1.0.0"})),
        ("1.2.0", json!({"replaces": "alpha.v1.1.0", "skipRange": ">=1.0.0 <1.2.0"})),
    ];
    assert_eq!(from(alpha(&entries), "1.0.0").unwrap(), ["alpha.v1.2.0"]);
}

#[test]
fn without_ranges_the_chain_is_climbed_step_by_step_and_the_head_stays() {
    let entries = [
        ("1.0.0", json!({})),
        ("1.1.0", json!({"replaces": "alpha.v1.0.0"})),
        ("1.2.0", json!({"replaces": "alpha.v1.1.0"})),
    ];
    assert_eq!(from(alpha(&entries), "1.0.0").unwrap(), ["alpha.v1.1.0"]);
    assert_eq!(from(alpha(&entries), "1.1.0").unwrap(), ["alpha.v1.2.0"]);
    assert_eq!(from(alpha(&entries), "1.2.0").unwrap(), NOTHING);
    // Unknown to the catalog, and no edge leads on.
    assert_eq!(from(alpha(&entries), "0.9.0").unwrap(), NOTHING);
}

#[test]
fn a_skipped_entry_is_never_a_target() {
    let entries = [
        ("1.0.0", json!({})),
        ("1.1.0", json!({"replaces": "alpha.v1.0.0"})),
        ("1.2.0", json!({"replaces": "alpha.v1.1.0", "skips": ["alpha.v1.1.0"]})),
    ];
    // 1.1.0 would follow 1.0.0, but it is skipped; 1.2.0 does not name 1.0.0.
    assert_eq!(from(alpha(&entries), "1.0.0").unwrap(), NOTHING);
    assert_eq!(from(alpha(&entries), "1.1.0").unwrap(), ["alpha.v1.2.0"]);
}

#[test]
fn skips_lead_on_by_name_and_ranges_by_the_version_on_the_cluster() {
    let entries = [("1.2.0", json!({"skips": ["alpha.v0.5.0"], "skipRange": "<1.0.0"}))];
    assert_eq!(from(alpha(&entries), "0.5.0").unwrap(), ["alpha.v1.2.0"]);
    assert_eq!(from(alpha(&entries), "1.1.0").unwrap(), NOTHING);
    assert_eq!(from(alpha(&entries), "1.0.0-rc.1").unwrap(), ["alpha.v1.2.0"]);
    let mut odd = subscription("alpha", "stable", Some("1.1.0"));
    odd.installed.as_mut().unwrap().version = None;
    assert_eq!(ask(alpha(&entries), vec![odd]).unwrap(), NOTHING);
}

#[test]
fn an_unparsable_range_is_no_edge_and_no_error() {
    let entries = [("1.2.0", json!({"skipRange": "^1.0.0"})), ("1.1.0", json!({}))];
    let entries = [entries[0].clone()];
    assert_eq!(from(alpha(&entries), "1.1.0").unwrap(), NOTHING);
}

#[test]
fn a_channel_without_one_chain_fails_the_namespace() {
    let kind = |entries: &[(&str, Value)]| {
        let error = from(alpha(entries), "1.0.0").unwrap_err();
        let ResolveError::Channel { source, .. } = error else { panic!("{error:?}") };
        source
    };
    let two = kind(&[("1.0.0", json!({})), ("1.1.0", json!({}))]);
    assert_eq!(
        two,
        ChainError::SeveralHeads {
            heads: vec!["alpha.v1.0.0".to_owned(), "alpha.v1.1.0".to_owned()]
        }
    );
    let ring = [
        ("1.0.0", json!({"replaces": "alpha.v1.1.0"})),
        ("1.1.0", json!({"replaces": "alpha.v1.0.0"})),
    ];
    assert_eq!(kind(&ring), ChainError::NoHead);
    let [a, b] = ring;
    let tail = [a, b, ("1.2.0", json!({"replaces": "alpha.v1.1.0"}))];
    assert_eq!(kind(&tail), ChainError::Circle { head: "alpha.v1.2.0".to_owned() });
    // The tail may replace what is not there.
    assert_eq!(
        from(alpha(&[("1.1.0", json!({"replaces": "alpha.v1.0.0"}))]), "1.0.0").unwrap(),
        ["alpha.v1.1.0"]
    );
}

#[test]
fn what_is_missing_is_named() {
    let entries = [("1.0.0", json!({}))];
    let kind = |subscription| ask(alpha(&entries), vec![subscription]).unwrap_err().kind();
    assert_eq!(kind(subscription("beta", "stable", None)), "PackageMissing");
    assert_eq!(kind(subscription("alpha", "fast", None)), "ChannelMissing");
    let mut other = subscription("alpha", "stable", None);
    other.catalog.name = "other".to_owned();
    assert_eq!(kind(other), "CatalogMissing");
    let mut start = subscription("alpha", "stable", None);
    start.starting_csv = Some("alpha.v9".to_owned());
    assert_eq!(kind(start), "StartingCsvMissing");
    // One bad Subscription stops its neighbour too.
    let both = vec![subscription("alpha", "stable", None), subscription("beta", "stable", None)];
    assert_eq!(ask(alpha(&entries), both).unwrap_err().kind(), "PackageMissing");
}

#[test]
fn no_channel_means_all_channels_the_default_one_first() {
    let catalog = || {
        mk_catalog(&[Package {
            name: "alpha",
            channels: &[
                ("z-default", &[("1.1.0", json!({"replaces": "alpha.v1.0.0"}))]),
                (
                    "a-other",
                    &[("2.0.0", json!({"replaces": "alpha.v1.0.0"})), ("1.0.0", json!({}))],
                ),
            ],
            properties: &[],
        }])
    };
    let ask = |installed| ask(catalog(), vec![subscription("alpha", "", installed)]).unwrap();
    assert_eq!(ask(Some("1.0.0")), ["alpha.v1.1.0"]);
    assert_eq!(ask(None), ["alpha.v1.1.0"]);
}

#[test]
fn the_starting_csv_counts_only_while_nothing_is_installed() {
    let entries = [
        ("1.0.0", json!({})),
        ("1.1.0", json!({"replaces": "alpha.v1.0.0"})),
        ("1.2.0", json!({"replaces": "alpha.v1.1.0"})),
    ];
    let start = |installed| {
        let mut subscription = subscription("alpha", "stable", installed);
        subscription.starting_csv = Some("alpha.v1.0.0".to_owned());
        ask(alpha(&entries), vec![subscription]).unwrap()
    };
    assert_eq!(start(None), ["alpha.v1.0.0"]);
    assert_eq!(start(Some("1.1.0")), ["alpha.v1.2.0"]);
}

fn needs(package: &str, range: &str) -> Value {
    json!({"type": "olm.package.required", "value": {"packageName": package, "versionRange": range}})
}

/// alpha 1.0.0 to 1.2.0, of which 1.2.0 needs beta as `range` says; beta 1.0.0 and 2.0.0.
fn with_need(range: &str) -> Catalog {
    let alpha = [
        ("1.0.0", json!({})),
        ("1.1.0", json!({"replaces": "alpha.v1.0.0"})),
        ("1.2.0", json!({"replaces": "alpha.v1.1.0", "skipRange": "<1.2.0"})),
    ];
    let beta = [("1.0.0", json!({})), ("2.0.0", json!({"replaces": "beta.v1.0.0"}))];
    mk_catalog(&[
        Package {
            name: "alpha",
            channels: &[("stable", &alpha)],
            properties: &[("1.2.0", needs("beta", range))],
        },
        Package { name: "beta", channels: &[("stable", &beta)], properties: &[] },
    ])
}

#[test]
fn a_missing_dependency_is_added_from_the_head_of_its_channel() {
    let catalogs = Catalogs::one(key(), Arc::new(with_need(">=1.0.0")));
    let request = request(vec![subscription("alpha", "stable", Some("1.0.0"))]);
    let next = OlmV0.next(&catalogs, &request).unwrap();
    let moves: Vec<_> = next
        .moves()
        .iter()
        .map(|step| (step.from.as_deref(), step.to.as_str(), step.cause))
        .collect();
    assert_eq!(
        moves,
        [
            (Some("alpha.v1.0.0"), "alpha.v1.2.0", Cause::Subscription),
            (None, "beta.v2.0.0", Cause::Dependency),
        ]
    );
    // After that plan both are installed and nothing more moves.
    let after = request.after(next.moves());
    assert_eq!(after.subscriptions.len(), 2);
    assert_eq!(OlmV0.next(&catalogs, &after).unwrap(), Next::Stays);
}

#[test]
fn an_unsatisfied_dependency_means_an_older_candidate_or_to_stay() {
    assert_eq!(from(with_need(">=3.0.0"), "1.0.0").unwrap(), ["alpha.v1.1.0"]);
    assert_eq!(from(with_need(">=3.0.0"), "1.1.0").unwrap(), NOTHING);
    // The older beta is subscribed to and can move no further: 1.2.0 is not taken.
    let both = |beta| {
        let beta = subscription("beta", "stable", Some(beta));
        ask(with_need("<2.0.0"), vec![subscription("alpha", "stable", Some("1.0.0")), beta])
    };
    assert_eq!(both("2.0.0").unwrap(), ["alpha.v1.1.0"]);
    // beta could stay at 1.0.0 to please alpha, and does: alpha is asked first.
    assert_eq!(both("1.0.0").unwrap(), ["alpha.v1.2.0"]);
}

#[test]
fn an_installed_csv_whose_own_need_is_unmet_fails_the_namespace() {
    let error = from(with_need(">=3.0.0"), "1.2.0").unwrap_err();
    let need = "package `beta` in >=3.0.0".to_owned();
    let unmet = vec![Unmet::Need { bundle: "alpha.v1.2.0".to_owned(), need }];
    assert_eq!(error, ResolveError::Unsatisfiable { unmet });
}

#[test]
fn a_need_that_can_t_be_read_fails_the_namespace() {
    assert_eq!(from(with_need("v1.0.0"), "1.0.0").unwrap_err().kind(), "Need");
}

#[test]
fn a_deprecated_property_prohibits_a_bundle_and_deprecations_do_not() {
    let entries = [
        ("1.0.0", json!({})),
        ("1.1.0", json!({"replaces": "alpha.v1.0.0"})),
        ("1.2.0", json!({"replaces": "alpha.v1.1.0", "skipRange": "<1.2.0"})),
    ];
    let catalog = |properties| {
        mk_catalog(&[Package { name: "alpha", channels: &[("stable", &entries)], properties }])
    };
    let deprecated = json!({"type": "olm.deprecated", "value": {}});
    let prohibited = [("1.2.0", deprecated)];
    assert_eq!(from(catalog(&prohibited), "1.0.0").unwrap(), ["alpha.v1.1.0"]);
    assert_eq!(from(catalog(&prohibited), "1.2.0").unwrap_err().kind(), "Unsatisfiable");
}

#[test]
fn two_providers_of_one_api_can_t_be_in_one_namespace() {
    let api = json!({"type": "olm.gvk", "value": {"group": "g.example.com", "version": "v1", "kind": "K"}});
    let step = [("1.0.0", json!({})), ("1.1.0", json!({"replaces": "alpha.v1.0.0"}))];
    let catalog = mk_catalog(&[
        Package {
            name: "alpha",
            channels: &[("stable", &step)],
            properties: &[("1.1.0", api.clone())],
        },
        Package {
            name: "beta",
            channels: &[("stable", &[("1.0.0", json!({}))])],
            properties: &[("1.0.0", api)],
        },
    ]);
    let both = vec![
        subscription("alpha", "stable", Some("1.0.0")),
        subscription("beta", "stable", Some("1.0.0")),
    ];
    assert_eq!(ask(catalog, both).unwrap(), NOTHING);
}

#[test]
fn a_csv_without_subscription_must_stay() {
    let entries = [("1.0.0", json!({})), ("1.1.0", json!({"replaces": "alpha.v1.0.0"}))];
    let catalogs = Catalogs::one(key(), Arc::new(alpha(&entries)));
    let mut request = request(vec![subscription("alpha", "stable", None)]);
    let package = json!({"packageName": "alpha", "version": "1.0.0"});
    request.unreferenced.push(Installed {
        csv: "alpha.v1.0.0".to_owned(),
        version: Some(Version::new(1, 0, 0)),
        properties: InstalledProperties::Known(vec![crate::graph::Property {
            kind: "olm.package".to_owned(),
            value: package,
        }]),
    });
    // The orphan holds the package, and the Subscription has no way to be content with it.
    let error = OlmV0.next(&catalogs, &request).unwrap_err();
    let orphan = Unmet::Orphan { csv: "alpha.v1.0.0".to_owned() };
    assert_eq!(error, ResolveError::Unsatisfiable { unmet: vec![orphan] });
    assert_eq!(
        error.to_string(),
        "no choice of bundles satisfies all Subscriptions; `alpha.v1.0.0` is installed and no \
         Subscription refers to it"
    );
}

#[test]
fn dependencies_come_from_the_own_catalog_before_one_of_higher_priority() {
    let with_beta = |version: &str| {
        let entry = [(version, json!({}))];
        mk_catalog(&[
            Package {
                name: "alpha",
                channels: &[("stable", &[("1.0.0", json!({}))])],
                properties: &[("1.0.0", needs("beta", ">=1.0.0"))],
            },
            Package { name: "beta", channels: &[("stable", &entry)], properties: &[] },
        ])
    };
    let mut catalogs = Catalogs::one(key(), Arc::new(with_beta("1.0.0")));
    let other = CatalogKey { name: "other".to_owned(), namespace: "ns".to_owned() };
    catalogs.insert(other, Source { catalog: Arc::new(with_beta("2.0.0")), priority: 100 });
    let next =
        OlmV0.next(&catalogs, &request(vec![subscription("alpha", "stable", None)])).unwrap();
    assert!(next.csvs().contains("beta.v1.0.0"), "{next:?}");
}

#[test]
fn many_neighbours_that_can_only_stay_do_not_make_the_search_explode() {
    // Every one of twenty packages has ten candidates, and the last one can't be satisfied together
    // with any of the first one's.
    let api = |kind: &str| json!({"type": "olm.gvk", "value": {"group": "g", "version": "v1", "kind": kind}});
    let versions: Vec<String> = (1..=10).map(|minor| format!("1.{minor}.0")).collect();
    let entries: Vec<(&str, Value)> = versions
        .iter()
        .enumerate()
        .map(|(index, version)| {
            let edges = match index.checked_sub(1) {
                Some(before) => json!({"skipRange": "<1.10.0", "replaces": format!("PKG.v{}", versions[before])}),
                None => json!({"skipRange": "<1.10.0"}),
            };
            (version.as_str(), edges)
        })
        .collect();
    let names: Vec<String> = (0..20).map(|number| format!("p{number:02}")).collect();
    let own: Vec<Vec<(&str, Value)>> = names
        .iter()
        .map(|name| {
            let renamed = |edges: &Value| {
                serde_json::from_str(&edges.to_string().replace("PKG", name)).unwrap()
            };
            entries.iter().map(|(version, edges)| (*version, renamed(edges))).collect()
        })
        .collect();
    let claims: Vec<(&str, Value)> = versions.iter().map(|v| (v.as_str(), api("K"))).collect();
    let channels: Vec<_> = own.iter().map(|entries| [("stable", entries.as_slice())]).collect();
    let packages: Vec<Package<'_>> = names
        .iter()
        .zip(&channels)
        .map(|(name, channels)| Package {
            name,
            channels,
            properties: if name == "p00" || name == "p19" { &claims } else { &[] },
        })
        .collect();
    let subscriptions = names.iter().map(|name| subscription(name, "stable", None)).collect();
    let error = ask(mk_catalog(&packages), subscriptions).unwrap_err();
    assert!(matches!(error.kind(), "Unsatisfiable" | "TooHard"), "{error:?}");
}

/// alpha 1.0.0 to 1.3.0: 1.3.0 needs beta 3, 1.2.0 is forbidden, 1.1.0 follows 1.0.0.
fn with_reasons() -> Catalogs {
    let alpha = [
        ("1.0.0", json!({})),
        ("1.1.0", json!({"replaces": "alpha.v1.0.0"})),
        ("1.2.0", json!({"replaces": "alpha.v1.1.0", "skipRange": "<1.2.0"})),
        ("1.3.0", json!({"replaces": "alpha.v1.2.0", "skipRange": "<1.3.0"})),
        ("1.4.0", json!({"replaces": "alpha.v1.3.0"})),
    ];
    let fast = [("1.5.0", json!({}))];
    let deprecated = json!({"type": "olm.deprecated", "value": {}});
    Catalogs::one(
        key(),
        Arc::new(mk_catalog(&[
            Package {
                name: "alpha",
                channels: &[("stable", &alpha), ("fast", &fast)],
                properties: &[("1.2.0", deprecated), ("1.3.0", needs("beta", ">=3.0.0"))],
            },
            Package {
                name: "beta",
                channels: &[("stable", &[("1.0.0", json!({}))])],
                properties: &[],
            },
        ])),
    )
}

#[test]
fn a_target_that_is_not_reached_says_what_speaks_against_it() {
    let request = request(vec![subscription("alpha", "stable", Some("1.1.0"))]);
    let says = |version: &str| {
        let targets = [("alpha".to_owned(), Version::parse(version).unwrap())].into();
        OlmV0.path(&with_reasons(), &request, &targets).unwrap_err().to_string()
    };
    let stays = |why: &str| format!("`alpha` stays at `alpha.v1.1.0`: {why}");
    let needs = "1.3.0 needs package `beta` in >=3.0.0, which nothing visible can give";
    assert_eq!(says("1.3.0"), stays(needs));
    assert_eq!(says("1.5.0"), stays("1.5.0 is not in the subscribed channel `stable`"));
    assert_eq!(says("9.0.0"), stays("no edge leads on to 9.0.0"));
}

#[test]
fn every_bundle_that_is_not_taken_has_its_reason() {
    let request = request(vec![subscription("alpha", "stable", Some("1.0.0"))]);
    let [of] = OlmV0.explain(&with_reasons(), &request).unwrap().try_into().unwrap();
    assert_eq!(of.outcome, Outcome::Moves { to: "alpha.v1.1.0".to_owned() });
    let reasons: Vec<(&str, &Reason)> =
        of.passed.iter().map(|passed| (passed.csv.as_str(), &passed.reason)).collect();
    let need = "package `beta` in >=3.0.0".to_owned();
    assert_eq!(
        reasons,
        [
            ("alpha.v1.5.0", &Reason::OtherChannel { subscribed: "stable".to_owned() }),
            ("alpha.v1.4.0", &Reason::NoEdge { from: "alpha.v1.0.0".to_owned() }),
            ("alpha.v1.3.0", &Reason::Needs { need }),
            ("alpha.v1.2.0", &Reason::Deprecated),
        ]
    );
    let text = of.to_string();
    assert!(text.starts_with("`alpha` moves to `alpha.v1.1.0`\n  `alpha.v1.5.0` (channel `fast`"));
}

#[test]
fn what_stays_silently_has_its_reason_too() {
    let request = request(vec![subscription("alpha", "stable", Some("1.1.0"))]);
    let [of] = OlmV0.explain(&with_reasons(), &request).unwrap().try_into().unwrap();
    assert_eq!(of.outcome, Outcome::Stays);
    let kinds: Vec<&str> = of.passed.iter().map(|passed| passed.reason.kind()).collect();
    assert_eq!(kinds, ["OtherChannel", "NoEdge", "Needs", "Deprecated", "NotNewer"]);
}

#[test]
fn neighbours_and_catalogs_are_reasons() {
    let api = json!({"type": "olm.gvk", "value": {"group": "g", "version": "v1", "kind": "K"}});
    let step = [("1.0.0", json!({})), ("1.1.0", json!({"replaces": "alpha.v1.0.0"}))];
    let alpha = Package {
        name: "alpha",
        channels: &[("stable", &step)],
        properties: &[("1.1.0", api.clone())],
    };
    let one = [("1.0.0", json!({}))];
    let beta =
        Package { name: "beta", channels: &[("stable", &one)], properties: &[("1.0.0", api)] };
    let mut catalogs = Catalogs::one(key(), Arc::new(mk_catalog(&[alpha, beta])));
    let other = CatalogKey { name: "other".to_owned(), namespace: "ns".to_owned() };
    let newer = alpha_of(&[("2.0.0", json!({}))]);
    catalogs.insert(other, Source { catalog: Arc::new(newer), priority: 0 });
    let request = request(vec![
        subscription("alpha", "stable", Some("1.0.0")),
        subscription("beta", "stable", Some("1.0.0")),
    ]);
    let of = OlmV0.explain(&catalogs, &request).unwrap();
    let reasons: Vec<String> = of[0].passed.iter().map(ToString::to_string).collect();
    assert_eq!(
        reasons,
        [
            "`alpha.v2.0.0` (channel `stable` of ns/other) is not in the subscribed catalog global/cat",
            "`alpha.v1.1.0` (channel `stable` of global/cat) excludes `beta.v1.0.0`: only one may \
             have the API g/v1, Kind=K",
        ]
    );
}

fn alpha_of(entries: &[(&str, Value)]) -> Catalog {
    alpha(entries)
}

#[test]
fn where_the_order_of_subscriptions_decides_both_ways_are_named() {
    // Each could move, but only one: the newer versions provide the same API.
    let api = json!({"type": "olm.gvk", "value": {"group": "g", "version": "v1", "kind": "K"}});
    let alpha = [("1.0.0", json!({})), ("1.1.0", json!({"replaces": "alpha.v1.0.0"}))];
    let beta = [("1.0.0", json!({})), ("1.1.0", json!({"replaces": "beta.v1.0.0"}))];
    let properties = [("1.1.0", api)];
    let catalog = mk_catalog(&[
        Package { name: "alpha", channels: &[("stable", &alpha)], properties: &properties },
        Package { name: "beta", channels: &[("stable", &beta)], properties: &properties },
    ]);
    let catalogs = Catalogs::one(key(), Arc::new(catalog));
    let both = request(vec![
        subscription("alpha", "stable", Some("1.0.0")),
        subscription("beta", "stable", Some("1.0.0")),
    ]);
    let answers = OlmV0.answers(&catalogs, &both).unwrap();
    assert_eq!(answers.next.csvs(), BTreeSet::from(["alpha.v1.1.0"]));
    let others: Vec<_> = answers.alternatives.iter().map(Next::csvs).collect();
    assert_eq!(others, [BTreeSet::from(["beta.v1.1.0"])]);
    assert_eq!(answers.listing, crate::engine::Listing::All);
    let of = OlmV0.explain(&catalogs, &both).unwrap();
    assert_eq!(of[1].passed[0].reason.kind(), "Conflicts");
    // One alone is certain.
    let one = request(vec![subscription("alpha", "stable", Some("1.0.0"))]);
    assert_eq!(OlmV0.answers(&catalogs, &one).unwrap().alternatives, []);
}

#[test]
fn needs_in_a_circle_are_met_together() {
    let one = [("1.0.0", json!({}))];
    let in_a_circle =
        |name: &'static str, properties| Package { name, channels: &[("stable", &[])], properties };
    let (a, b, c) = (
        [("1.0.0", needs("beta", ">=1.0.0"))],
        [("1.0.0", needs("gamma", ">=1.0.0"))],
        [("1.0.0", needs("alpha", ">=1.0.0"))],
    );
    let channels: [(&str, &[(&str, Value)]); 1] = [("stable", &one)];
    let packages: Vec<Package<'_>> = [("alpha", &a), ("beta", &b), ("gamma", &c)]
        .into_iter()
        .map(|(name, properties)| Package { channels: &channels, ..in_a_circle(name, properties) })
        .collect();
    let moved = ask(mk_catalog(&packages), vec![subscription("alpha", "stable", None)]).unwrap();
    assert_eq!(moved, ["alpha.v1.0.0", "beta.v1.0.0", "gamma.v1.0.0"]);
}

#[test]
fn a_search_that_could_go_on_for_ages_ends_with_an_error() {
    // Thirty pigeons and twenty-nine holes: every pN has one version for each hole, and a hole holds
    // one. No rule sees at once that there is one too many.
    const PIGEONS: usize = 30;
    let names: Vec<String> = (0..PIGEONS).map(|pigeon| format!("p{pigeon:02}")).collect();
    let versions: Vec<String> = (1..PIGEONS).map(|hole| format!("1.{hole}.0")).collect();
    let holes: Vec<(&str, Value)> = versions
        .iter()
        .map(|version| {
            let api = json!({"group": "g", "version": "v1", "kind": format!("H{version}")});
            (version.as_str(), json!({"type": "olm.gvk", "value": api}))
        })
        .collect();
    let chains: Vec<Vec<(&str, Value)>> = names
        .iter()
        .map(|name| {
            let edges = |at: usize| match at.checked_sub(1) {
                Some(before) => json!({"replaces": format!("{name}.v{}", versions[before])}),
                None => json!({}),
            };
            versions.iter().enumerate().map(|(at, v)| (v.as_str(), edges(at))).collect()
        })
        .collect();
    let channels: Vec<_> = chains.iter().map(|chain| [("stable", chain.as_slice())]).collect();
    let packages: Vec<Package<'_>> = names
        .iter()
        .zip(&channels)
        .map(|(name, channels)| Package { name, channels, properties: &holes })
        .collect();
    let subscriptions = names.iter().map(|name| subscription(name, "stable", None)).collect();
    let error = ask(mk_catalog(&packages), subscriptions).unwrap_err();
    assert_eq!(error.kind(), "TooHard", "{error:?}");
}

#[test]
fn a_hundred_thousand_skips_are_no_burden() {
    let skips: Vec<String> = (0..100_000).map(|number| format!("alpha.v0.{number}.0")).collect();
    let entries = [("1.0.0", json!({"skips": skips}))];
    assert_eq!(from(alpha(&entries), "0.99999.0").unwrap(), ["alpha.v1.0.0"]);
}

#[test]
fn a_cel_rule_chooses_the_dependency() {
    let gold = json!({"type": "grade", "value": "gold"});
    let rule = |text: &str| json!({"type": "olm.constraint", "value": {"failureMessage": "gold only", "cel": {"rule": text}}});
    let with_rule = |text: &str| {
        let one = [("1.0.0", json!({}))];
        let beta = [("1.0.0", json!({})), ("2.0.0", json!({"replaces": "beta.v1.0.0"}))];
        mk_catalog(&[
            Package {
                name: "alpha",
                channels: &[("stable", &one)],
                properties: &[("1.0.0", rule(text))],
            },
            Package {
                name: "beta",
                channels: &[("stable", &beta)],
                properties: &[("1.0.0", gold.clone())],
            },
        ])
    };
    let go = |text: &str| ask(with_rule(text), vec![subscription("alpha", "stable", None)]);
    let is_gold = "properties.exists(p, p.type == 'grade' && p.value == 'gold')";
    assert_eq!(go(is_gold).unwrap(), ["alpha.v1.0.0", "beta.v1.0.0"]);
    let none = go("properties.exists(p, p.type == 'grade' && p.value == 'tin')").unwrap_err();
    assert!(none.sentence().contains("(gold only)"), "{none:?}");
    let no_rule = go("properties.exists(").unwrap_err();
    assert!(
        no_rule.sentence().starts_with("bundle `alpha.v1.0.0` states a CEL rule"),
        "{no_rule:?}"
    );
}

#[test]
fn looking_for_what_meets_needs_has_a_budget() {
    let one = [("1.0.0", json!({}))];
    let channels: [(&str, &[(&str, Value)]); 1] = [("stable", &one)];
    let label =
        |text: &str| ("1.0.0", json!({"type": "olm.label.required", "value": {"label": text}}));
    let needs = [label("tall"), label("old"), label("green")];
    let names: Vec<String> = (0..10).map(|index| format!("p{index}")).collect();
    let of = |name, properties| Package { name, channels: &channels, properties };
    let mut packages: Vec<Package<'_>> = names.iter().map(|name| of(name, &[])).collect();
    packages.push(of("alpha", &needs));
    let catalogs = Catalogs::one(key(), Arc::new(mk_catalog(&packages)));
    let request = request(vec![subscription("alpha", "stable", None)]);
    let installed = nodes::installed(&catalogs, &request);
    // A look at the one candidate, and for each label one at every entry.
    let looks = 1 + 3 * 11;
    assert!(nodes::problem_within(&catalogs, &request, &installed, looks).is_ok());
    let error = nodes::problem_within(&catalogs, &request, &installed, looks - 1).unwrap_err();
    assert!(matches!(error, ResolveError::TooHard { steps: 33 }), "{error:?}");
}
