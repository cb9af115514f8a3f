//! How much a catalog may hold. Everything that is read comes from outside, so everything is bounded.

/// Bounds on what is read. The defaults are several times what the largest public catalog needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file.
    pub file_bytes: usize,
    /// Bytes of all files together, and of a received graph.
    pub total_bytes: usize,
    /// Files and folders visited.
    pub files: usize,
    /// Documents in one file.
    pub file_documents: usize,
    /// Nesting of mappings and lists in one document.
    pub depth: usize,
    /// Scalars, mappings and lists in one file.
    pub file_nodes: usize,
    /// Bundles, or channel entries, in the whole catalog.
    pub entries: usize,
    /// Scalars, mappings and lists in all files together.
    pub total_nodes: usize,
    /// Names in the `skips` of all entries of the whole catalog.
    pub skips: usize,
    /// Bytes of a name, a version range or a pull specification.
    pub name_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 256 << 20,
            total_bytes: 512 << 20,
            files: 100_000,
            file_documents: 200_000,
            depth: 64,
            file_nodes: 10_000_000,
            total_nodes: 20_000_000,
            entries: 200_000,
            skips: 500_000,
            name_bytes: 4096,
        }
    }
}
