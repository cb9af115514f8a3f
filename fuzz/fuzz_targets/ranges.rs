//! Any texts as versions, ranges and releases: what is written can be read back and means the same,
//! and versions have one order.
#![no_main]

use std::cmp::Ordering;

use libfuzzer_sys::fuzz_target;
use wavelift_core::{
    range::Range,
    release::{Release, VersionRelease},
    version::Version,
};

fuzz_target!(|text: &str| {
    let lines: Vec<&str> = text.split('\n').take(6).collect();
    let versions: Vec<Version> = lines.iter().filter_map(|l| Version::parse(l).ok()).collect();
    for version in &versions {
        let again =
            Version::parse(&version.to_string()).expect("a version is written as a version");
        assert_eq!(again, *version);
        assert_eq!(version.cmp_precedence(&again), Ordering::Equal);
    }
    one_order(&versions, Version::cmp_precedence);
    for range in lines.iter().filter_map(|line| Range::parse(line).ok()) {
        let again = Range::parse(&range.to_string()).expect("a range is written as a range");
        for version in &versions {
            assert_eq!(range.contains(version), again.contains(version));
        }
    }
    for release in lines.iter().filter_map(|line| Release::parse(line).ok()) {
        let again = Release::parse(&release.to_string());
        assert_eq!(again.expect("a release is written as a release"), release);
    }
    let releases: Vec<VersionRelease> =
        lines.iter().filter_map(|line| VersionRelease::parse_legacy(line).ok()).collect();
    for release in &releases {
        let again = VersionRelease::parse_legacy(&release.to_string());
        assert_eq!(again.expect("it is written as a version"), *release);
    }
    one_order(&releases, VersionRelease::cmp_precedence);
    for line in &lines {
        if let Ok(tolerated) = Version::parse_tolerant(line) {
            let again = Version::parse(&tolerated.to_string());
            assert_eq!(again.expect("a tolerated version is written as a strict one"), tolerated);
        }
    }
});

/// Every two are ordered, the same from both sides, and every three go together.
fn one_order<T: std::fmt::Debug>(all: &[T], cmp: impl Fn(&T, &T) -> Ordering) {
    for a in all {
        for b in all {
            assert_eq!(cmp(a, b), cmp(b, a).reverse(), "{a:?} {b:?}");
            for c in all {
                if cmp(a, b).is_le() && cmp(b, c).is_le() {
                    assert!(cmp(a, c).is_le(), "{a:?} {b:?} {c:?}");
                }
            }
        }
    }
}
