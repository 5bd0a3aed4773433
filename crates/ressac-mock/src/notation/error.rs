//! Errors that point into the text and name the fix.

use std::fmt;

/// What is wrong with a script, and where.
///
/// ```
/// use ressac_mock::Script;
///
/// let err = "503 hodl=2s".parse::<Script>().unwrap_err();
/// assert_eq!(err.column(), 5);
/// assert_eq!(err.fix(), "did you mean `hold`?");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotationError {
    pub(crate) offset: usize,
    pub(crate) message: String,
    pub(crate) fix: String,
}

impl NotationError {
    pub(crate) fn new(offset: usize, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
            fix: fix.into(),
        }
    }

    /// The byte offset in the script, from 0.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The column in the script, from 1, counted in bytes.
    pub fn column(&self) -> usize {
        self.offset + 1
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    pub fn fix(&self) -> &str {
        &self.fix
    }

    /// Moves an error found in a part of a text to where that part begins.
    pub(crate) fn shifted(mut self, by: usize) -> Self {
        self.offset += by;
        self
    }
}

impl fmt::Display for NotationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "column {}: {}; {}",
            self.column(),
            self.message,
            self.fix
        )
    }
}

impl std::error::Error for NotationError {}

/// The known word nearest to a mistyped one, if one is near.
pub(crate) fn suggest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let typed = typed.get(..32).unwrap_or(typed);
    known
        .into_iter()
        .map(|k| (distance(typed, k), k))
        .filter(|(d, k)| *d <= 2 && *d < k.len())
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// Edit distance with swaps of neighbours, so that `hodl` is one step from `hold`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut d = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in d.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in d[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (d[i - 1][j] + 1)
                .min(d[i][j - 1] + 1)
                .min(d[i - 1][j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(d[i - 2][j - 2] + 1);
            }
            d[i][j] = best;
        }
    }
    d[a.len()][b.len()]
}
