//! Cuts a stream of JSON documents where one ends and the next begins.
//!
//! catalogd writes documents one after the other, with or without a line between them. So it is the
//! braces that count.

/// Finds the ends of top-level documents in bytes that come in pieces.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    depth: usize,
    is_text: bool,
    is_escaped: bool,
}

// === impl Documents ===

impl Documents {
    /// Looks at the next piece; the answer is the offset after the last document that ends in it.
    pub(crate) fn last_end(&mut self, piece: &[u8]) -> Option<usize> {
        let mut end = None;
        for (index, byte) in piece.iter().enumerate() {
            if self.is_text {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.is_text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.is_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        end = Some(index + 1);
                    }
                }
                _ => {}
            }
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documents, with the bytes coming in pieces of this length.
    fn cut(text: &str, piece: usize) -> Vec<String> {
        let (mut documents, mut pending, mut found) =
            (Documents::default(), Vec::new(), Vec::new());
        for piece in text.as_bytes().chunks(piece) {
            let before = pending.len();
            pending.extend_from_slice(piece);
            if let Some(end) = documents.last_end(piece) {
                let rest = pending.split_off(before + end);
                found.push(String::from_utf8(std::mem::replace(&mut pending, rest)).unwrap());
            }
        }
        found
    }

    #[test]
    fn documents_end_at_their_last_brace_whatever_is_in_texts() {
        let text = r#"{"a":"}\"}{","b":[{}]}{"c":"\\"}
            {"d":{"e":1}}  {"cut off":"#;
        let single = cut(text, 1);
        let trimmed: Vec<_> = single.iter().map(|document| document.trim()).collect();
        let expected = [r#"{"a":"}\"}{","b":[{}]}"#, r#"{"c":"\\"}"#, r#"{"d":{"e":1}}"#];
        assert_eq!(trimmed, expected);
        // In larger pieces, several documents are one find; together they are the same.
        for piece in [2, 3, 7, 1000] {
            let all: String = cut(text, piece).concat();
            assert_eq!(all, single.concat(), "{piece}");
        }
    }
}
