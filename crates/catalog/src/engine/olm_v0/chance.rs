//! What OLM leaves to chance, as a list of decisions that can be made one way or in every way.

/// Decisions, each one of so many.
#[derive(Debug, Clone, Default)]
pub(super) struct Chance {
    made: Vec<Decision>,
    at: usize,
}

#[derive(Debug, Clone, Copy)]
struct Decision {
    picked: usize,
    of: usize,
}

// === impl Chance ===

impl Chance {
    /// One of `of`: the first, unless [`Chance::advance`] went on to another way.
    pub(super) fn pick(&mut self, of: usize) -> usize {
        if of < 2 {
            return 0;
        }
        if self.at == self.made.len() {
            self.made.push(Decision { picked: 0, of });
        }
        let picked = self.made.get(self.at).map_or(0, |decision| decision.picked);
        self.at += 1;
        picked.min(of - 1)
    }

    /// Goes on to the next way; false when there is none.
    pub(super) fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some(last) = self.made.last_mut() {
            last.picked += 1;
            if last.picked < last.of {
                return true;
            }
            self.made.pop();
        }
        false
    }
}
