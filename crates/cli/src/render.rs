//! Views as text. Nothing here asks or writes.

/// Appends a line to a text.
macro_rules! out {
    ($text:ident, $($part:tt)*) => {{
        $text.push_str(&format!($($part)*));
        $text.push('\n');
    }};
}

mod campaign;
mod cluster;
mod preview;
mod table;
mod words;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    campaign::{Verdict, launch, line, list, preflight, preview, status},
    cluster::{cluster, clusters},
    preview::{changes, group, groups},
};
