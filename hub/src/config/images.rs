//! Whether and how bundle images are fetched.

use std::{collections::BTreeSet, fs, io, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use wavelift_sources::{
    BundleImages, Patience, Retries, Trust,
    bundle_image::{Mirrors, Options, PullSecrets, Store, mirrors, secrets},
    trust,
};

/// Short: a preview waits for it, and where there is no way to a registry that must soon be said.
const PATIENCE: Patience = Patience {
    connect: Duration::from_secs(5),
    silence: Duration::from_secs(15),
    attempt: Duration::from_mins(1),
};
/// Once more at once; after that the preview says what is missing, and it is tried again later.
const RETRIES: Retries = Retries {
    again_max: 1,
    first_pause: Duration::from_millis(500),
    pause_max: Duration::from_secs(1),
};

/// Where manifests come from that catalogs do not carry.
#[derive(Debug, Clone, Default, Args)]
pub struct ImageArguments {
    /// Whether to fetch bundle images; `fetch` if any other of these options says how, else `never`.
    #[arg(long, env = "WAVELIFT_BUNDLE_IMAGES")]
    pub bundle_images: Option<BundleImagesPolicy>,
    /// Mirror rules: ImageDigestMirrorSets, ImageTagMirrorSets, ImageContentSourcePolicies; YAML.
    #[arg(long, env = "WAVELIFT_IMAGE_MIRRORS", value_name = "FILE")]
    pub image_mirrors: Option<PathBuf>,
    /// A pull secret: what `.dockerconfigjson` holds.
    #[arg(long, env = "WAVELIFT_PULL_SECRET", value_name = "FILE")]
    pub pull_secret: Option<PathBuf>,
    /// Certificate authorities of registries, beside the system's own; PEM.
    #[arg(long, env = "WAVELIFT_IMAGE_CA", value_name = "FILE")]
    pub image_ca: Option<PathBuf>,
    /// A registry that has no TLS; may be repeated.
    #[arg(
        long,
        env = "WAVELIFT_IMAGE_PLAINTEXT",
        value_name = "HOST[:PORT]",
        value_delimiter = ','
    )]
    pub image_plaintext: Vec<String>,
    /// Keeps what was fetched here, over restarts.
    #[arg(long, env = "WAVELIFT_IMAGE_STORE", value_name = "DIR")]
    pub image_store: Option<PathBuf>,
    /// How much is kept there, in MiB.
    #[arg(long, env = "WAVELIFT_IMAGE_STORE_MIB", default_value_t = 1_024)]
    pub image_store_mib: u32,
}

/// Whether bundle images are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BundleImagesPolicy {
    /// Never: what catalogs do not carry is missing.
    Never,
    /// Where a catalog does not carry a bundle's manifests.
    Fetch,
}

/// Why bundle images can't be fetched as the command line says.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file can't be read.
    #[error("failed to read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file holds no mirror rules.
    #[error("{}: {}", .path.display(), .source.advice())]
    Mirrors {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: mirrors::Error,
    },
    /// A file holds no pull secret.
    #[error("{}: {}", .path.display(), .source.advice())]
    Secret {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: secrets::Error,
    },
    /// There is nothing to verify registries with.
    #[error("{}", .0.advice())]
    Trust(#[source] trust::Error),
    /// The folder can't be used.
    #[error("failed to open the store {}", .path.display())]
    Store {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

// === impl ImageArguments ===

impl ImageArguments {
    /// Whether bundle images are fetched.
    ///
    /// A hub that was told nothing asks nobody outside: it may be in a network where that is an
    /// alarm or never ends, and most registries want a pull secret. Whoever says how images are had
    /// wants them.
    pub fn policy(&self) -> BundleImagesPolicy {
        let says_how = self.image_mirrors.is_some()
            || self.pull_secret.is_some()
            || self.image_ca.is_some()
            || self.image_store.is_some()
            || !self.image_plaintext.is_empty();
        let fallback = if says_how { BundleImagesPolicy::Fetch } else { BundleImagesPolicy::Never };
        self.bundle_images.unwrap_or(fallback)
    }

    /// Reads the files; nothing where no images are fetched.
    pub fn open(&self) -> Result<Option<BundleImages>, Error> {
        if self.policy() == BundleImagesPolicy::Never {
            return Ok(None);
        }
        let mirrors = match &self.image_mirrors {
            Some(path) => Mirrors::parse(&read(path)?)
                .map_err(|source| Error::Mirrors { path: path.clone(), source })?,
            None => Mirrors::default(),
        };
        let secrets = match &self.pull_secret {
            Some(path) => PullSecrets::parse(&read(path)?)
                .map_err(|source| Error::Secret { path: path.clone(), source })?,
            None => PullSecrets::default(),
        };
        let trust = match &self.image_ca {
            Some(path) => Trust::SystemAnd(read(path)?),
            None => Trust::System,
        };
        let store = match &self.image_store {
            Some(path) => Some(
                Store::open(path, u64::from(self.image_store_mib) << 20)
                    .map_err(|source| Error::Store { path: path.clone(), source })?,
            ),
            None => None,
        };
        let plaintext: BTreeSet<String> = self.image_plaintext.iter().cloned().collect();
        let options = Options {
            mirrors,
            secrets,
            trust,
            plaintext,
            store,
            patience: PATIENCE,
            retries: RETRIES,
            ..Options::default()
        };
        BundleImages::new(options).map(Some).map_err(Error::Trust)
    }
}

fn read(path: &PathBuf) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::Read { path: path.clone(), source })
}

