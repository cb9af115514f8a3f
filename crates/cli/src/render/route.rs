//! The way of one operator.

use wavelift_catalog::engine::{Hop, Route, RouteEnd, Stop, olm_v1};

use super::table::{Cell, Table};
use crate::printer::{Printer, Tone};

/// The most versions that are listed as jumped over.
const JUMPED_MAX: usize = 12;

/// The way of an operator of OLM v0.
pub(crate) fn route(route: &Route, printer: &Printer) -> String {
    let paint = printer.paint();
    let mut text = hops(&route.hops, &route.package, printer);
    match &route.end {
        RouteEnd::Reached { csv, .. } if route.hops.is_empty() => {
            out!(text, "{}", paint.tone(Tone::Good, &format!("{csv} is there already")));
        }
        RouteEnd::Reached { csv, .. } => {
            let hops = match route.hops.len() {
                1 => "one hop".to_owned(),
                many => format!("{many} hops"),
            };
            out!(text, "{}", paint.tone(Tone::Good, &format!("{hops} to {csv}")));
        }
        RouteEnd::NoWay(why) => {
            out!(text, "{}", paint.tone(Tone::Bad, &format!("No path: {why}")));
        }
    }
    if !route.detours.is_empty() {
        out!(text, "\nOther channels lead there:");
        for detour in &route.detours {
            let legs = detour.legs.iter().map(|leg| {
                format!("{} -> {} in channel {} ({})", leg.from, leg.to, leg.channel, leg.edge)
            });
            out!(text, "  {}", legs.collect::<Vec<_>>().join(", then "));
        }
    }
    if !route.jumped.is_empty() {
        out!(text, "\nOLM does not stop at these versions on the way:");
        for jumped in route.jumped.iter().take(JUMPED_MAX) {
            let how = jumped.stops.iter().min_by_key(|stop| effort(stop)).map_or_else(
                || "nothing makes it stop there".to_owned(),
                |stop| match stop {
                    Stop::Channel { channel, edge } => {
                        format!("it would in channel {channel} ({edge})")
                    }
                    Stop::PinnedCatalog { channel, edge, .. } => {
                        format!("it would with a pinned catalog whose channel {channel} ends there ({edge})")
                    }
                },
            );
            out!(text, "  {}: {how}", jumped.csv);
        }
        if let Some(more) = route.jumped.len().checked_sub(JUMPED_MAX).filter(|more| *more > 0) {
            out!(text, "  and {more} more (-o json shows all)");
        }
    }
    text
}

/// Another channel is easier than a catalog of one's own, and that the easier the less it lacks.
fn effort(stop: &Stop) -> usize {
    match stop {
        Stop::Channel { .. } => 0,
        Stop::PinnedCatalog { without, .. } => 1 + without.len(),
    }
}

fn hops(hops: &[Hop], package: &str, printer: &Printer) -> String {
    if hops.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["HOP", "FROM", "TO", "MOVES ALONG"]);
    for (at, hop) in hops.iter().enumerate() {
        let own = hop.moves.iter().find(|one| one.package == package);
        let others = hop.moves.iter().filter(|one| one.package != package);
        let along: Vec<_> = others.map(|one| one.to.clone()).collect();
        table.row(vec![
            Cell::text((at + 1).to_string()),
            Cell::text(own.and_then(|one| one.from.clone()).unwrap_or_default()),
            Cell::text(own.map(|one| one.to.clone()).unwrap_or_default()),
            Cell::text(along.join(", ")),
        ]);
    }
    table.render(printer) + "\n"
}

/// The way of an extension of OLM v1.
pub(crate) fn extension_path(path: &olm_v1::Path, printer: &Printer) -> String {
    if path.hops.is_empty() {
        return "It is there already\n".to_owned();
    }
    let mut table = Table::new(&["HOP", "FROM", "TO", "PIN", "NOTE"]);
    for (at, hop) in path.hops.iter().enumerate() {
        let note = hop.deprecation.as_ref().map(|why| format!("deprecated: {why}"));
        table.row(vec![
            Cell::text((at + 1).to_string()),
            Cell::text(hop.from.clone().unwrap_or_default()),
            Cell::text(&hop.to),
            Cell::text(&hop.pin),
            Cell::text(note.unwrap_or_default()).tone_if_any(Tone::Warn),
        ]);
    }
    table.render(printer) + "\nEach hop: set spec.source.catalog.version to PIN, and wait for it\n"
}
