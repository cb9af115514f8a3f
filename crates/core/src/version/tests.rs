use proptest::prelude::*;

use super::*;

fn v(text: &str) -> Version {
    Version::parse(text).unwrap()
}

#[test]
fn strict_versions_are_taken_and_shown_as_written() {
    for text in [
        "0.0.0",
        "1.2.3",
        "4.22.0-202607011454",
        "1.2.3-rc.1",
        "1.2.3-r10",
        "1.2.3--x",
        "8.11.3+0.1718954260.p",
        "1.0.0-a.b+c-d.007",
        "18446744073709551615.0.0",
        "1.0.0-0",
    ] {
        assert_eq!(v(text).to_string(), text);
    }
}

#[test]
fn other_texts_are_refused() {
    let cases = [
        ("", "Empty"),
        ("1", "Parts"),
        ("1.2", "Parts"),
        ("v1.2.3", "Number"),
        ("01.2.3", "Number"),
        ("1.02.3", "Number"),
        ("1.2.03", "Number"),
        ("1.2.3.4", "Number"),
        ("1.2.x", "Number"),
        ("1..3", "Number"),
        ("18446744073709551616.0.0", "Number"),
        ("1.2.3-01", "Number"),
        ("1.2.3-99999999999999999999", "Number"),
        ("1.2.3-", "Identifier"),
        ("1.2.3-a..b", "Identifier"),
        ("1.2.3-a_b", "Identifier"),
        ("1.2.3+", "Identifier"),
        ("1.2.3+a+b", "Identifier"),
        (" 1.2.3", "Number"),
    ];
    for (text, kind) in cases {
        assert_eq!(Version::parse(text).unwrap_err().kind(), kind, "`{text}`");
    }
    assert_eq!(Version::parse(&"1".repeat(300)).unwrap_err().kind(), "TooLong");
}

#[test]
fn people_may_write_it_shorter() {
    let cases = [
        ("v1.2.3", "1.2.3"),
        (" 1.2.3 ", "1.2.3"),
        ("1", "1.0.0"),
        ("v1.2", "1.2.0"),
        ("01.002.0003", "1.2.3"),
        ("00.0.00-rc", "0.0.0-rc"),
        ("1.2.3-rc.1+b", "1.2.3-rc.1+b"),
    ];
    for (text, expected) in cases {
        assert_eq!(Version::parse_tolerant(text).unwrap().to_string(), expected, "`{text}`");
    }
    for text in ["", "v", "1.2-rc", "1+b", "vv1.2.3", "1.2.3.4", "1.2.3-01"] {
        assert!(Version::parse_tolerant(text).is_err(), "`{text}`");
    }
}

#[test]
fn precedence_goes_up_this_ladder() {
    let ladder = [
        "0.9.9",
        "1.0.0-0",
        "1.0.0-2",
        "1.0.0-10",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-r10",
        "1.0.0-r9",
        "1.0.0",
        "4.15.0-202410010035",
        "4.15.0",
        "4.15.1",
        "4.20.0",
        "10.0.0",
    ];
    for pair in ladder.windows(2) {
        assert_eq!(v(pair[0]).cmp_precedence(&v(pair[1])), Ordering::Less, "{pair:?}");
    }
}

#[test]
fn rebuilds_are_equal_in_precedence_and_different_as_keys() {
    let (a, b) = (v("8.11.3+0.1718954260.p"), v("8.11.3+0.1738956554.p"));
    assert_eq!(a.cmp_precedence(&b), Ordering::Equal);
    assert_ne!(a, b);
    assert!(a < b);
    assert_eq!(a.without_build(), v("8.11.3"));
    assert!(a.is_at(&v("8.11.3")) && a.is_at(&a) && !a.is_at(&b) && !v("8.11.3").is_at(&a));
}

fn any_version() -> impl Strategy<Value = Version> {
    let pre = "(-(0|[1-9][0-9]{0,3}|[a-c][0-9a-c-]{0,2})(\\.(0|[1-9]|[a-c]{1,2})){0,2})?";
    let text = format!("[0-3]\\.[0-3]\\.[0-3]{pre}(\\+[0-9a-c]{{1,3}})?");
    proptest::string::string_regex(&text).unwrap().prop_map(|text| Version::parse(&text).unwrap())
}

proptest! {
    #[test]
    fn text_and_json_round_trip(version in any_version()) {
        prop_assert_eq!(&v(&version.to_string()), &version);
        let json = serde_json::to_string(&version).unwrap();
        prop_assert_eq!(serde_json::from_str::<Version>(&json).unwrap(), version);
    }

    #[test]
    fn precedence_is_a_total_preorder(a in any_version(), b in any_version(), c in any_version()) {
        prop_assert_eq!(a.cmp_precedence(&b), b.cmp_precedence(&a).reverse());
        prop_assert!(a.cmp_precedence(&a).is_eq());
        if a.cmp_precedence(&b).is_le() && b.cmp_precedence(&c).is_le() {
            prop_assert!(a.cmp_precedence(&c).is_le());
        }
        if a.cmp_precedence(&b).is_ne() {
            prop_assert_eq!(a.cmp(&b), a.cmp_precedence(&b));
        }
        prop_assert_eq!(a.cmp(&b).is_eq(), a == b);
    }

    #[test]
    fn no_text_breaks_the_reader(text in ".{0,40}") {
        if let Ok(version) = Version::parse(&text) {
            prop_assert_eq!(version.to_string(), text.clone());
        }
        if let Ok(version) = Version::parse_tolerant(&text) {
            prop_assert!(Version::parse(&version.to_string()).is_ok());
        }
    }
}
