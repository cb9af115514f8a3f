//! Rules of deprecations: one document a package, each thing exists and is named once, with a message.

use std::collections::BTreeSet;

use super::{OfPackage, Place, Report, Rule};
use crate::fbc::Deprecation;

pub(super) fn check(report: &mut Report<'_>, package: &OfPackage<'_>) {
    let is_repeated = package.deprecations.len() > 1;
    report.add_if(is_repeated, || Place::Deprecations, Rule::Duplicate);
    let channels: BTreeSet<&str> = package.channels.iter().map(|c| c.name.as_str()).collect();
    let bundles: BTreeSet<&str> = package.bundles.iter().map(|b| b.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    for deprecation in package.deprecations.iter().flat_map(|d| &d.entries) {
        let Deprecation { schema, name, message } = deprecation;
        let (schema, name) = (schema.clone(), name.clone());
        let exists = match schema.as_str() {
            "olm.package" => {
                let rule = Rule::NamedPackage { name: name.clone() };
                report.add_if(!name.is_empty(), || Place::Deprecations, rule);
                true
            }
            "olm.channel" => channels.contains(name.as_str()),
            "olm.bundle" => bundles.contains(name.as_str()),
            _ => false,
        };
        let place = || Place::Deprecations;
        let rule = Rule::UnknownReference { schema: schema.clone(), name: name.clone() };
        report.add_if(!exists, place, rule);
        let is_new = seen.insert((schema.clone(), name.clone()));
        let rule = Rule::DeprecatedTwice { schema: schema.clone(), name: name.clone() };
        report.add_if(!is_new, place, rule);
        report.add_if(message.is_empty(), place, Rule::NoMessage { schema, name });
    }
}
