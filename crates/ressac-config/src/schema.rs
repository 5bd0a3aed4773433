//! The JSON Schema `jsonschemas/ressac.schema.json`, from the table of settings.

use ressac_policy::{Policy, RetryOn, VendorHints};
use serde_json::{Map, Value, json};

use crate::settings::{GATEWAY, GROUPS, PARTNER, POLICY, Setting, Shape};

const DURATION: &str = r"^\s*([0-9]+(\.[0-9]+)?\s*(d|h|m|s|ms)\s*)+$";
const RATE: &str = r"^\s*[0-9]+(\.[0-9]+)?\s*/\s*(s|min|m|h|d)\s*$";
const SIZE: &str = r"^\s*[0-9]+(\.[0-9]+)?\s*([KkMmGg][Ii]?)?[Bb]\s*$";
const NAME: &str = "^[a-z0-9][a-z0-9_-]{0,63}$";

/// The schema, for editors: what it accepts may still be refused by `ressac check`.
///
/// ```
/// let schema = ressac_config::json_schema();
/// assert_eq!(schema["properties"]["policy"]["additionalProperties"], false);
/// ```
#[must_use]
pub fn json_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ressac.toml",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "policy": named(policy()),
            "partner": named(partner()),
            "gateway": table(GATEWAY.iter().map(entry)),
        },
    })
}

fn entry(setting: &'static Setting) -> (&'static str, Value) {
    (setting.name, described(setting, setting.default))
}

fn named(value: Value) -> Value {
    json!({ "type": "object", "patternProperties": { NAME: value }, "additionalProperties": false })
}

fn table<'a>(entries: impl Iterator<Item = (&'a str, Value)>) -> Value {
    let properties: Map<String, Value> = entries
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn policy() -> Value {
    let (sync, durable) = (Policy::sync(), Policy::durable());
    let all = || {
        POLICY.iter().map(|known| {
            let (sync, durable) = ((known.show)(&sync), (known.show)(&durable));
            let default = if sync == durable {
                sync
            } else {
                format!("{sync} sync, {durable} durable")
            };
            (known.setting.name, described(&known.setting, &default))
        })
    };
    let own = all().filter(|(name, _)| !name.contains('.'));
    let groups = GROUPS.iter().map(|(group, off, doc)| {
        let members = all().filter_map(|(name, value)| {
            Some((name.strip_prefix(group)?.strip_prefix('.')?, value))
        });
        let mut value = table(members);
        if *off {
            value = json!({ "anyOf": [{ "const": "off" }, value] });
        }
        value["description"] = json!(doc);
        (*group, value)
    });
    let mode = json!({
        "enum": ["sync", "durable"],
        "description": "Which built-in policy lies at the bottom.",
    });
    let extends = json!({
        "type": "string",
        "pattern": NAME,
        "description": "The policy whose settings are taken over.",
    });
    table(
        [("mode", mode), ("extends", extends)]
            .into_iter()
            .chain(own)
            .chain(groups),
    )
}

fn partner() -> Value {
    let own = PARTNER.iter().filter(|setting| !setting.name.contains('.'));
    let entries = own.map(|setting| (setting.name, described(setting, setting.default)));
    let key = PARTNER.iter().filter_map(|setting| {
        let name = setting.name.strip_prefix("idempotency.")?;
        Some((name, described(setting, setting.default)))
    });
    let mut key = table(key);
    key["required"] = json!(["header"]);
    let mut value = table(entries.chain([("idempotency", key)]));
    value["required"] = json!(["url"]);
    value
}

fn described(setting: &Setting, default: &str) -> Value {
    let mut value = shape(setting.shape);
    if let Some(word) = setting.word {
        value = json!({ "anyOf": [{ "const": word }, value] });
    }
    let mut text = setting.doc.to_owned();
    if !setting.range.is_empty() {
        text.push_str(&format!(" Range: {}.", setting.range));
    }
    if !default.is_empty() {
        text.push_str(&format!(" Default: {default}."));
    }
    value["description"] = json!(text);
    value
}

fn shape(shape: Shape) -> Value {
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let status = |min: u16| json!({ "type": "integer", "minimum": min, "maximum": 999 });
    let list = |items: Value| json!({ "type": "array", "items": items });
    match shape {
        Shape::Duration => text(DURATION),
        Shape::Rate => text(RATE),
        Shape::Size => text(SIZE),
        Shape::Share => json!({ "type": "number", "minimum": 0 }),
        Shape::Count(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Number => json!({ "type": "number" }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Words(words) => json!({ "enum": words }),
        Shape::CallWindow => {
            let calls = json!({ "type": "integer", "minimum": 1, "maximum": 10_000 });
            json!({ "anyOf": [text(DURATION), calls] })
        }
        Shape::RetryOn => list(json!({ "anyOf": [{ "enum": RetryOn::WORDS }, status(300)] })),
        Shape::Unprocessed => {
            list(json!({ "anyOf": [status(300), text(r"^[3-9][0-9]{2}\+retry-after$")] }))
        }
        Shape::Statuses => list(status(200)),
        Shape::Vendors => list(json!({ "enum": VendorHints::NAMES })),
        Shape::Text => json!({ "type": "string" }),
        Shape::Headers => {
            let value = json!({ "type": "string" });
            json!({ "type": "object", "additionalProperties": value, "maxProperties": 64 })
        }
    }
}
