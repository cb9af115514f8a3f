//! Views as text. Nothing here asks or writes.

/// Appends a line to a text.
macro_rules! out {
    ($text:ident, $($part:tt)*) => {{
        $text.push_str(&format!($($part)*));
        $text.push('\n');
    }};
}

mod campaign;
mod catalog;
mod cluster;
mod definitions;
mod preview;
mod route;
mod table;
mod words;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    campaign::{Verdict, launch, line, list, preflight, preview, status},
    catalog::{comparison, listing, package},
    cluster::{Seen, cluster, clusters, upgrades},
    definitions::definitions,
    preview::{changes, group, groups},
    route::{extension_path, route},
};
