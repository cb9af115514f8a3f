//! Reads catalogs and says how long each part took: `measure PATH...`. Each path is one catalog.

use std::{error::Error, path::Path, time::Instant};

use wavelift_catalog::{Catalog, Fbc, Limits, validate::validate};

#[expect(clippy::print_stdout, reason = "printing is all that this program is for")]
fn main() -> Result<(), Box<dyn Error>> {
    let limits = Limits::default();
    let (mut read, mut validated, mut built, mut chained) = (0.0, 0.0, 0.0, 0.0);
    let (mut bundles, mut problems) = (0, 0);
    for path in std::env::args().skip(1) {
        let mut clock = Instant::now();
        let mut lap = |sum: &mut f64| {
            *sum += clock.elapsed().as_secs_f64() * 1000.0;
            clock = Instant::now();
        };
        let fbc = Fbc::read(Path::new(&path), &limits)?;
        lap(&mut read);
        bundles += fbc.bundles.len();
        problems += validate(&fbc).len();
        lap(&mut validated);
        let Ok(catalog) = Catalog::from_fbc(fbc, &limits) else { continue };
        lap(&mut built);
        for (name, package) in &catalog.graph().packages {
            for channel in package.channels.keys() {
                drop(catalog.chain(name, channel));
            }
        }
        lap(&mut chained);
    }
    println!(
        "{bundles} bundles, {problems} problems; read {read:.1} ms, validated {validated:.1} ms"
    );
    println!("graph, digest and index {built:.1} ms, all chains {chained:.1} ms");
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        println!("memory at its highest {}", peak.trim());
    }
    Ok(())
}
