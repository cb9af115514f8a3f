//! Catalogs and bundle manifests from where they live: the registry pod of an OLM v0 CatalogSource,
//! OLM v1's catalogd, and bundle images in an OCI registry.
//!
//! All of it is somebody else's word that comes over a network. So every answer has a bound, every
//! wait has an end, what can be verified is verified, and each error says what a user can do. What a
//! source leaves out is named as left out: nothing here turns "was not sent" into "is not there".

pub mod bounds;
pub mod bundle_image;
pub mod catalog_source;
pub mod catalogd;
mod documents;
pub mod http;
#[cfg(test)]
mod testing;
pub mod trust;

pub use self::{
    bounds::{Patience, Retries},
    bundle_image::BundleImages,
    catalog_source::CatalogSource,
    catalogd::Catalogd,
    trust::Trust,
};
