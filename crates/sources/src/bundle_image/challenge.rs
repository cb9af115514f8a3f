//! How a registry wants to be convinced: the `WWW-Authenticate` header.

/// What a registry asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// Name and password with each request.
    Basic,
    /// A token that another server gives.
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

// === impl Challenge ===

impl Challenge {
    /// Reads the header's values. A token is preferred: who offers both has a reason.
    pub(super) fn of<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut found = None;
        for header in headers {
            for (scheme, parameters) in challenges(header) {
                let value = |name: &str| {
                    let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                    found.map(|(_, value)| value.clone())
                };
                if scheme.eq_ignore_ascii_case("bearer")
                    && let Some(realm) = value("realm")
                {
                    let (service, scope) = (value("service"), value("scope"));
                    return Some(Self::Bearer { realm, service, scope });
                }
                if scheme.eq_ignore_ascii_case("basic") {
                    found = Some(Self::Basic);
                }
            }
        }
        found
    }
}

type Parameters = Vec<(String, String)>;

/// `Bearer realm="a",service="b", Basic realm="c"`: schemes with their parameters.
fn challenges(header: &str) -> Vec<(String, Parameters)> {
    let mut found: Vec<(String, Parameters)> = Vec::new();
    for item in split_outside_quotes(header) {
        let item = item.trim();
        let (before, value) = item.split_once('=').unwrap_or((item, ""));
        // A scheme stands before its first parameter, or alone.
        let key = match before.trim_end().rsplit_once(char::is_whitespace) {
            Some((scheme, key)) => {
                found.push((scheme.trim().to_owned(), Vec::new()));
                key
            }
            None if !item.contains('=') => {
                found.push((item.to_owned(), Vec::new()));
                continue;
            }
            None => before,
        };
        if let Some((_, parameters)) = found.last_mut() {
            parameters.push((key.to_owned(), unquoted(value)));
        }
    }
    found
}

fn split_outside_quotes(text: &str) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let (mut is_quoted, mut is_escaped) = (false, false);
    for c in text.chars() {
        if c == ',' && !is_quoted {
            parts.push(std::mem::take(&mut part));
            continue;
        }
        if c == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = c == '\\' && is_quoted && !is_escaped;
        part.push(c);
    }
    parts.push(part);
    parts
}

fn unquoted(value: &str) -> String {
    let value = value.trim();
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return value.to_owned();
    };
    let (mut text, mut is_escaped) = (String::new(), false);
    for c in inner.chars() {
        if c == '\\' && !is_escaped {
            is_escaped = true;
        } else {
            text.push(c);
            is_escaped = false;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_preferred_to_a_password() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.to_owned(),
                service: service.map(str::to_owned),
                scope: scope.map(str::to_owned),
            })
        };
        for (headers, expected) in [
            (vec!["Basic realm=\"Registry Realm\""], Some(Challenge::Basic)),
            (vec!["basic"], Some(Challenge::Basic)),
            (
                vec![
                    "Bearer realm=\"https://a.example.com/t\",service=\"a, b\",scope=\"r:x:pull,push\"",
                ],
                bearer("https://a.example.com/t", Some("a, b"), Some("r:x:pull,push")),
            ),
            (
                vec!["Basic realm=x, Bearer realm=\"https://\\\"q\\\"/\""],
                bearer("https://\"q\"/", None, None),
            ),
            (vec!["Basic realm=x", "BEARER Realm = \"r\""], bearer("r", None, None)),
            (vec!["Bearer service=\"no realm\""], None),
            (vec!["Negotiate"], None),
            (vec![""], None),
            (vec![], None),
        ] {
            assert_eq!(Challenge::of(headers.iter().copied()), expected, "{headers:?}");
        }
    }
}
