//! What the derived schemas still need before they can be installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Adds what the derive cannot say.
pub(crate) fn finish(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    crd
}
