use proptest::prelude::*;

use super::*;

fn v(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn check(range: &str, inside: &[&str], outside: &[&str]) {
    let parsed = Range::parse(range).unwrap_or_else(|error| panic!("`{range}`: {error}"));
    for version in inside {
        assert!(parsed.contains(&v(version)), "{version} should be in `{range}`");
    }
    for version in outside {
        assert!(!parsed.contains(&v(version)), "{version} should not be in `{range}`");
    }
}

#[test]
fn terms_and_alternatives() {
    check(">=1.0.0 <1.2.0", &["1.0.0", "1.1.9"], &["0.9.9", "1.2.0"]);
    check("1.2.3", &["1.2.3"], &["1.2.4"]);
    check("==1.2.3", &["1.2.3"], &["1.2.4"]);
    check("!1.2.3", &["1.2.4"], &["1.2.3"]);
    check("!=1.2.3 >1.0.0", &["1.2.4"], &["1.2.3", "1.0.0"]);
    check("<1.2.0 || >1.2.0", &["1.1.0", "1.3.0"], &["1.2.0"]);
    check(">1.0.0 <2.0.0 || 3.0.0 || >5.0.0", &["1.5.0", "3.0.0", "6.0.0"], &["2.5.0", "4.0.0"]);
    check("<= 1.2.0", &["1.2.0"], &["1.2.1"]);
    check(" >=  1.0.0   <1.2.0 ", &["1.1.0"], &["1.2.0"]);
    // The contradictory range of a real operator: it parses and holds nothing.
    check(">=2.0.0 <1.0.0", &[], &["0.5.0", "1.5.0", "2.0.0"]);
}

#[test]
fn prereleases_are_in_a_range_by_plain_order() {
    check("<4.13.0", &["4.13.0-rc.1", "4.12.9"], &["4.13.0"]);
    check("<0.3.1-0", &["0.3.0"], &["0.3.1-0", "0.3.1-rc.1", "0.3.1"]);
    check(">=4.15.0-202410010035", &["4.15.0-202410010036", "4.15.0"], &["4.15.0-202410010034"]);
    check(">=1.0.0-r9", &["1.0.0-r9", "1.0.0"], &["1.0.0-r10"]);
}

#[test]
fn build_metadata_does_not_count() {
    check("=1.2.3", &["1.2.3+a", "1.2.3+b"], &["1.2.4+a"]);
    check("<1.2.3+b", &["1.2.2+z"], &["1.2.3+a"]);
}

#[test]
fn wildcards_end_a_version() {
    check("1.x", &["1.0.0", "1.9.9", "2.0.0-rc.1"], &["0.9.0", "2.0.0", "1.0.0-rc.1"]);
    check("1.2.x", &["1.2.0", "1.2.9"], &["1.3.0", "1.1.9"]);
    check(">=2.1.x", &["2.1.0", "3.0.0"], &["2.0.9"]);
    check(">1.x", &["2.0.0"], &["1.9.9"]);
    check("<=1.2.x", &["1.2.9", "0.1.0"], &["1.3.0"]);
    check("<1.2.x", &["1.1.9"], &["1.2.0"]);
    check("1.x || >=2.0.x <2.2.x", &["1.5.0", "2.1.9"], &["2.2.0", "0.1.0"]);
    check("!=1.x", &[], &["0.9.0", "1.5.0", "2.0.0"]);
    check("1.x.x", &["1.0.5"], &["1.1.0"]);
}

#[test]
fn odd_texts_mean_what_olm_takes_them_for() {
    check("! 1.0.0", &["1.0.0"], &["1.0.1"]);
    check("~1.2.x", &["1.2.0"], &["1.2.1"]);
    check(">=1.2.3-x86", &["1.2.3-x86", "1.2.3"], &["1.2.2"]);
    check("\u{2265}1.2.x", &["1.2.0"], &["1.2.1"]);
    check(">1.05.x", &["1.6.0"], &["1.5.9"]);
}

#[test]
fn other_texts_are_refused() {
    let cases = [
        ("", "Empty"),
        ("   ", "Empty"),
        ("1", "Empty"),
        ("|| 1.0.0", "Alternative"),
        ("1.0.0 ||", "Alternative"),
        ("1.0.0 || || 2.0.0", "Alternative"),
        ("1.0.0||2.0.0", "Version"),
        ("1.0", "Version"),
        ("v0.1.0", "Operator"),
        ("~1.0.0", "Operator"),
        ("^1.0.0", "Operator"),
        ("=>1.0.0", "Operator"),
        ("1.0.0,2.0.0", "Version"),
        ("1.*", "Version"),
        ("1.0.0 - 2.0.0 >=", "NoVersion"),
        (">=1.0.0 > ", "NoVersion"),
        ("foox", "NoVersion"),
        ("1.2.3-x86", "Wildcard"),
        (">=1.05.x", "Version"),
        (">=1.0.0\t<2.0.0", "Version"),
        // A digit of another script is where the version starts.
        ("\u{663}1.2.x", "Version"),
        // A real operator has curly quotes around its range.
        ("\u{2018}>=1.1.1 <1.1.2\u{2019}", "Operator"),
    ];
    for (text, kind) in cases {
        assert_eq!(Range::parse(text).unwrap_err().kind(), kind, "`{text}`");
    }
    assert_eq!(Range::parse(&"1".repeat(5000)).unwrap_err().kind(), "TooLong");
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in "[0-9x.<>=!| v~-]{0,30}") {
        if let Ok(range) = Range::parse(&text) {
            let json = serde_json::to_string(&range).unwrap();
            let again: Range = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(range.contains(&v("1.2.3")), again.contains(&v("1.2.3")));
        }
    }

    #[test]
    fn a_bound_splits_the_versions(a in 0_u64..4, b in 0_u64..4, c in 0_u64..4, x in 0_u64..4) {
        let bound = Version::new(a, b, c);
        let version = Version::new(x, b, c);
        let below = Range::parse(&format!("<{bound}")).unwrap().contains(&version);
        let above = Range::parse(&format!(">={bound}")).unwrap().contains(&version);
        prop_assert_ne!(below, above);
        let not = Range::parse(&format!("!={bound}")).unwrap().contains(&version);
        let is = Range::parse(&format!("={bound}")).unwrap().contains(&version);
        prop_assert_ne!(not, is);
    }
}

fn any_range() -> impl Strategy<Value = String> {
    let text = "(|=|==|!|!=|<|<=|>|>=)([0-3]\\.[0-3]\\.[0-3](-(0|[1-9]|[a-c]))?|[0-3]\\.x|[0-3]\\.[0-3]\\.x)";
    proptest::string::string_regex(text).unwrap()
}

proptest! {
    #[test]
    fn a_range_accepts_what_its_parts_accept(
        a in any_range(), b in any_range(), numbers in [0_u64..4, 0_u64..4, 0_u64..4],
    ) {
        let [major, minor, patch] = numbers;
        let version = Version::new(major, minor, patch);
        let contains = |text: &str| Range::parse(text).unwrap().contains(&version);
        prop_assert_eq!(contains(&format!("{a} {b}")), contains(&a) && contains(&b));
        prop_assert_eq!(contains(&format!("{a} || {b}")), contains(&a) || contains(&b));
    }
}
