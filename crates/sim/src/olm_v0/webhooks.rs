//! What webhooks do to a CSV: certificates that go with the version before, and conversions that
//! OLM refuses to install.

use serde_json::Value;

use super::{
    Key, OlmV0,
    objects::{array, at, text},
    phase::{Certificates, Installation},
};

/// The certificates of a CSV that are not its first.
#[derive(Debug, Default)]
pub(super) struct Certificate {
    renewed: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Fine,
    Gone,
}

impl OlmV0 {
    /// Takes the certificates of a CSV away: they belonged to the version before.
    pub(super) fn lose_certificates(&mut self, csv: Key) {
        self.certificates.entry(csv).or_default().state = State::Gone;
    }

    pub(super) fn renew_certificates(&mut self, csv: &Key) {
        let certificate = self.certificates.entry(csv.clone()).or_default();
        certificate.renewed += 1;
        certificate.state = State::Fine;
    }

    pub(super) fn forget_certificates(&mut self, csv: &Key) {
        self.certificates.remove(csv);
    }

    pub(super) fn certificates(&self, csv: &Key) -> Certificates {
        match self.certificates.get(csv).map(|certificate| certificate.state) {
            Some(State::Gone) => Certificates::Gone,
            Some(State::Fine) | None => Certificates::Fine,
        }
    }

    /// What a Deployment knows its certificates by.
    pub(super) fn certificate_name(&self, csv: &Key) -> String {
        let renewed = self.certificates.get(csv).map_or(0, |certificate| certificate.renewed);
        format!("{}-{renewed}", csv.name)
    }
}

/// Whether a CSV brings webhooks.
pub(super) fn has_webhooks(csv: &Value) -> bool {
    !array(csv, "/spec/webhookdefinitions").is_empty()
}

/// Whether OLM can install a CSV.
pub(super) fn installation(csv: &Value) -> Installation {
    let converts = array(csv, "/spec/webhookdefinitions")
        .iter()
        .any(|webhook| text(webhook, "/type") == "ConversionWebhook");
    let for_some = array(csv, "/spec/installModes").iter().any(|mode| {
        text(mode, "/type") != "AllNamespaces" && at(mode, "/supported").as_bool() == Some(true)
    });
    if converts && for_some {
        Installation::ConvertsForSomeNamespaces
    } else {
        Installation::Possible
    }
}
