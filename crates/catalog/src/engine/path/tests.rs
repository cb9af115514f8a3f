use super::*;
use crate::engine::{CatalogKey, Cause, Installed, InstalledProperties, Subscription};

fn v(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn subscription(package: &str, version: &str) -> Subscription {
    Subscription {
        package: package.to_owned(),
        channel: "stable".to_owned(),
        catalog: CatalogKey::default(),
        installed: Some(Installed {
            csv: format!("{package}.v{version}"),
            version: Some(v(version)),
            properties: InstalledProperties::AsInCatalog,
        }),
        starting_csv: None,
    }
}

/// Follows a namespace of alpha and beta, both at 1.0.0, through these plans: (package, from, to).
fn check(plans: &[&[(&str, &str, &str)]], targets: &[(&str, &str)]) -> Result<Path, PathError> {
    let request = Request {
        namespace: "ns".to_owned(),
        subscriptions: vec![subscription("alpha", "1.0.0"), subscription("beta", "1.0.0")],
        unreferenced: Vec::new(),
    };
    let mut plans = plans.iter();
    let mut next = |_: &Request| {
        let Some(plan) = plans.next() else { return Ok(Next::Stays) };
        let moves = plan.iter().map(|(package, from, to)| Move {
            package: (*package).to_owned(),
            from: Some(format!("{package}.v{from}")),
            to: format!("{package}.v{to}"),
            to_version: Some(v(to)),
            channel: "stable".to_owned(),
            catalog: CatalogKey::default(),
            cause: Cause::Subscription,
        });
        Ok(Next::Moves(moves.collect()))
    };
    let targets = targets.iter().map(|(package, to)| ((*package).to_owned(), v(to))).collect();
    follow(&mut next, &|_, _, _| None, &request, &targets)
}

#[track_caller]
fn no_path(result: Result<Path, PathError>) -> NoPath {
    match result.unwrap_err() {
        PathError::NoPath(no_path) => *no_path,
        other @ PathError::Resolve { .. } => panic!("{other:?}"),
    }
}

const A1: (&str, &str, &str) = ("alpha", "1.0.0", "1.1.0");
const A2: (&str, &str, &str) = ("alpha", "1.1.0", "1.2.0");
const B1: (&str, &str, &str) = ("beta", "1.0.0", "2.0.0");

#[test]
fn hops_end_at_the_target_though_there_is_more() {
    let path = check(&[&[A1, B1], &[A2]], &[("alpha", "1.1.0")]).unwrap();
    assert_eq!((path.hops.len(), path.end), (1, PathEnd::Target));
    assert_eq!(path.hops[0].csvs(), BTreeSet::from(["alpha.v1.1.0", "beta.v2.0.0"]));
    let path = check(&[&[A1], &[A2, B1]], &[("alpha", "1.2.0"), ("beta", "2.0.0")]).unwrap();
    assert_eq!((path.hops.len(), path.end), (2, PathEnd::Target));
}

#[test]
fn without_a_target_hops_end_where_the_namespace_stays() {
    let path = check(&[&[A1], &[A2]], &[]).unwrap();
    assert_eq!((path.hops.len(), path.end), (2, PathEnd::Stays));
}

#[test]
fn at_the_target_already_is_a_path_of_no_hop() {
    let path = check(&[&[A1]], &[("alpha", "1.0.0")]).unwrap();
    assert_eq!((path.hops.len(), path.end), (0, PathEnd::Target));
}

#[test]
fn a_hop_past_the_target_is_named() {
    let expected = NoPath::Overshoots {
        package: "alpha".to_owned(),
        target: v("1.1.5"),
        csv: "alpha.v1.2.0".to_owned(),
        version: v("1.2.0"),
    };
    assert_eq!(no_path(check(&[&[A1], &[A2]], &[("alpha", "1.1.5")])), expected);
    // Also when alpha is at its target and moves on while beta is not there yet.
    let targets = [("alpha", "1.1.0"), ("beta", "2.0.0")];
    assert_eq!(no_path(check(&[&[A1], &[A2], &[B1]], &targets)).kind(), "Overshoots");
}

#[test]
fn a_target_that_is_not_reached_is_named_with_where_it_stays() {
    let stays = |why| NoPath::Stays {
        package: "alpha".to_owned(),
        installed: Some("alpha.v1.1.0".to_owned()),
        target: v("1.2.0"),
        why,
    };
    let targets = [("alpha", "1.2.0"), ("beta", "1.0.0")];
    let found = no_path(check(&[&[A1]], &targets));
    assert_eq!(found, stays(None));
    assert_eq!(found.to_string(), "`alpha` stays at `alpha.v1.1.0`: no edge leads on to 1.2.0");
    let needs = Reason::Needs { need: "package butter >=3.0.0".to_owned() };
    assert_eq!(
        stays(Some(needs)).to_string(),
        "`alpha` stays at `alpha.v1.1.0`: 1.2.0 needs package butter >=3.0.0, which nothing visible \
         can give"
    );
}

#[test]
fn targets_that_make_no_sense_are_named() {
    assert_eq!(no_path(check(&[], &[("alpha", "0.9.0")])).kind(), "AlreadyPast");
    assert_eq!(no_path(check(&[], &[("gamma", "1.0.0")])).kind(), "NotSubscribed");
}

#[test]
fn hops_in_a_circle_end() {
    let back = ("alpha", "1.1.0", "1.0.0");
    assert_eq!(no_path(check(&[&[A1], &[back], &[A1]], &[])), NoPath::Circle { hops: 2 });
}
