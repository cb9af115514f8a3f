//! The picture as SVG: versions from top to bottom, one column a channel.
//!
//! A dot is a version in a channel. A line goes from a version to the one that replaces it, dashed
//! arcs to those that skip it. Ranges would hide everything else and stand as text at their entry.

use std::collections::BTreeMap;

use super::model::{By, Edge, Lane, Model, Presence};

const ROW: usize = 26;
const LANE: usize = 150;
const TOP: usize = 70;
const LEFT: usize = 24;
/// What a character of the labels takes, about.
const LETTER: usize = 8;

/// The picture.
pub(crate) fn svg(model: &Model) -> String {
    let rows: BTreeMap<&str, usize> =
        model.nodes.iter().enumerate().map(|(row, node)| (node.name.as_str(), row)).collect();
    let longest = model.nodes.iter().map(|node| node.title().chars().count()).max().unwrap_or(0);
    let first = LEFT + longest * LETTER + 40;
    let (width, height) = (first + model.channels.len() * LANE, TOP + model.nodes.len() * ROW + 20);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{0}\">\n\
         <title>{0}</title>\n{STYLE}",
        escaped(&format!("Upgrade graph of {}", model.package)),
    );
    text.push_str(&format!(
        "<text class=\"h\" x=\"{LEFT}\" y=\"26\">{}</text>\n",
        escaped(&model.package)
    ));
    for (row, node) in model.nodes.iter().enumerate() {
        let class = match (node.presence, &node.deprecation) {
            (Presence::Missing, _) => "gone",
            (Presence::Here, Some(_)) => "old",
            (Presence::Here, None) => "v",
        };
        let y = y(row);
        let title = escaped(&node.deprecation.clone().unwrap_or_else(|| node.name.clone()));
        text.push_str(&format!(
            "<line class=\"row\" x1=\"{LEFT}\" x2=\"{width}\" y1=\"{y}\" y2=\"{y}\"/>\n\
             <text class=\"{class}\" x=\"{LEFT}\" y=\"{}\">{}<title>{title}</title></text>\n",
            y + 5,
            escaped(&node.title()),
        ));
    }
    for (at, lane) in model.channels.iter().enumerate() {
        text.push_str(&column(lane, first + at * LANE, &rows));
    }
    text.push_str("</svg>\n");
    text
}

const STYLE: &str = "<style>text{font:13px sans-serif;fill:#1f2328}.h{font-size:18px;font-weight:600}\
.c{font-weight:600}.gone{fill:#8a929a;font-style:italic}.old{fill:#9a6700}.row{stroke:#eaeef2}\
.r{stroke:#0969da;stroke-width:2;fill:none}.s{stroke:#8250df;stroke-dasharray:4 3;fill:none}\
circle{fill:#0969da}.skipped{fill:#fff;stroke:#8a929a}svg{background:#fff}</style>\n";

fn y(row: usize) -> usize {
    TOP + row * ROW
}

fn column(lane: &Lane, x: usize, rows: &BTreeMap<&str, usize>) -> String {
    let default = if lane.is_default { " (default)" } else { "" };
    let name = escaped(&format!("{}{default}", lane.name));
    let mut text = format!("<text class=\"c\" x=\"{}\" y=\"48\">{name}</text>\n", x - 6);
    for edge in &lane.edges {
        text.push_str(&line(edge, x, rows));
    }
    for (entry, said) in &lane.entries {
        let Some(row) = rows.get(entry.as_str()) else { continue };
        let is_target = lane.chain.as_ref().is_ok_and(|chain| chain.contains(entry));
        let class = if is_target { "" } else { " class=\"skipped\"" };
        let range =
            said.skip_range.as_ref().map_or_else(String::new, |r| format!("; skipRange {r}"));
        let title = escaped(&format!("{entry} in {}{range}", lane.name));
        let y = y(*row);
        text.push_str(&format!(
            "<circle{class} cx=\"{x}\" cy=\"{y}\" r=\"5\"><title>{title}</title></circle>\n"
        ));
    }
    text
}

fn line(edge: &Edge, x: usize, rows: &BTreeMap<&str, usize>) -> String {
    let (Some(from), Some(to)) = (rows.get(edge.from.as_str()), rows.get(edge.to.as_str())) else {
        return String::new();
    };
    let title = escaped(&format!("{} {} {}", edge.to, edge.by.word(), edge.from));
    let (from_y, to_y) = (y(*from), y(*to));
    let bend = x + 14 + 6 * from.abs_diff(*to).min(10);
    match edge.by {
        By::Replaces if from.abs_diff(*to) == 1 => format!(
            "<path class=\"r\" d=\"M{x} {from_y}L{x} {to_y}\"><title>{title}</title></path>\n"
        ),
        By::Replaces => format!(
            "<path class=\"r\" d=\"M{x} {from_y}Q{bend} {} {x} {to_y}\"><title>{title}</title></path>\n",
            usize::midpoint(from_y, to_y)
        ),
        By::Skips => format!(
            "<path class=\"s\" d=\"M{x} {from_y}Q{bend} {} {x} {to_y}\"><title>{title}</title></path>\n",
            usize::midpoint(from_y, to_y)
        ),
        By::SkipRange => String::new(),
    }
}

/// Text of XML.
fn escaped(text: &str) -> String {
    let clean = text.replace(char::is_control, " ");
    clean.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
