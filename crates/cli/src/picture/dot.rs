//! The picture for Graphviz.

use super::model::{By, Model, Presence};

/// The picture.
pub(crate) fn dot(model: &Model) -> String {
    let mut text = format!("digraph {} {{\n", quoted(&model.package));
    text.push_str("  rankdir=BT;\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for node in &model.nodes {
        let style = match (node.presence, &node.deprecation) {
            (Presence::Missing, _) => ", style=dashed, color=gray",
            (Presence::Here, Some(_)) => ", style=filled, fillcolor=\"#fff3cd\"",
            (Presence::Here, None) => "",
        };
        let label = quoted(&node.name);
        text.push_str(&format!("  {label} [label={label}{style}];\n"));
    }
    for lane in &model.channels {
        for edge in &lane.edges {
            let style = match edge.by {
                By::Replaces => "solid",
                By::Skips => "dashed",
                By::SkipRange => "dotted",
            };
            let (from, to) = (quoted(&edge.from), quoted(&edge.to));
            let label = quoted(&format!("{} {}", lane.name, edge.by.word()));
            text.push_str(&format!("  {from} -> {to} [style={style}, tooltip={label}];\n"));
        }
    }
    text.push_str("}\n");
    text
}

/// A string of the DOT language.
fn quoted(text: &str) -> String {
    let clean = text.replace(char::is_control, " ");
    format!("\"{}\"", clean.replace('\\', "\\\\").replace('"', "\\\""))
}
