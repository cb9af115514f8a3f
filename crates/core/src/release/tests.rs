use proptest::prelude::*;

use super::*;

fn legacy(text: &str) -> VersionRelease {
    VersionRelease::parse_legacy(text).unwrap()
}

#[test]
fn build_metadata_is_a_release_if_it_can_be_one() {
    // (text, version left, release)
    let cases = [
        ("1.2.3", "1.2.3", None),
        ("1.2.3+4", "1.2.3", Some("4")),
        ("8.11.3+0.1718954260.p", "8.11.3", Some("0.1718954260.p")),
        ("1.2.3-rc.1+a-b.2", "1.2.3-rc.1", Some("a-b.2")),
        // Twenty characters are a release, twenty-one are not.
        ("1.2.3+a2345678901234567890", "1.2.3", Some("a2345678901234567890")),
        ("1.2.3+a23456789012345678901", "1.2.3+a23456789012345678901", None),
        // Build metadata may have leading zeros, a release may not.
        ("1.2.3+007", "1.2.3+007", None),
        ("1.2.3+1.00", "1.2.3+1.00", None),
        ("1.2.3+0", "1.2.3", Some("0")),
        ("1.2.3+00a", "1.2.3", Some("00a")),
    ];
    for (text, version, release) in cases {
        let read = legacy(text);
        assert_eq!(read.version.to_string(), version, "`{text}`");
        assert_eq!(read.release.map(|r| r.to_string()).as_deref(), release, "`{text}`");
    }
    for text in ["", "1.2", "v1.2.3", "1.2.3+", "1.2.3+a_b"] {
        assert_eq!(VersionRelease::parse_legacy(text).unwrap_err().kind(), "Version", "`{text}`");
    }
}

#[test]
fn an_explicit_release_leaves_build_metadata_alone() {
    let read = VersionRelease::parse_explicit("1.2.3+git.abc", "2.el9").unwrap();
    assert_eq!(read.version.to_string(), "1.2.3+git.abc");
    assert_eq!(read.release, Some(Release::parse("2.el9").unwrap()));
    let none = VersionRelease::parse_explicit("1.2.3+4", "").unwrap();
    assert_eq!((none.version.to_string().as_str(), none.release), ("1.2.3+4", None));
    let kind = |v: &str, r: &str| VersionRelease::parse_explicit(v, r).unwrap_err().kind();
    assert_eq!(kind("1.2", "1"), "Version");
    assert_eq!(kind("1.2.3", "01"), "Identifier");
    assert_eq!(kind("1.2.3", "a..b"), "Identifier");
    assert_eq!(kind("1.2.3", "99999999999999999999"), "Identifier");
    assert_eq!(kind("1.2.3", "a23456789012345678901"), "TooLong");
    assert_eq!(Release::parse("").unwrap_err().kind(), "Empty");
}

#[test]
fn precedence_goes_up_this_ladder() {
    let ladder = [
        "1.0.0-rc.1+9",
        "1.0.0",
        "1.0.0+0",
        "1.0.0+2",
        "1.0.0+10",
        "1.0.0+10.0",
        "1.0.0+a",
        "1.0.0+r10",
        "1.0.0+r9",
        "1.0.1",
        "8.11.3+0.1718954260.p",
        "8.11.3+0.1738956554.p",
    ];
    for pair in ladder.windows(2) {
        let order = legacy(pair[0]).cmp_precedence(&legacy(pair[1]));
        assert_eq!(order, Ordering::Less, "{pair:?}");
    }
    // What is no release does not count.
    assert!(legacy("1.0.0+007").cmp_precedence(&legacy("1.0.0")).is_eq());
    assert!(legacy("1.0.0+007").cmp_precedence(&legacy("1.0.0+1")).is_lt());
}

fn any_text() -> impl Strategy<Value = String> {
    let text = "[0-2]\\.[0-2]\\.[0-2](-(0|[1-9][0-9]?|[a-c]{1,2}))?(\\+[0-9a-c]{1,3}(\\.[0-9a-c]{1,9}){0,2})?";
    proptest::string::string_regex(text).unwrap()
}

proptest! {
    #[test]
    fn the_legacy_form_round_trips(text in any_text()) {
        let read = legacy(&text);
        prop_assert_eq!(read.to_string(), text);
        if let Some(release) = &read.release {
            let json = serde_json::to_string(release).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Release>(&json).unwrap(), release);
        }
    }

    #[test]
    fn precedence_is_a_total_preorder(a in any_text(), b in any_text(), c in any_text()) {
        let (a, b, c) = (legacy(&a), legacy(&b), legacy(&c));
        prop_assert_eq!(a.cmp_precedence(&b), b.cmp_precedence(&a).reverse());
        if a.cmp_precedence(&b).is_le() && b.cmp_precedence(&c).is_le() {
            prop_assert!(a.cmp_precedence(&c).is_le());
        }
        // The release refines the order of versions and never overturns it.
        if a.version.cmp_precedence(&b.version).is_ne() {
            prop_assert_eq!(a.cmp_precedence(&b), a.version.cmp_precedence(&b.version));
        }
    }

    #[test]
    fn no_text_breaks_the_reader(text in ".{0,30}") {
        if let Ok(release) = Release::parse(&text) {
            prop_assert_eq!(release.to_string(), text);
        }
    }
}
