//! "Did you mean": the nearest known word.

/// The known word nearest to `word`, if it is near enough to be a slip of the hand.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Longer words are nobody's typing error, and the distance costs the product of the lengths.
    const LONGEST: usize = 64;
    if word.chars().count() > LONGEST {
        return None;
    }
    let word = word.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|candidate| {
            let plain = candidate.to_lowercase().replace('-', "_");
            (distance(&word, &plain), candidate)
        })
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edit distance with swaps of neighbours (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j - 1] + same).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let known = ["retries", "window", "base", "cap", "attempt_timeout"];
        assert_eq!(nearest("retrys", known), Some("retries"));
        assert_eq!(nearest("widnow", known), Some("window"));
        assert_eq!(nearest("attempt-timeout", known), Some("attempt_timeout"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"retries".repeat(1_000), known), None);
    }
}
