//! `[policy.NAME]` becomes a layer: the settings that stand there, and no others.

use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::{Entry, Reader, text};
use crate::layer::{Laid, Layer};
use crate::settings::{Fault, GROUPS, POLICY, one_of, policy_setting};
use crate::suggest::nearest;
use ressac_policy::{Mode, Policy};

/// A name that other software has for one of these things.
struct Alias {
    name: &'static str,
    /// Settings and groups.
    meant: &'static [&'static str],
    fix: &'static str,
}

const fn alias(name: &'static str, meant: &'static [&'static str], fix: &'static str) -> Alias {
    Alias { name, meant, fix }
}

const ONE_LESS: &str = "write `retries`: one less than the attempts";
const WHICH_TIME: &str = "write `attempt_timeout` for one attempt, `window` for all of them";

const ALIASES: &[Alias] = &[
    alias("attempts", &["retries"], ONE_LESS),
    alias("max_attempts", &["retries"], ONE_LESS),
    alias("max_retries", &["retries"], "write `retries`"),
    alias("max_elapsed_time", &["window"], "write `window`"),
    alias("deadline", &["window"], "write `window`"),
    alias("total_timeout", &["window"], "write `window`"),
    alias("timeout", &["attempt_timeout", "window"], WHICH_TIME),
    alias("initial_delay", &["base"], "write `base`"),
    alias("initial_interval", &["base"], "write `base`"),
    alias("min_delay", &["base"], "write `base`"),
    alias("max_delay", &["cap"], "write `cap`"),
    alias("max_interval", &["cap"], "write `cap`"),
    alias("multiplier", &["factor"], "write `factor`"),
    alias("circuit_breaker", &["breaker"], "write `breaker`"),
    alias("rate_limit", &["limit"], "write `limit = { rate = … }`"),
];

/// Reads one policy table.
pub(crate) fn read_policy(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Layer {
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
            layer.baseless = true;
        }
    }
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
        layer.baseless |= layer.mode.is_none();
    } else if item.key == "extends" {
        let fix = "write the name of a policy, e.g. \"durable\"";
        let name = reader.take("extends", item, |value| text(value, fix).map(str::to_owned));
        layer.extends = name.map(|name| (name, item.value_place.clone()));
        layer.baseless |= layer.extends.is_none();
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
        layer.refused.extend(meant(item.key, None));
    }
}

/// Where a key belongs that is not one of a policy's own.
fn elsewhere(key: &str) -> Option<String> {
    let alias = ALIASES
        .iter()
        .find(|alias| alias.name == key)
        .map(|alias| alias.fix.to_owned());
    alias.or_else(|| {
        POLICY
            .iter()
            .filter_map(|known| known.setting.name.split_once('.'))
            .find(|(_, name)| *name == key)
            .map(|(group, name)| format!("it belongs into `{group}`: {group} = {{ {name} = … }}"))
    })
}

/// What an unknown key may have meant, in a group or beside the groups: of that nothing is known.
fn meant(key: &str, group: Option<&str>) -> Vec<&'static str> {
    let here = |name: &'static str| match group {
        Some(group) => name.strip_prefix(group)?.strip_prefix('.').map(|_| name),
        None => (!name.contains('.')).then_some(name),
    };
    let last = |name: &'static str| name.rsplit('.').next().unwrap_or(name);
    let names = || POLICY.iter().map(|known| known.setting.name);
    let near = nearest(key, names().filter_map(here).map(last));
    let aliases = ALIASES.iter().filter(|alias| alias.name == key);
    names()
        .filter(|name| last(name) == key || here(name).is_some_and(|name| Some(last(name)) == near))
        .chain(aliases.flat_map(|alias| alias.meant.iter().copied()))
        .chain(
            GROUPS
                .iter()
                .map(|group| group.0)
                .filter(|name| nearest(key, [*name]).is_some()),
        )
        .collect()
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
    } else {
        layer.refused.push(known.setting.name);
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
            layer.refused.push(name);
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
        layer.refused.extend(meant(member.key, Some(group)));
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
