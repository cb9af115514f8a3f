//! What `opm` would refuse in a catalog. OLM v0's catalog servers do not serve such a catalog; OLM v1
//! reads it all the same. All problems are listed, not only the first.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use wavelift_core::{
    causes::{cut, listed},
    version,
};

use crate::fbc::{self, Fbc};

mod bundle;
mod channel;
mod deprecation;
mod image;
mod release;
mod shape;

pub use self::release::{Oddity, Warning, warnings};

/// One problem: where, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The package; empty where the document names none.
    pub package: String,
    /// Where in the package.
    pub place: Place,
    /// The rule that is broken.
    pub rule: Rule,
}

/// Where in a package a problem is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The package itself.
    Package,
    /// A channel.
    Channel(String),
    /// An entry of a channel.
    Entry {
        /// The channel.
        channel: String,
        /// The entry.
        entry: String,
    },
    /// A bundle.
    Bundle(String),
    /// Its deprecations.
    Deprecations,
}

/// A rule that is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    /// There is no name.
    #[error("has no name")]
    NoName,
    /// The package's name is not a DNS label.
    #[error("name is not a DNS label")]
    NotALabel,
    /// The same name is there twice.
    #[error("is defined twice")]
    Duplicate,
    /// There is no `olm.package` of this name.
    #[error("package is not defined")]
    UnknownPackage,
    /// The package has no default channel.
    #[error("default channel is not set")]
    NoDefaultChannel,
    /// The default channel is not there.
    #[error("default channel `{channel}` does not exist")]
    UnknownDefaultChannel {
        /// The channel.
        channel: String,
    },
    /// The package has no channel.
    #[error("has no channel")]
    NoChannel,
    /// The channel has no entry.
    #[error("has no entry")]
    NoEntry,
    /// No entry is a head.
    #[error("has no head")]
    NoHead,
    /// Several entries are heads.
    #[error("has several heads: {}", listed(.heads))]
    SeveralHeads {
        /// The heads.
        heads: Vec<String>,
    },
    /// The chain of replacement comes back to itself.
    #[error("chain of replacement comes back to `{entry}`")]
    Circle {
        /// Where it comes back to.
        entry: String,
    },
    /// Entries that are neither skipped nor on the chain from the head.
    #[error("entries are not on the chain from the head: {}", listed(.entries))]
    Stranded {
        /// The entries.
        entries: Vec<String>,
    },
    /// The entry has no bundle.
    #[error("has no bundle")]
    NoBundle,
    /// `skips` holds an empty name.
    #[error("skips an empty name")]
    EmptySkip,
    /// `skipRange` is no range.
    #[error("skipRange `{range}` does not parse")]
    SkipRange {
        /// The text.
        range: String,
    },
    /// The bundle is in no channel.
    #[error("is in no channel")]
    NotInAChannel,
    /// There is not exactly one `olm.package` property.
    #[error("has {found} olm.package properties, must have 1")]
    PackageProperties {
        /// How many there are.
        found: usize,
    },
    /// The `olm.package` property names another package.
    #[error("olm.package property names `{package}`")]
    OtherPackage {
        /// The package it names.
        package: String,
    },
    /// A property's value does not have the form of its type.
    #[error("property of type `{kind}` has a bad value: {reason}")]
    Property {
        /// Its type.
        kind: String,
        /// What is wrong with it, and where.
        reason: String,
    },
    /// A property has no value at all.
    #[error("property of type `{kind}` has no value")]
    NoValue {
        /// Its type.
        kind: String,
    },
    /// The version is none.
    #[error("version `{text}`: {source}")]
    Version {
        /// The text.
        text: String,
        /// What is wrong with it.
        source: version::Error,
    },
    /// The release is none.
    #[error("release `{text}` is not made of prerelease identifiers")]
    Release {
        /// The text.
        text: String,
    },
    /// A bundle with a release must have both in its name, and no build metadata.
    #[error("with a release, name must be `{expected}` and version without build metadata")]
    ReleaseForm {
        /// The name it should have.
        expected: String,
    },
    /// Neither image nor inline manifests.
    #[error("has neither image nor inline manifests")]
    NoImage,
    /// A pull specification is none.
    #[error("{what} `{image}` is no pull specification")]
    Image {
        /// Which image.
        what: String,
        /// The text.
        image: String,
    },
    /// An inline manifest can't be read.
    #[error("inline manifest {index} can't be read")]
    Manifest {
        /// Which one, counted from 0.
        index: usize,
    },
    /// Several bundles have the same version.
    #[error("version {version} is that of several bundles: {}", listed(.bundles))]
    SameVersion {
        /// The version, with its release.
        version: String,
        /// The bundles.
        bundles: Vec<String>,
    },
    /// A deprecation names something that is not there.
    #[error("{schema} `{name}` does not exist")]
    UnknownReference {
        /// What kind of thing.
        schema: String,
        /// Its name.
        name: String,
    },
    /// A deprecation of the package itself names something.
    #[error("reference to the package has the name `{name}`")]
    NamedPackage {
        /// The name.
        name: String,
    },
    /// A deprecation names one thing twice.
    #[error("{schema} `{name}` is deprecated twice")]
    DeprecatedTwice {
        /// What kind of thing.
        schema: String,
        /// Its name.
        name: String,
    },
    /// A deprecation has no message.
    #[error("deprecation of {schema} `{name}` has no message")]
    NoMessage {
        /// What kind of thing.
        schema: String,
        /// Its name.
        name: String,
    },
}

