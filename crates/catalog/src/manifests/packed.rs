//! An inline manifest that takes little room while nobody looks into it.

use std::{
    io::{Read as _, Write as _},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};

/// What stood in the catalog as base64, deflated.
#[derive(Debug, Clone)]
pub(super) struct Packed(Arc<[u8]>);

impl Packed {
    /// `None` for what is not base64, and for what would not become smaller.
    pub(super) fn of(encoded: &str) -> Option<Self> {
        // Only one text decodes to these bytes: padding and unused bits are looked at.
        let bytes = STANDARD.decode(encoded).ok()?;
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&bytes).ok()?;
        let deflated = encoder.finish().ok()?;
        (deflated.len() < encoded.len()).then(|| Self(deflated.into()))
    }

    /// What was deflated.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![];
        DeflateDecoder::new(&*self.0)
            .read_to_end(&mut bytes)
            .expect("what was deflated here can be inflated");
        bytes
    }

    /// The text as it stood in the catalog.
    pub(super) fn encoded(&self) -> String {
        STANDARD.encode(self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_is_the_same_text_again(
            bytes in prop::collection::vec(0_u8..4, 0..2000),
            noise in "[A-Za-z0-9+/=\n]{0,12}",
        ) {
            for text in [STANDARD.encode(&bytes), STANDARD.encode(&bytes) + &noise] {
                if let Some(packed) = Packed::of(&text) {
                    prop_assert_eq!(packed.encoded(), text);
                }
            }
        }
    }

    #[test]
    fn it_is_smaller_or_it_is_not_packed() {
        let long = STANDARD.encode("kind: Deployment\n".repeat(100));
        assert!(Packed::of(&long).unwrap().0.len() < long.len() / 10);
        assert!(Packed::of("").is_none() && Packed::of("not base64").is_none());
    }
}
