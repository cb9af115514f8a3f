//! What holds for every namespace, however odd: resolution fails only where nothing satisfies
//! everything, which is looked for here in the plainest way there is; and the order in which things
//! are written changes nothing.

#[cfg(test)]
#[path = "laws/case.rs"]
mod case;

#[cfg(test)]
#[path = "laws/oracle.rs"]
mod oracle;

#[cfg(test)]
mod laws {
    use std::{collections::BTreeSet, env};

    use wavelift_catalog::{
        OlmV0,
        engine::{Answers, CatalogKey, Catalogs, Listing, Next, Request, ResolveError},
    };

    use super::{case, oracle};

    /// How many namespaces are looked at; `WAVELIFT_CASES` asks for others.
    const CASES: u64 = 500;

    fn cases() -> u64 {
        env::var("WAVELIFT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES)
    }

    type Place = (String, CatalogKey, String);

    fn all(answers: &Answers) -> BTreeSet<BTreeSet<Place>> {
        let of = |next: &Next| {
            let moves = next.moves().iter();
            moves
                .map(|step| (step.to.clone(), step.catalog.clone(), step.channel.clone()))
                .collect()
        };
        std::iter::once(&answers.next).chain(&answers.alternatives).map(of).collect()
    }

    fn answers(catalogs: &Catalogs, request: &Request) -> Result<Answers, ResolveError> {
        OlmV0.answers(catalogs, request)
    }

    #[test]
    fn resolution_fails_only_where_nothing_satisfies_everything() {
        let (mut solved, mut unsolved) = (0, 0);
        for seed in 0..cases() {
            let case = case::of(seed);
            let catalogs = case.catalogs(|_| {});
            match answers(&catalogs, &case.request) {
                Ok(_) => {
                    solved += 1;
                    let found = oracle::is_solvable(&catalogs, &case.request);
                    assert!(found, "seed {seed}: an answer where none is\n{case:#?}");
                }
                Err(ResolveError::Unsatisfiable { .. }) => {
                    unsolved += 1;
                    let found = oracle::is_solvable(&catalogs, &case.request);
                    assert!(!found, "seed {seed}: no answer where one is\n{case:#?}");
                }
                Err(ResolveError::TooHard { .. }) => panic!("seed {seed}: {case:#?}"),
                Err(_) => {}
            }
        }
        assert!(solved > cases() / 4 && unsolved > cases() / 20, "{solved} {unsolved}");
    }

    #[test]
    fn the_order_in_which_things_are_written_changes_nothing() {
        let mut compared = 0;
        for seed in 0..cases() {
            let case = case::of(seed);
            let (plain, turned) = (case.catalogs(|_| {}), case.catalogs(case::reverse));
            let mut request = case.request.clone();
            let one = answers(&plain, &request);
            assert_eq!(one, answers(&turned, &request), "seed {seed}: documents");
            request.subscriptions.reverse();
            let other = answers(&turned, &request);
            let (Ok(one), Ok(other)) = (&one, &other) else {
                assert_eq!(one.is_ok(), other.is_ok(), "seed {seed}: {one:?} {other:?}");
                continue;
            };
            if one.listing == Listing::All && other.listing == Listing::All {
                assert_eq!(all(one), all(other), "seed {seed}: Subscriptions\n{case:#?}");
                compared += 1;
            }
        }
        assert!(compared > cases() / 4, "{compared}");
    }
}
