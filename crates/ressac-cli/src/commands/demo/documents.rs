//! The documents of the demo: copies of the four in `examples/edi`, each with a number of its own.

/// Stands in the examples where each copy has its own number.
const NUMBER: &str = "000004711";

const EXAMPLES: [(&str, &str); 4] = [
    (
        "application/edifact",
        include_str!("../../../../../examples/edi/invoic.edi"),
    ),
    (
        "application/edifact",
        include_str!("../../../../../examples/edi/orders.edi"),
    ),
    (
        "application/edi-x12",
        include_str!("../../../../../examples/edi/x12-810.edi"),
    ),
    (
        "application/edi-x12",
        include_str!("../../../../../examples/edi/x12-850.edi"),
    ),
];

/// A document to deliver once.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) key: String,
    pub(super) content_type: &'static str,
    pub(super) body: String,
}

/// So many documents, all different.
pub(super) fn documents(count: u32) -> impl Iterator<Item = Document> {
    (1..=count).map(|number| {
        let (content_type, text) = EXAMPLES[number as usize % EXAMPLES.len()];
        let number = format!("{number:09}");
        Document {
            key: format!("interchange-{number}"),
            content_type,
            body: text.replace(NUMBER, &number),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_has_its_own_number_and_keeps_its_envelope() {
        let all: Vec<_> = documents(8).collect();
        let keys: std::collections::HashSet<_> = all.iter().map(|d| &d.key).collect();
        assert_eq!(keys.len(), 8);
        for document in &all {
            let number = document.key.trim_start_matches("interchange-");
            assert!(
                document.body.matches(number).count() >= 2,
                "begin and end of the interchange"
            );
            assert!(!document.body.contains(NUMBER));
        }
    }
}