impl Problem {
    /// The channel that it is about, if it is about one.
    pub fn channel(&self) -> Option<&str> {
        match &self.place {
            Place::Channel(channel) | Place::Entry { channel, .. } => Some(channel),
            Place::Package | Place::Bundle(_) | Place::Deprecations => None,
        }
    }

    /// The bundle that it is about, if it is about one.
    pub fn bundle(&self) -> Option<&str> {
        match &self.place {
            Place::Bundle(bundle) | Place::Entry { entry: bundle, .. } => Some(bundle),
            Place::Package | Place::Channel(_) | Place::Deprecations => None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "package `{}`", self.package)?;
        match &self.place {
            Place::Package => {}
            Place::Channel(channel) => write!(f, ", channel `{channel}`")?,
            Place::Entry { channel, entry } => write!(f, ", channel `{channel}`, entry `{entry}`")?,
            Place::Bundle(bundle) => write!(f, ", bundle `{bundle}`")?,
            Place::Deprecations => write!(f, ", deprecations")?,
        }
        write!(f, ": {}", cut(&self.rule.to_string(), RULE_MAX))
    }
}

/// Bytes of the words about one problem. Types of properties, say, may be of any length.
const RULE_MAX: usize = 4 << 10;

/// All problems of a catalog; none if `opm` would take it.
pub fn validate(fbc: &Fbc) -> Vec<Problem> {
    let mut problems = Vec::new();
    let packages = by_package(fbc, &mut problems);
    for (name, package) in &packages {
        let mut report = Report { package: name, problems: &mut problems };
        package_rules(&mut report, package);
        channel::check(&mut report, package);
        bundle::check(&mut report, package);
        deprecation::check(&mut report, package);
    }
    problems
}

/// What belongs to one package.
#[derive(Debug, Default)]
struct OfPackage<'a> {
    packages: Vec<&'a fbc::Package>,
    channels: Vec<&'a fbc::Channel>,
    bundles: Vec<&'a fbc::Bundle>,
    deprecations: Vec<&'a fbc::Deprecations>,
}

/// Collects the problems of one package.
struct Report<'a> {
    package: &'a str,
    problems: &'a mut Vec<Problem>,
}

impl Report<'_> {
    fn add(&mut self, place: Place, rule: Rule) {
        self.problems.push(Problem { package: self.package.to_owned(), place, rule });
    }

    fn add_if(&mut self, is_broken: bool, place: impl FnOnce() -> Place, rule: Rule) {
        if is_broken {
            self.add(place(), rule);
        }
    }
}

fn by_package<'a>(fbc: &'a Fbc, problems: &mut Vec<Problem>) -> BTreeMap<&'a str, OfPackage<'a>> {
    let mut packages: BTreeMap<&str, OfPackage<'_>> = BTreeMap::new();
    for package in &fbc.packages {
        packages.entry(&package.name).or_default().packages.push(package);
    }
    let mut unknown = |package: &str, place: Place| {
        problems.push(Problem { package: package.to_owned(), place, rule: Rule::UnknownPackage });
    };
    for channel in &fbc.channels {
        match packages.get_mut(channel.package.as_str()) {
            Some(package) => package.channels.push(channel),
            None => unknown(&channel.package, Place::Channel(channel.name.clone())),
        }
    }
    for bundle in &fbc.bundles {
        match packages.get_mut(bundle.package.as_str()) {
            Some(package) => package.bundles.push(bundle),
            None => unknown(&bundle.package, Place::Bundle(bundle.name.clone())),
        }
    }
    for deprecations in &fbc.deprecations {
        match packages.get_mut(deprecations.package.as_str()) {
            Some(package) => package.deprecations.push(deprecations),
            None => unknown(&deprecations.package, Place::Deprecations),
        }
    }
    packages
}

fn package_rules(report: &mut Report<'_>, package: &OfPackage<'_>) {
    let name = report.package;
    report.add_if(name.is_empty(), || Place::Package, Rule::NoName);
    report.add_if(!name.is_empty() && !is_label(name), || Place::Package, Rule::NotALabel);
    report.add_if(package.packages.len() > 1, || Place::Package, Rule::Duplicate);
    report.add_if(package.channels.is_empty(), || Place::Package, Rule::NoChannel);
    let default = package.packages.first().map_or("", |package| package.default_channel.as_str());
    if default.is_empty() {
        report.add(Place::Package, Rule::NoDefaultChannel);
    } else if package.channels.iter().all(|channel| channel.name != default) {
        let channel = default.to_owned();
        report.add(Place::Package, Rule::UnknownDefaultChannel { channel });
    }
}

fn is_label(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    name.len() <= 63 && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

/// The names that are there more than once.
fn repeated<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    names.into_iter().filter(|name| !seen.insert(*name)).collect()
}

#[cfg(test)]
mod tests;
