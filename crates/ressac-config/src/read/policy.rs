//! `[policy.NAME]` becomes a layer: the settings that stand there, and no others.

use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::{Entry, Reader, text};
use crate::layer::{Laid, Layer};
use crate::settings::{Fault, GROUPS, POLICY, one_of, policy_setting};
use ressac_policy::{Mode, Policy};

/// Names that other software has for these things.
const ALIASES: &[(&str, &str)] = &[
    ("attempts", "write `retries`: one less than the attempts"),
    (
        "max_attempts",
        "write `retries`: one less than the attempts",
    ),
    ("max_retries", "write `retries`"),
    ("max_elapsed_time", "write `window`"),
    ("deadline", "write `window`"),
    ("total_timeout", "write `window`"),
    (
        "timeout",
        "write `attempt_timeout` for one attempt, `window` for all of them",
    ),
    ("initial_delay", "write `base`"),
    ("initial_interval", "write `base`"),
    ("min_delay", "write `base`"),
    ("max_delay", "write `cap`"),
    ("max_interval", "write `cap`"),
    ("multiplier", "write `factor`"),
    ("circuit_breaker", "write `breaker`"),
    ("rate_limit", "write `limit = { rate = … }`"),
];

/// Reads one policy table.
pub(crate) fn read_policy(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Layer {
    let before = reader.found.len();
    let mut layer = Layer::new(entry.key, entry.place.clone());
    let section = format!("[policy.{}]", entry.key);
    match entry.value {
        DeValue::Table(table) => {
            for item in reader.entries(table) {
                own(reader, &section, &mut layer, &item);
            }
        }
        other => {
            let fault = Fault::kind(
                other,
                "a table",
                format!("write {section} and its settings below"),
            );
            reader.fault(&format!("policy.{}", entry.key), &entry.value_place, fault);
        }
    }
    layer.sound = reader.found.len() == before;
    layer
}

fn own(reader: &mut Reader<'_>, section: &str, layer: &mut Layer, item: &Entry<'_>) {
    if item.key == "mode" {
        let word = reader.take("mode", item, |value| one_of(value, &["sync", "durable"]));
        layer.mode = word.map(|word| {
            let mode = if word == "sync" {
                Mode::Synchronous
            } else {
                Mode::Durable
            };
            (mode, item.value_place.clone())
        });
    } else if item.key == "extends" {
        let fix = "write the name of a policy, e.g. \"durable\"";
        let name = reader.take("extends", item, |value| text(value, fix).map(str::to_owned));
        layer.extends = name.map(|name| (name, item.value_place.clone()));
    } else if let Some((name, off, _)) = GROUPS.iter().find(|(name, ..)| *name == item.key) {
        group(reader, section, layer, item, (name, *off));
    } else if !item.key.contains('.') && policy_setting(item.key).is_some() {
        setting(reader, layer, item, item.key);
    } else {
        let own = POLICY
            .iter()
            .map(|known| known.setting.name)
            .filter(|name| !name.contains('.'));
        let known = ["mode", "extends"]
            .into_iter()
            .chain(own)
            .chain(GROUPS.iter().map(|g| g.0));
        reader.unknown(section, item, known, elsewhere(item.key));
    }
}

/// Where a key belongs that is not one of a policy's own.
fn elsewhere(key: &str) -> Option<String> {
    let alias = ALIASES
        .iter()
        .find(|(name, _)| *name == key)
        .map(|(_, fix)| (*fix).to_owned());
    alias.or_else(|| {
        POLICY
            .iter()
            .filter_map(|known| known.setting.name.split_once('.'))
            .find(|(_, name)| *name == key)
            .map(|(group, name)| format!("it belongs into `{group}`: {group} = {{ {name} = … }}"))
    })
}

fn setting(reader: &mut Reader<'_>, layer: &mut Layer, item: &Entry<'_>, name: &str) {
    let Some(known) = policy_setting(name) else {
        return;
    };
    if let Some(change) = reader.take(name, item, |value| known.apply.read(value)) {
        layer.changes.push(Laid {
            name: known.setting.name,
            place: item.value_place.clone(),
            change,
        });
    }
}

fn group(
    reader: &mut Reader<'_>,
    section: &str,
    layer: &mut Layer,
    item: &Entry<'_>,
    (name, may_be_off): (&'static str, bool),
) {
    let place = item.value_place.clone();
    match item.value {
        DeValue::Table(table) => {
            layer.changes.push(Laid {
                name,
                place,
                change: Arc::new(on(name)),
            });
            members(reader, section, layer, table, name);
        }
        DeValue::String(word) if may_be_off && word == "off" => {
            layer.changes.push(Laid {
                name,
                place,
                change: Arc::new(off(name)),
            });
        }
        other => {
            let example = POLICY
                .iter()
                .find_map(|s| s.setting.name.strip_prefix(name)?.strip_prefix('.'));
            let mut fix = format!("write {name} = {{ {} = … }}", example.unwrap_or_default());
            if may_be_off {
                fix.push_str(&format!(", or {name} = \"off\""));
            }
            reader.fault(name, &place, Fault::kind(other, "a table", fix));
        }
    }
}

fn members(
    reader: &mut Reader<'_>,
    section: &str,
    layer: &mut Layer,
    table: &DeTable<'_>,
    group: &'static str,
) {
    for member in reader.entries(table) {
        let name = format!("{group}.{}", member.key);
        if policy_setting(&name).is_some() {
            setting(reader, layer, &member, &name);
            continue;
        }
        let known = POLICY
            .iter()
            .filter_map(|known| known.setting.name.strip_prefix(group)?.strip_prefix('.'));
        let section = format!("`{group}` of {section}");
        let own = policy_setting(member.key)
            .filter(|_| !member.key.contains('.'))
            .map(|_| format!("it belongs beside `{group}`, not into it"));
        reader.unknown(&section, &member, known, own);
    }
}

fn on(group: &'static str) -> impl Fn(&mut Policy) {
    move |policy| match group {
        "budget" => {
            policy.budget.get_or_insert_default();
        }
        "breaker" => {
            policy.breaker.get_or_insert_default();
        }
        _ => {}
    }
}

fn off(group: &'static str) -> impl Fn(&mut Policy) {
    move |policy| match group {
        "budget" => policy.budget = None,
        "breaker" => policy.breaker = None,
        _ => {}
    }
}
