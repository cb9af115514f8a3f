//! Any text as a version and as a range of versions: what is written can be read back and means the
//! same, and a version is neither before nor after itself.
#![no_main]

use std::cmp::Ordering;

use libfuzzer_sys::fuzz_target;
use wavelift_core::{range::Range, version::Version};

fuzz_target!(|text: &str| {
    let (version, range) = text.split_once('\n').unwrap_or((text, text));
    let version = Version::parse(version).ok();
    if let Some(version) = &version {
        let again = Version::parse(&version.to_string()).expect("a version is written as a version");
        assert_eq!(again, *version);
        assert_eq!(version.cmp_precedence(&again), Ordering::Equal);
    }
    if let Ok(range) = Range::parse(range) {
        let again = Range::parse(&range.to_string()).expect("a range is written as a range");
        if let Some(version) = &version {
            assert_eq!(range.contains(version), again.contains(version));
        }
    }
    drop(Version::parse_tolerant(text));
});
