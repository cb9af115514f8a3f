//! Any bytes as a catalog: an error or a catalog, never a crash, and one digest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wavelift_catalog::{Catalog, Fbc, Graph, Limits, validate::validate};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { file_bytes: 1 << 20, file_nodes: 100_000, ..Limits::default() };
    let Ok(fbc) = Fbc::parse("fuzzed", bytes, &limits) else { return };
    for problem in validate(&fbc) {
        assert!(!problem.to_string().is_empty());
    }
    let Ok(catalog) = Catalog::from_fbc(fbc, &limits) else { return };
    let sent = catalog.graph().to_canonical_json();
    let received = Graph::parse_announced(&sent, catalog.digest(), &limits);
    assert_eq!(received.expect("what was sent is what was announced").to_canonical_json(), sent);
    for (name, package) in &catalog.graph().packages {
        for channel in package.channels.keys() {
            drop(catalog.chain(name, channel));
        }
    }
});
