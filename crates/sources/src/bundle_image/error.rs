//! Why a bundle's manifests can't be had from its image.

use std::fmt;

use super::{layers, reference::BadReference, reference::Repository, registry};
use crate::http;

/// Why a bundle's manifests can't be had from its image.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name is none.
    #[error("`{image}` is no image: {source}")]
    Reference {
        /// The name as given.
        image: String,
        /// What is wrong with it.
        source: BadReference,
    },
    /// Mirror rules forbid to ask the source, and no mirror is for this image.
    #[error("image {image} has no mirror, and the mirror rules forbid to ask its source")]
    Blocked {
        /// The image.
        image: String,
    },
    /// No place has it.
    #[error("failed to pull image {image}: {}", told(.attempts))]
    Nowhere {
        /// The image.
        image: String,
        /// What happened where, in order.
        attempts: Vec<Attempt>,
    },
    /// It is there and can't be unpacked.
    #[error("failed to unpack image {image}")]
    Layers {
        /// The image.
        image: String,
        /// Why.
        #[source]
        source: layers::Error,
    },
    /// It is a bundle of another format.
    #[error("image {image} is a bundle of format `{format}`, not registry+v1")]
    Format {
        /// The image.
        image: String,
        /// The format it says it has.
        format: String,
    },
    /// It has no manifests, so it is not a bundle.
    #[error("image {image} has no manifests")]
    NoManifests {
        /// The image.
        image: String,
    },
    /// The program is ending.
    #[error("unpacking image {image} was interrupted")]
    Interrupted {
        /// The image.
        image: String,
    },
}

/// What happened at one place.
#[derive(Debug)]
pub struct Attempt {
    /// Where it was looked for.
    pub place: Repository,
    /// Why it could not be had there.
    pub error: registry::Error,
}

// === impl Error ===

impl Error {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Reference { .. } => "Reference",
            Self::Blocked { .. } => "Blocked",
            Self::Nowhere { .. } => "Nowhere",
            Self::Layers { .. } => "Layers",
            Self::Format { .. } => "Format",
            Self::NoManifests { .. } => "NoManifests",
            Self::Interrupted { .. } => "Interrupted",
        }
    }

    /// Whether the same image may be had a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Nowhere { attempts, .. } => attempts.iter().any(|attempt| {
                attempt.error.is_transient() || matches!(attempt.error, registry::Error::Slow(_))
            }),
            Self::Interrupted { .. } => true,
            Self::Reference { .. }
            | Self::Blocked { .. }
            | Self::Layers { .. }
            | Self::Format { .. }
            | Self::NoManifests { .. } => false,
        }
    }

    /// The places of which none answered at all, each with what happened there; nothing where one
    /// did. Another image of the same places has the same fate.
    pub fn unreachable(&self) -> Option<&[Attempt]> {
        let Self::Nowhere { attempts, .. } = self else { return None };
        let is_too_large = |error: &http::Error| matches!(error, http::Error::TooLarge { .. });
        let is_silent = |Attempt { error, .. }: &Attempt| {
            matches!(error, registry::Error::Slow(_))
                || matches!(error, registry::Error::Http(error) if !is_too_large(error))
        };
        attempts.iter().all(is_silent).then_some(attempts)
    }

    /// What a user can do about it.
    pub fn advice(&self) -> String {
        match self {
            Self::Nowhere { attempts, .. } => {
                let mut advice = Vec::new();
                for Attempt { place, error } in attempts {
                    advice.push(format!("{}: {}", place.registry, error.advice()));
                }
                advice.dedup();
                advice.join("; ")
            }
            Self::Blocked { .. } => {
                "mirror the image and add a mirror rule for its source; rules for digests do not \
                 count for tags, and the other way round"
                    .to_owned()
            }
            Self::Reference { .. } | Self::Format { .. } | Self::NoManifests { .. } => {
                "check the bundle's image in the catalog".to_owned()
            }
            Self::Layers { .. } => "tell the author of the bundle".to_owned(),
            Self::Interrupted { .. } => "try again".to_owned(),
        }
    }
}

fn told(attempts: &[Attempt]) -> String {
    let told: Vec<String> = attempts.iter().map(ToString::to_string).collect();
    told.join("; ")
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.error.chain())
    }
}
