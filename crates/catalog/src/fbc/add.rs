//! Adds the documents of a file to a catalog, as long as the catalog stays within its limits.

use std::ops::ControlFlow;

use super::{Error, Fbc, FieldError, Interner, decode, decode::Document, fields::Refused, meta};
use crate::limits::Limits;

/// Takes the errors of a file and says whether to go on after each.
pub(super) type OnError<'a> = &'a mut dyn FnMut(Error) -> ControlFlow<()>;

/// Adds the content of one file and says how many values it has. An error that leaves nothing to go
/// on with is the last one.
pub(super) fn file(
    fbc: &mut Fbc,
    name: &str,
    content: &[u8],
    limits: &Limits,
    on_error: OnError<'_>,
) -> usize {
    let mut nodes = 0;
    let counts = Counts {
        bundles: fbc.bundles.len(),
        entries: fbc.channels.iter().map(|channel| channel.entries.len()).sum(),
        skips: 0,
    };
    let mut adder = Adder { fbc, interner: Interner::default(), limits, counts };
    let read = decode::documents(name, content, limits, &mut nodes, &mut |document| {
        let added = adder.document(&document);
        let source = match added {
            Ok(()) => return Ok(ControlFlow::Continue(())),
            Err(Refused::TooLarge { what, found, max }) => {
                return Err(Error::TooLarge { file: name.to_owned(), what, found, max });
            }
            Err(Refused::Field(source)) => source,
        };
        let (number, line) = (document.number, document.line());
        Ok(on_error(Error::Document { file: name.to_owned(), document: number, line, source }))
    });
    if let Err(error) = read {
        // Nothing can come after it, so it does not matter what the answer is.
        let (ControlFlow::Continue(()) | ControlFlow::Break(())) = on_error(error);
    }
    nodes
}

/// A catalog that is being filled.
pub(super) struct Adder<'a> {
    pub(super) fbc: &'a mut Fbc,
    pub(super) interner: Interner,
    pub(super) limits: &'a Limits,
    counts: Counts,
}

struct Counts {
    bundles: usize,
    entries: usize,
    skips: usize,
}

impl Adder<'_> {
    fn document(&mut self, document: &Document<'_>) -> Result<(), Refused> {
        let fields = document.fields.as_ref().ok_or(Refused::Field(if document.is_null {
            FieldError::Empty
        } else {
            FieldError::NoObject
        }))?;
        meta::add(self, fields)
    }

    /// One more bundle.
    pub(super) fn count_bundle(&mut self) -> Result<(), Refused> {
        self.counts.bundles += 1;
        at_most("bundles", self.counts.bundles, self.limits.entries)
    }

    /// One more channel entry that skips so many others.
    pub(super) fn count_entry(&mut self, skips: usize) -> Result<(), Refused> {
        self.counts.entries += 1;
        self.counts.skips += skips;
        at_most("channel entries", self.counts.entries, self.limits.entries)?;
        at_most("skipped entries", self.counts.skips, self.limits.skips)
    }
}

pub(super) fn at_most(what: &'static str, found: usize, max: usize) -> Result<(), Refused> {
    if found > max { Err(Refused::TooLarge { what, found, max }) } else { Ok(()) }
}
