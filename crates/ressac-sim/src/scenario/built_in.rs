//! The scenarios that come with the program.

use super::{Scenario, ScenarioError};

const FILES: [(&str, &str); 7] = [
    ("edi-50", include_str!("../../scenarios/edi-50.toml")),
    ("outage", include_str!("../../scenarios/outage.toml")),
    ("herd-5000", include_str!("../../scenarios/herd-5000.toml")),
    ("layers", include_str!("../../scenarios/layers.toml")),
    (
        "metastable",
        include_str!("../../scenarios/metastable.toml"),
    ),
    (
        "breaker-sync",
        include_str!("../../scenarios/breaker-sync.toml"),
    ),
    ("aws-occ", include_str!("../../scenarios/aws-occ.toml")),
];

/// Their names.
///
/// ```
/// assert!(ressac_sim::built_in_names().any(|name| name == "outage"));
/// ```
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The built-in scenario of this name.
///
/// # Errors
///
/// If there is none.
///
/// ```
/// let scenario = ressac_sim::built_in("outage").unwrap();
/// assert_eq!(scenario.world.clients.instances, 10);
/// assert!(ressac_sim::built_in("outrage").is_err());
/// ```
pub fn built_in(name: &str) -> Result<Scenario, ScenarioError> {
    match FILES.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Scenario::parse(name, text),
        None => Err(ScenarioError::Unknown {
            name: name.to_owned(),
            known: built_in_names().collect::<Vec<_>>().join(", "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_scenario_parses_and_has_points() {
        for name in built_in_names() {
            let scenario = built_in(name).unwrap();
            let points = scenario.points(&[]).unwrap();
            assert_eq!(points.is_empty(), name == "aws-occ", "{name}");
            assert!(!scenario.about.is_empty(), "{name}");
        }
    }
}