// === impl Error ===

impl Error {
    /// A short name for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Read { .. } => "image_file",
            Self::Mirrors { .. } => "image_mirrors",
            Self::Secret { .. } => "pull_secret",
            Self::Trust(_) => "image_ca",
            Self::Store { .. } => "image_store",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        images: ImageArguments,
    }

    fn parse(arguments: &[&str]) -> ImageArguments {
        let line = std::iter::once("hub").chain(arguments.iter().copied());
        Line::try_parse_from(line).unwrap().images
    }

    #[test]
    fn images_are_fetched_where_somebody_said_how() {
        use BundleImagesPolicy::{Fetch, Never};
        for (arguments, expected) in [
            (&[][..], Never),
            (&["--bundle-images", "fetch"], Fetch),
            (&["--pull-secret", "/x"], Fetch),
            (&["--image-mirrors", "/x"], Fetch),
            (&["--image-ca", "/x"], Fetch),
            (&["--image-plaintext", "a:5000,b"], Fetch),
            (&["--image-store", "/x"], Fetch),
            (&["--pull-secret", "/x", "--bundle-images", "never"], Never),
        ] {
            assert_eq!(parse(arguments).policy(), expected, "{arguments:?}");
        }
        assert!(parse(&[]).open().unwrap().is_none());
        assert!(parse(&["--pull-secret", "/x", "--bundle-images", "never"]).open().is_ok());
        assert_eq!(parse(&["--image-plaintext", "a:5000,b"]).image_plaintext, ["a:5000", "b"]);
    }

    #[test]
    fn files_are_read_and_what_they_do_not_hold_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let rules = file(
            "rules.yaml",
            "kind: ImageDigestMirrorSet\nspec:\n  imageDigestMirrors:\n  - source: example.com\n    \
             mirrors: [mirror.local:5000/all]\n",
        );
        let secret = file("secret.json", r#"{"auths": {}}"#);
        let store = folder.path().join("store").to_str().unwrap().to_owned();
        let good = ["--image-mirrors", &rules, "--pull-secret", &secret, "--image-store", &store];
        let images = parse(&good).open().unwrap().unwrap();
        let image = format!("example.com/a@sha256:{}", "0".repeat(64));
        assert_eq!(images.registries(&image).unwrap(), ["mirror.local:5000", "example.com"]);
        let other = file("other", "kind: Pod");
        for (flag, kind) in [
            ("--image-mirrors", "image_mirrors"),
            ("--pull-secret", "pull_secret"),
            ("--image-ca", "image_ca"),
            ("--image-store", "image_store"),
        ] {
            let error = parse(&[flag, &other]).open().unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        }
        let error = parse(&["--image-ca", "/no/such/file"]).open().unwrap_err();
        assert_eq!(error.to_string(), "failed to read /no/such/file");
    }
}
