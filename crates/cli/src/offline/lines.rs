//! Questions one a line, read as they come: whoever asks through a pipe gets each answer before the
//! next question.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    path::Path,
};

use anyhow::Context as _;

/// Bytes of one line; a question may bring its catalogs along.
const LINE_BYTES_MAX: usize = 64 << 20;

/// The lines of a file, without those that hold nothing.
pub(crate) struct Lines {
    reader: Box<dyn BufRead>,
    name: String,
    number: usize,
    bytes_max: usize,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Which of the file, counted from 1.
    pub(crate) number: usize,
    /// Its text, or why it is none.
    pub(crate) text: Result<String, String>,
}

impl Lines {
    /// Of a file, or of standard input for `-`.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let reader: Box<dyn BufRead> = if path == Path::new("-") {
            Box::new(BufReader::new(io::stdin()))
        } else {
            let file = File::open(path);
            Box::new(BufReader::new(
                file.with_context(|| format!("cannot read {}", path.display()))?,
            ))
        };
        Ok(Self::of(reader, path.display().to_string(), LINE_BYTES_MAX))
    }

    fn of(reader: Box<dyn BufRead>, name: String, bytes_max: usize) -> Self {
        Self { reader, name, number: 0, bytes_max }
    }

    /// The next line that holds something.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Line>> {
        loop {
            let mut bytes = Vec::new();
            let most = self.bytes_max as u64 + 1;
            let read = self.reader.by_ref().take(most).read_until(b'\n', &mut bytes);
            if read.with_context(|| format!("cannot read {}", self.name))? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let number = self.number;
            if bytes.len() > self.bytes_max && bytes.last() != Some(&b'\n') {
                self.skip_rest().with_context(|| format!("cannot read {}", self.name))?;
                let text = Err(format!("line is longer than {} bytes", self.bytes_max));
                return Ok(Some(Line { number, text }));
            }
            let Ok(text) = String::from_utf8(bytes) else {
                let text = Err("line is not UTF-8".to_owned());
                return Ok(Some(Line { number, text }));
            };
            let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { &text };
            if !text.trim().is_empty() {
                return Ok(Some(Line { number, text: Ok(text.trim().to_owned()) }));
            }
        }
    }

    /// Passes over what is left of a line that is too long.
    fn skip_rest(&mut self) -> io::Result<()> {
        loop {
            let held = self.reader.fill_buf()?;
            if held.is_empty() {
                return Ok(());
            }
            let end = held.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(held.len(), |at| at + 1);
            self.reader.consume(used);
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(content: &[u8]) -> Vec<(usize, Result<String, String>)> {
        let reader = Box::new(BufReader::with_capacity(3, io::Cursor::new(content.to_vec())));
        let mut lines = Lines::of(reader, "test".to_owned(), 8);
        let mut all = vec![];
        while let Some(Line { number, text }) = lines.next().unwrap() {
            all.push((number, text));
        }
        all
    }

    #[test]
    fn lines_come_whatever_ends_them_and_empty_ones_only_count() {
        let good = |number, text: &str| (number, Ok(text.to_owned()));
        assert_eq!(lines(b""), []);
        assert_eq!(lines(b"\n \r\n\t\n"), []);
        assert_eq!(lines(b"\xef\xbb\xbfa\r\n\n  b\nc"), [good(1, "a"), good(3, "b"), good(4, "c")]);
        assert_eq!(lines(b"12345678\nx"), [good(1, "12345678"), good(2, "x")]);
    }

    #[test]
    fn a_line_that_is_no_text_does_not_end_the_others() {
        let bad = |number, why: &str| (number, Err(why.to_owned()));
        let long = "line is longer than 8 bytes";
        assert_eq!(
            lines(b"a\n123456789\nb\n\xff\xfe\nc\n0123456789abcdef"),
            [
                (1, Ok("a".to_owned())),
                bad(2, long),
                (3, Ok("b".to_owned())),
                bad(4, "line is not UTF-8"),
                (5, Ok("c".to_owned())),
                bad(6, long),
            ]
        );
    }
}
