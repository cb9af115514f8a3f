//! The kinds of changes.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// What kind of change it is. Those of OLM v1's check have the names that it gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// OLM v1: a field is gone.
    ExistingFieldRemoval,
    /// OLM v1: a version that objects are stored in is gone.
    StoredVersionRemoval,
    /// OLM v1: namespaced becomes cluster-wide, or the other way.
    Scope,
    /// OLM v1: a default comes, goes or changes.
    Default,
    /// OLM v1: values are no longer allowed.
    Enum,
    /// OLM v1: a maximum comes or falls.
    Maximum,
    /// OLM v1: the same for the length of a list.
    MaxItems,
    /// OLM v1: the same for the length of a text.
    MaxLength,
    /// OLM v1: the same for the number of fields.
    MaxProperties,
    /// OLM v1: a minimum comes or rises.
    Minimum,
    /// OLM v1: the same for the length of a list.
    MinItems,
    /// OLM v1: the same for the length of a text.
    MinLength,
    /// OLM v1: the same for the number of fields.
    MinProperties,
    /// OLM v1: a field is required that was not.
    Required,
    /// OLM v1: another type.
    Type,
    /// OLM v1: a pattern comes, goes or changes.
    Pattern,
    /// OLM v1: null is allowed, or no longer.
    Nullable,
    /// OLM v1: the schemas of which exactly one must fit change.
    OneOf,
    /// OLM v1: any change that none of its rules knows.
    Unhandled,
    /// A field that was not there.
    FieldAdded,
    /// More values are allowed.
    EnumValueAdded,
    /// Other words for people.
    DescriptionChanged,
    /// A bound goes, or lets more through.
    BoundLoosened,
    /// A field is no longer required.
    RequiredRemoved,
    /// Existing objects may not fit, by a change that no finding of OLM v1 speaks of.
    Tightened,
    /// A version that was not there.
    VersionAdded,
    /// A version is gone.
    VersionRemoved,
    /// A version is served that was not.
    VersionServed,
    /// A version is no longer served.
    VersionNotServed,
    /// A version is deprecated.
    VersionDeprecated,
    /// Objects are stored in another version.
    StorageVersionChanged,
    /// Objects are converted in another way.
    ConversionChanged,
    /// Status and scale of a version.
    SubresourcesChanged,
    /// What lists show.
    PrinterColumnsChanged,
    /// What can be selected by.
    SelectableFieldsChanged,
    /// Unknown fields are kept, or no longer.
    PreserveUnknownFieldsChanged,
    /// Short names and categories.
    NamesChanged,
    /// What the API server does not let change.
    ImmutableChanged,
}

// === impl Rule ===

impl Rule {
    /// The name, as it stands in the output.
    pub fn name(self) -> &'static str {
        match self {
            Self::ExistingFieldRemoval => "existingFieldRemoval",
            Self::StoredVersionRemoval => "storedVersionRemoval",
            Self::Scope => "scope",
            Self::Default => "default",
            Self::Enum => "enum",
            Self::Maximum => "maximum",
            Self::MaxItems => "maxItems",
            Self::MaxLength => "maxLength",
            Self::MaxProperties => "maxProperties",
            Self::Minimum => "minimum",
            Self::MinItems => "minItems",
            Self::MinLength => "minLength",
            Self::MinProperties => "minProperties",
            Self::Required => "required",
            Self::Type => "type",
            Self::Pattern => "pattern",
            Self::Nullable => "nullable",
            Self::OneOf => "oneOf",
            Self::Unhandled => "unhandled",
            Self::FieldAdded => "fieldAdded",
            Self::EnumValueAdded => "enumValueAdded",
            Self::DescriptionChanged => "descriptionChanged",
            Self::BoundLoosened => "boundLoosened",
            Self::RequiredRemoved => "requiredRemoved",
            Self::Tightened => "tightened",
            Self::VersionAdded => "versionAdded",
            Self::VersionRemoved => "versionRemoved",
            Self::VersionServed => "versionServed",
            Self::VersionNotServed => "versionNotServed",
            Self::VersionDeprecated => "versionDeprecated",
            Self::StorageVersionChanged => "storageVersionChanged",
            Self::ConversionChanged => "conversionChanged",
            Self::SubresourcesChanged => "subresourcesChanged",
            Self::PrinterColumnsChanged => "printerColumnsChanged",
            Self::SelectableFieldsChanged => "selectableFieldsChanged",
            Self::PreserveUnknownFieldsChanged => "preserveUnknownFieldsChanged",
            Self::NamesChanged => "namesChanged",
            Self::ImmutableChanged => "immutableChanged",
        }
    }

    /// Whether a finding of this rule speaks of a keyword that lets less through.
    pub(super) fn is_of(self, keyword: &str) -> bool {
        /// Keywords that have no rule of their own.
        const REST: [&str; 9] = [
            "format",
            "uniqueItems",
            "multipleOf",
            "allOf",
            "anyOf",
            "not",
            "additionalProperties",
            "patternProperties",
            "additionalItems",
        ];
        self.name() == keyword
            || self == Self::Unhandled && (REST.contains(&keyword) || keyword == "dependencies")
            // An exclusive bound is no keyword that the rules of bounds look at.
            || self == Self::Unhandled && (keyword == "maximum" || keyword == "minimum")
            // `x-kubernetes-int-or-string` says what types there may be.
            || self == Self::Unhandled && keyword == "type"
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_written_by_its_name() {
        for rule in [Rule::ExistingFieldRemoval, Rule::OneOf, Rule::MaxItems, Rule::Unhandled] {
            assert_eq!(serde_json::to_value(rule).unwrap(), rule.name());
        }
        for name in schemars::schema_for!(Rule).pointer("/oneOf").unwrap().as_array().unwrap() {
            let name = name["const"].as_str().unwrap();
            assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
        }
    }
}
