use proptest::prelude::*;

use super::*;

fn v(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn c(text: &str) -> Constraint {
    Constraint::parse(text).unwrap_or_else(|error| panic!("`{text}`: {error}"))
}

#[track_caller]
fn check(constraint: &str, inside: &[&str], outside: &[&str]) {
    let parsed = c(constraint);
    for version in inside {
        assert!(parsed.contains(&v(version)), "{version} should satisfy `{constraint}`");
    }
    for version in outside {
        assert!(!parsed.contains(&v(version)), "{version} should not satisfy `{constraint}`");
    }
}

#[test]
fn comparisons_of_whole_versions() {
    check("1.2.3", &["1.2.3", "1.2.3+build"], &["1.2.4", "1.2.3-rc"]);
    check("=1.2.3", &["1.2.3"], &["1.2.4"]);
    check("v1.2.3", &["1.2.3"], &["1.2.2"]);
    check("!=1.2.3", &["1.2.4", "0.0.0"], &["1.2.3", "1.2.3+b", "1.2.4-rc"]);
    check(">1.2.3", &["1.2.4", "2.0.0"], &["1.2.3"]);
    check(">=1.2.3", &["1.2.3", "1.3.0"], &["1.2.2"]);
    check("=>1.2.3", &["1.2.3"], &["1.2.2"]);
    check("<1.2.3", &["1.2.2"], &["1.2.3", "1.2.3-rc"]);
    check("<=1.2.3", &["1.2.3"], &["1.2.4"]);
    check("=<1.2.3", &["1.2.3"], &["1.2.4"]);
    check("01.02.003", &["1.2.3"], &["1.2.4"]);
}

#[test]
fn tilde_keeps_the_minor_number() {
    check("~1.2.3", &["1.2.3", "1.2.9"], &["1.2.2", "1.3.0", "2.2.3"]);
    check("~>1.2.3", &["1.2.9"], &["1.3.0"]);
    check("~1.2", &["1.2.0", "1.2.9"], &["1.3.0", "1.1.9"]);
    check("~1", &["1.0.0", "1.9.9"], &["2.0.0", "0.9.9"]);
    check("~1.x", &["1.9.9"], &["2.0.0"]);
    check("~*", &["0.0.0", "7.8.9"], &[]);
    check("~0.0.0", &["0.0.0", "7.8.9"], &[]);
    check("~0.0", &["0.0.9"], &["0.1.0", "1.0.0"]);
    check("~0", &["0.9.9"], &["1.0.0"]);
    check("~1.2.3-beta", &["1.2.3-beta", "1.2.3", "1.2.9-alpha"], &["1.2.3-alpha", "1.3.0"]);
}

#[test]
fn caret_keeps_the_first_number_that_is_not_zero() {
    check("^1.2.3", &["1.2.3", "1.9.0"], &["1.2.2", "2.0.0"]);
    check("^1.2", &["1.2.0", "1.9.0"], &["1.1.9", "2.0.0"]);
    check("^1", &["1.0.0", "1.9.0"], &["2.0.0"]);
    check("^0.2.3", &["0.2.3", "0.2.9"], &["0.3.0", "1.0.0"]);
    check("^0.2", &["0.2.0", "0.2.9"], &["0.3.0"]);
    check("^0.0.3", &["0.0.3"], &["0.0.4", "0.0.2", "0.1.3", "1.0.3"]);
    check("^0.0", &["0.0.0", "0.0.9"], &["0.1.0"]);
    check("^0", &["0.0.0", "0.9.0"], &["1.0.0"]);
    // It says nothing was written, not that anything may be.
    check("^*", &["0.0.0"], &["0.0.1", "0.1.0", "1.0.0"]);
}

#[test]
fn open_numbers_cover_a_whole_line_of_versions() {
    for text in ["1.2", "1.2.x", "1.2.X", "1.2.*", "=1.2", "=1.2.x"] {
        check(text, &["1.2.0", "1.2.9"], &["1.1.9", "1.3.0", "2.2.0"]);
    }
    for text in ["1", "1.x", "1.x.x", "1.*", "1.x.7"] {
        check(text, &["1.0.0", "1.9.9"], &["0.9.9", "2.0.0"]);
    }
    for text in ["*", "x", "X", "=*", "*.1.2", ">=*"] {
        check(text, &["0.0.0", "9.9.9"], &["1.0.0-rc"]);
    }
    check(">1", &["2.0.0"], &["1.9.9", "1.0.0"]);
    check(">1.2", &["1.3.0", "2.0.0"], &["1.2.9"]);
    check(">=1.2.x", &["1.2.0"], &["1.1.9"]);
    check("<1.2.x", &["1.1.9"], &["1.2.0"]);
    check("<=1.2", &["1.2.9", "0.9.0"], &["1.3.0"]);
    check("<=1", &["1.9.9"], &["2.0.0"]);
    check("!=1.2", &["1.3.0", "1.1.0", "2.2.0"], &["1.2.0", "1.2.9"]);
    check("!=1", &["2.0.0", "0.1.0"], &["1.0.0", "1.9.9"]);
    check("!=*", &["0.0.1"], &["0.0.0"]);
    check(">*", &["0.0.1", "1.0.0"], &["0.0.0"]);
    check("<*", &[], &["0.0.0", "0.0.1"]);
    check("<=*", &["0.0.0", "0.0.9"], &["0.1.0", "1.0.0"]);
}

#[test]
fn terms_and_alternatives_are_joined() {
    for text in [">=1.2.0, <1.4.0", ">=1.2.0 <1.4.0", ">=1.2.0,<1.4.0", " >= 1.2.0 ,\t< 1.4.0 "] {
        check(text, &["1.2.0", "1.3.9"], &["1.1.9", "1.4.0"]);
    }
    check("<1.0 || >=2.0", &["0.9.0", "2.0.0"], &["1.0.0", "1.9.9"]);
    check("1.1||1.3", &["1.1.5", "1.3.5"], &["1.2.0"]);
    check("~1.1 || >=2.0.0 <2.2, !=2.1.1", &["1.1.9", "2.1.0"], &["2.1.1", "2.2.0", "1.2.0"]);
    check(">=2 <1", &[], &["1.0.0", "2.0.0"]);
}

#[test]
fn spans_take_in_both_ends() {
    check("1.2 - 1.4", &["1.2.0", "1.4.9"], &["1.1.9", "1.5.0"]);
    check("1.2.3 - 1.4.5", &["1.2.3", "1.4.5"], &["1.2.2", "1.4.6"]);
    check("v1 - v2", &["1.0.0", "2.9.9"], &["3.0.0"]);
    check("1 - 2 || 4 - 5", &["1.5.0", "4.0.0", "5.9.0"], &["3.0.0", "6.0.0"]);
    check("1.2 - 1.4 !=1.3", &["1.2.0", "1.4.0"], &["1.3.0"]);
    check("!=1.3, 1.2 - 1.4", &["1.2.0"], &["1.3.7"]);
    check("1.0.0-a - 1.0.0-c", &["1.0.0-b", "1.0.0-c"], &["1.0.0", "1.0.0-d"]);
    // Without spaces it is a prerelease.
    check("1.2.0-1", &["1.2.0-1"], &["1.2.0", "1.3.0"]);
    // Spans come before alternatives, and `|` counts as a digit there: `>= 1 || 2, <= 3`.
    check("1||2 - 3", &["1.0.0", "2.5.0", "9.0.0"], &["0.9.0"]);
    // The space in front goes with the span, so that the terms run together.
    for text in ["1.0 2.0 - 3.0", ">1.0 - 2.0", "1 - 2 - 3", "1.2.3.4 - 5", "1 -2", "1- 2"] {
        assert_eq!(Constraint::parse(text).unwrap_err().kind(), "Improper", "`{text}`");
    }
}

#[test]
fn prereleases_count_only_where_one_is_named() {
    check(">=1.0.0", &["1.0.0"], &["1.1.0-rc", "2.0.0-0"]);
    check("*", &[], &["1.0.0-rc"]);
    check(">=1.0.0-0", &["1.0.0-rc", "2.0.0-0", "1.0.0"], &["0.9.0"]);
    check(">=4.22.0-0", &["4.22.0-202607011454"], &[]);
    check("4.22.0-202607011454", &["4.22.0-202607011454"], &["4.22.0", "4.22.0-202607011455"]);
    check("*-0", &["0.0.0-0", "5.0.0-rc"], &[]);
    check("1.x-0", &["1.0.0-rc", "1.5.0-rc"], &["2.0.0"]);
    // One term speaks for its whole alternative, and for no other.
    check(">=1.0.0, <2.0.0-0", &["1.5.0-rc"], &["2.0.0-rc"]);
    check(">=1.0.0-0 <2.0.0 || 3.x", &["1.5.0-rc", "3.1.0"], &["3.1.0-rc"]);
    check("!=1.2.3-rc", &["1.2.3-rd", "1.2.3"], &["1.2.3-rc"]);
    check("!=1.2-rc", &["1.2.7-rd", "1.2.7"], &["1.2.7-rc"]);
    check(">1.2-rc", &["1.3.0-a"], &["1.2.9", "1.2.9-z"]);
    check("<1.0.0-r9", &["1.0.0-r10", "1.0.0-1"], &["1.0.0-r9", "1.0.0"]);
    // More than 64 bits: compared as text, which is above any number.
    check("<1.0.0-99999999999999999999", &["1.0.0-5"], &["1.0.0-a"]);
}

#[test]
fn a_prerelease_that_alone_stands_in_the_way_is_told_apart() {
    let fit = |constraint: &str, version: &str| c(constraint).fit(&v(version));
    assert_eq!(fit(">=1.0.0", "1.1.0-rc"), Fit::OnlyAsPrerelease);
    assert_eq!(fit(">=1.0.0", "0.9.0-rc"), Fit::DoesNot);
    assert_eq!(fit(">=1.0.0", "1.1.0"), Fit::Fits);
    assert_eq!(fit(">=1 || 1.0.0-rc", "1.1.0-rc"), Fit::OnlyAsPrerelease);
    assert_eq!(fit(">=1 || 1.0.0-rc", "1.0.0-rc"), Fit::Fits);
}

#[test]
fn the_last_numbers_may_be_anything_behind_an_open_one() {
    check("1.x.5", &["1.0.0", "1.9.9"], &["2.0.0"]);
    check("*.1|.xX", &["7.0.0"], &[]);
    check("1.*.9-rc", &["1.0.0-rc", "1.0.0"], &["2.0.0"]);
}

#[test]
fn other_texts_are_refused() {
    let cases = [
        ("", "Improper"),
        (" ", "Improper"),
        ("foo", "Improper"),
        ("V1.2.3", "Improper"),
        ("1.2.3.4", "Improper"),
        ("1.", "Improper"),
        ("1.2.3-", "Improper"),
        ("1.2.3-a..b", "Improper"),
        ("1.2.3+", "Improper"),
        ("==1.2.3", "Improper"),
        ("> =1.2.3", "Improper"),
        ("><1.2.3", "Improper"),
        (">", "Improper"),
        (",1.2.3", "Improper"),
        ("1.2.3,", "Improper"),
        ("1.2.3,,2.0.0", "Improper"),
        ("1.2.3||", "Improper"),
        ("||1.2.3", "Improper"),
        ("1.2.3 | 2.0.0", "Version"),
        ("1|2", "Version"),
        ("1x.2.3", "Version"),
        ("1.2xx", "Version"),
        ("xx", "Version"),
        ("1.2.3-01", "Version"),
        ("18446744073709551616", "Version"),
        ("\u{2265}1.2.3", "Improper"),
        ("1.2.3\u{a0}", "Improper"),
        ("1.2.3\u{b}", "Improper"),
    ];
    for (text, kind) in cases {
        assert_eq!(Constraint::parse(text).unwrap_err().kind(), kind, "`{text}`");
    }
}

#[test]
fn everything_is_bounded() {
    let alternatives = |count: usize| vec!["1"; count].join("||");
    assert!(Constraint::parse(&alternatives(32)).is_ok());
    assert_eq!(Constraint::parse(&alternatives(33)).unwrap_err().kind(), "TooManyAlternatives");
    let long = |length: usize| format!("1.0.0{}", " ".repeat(length - 5));
    assert!(Constraint::parse(&long(512)).is_ok());
    assert_eq!(Constraint::parse(&long(513)).unwrap_err().kind(), "TooLong");
    // The version of a term: `v` and build metadata count where all numbers are written.
    let term = |length: usize| format!("v1.0.0+{}", "b".repeat(length - 7));
    assert!(Constraint::parse(&term(256)).is_ok());
    assert_eq!(Constraint::parse(&term(257)).unwrap_err().kind(), "Version");
    assert!(Constraint::parse(&format!("1.x+{}", "b".repeat(400))).is_ok());
}

#[test]
fn an_exact_version_is_a_constraint() {
    let exact = Constraint::exactly(&v("8.11.3-rc.1+0.17"));
    assert_eq!(exact.as_str(), "8.11.3-rc.1");
    assert!(exact.contains(&v("8.11.3-rc.1+0.18")) && !exact.contains(&v("8.11.3")));
    assert!(!Constraint::exactly(&v("1.0.0")).contains(&v("1.0.0-rc")));
}

fn any_version() -> impl Strategy<Value = Version> {
    let text = "[0-3]\\.[0-3]\\.[0-3](-(0|[1-9]|[a-c]{1,2})(\\.[0-9a-c])?)?(\\+[a-c])?";
    proptest::string::string_regex(text).unwrap().prop_map(|text| Version::parse(&text).unwrap())
}

fn any_term() -> impl Strategy<Value = String> {
    let text = "(|=|!=|>|<|>=|=>|<=|=<|~|~>|\\^)v?([0-3xX*])(\\.[0-3x*](\\.[0-3x*])?)?(-[0-9a-c])?";
    proptest::string::string_regex(text).unwrap()
}

proptest! {
    #[test]
    fn an_alternative_accepts_what_its_parts_accept(
        a in any_term(), b in any_term(), version in any_version(),
    ) {
        let (left, right) = (c(&a), c(&b));
        let either = c(&format!("{a} || {b}")).contains(&version);
        prop_assert_eq!(either, left.contains(&version) || right.contains(&version));
        let both = c(&format!("{a}, {b}"));
        let parts_both = left.contains(&version) && right.contains(&version);
        if parts_both {
            prop_assert!(both.contains(&version));
        }
        if !version.is_prerelease() {
            prop_assert_eq!(both.contains(&version), parts_both);
        }
    }

    #[test]
    fn a_whole_version_splits_all_others(bound in any_version(), version in any_version()) {
        let holds = |operator: &str| c(&format!("{operator}{bound}")).fit(&version) != Fit::DoesNot;
        prop_assert_ne!(holds("<"), holds(">="));
        prop_assert_ne!(holds(">"), holds("<="));
        prop_assert_ne!(holds("="), holds("!="));
        prop_assert_eq!(holds("="), version.cmp_precedence(&bound).is_eq());
        prop_assert_eq!(Constraint::exactly(&bound).contains(&version), holds("="));
    }

    #[test]
    fn a_span_is_its_two_ends(a in any_version(), b in any_version(), version in any_version()) {
        let span = c(&format!("{a} - {b}"));
        prop_assert_eq!(span.contains(&version), c(&format!(">={a}, <={b}")).contains(&version));
    }

    #[test]
    fn no_text_breaks_the_reader(text in "[0-9xX*.<>=!|, v~^ab+-]{0,40}") {
        if let Ok(constraint) = Constraint::parse(&text) {
            let json = serde_json::to_string(&constraint).unwrap();
            let again: Constraint = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(again.fit(&v("1.2.3")), constraint.fit(&v("1.2.3")));
            prop_assert_eq!(constraint.to_string(), text);
        }
    }
}
