//! The reference page and the schema are those of the code. `RESSAC_UPDATE=1` writes them.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use ressac_config::{json_schema, reference_page};

fn current(file: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    if std::env::var_os("RESSAC_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{file} is out of date: run RESSAC_UPDATE=1 cargo test -p ressac-config"
    );
}

#[test]
fn the_schema_is_current() {
    let schema = serde_json::to_string_pretty(&json_schema()).unwrap();
    current("jsonschemas/ressac.schema.json", &format!("{schema}\n"));
}

#[test]
fn the_reference_page_is_current() {
    current("docs/ressac.toml.md", &reference_page());
}
