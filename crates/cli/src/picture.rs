//! A package's upgrade graph as a picture: as text, for Graphviz, for Mermaid, and as SVG.

mod dot;
mod mermaid;
mod model;
mod svg;
mod tree;

pub(crate) use self::{
    dot::dot,
    mermaid::mermaid,
    model::{Model, Presence, Scope},
    svg::svg,
    tree::tree,
};

#[cfg(test)]
mod tests;
