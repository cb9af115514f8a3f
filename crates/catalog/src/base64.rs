//! Base64 as OLM's own tools take it: line ends may stand anywhere, padding must be there, and the
//! bits that are left over are not looked at.

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// The bytes, if the text is base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none() {
        return ENGINE.decode(text).ok();
    }
    let text: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    ENGINE.decode(text).ok()
}

/// Whether the text is base64.
pub(crate) fn is_valid(text: &str) -> bool {
    text.is_empty() || decode(text).is_some()
}
