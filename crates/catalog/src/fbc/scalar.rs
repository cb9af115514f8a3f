//! What a plain scalar of YAML means.
//!
//! OLM's own tools read YAML 1.1: `on` and `y` are booleans, `010` is eight and `1_000` a thousand. A
//! catalog means the same here, also where that is a surprise.

/// A plain scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    /// The text itself.
    Text,
}

pub(super) fn resolve(text: &str) -> Scalar {
    let Some(first) = text.bytes().next() else { return Scalar::Null };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'.' => match text {
            ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
            ".inf" | ".Inf" | ".INF" => Scalar::Float(f64::INFINITY),
            _ => float(text),
        },
        b'+' | b'-' | b'0'..=b'9' => number(text),
        _ => Scalar::Text,
    }
}

fn word(text: &str) -> Scalar {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        _ => Scalar::Text,
    }
}

fn number(text: &str) -> Scalar {
    if let "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" = text {
        return Scalar::Float(f64::INFINITY);
    }
    let plain = text.replace('_', "");
    let (is_negative, digits) = match plain.as_bytes().first() {
        Some(b'-') => (true, plain.get(1..).unwrap_or_default()),
        Some(b'+') => (false, plain.get(1..).unwrap_or_default()),
        Some(_) | None => (false, plain.as_str()),
    };
    if let Some(whole) = whole(digits) {
        return match (is_negative, i64::try_from(whole)) {
            (false, Ok(whole)) => Scalar::Signed(whole),
            (true, Ok(whole)) => Scalar::Signed(-whole),
            (true, Err(_)) if whole == 1 << 63 => Scalar::Signed(i64::MIN),
            // A sign is not taken where only an unsigned number would fit.
            (false, Err(_)) if !plain.starts_with('+') => Scalar::Unsigned(whole),
            (_, Err(_)) => float(&plain),
        };
    }
    float(&plain)
}

/// A whole number in base 2, 8, 10 or 16.
fn whole(digits: &str) -> Option<u64> {
    let lower = |prefix: &str| {
        let head = digits.get(..2)?;
        head.eq_ignore_ascii_case(prefix).then(|| digits.get(2..)).flatten()
    };
    let (digits, radix) = if let Some(digits) = lower("0x") {
        (digits, 16)
    } else if let Some(digits) = lower("0o") {
        (digits, 8)
    } else if let Some(digits) = lower("0b") {
        (digits, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (digits, 8)
    } else {
        (digits, 10)
    };
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// Digits with at most one point and an exponent; anything else is text.
fn float(text: &str) -> Scalar {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (unsigned.get(..at).unwrap_or_default(), unsigned.get(at + 1..)),
        None => (unsigned, None),
    };
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_mantissa = match mantissa.split_once('.') {
        None => !mantissa.is_empty() && is_digits(mantissa),
        Some(("", after)) => !after.is_empty() && is_digits(after),
        Some((before, after)) => is_digits(before) && is_digits(after),
    };
    let is_exponent = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !digits.is_empty() && is_digits(digits)
    });
    match text.parse::<f64>() {
        Ok(float) if is_mantissa && is_exponent && float.is_finite() => Scalar::Float(float),
        Ok(_) | Err(_) => Scalar::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_mean_what_they_mean_in_yaml_1_1() {
        for (text, expected) in [
            ("", Scalar::Null),
            ("~", Scalar::Null),
            ("NULL", Scalar::Null),
            ("nUll", Scalar::Text),
            ("on", Scalar::Bool(true)),
            ("y", Scalar::Bool(true)),
            ("False", Scalar::Bool(false)),
            ("12", Scalar::Signed(12)),
            ("+12", Scalar::Signed(12)),
            ("-0x1F", Scalar::Signed(-31)),
            ("010", Scalar::Signed(8)),
            ("0o17", Scalar::Signed(15)),
            ("0b101", Scalar::Signed(5)),
            ("08", Scalar::Float(8.0)),
            ("1_000", Scalar::Signed(1000)),
            ("9223372036854775808", Scalar::Unsigned(9_223_372_036_854_775_808)),
            ("-9223372036854775808", Scalar::Signed(i64::MIN)),
            ("-9223372036854775809", Scalar::Float(-9_223_372_036_854_775_809.0)),
            ("4.20", Scalar::Float(4.2)),
            ("1.", Scalar::Float(1.0)),
            (".5", Scalar::Float(0.5)),
            ("1e3", Scalar::Float(1000.0)),
            ("1e999", Scalar::Text),
            ("1.2.3", Scalar::Text),
            ("1.x", Scalar::Text),
            ("-", Scalar::Text),
            (".", Scalar::Text),
            ("0x", Scalar::Text),
            ("2020-01-01", Scalar::Text),
            ("1:30", Scalar::Text),
            (">=1.0", Scalar::Text),
            ("alpha", Scalar::Text),
            ("infinity", Scalar::Text),
            ("1e", Scalar::Text),
        ] {
            assert_eq!(resolve(text), expected, "`{text}`");
        }
        assert_eq!(resolve("-.inf"), Scalar::Float(f64::INFINITY));
        assert!(matches!(resolve(".nan"), Scalar::Float(float) if float.is_nan()));
    }
}
