//! `cargo xtask tools`: the real programs that some tests talk to.
//!
//! kubectl and opm are built with Go. Chromium, an image registry and the tools that put images
//! together come from the distribution. What cannot be had is named, and the tests that need it leave
//! it out.

use anyhow::Result;

use crate::{
    debian::{self, Package},
    go::{self, Module, Program},
};

const PROGRAMS: [Program; 2] = [
    Program {
        name: "kubectl",
        module: Module::Kubernetes,
        package: "k8s.io/kubernetes/cmd/kubectl",
    },
    // OLM's own tool: it serves a catalog as a CatalogSource's pod does.
    Program {
        name: "opm",
        module: Module::OlmV0,
        package: "github.com/operator-framework/operator-registry/cmd/opm",
    },
];

const PACKAGES: [Package; 4] = [
    Package {
        programs: &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
        name: "chromium",
    },
    Package { programs: &["docker-registry"], name: "docker-registry" },
    Package { programs: &["skopeo"], name: "skopeo" },
    Package { programs: &["umoci"], name: "umoci" },
];

pub(crate) fn run() -> Result<()> {
    go::build(&PROGRAMS)?;
    debian::install(&PACKAGES)
}
