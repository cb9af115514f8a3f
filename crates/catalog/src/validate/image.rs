//! Pull specifications: `[host[:port]/]path[:tag][@digest]`, as container tools read them.

/// The longest name without tag and digest.
const NAME_MAX: usize = 255;

/// Whether the text names an image.
pub(super) fn is_pull_specification(text: &str) -> bool {
    // 64 hex digits alone would be an image's id.
    if text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        return false;
    }
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    let (host, rest) = split_host(rest);
    let (path, tag) = match rest.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (rest, None),
    };
    let name_length = host.map_or("docker.io/".len(), |host| host.len() + 1) + path.len();
    name_length <= NAME_MAX
        && host.is_none_or(is_host)
        && path.split('/').all(is_path_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
}

/// The first part is a host only if it can't be part of a path.
fn split_host(text: &str) -> (Option<&str>, &str) {
    match text.split_once('/') {
        Some((first, rest))
            if first.contains(['.', ':'])
                || first == "localhost"
                || first.bytes().any(|b| b.is_ascii_uppercase()) =>
        {
            (Some(first), rest)
        }
        Some(_) | None => (None, text),
    }
}

fn is_host(text: &str) -> bool {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        Some(_) | None => (text, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let is_v6 = |text: &str| {
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        inner
            .is_some_and(|t| !t.is_empty() && t.bytes().all(|b| b.is_ascii_hexdigit() || b == b':'))
    };
    let is_component = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !text.starts_with('-')
            && !text.ends_with('-')
    };
    port.is_none_or(is_port) && (is_v6(name) || name.split('.').all(is_component))
}

/// Lower-case letters and digits, separated by one `.`, one or two `_`, or any number of `-`.
fn is_path_component(text: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_separator =
        |text: &str| matches!(text, "." | "_" | "__") || text.bytes().all(|b| b == b'-');
    let bytes = text.as_bytes();
    let ends_well =
        bytes.first().zip(bytes.last()).is_some_and(|(a, z)| is_word(*a) && is_word(*z));
    ends_well
        && text
            .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            .filter(|separator| !separator.is_empty())
            .all(is_separator)
}

fn is_tag(text: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|b| is_word(b) || b == b'.' || b == b'-')
}

fn is_digest(text: &str) -> bool {
    let Some((algorithm, hex)) = text.split_once(':') else {
        return false;
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        // Other algorithms are known by nobody who would pull the image.
        _ => return false,
    };
    hex.len() == length && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}
