//! `cargo xtask servers`: real API servers and real OLM, for the tests that meet them.

use anyhow::Result;

use crate::{
    debian::{self, Package},
    go::{self, Files, Module, Program},
};

const PROGRAMS: [Program; 4] = [
    Program {
        name: "kube-apiserver",
        module: Module::Kubernetes,
        package: "k8s.io/kubernetes/cmd/kube-apiserver",
    },
    Program {
        name: "kube-controller-manager",
        module: Module::Kubernetes,
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
    },
    // OLM v0 is two programs: one resolves and runs InstallPlans, the other installs CSVs.
    Program {
        name: "catalog",
        module: Module::OlmV0,
        package: "github.com/operator-framework/operator-lifecycle-manager/cmd/catalog",
    },
    Program {
        name: "olm",
        module: Module::OlmV0,
        package: "github.com/operator-framework/operator-lifecycle-manager/cmd/olm",
    },
];

const FILES: [Files; 2] = [
    Files {
        name: "olm-crds",
        module: Module::OlmV0,
        dependency: "github.com/operator-framework/api",
        folder: "crds",
    },
    Files {
        name: "managed-cluster-crds",
        module: Module::Ocm,
        dependency: "open-cluster-management.io/api",
        folder: "cluster/v1",
    },
];

const PACKAGES: [Package; 1] = [Package { programs: &["etcd"], name: "etcd-server" }];

pub(crate) fn run() -> Result<()> {
    go::build(&PROGRAMS)?;
    go::copy(&FILES)?;
    debian::install(&PACKAGES)
}
