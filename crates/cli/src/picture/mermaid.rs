//! The picture for Mermaid, as Markdown on the web draws it.

use std::collections::BTreeMap;

use super::model::{By, Model, Presence};

/// The picture.
pub(crate) fn mermaid(model: &Model) -> String {
    let mut text = "graph BT\n".to_owned();
    // Names have characters that Mermaid gives a meaning: nodes are numbered.
    let ids: BTreeMap<&str, usize> =
        model.nodes.iter().enumerate().map(|(id, node)| (node.name.as_str(), id)).collect();
    for (id, node) in model.nodes.iter().enumerate() {
        let class = match (node.presence, &node.deprecation) {
            (Presence::Missing, _) => ":::missing",
            (Presence::Here, Some(_)) => ":::deprecated",
            (Presence::Here, None) => "",
        };
        text.push_str(&format!("  n{id}[\"{}\"]{class}\n", escaped(&node.name)));
    }
    for lane in &model.channels {
        for edge in &lane.edges {
            let (Some(from), Some(to)) = (ids.get(&*edge.from), ids.get(&*edge.to)) else {
                continue;
            };
            let arrow = match edge.by {
                By::Replaces => "-->",
                By::Skips => "-.->",
                By::SkipRange => "==>",
            };
            text.push_str(&format!("  n{from} {arrow}|\"{}\"| n{to}\n", escaped(&lane.name)));
        }
    }
    text.push_str("  classDef missing stroke-dasharray: 4 4\n  classDef deprecated fill:#fff3cd\n");
    text
}

/// Text within quotes: what has a meaning there becomes an entity code.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => escaped.push_str("#quot;"),
            '<' => escaped.push_str("#lt;"),
            '>' => escaped.push_str("#gt;"),
            '#' => escaped.push_str("#35;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
