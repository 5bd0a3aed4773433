//! From the files' texts to one configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use ressac_policy::Mode;
use toml::de::{DeTable, DeValue};

use crate::config::Config;
use crate::diagnostic::{ConfigError, Diagnostic};
use crate::itself;
use crate::layer::{self, Layers, built_in, no_such_policy};
use crate::model::{GatewayConfig, PartnerConfig};
use crate::named::NamedPolicy;
use crate::read::{
    Entry, Environment, GatewayRead, NAME_RULE, Reader, Said, is_name, read_gateway, read_partner,
    read_policy,
};
use crate::settings::Fault;
use crate::source::{Place, Source};

/// What the files say, before it is put together.
#[derive(Default)]
struct Parts {
    layers: Layers,
    partners: Vec<PartnerConfig>,
    partner_places: BTreeMap<String, Place>,
    gateway: Option<(GatewayRead, Place)>,
}

pub(crate) fn build(
    sources: Vec<Source>,
    environment: &Environment,
    mut found: Vec<Diagnostic>,
) -> Result<Config, ConfigError> {
    let folder = sources
        .first()
        .map(|source| source.folder.clone())
        .unwrap_or_default();
    let mut parts = Parts::default();
    for source in sources {
        let source = Arc::new(source);
        read_source(&source, environment, &mut parts, &mut found);
    }
    let policies = policies(&parts, &mut found);
    found.extend(loops(&parts));
    if !found.is_empty() {
        return Err(ConfigError::new(found));
    }
    Ok(Config {
        layers: parts.layers,
        policies,
        partners: parts.partners,
        gateway: parts.gateway.map_or_else(
            || GatewayConfig::in_folder(&folder),
            |(read, _)| read.gateway,
        ),
    })
}

fn read_source(
    source: &Arc<Source>,
    environment: &Environment,
    parts: &mut Parts,
    found: &mut Vec<Diagnostic>,
) {
    let (tree, errors) = DeTable::parse_recoverable(&source.text);
    for error in &errors {
        let place = Place::new(source, error.span().unwrap_or(0..0));
        found.push(syntax(&place, error.message()));
    }
    if !errors.is_empty() {
        // What was recovered is a guess; complaints about it would mislead.
        return;
    }
    let mut reader = Reader {
        source,
        environment,
        found,
    };
    for entry in reader.entries(tree.get_ref()) {
        match entry.key {
            "policy" => each(&mut reader, &entry, parts, policy),
            "partner" => each(&mut reader, &entry, parts, partner),
            "gateway" => gateway(&mut reader, &entry, parts),
            _ => reader.unknown("the file", &entry, ["policy", "partner", "gateway"], None),
        }
    }
}

fn syntax(place: &Place, message: &str) -> Diagnostic {
    if message.contains("duplicate key") {
        return Diagnostic::error("duplicate", "a name stands twice in one file")
            .at(place, "it stands further up already")
            .help("rename or remove one of the two");
    }
    Diagnostic::error("syntax", "this is not TOML")
        .at(place, message)
        .help("see https://toml.io for the notation")
}

fn each(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    parts: &mut Parts,
    read: fn(&mut Reader<'_>, &Entry<'_>, &mut Parts),
) {
    let DeValue::Table(table) = entry.value else {
        let fix = format!("write [{}.NAME] and its settings below", entry.key);
        reader.fault(
            entry.key,
            &entry.value_place,
            Fault::kind(entry.value, "a table of tables", fix),
        );
        return;
    };
    for item in reader.entries(table) {
        if is_name(item.key) {
            read(reader, &item, parts);
        } else {
            let title = format!("`{}` is no name for a {}", item.key, entry.key);
            reader.push(
                Diagnostic::error("bad-name", title)
                    .at(&item.place, "not a name")
                    .help(format!("names are {NAME_RULE}")),
            );
        }
    }
}

fn policy(reader: &mut Reader<'_>, entry: &Entry<'_>, parts: &mut Parts) {
    if built_in(entry.key).is_some() {
        let fix = format!(
            "give it another name, and write extends = \"{}\" in it",
            entry.key
        );
        reader.push(
            Diagnostic::error(
                "bad-name",
                format!("the policy `{}` is built in", entry.key),
            )
            .at(&entry.place, "it cannot be redefined")
            .help(fix),
        );
        return;
    }
    let layer = read_policy(reader, entry);
    if let Some(first) = parts.layers.get(entry.key) {
        twice(
            reader,
            &format!("policy `{}`", entry.key),
            &entry.place,
            &first.place.clone(),
        );
        return;
    }
    parts.layers.insert(entry.key.to_owned(), layer);
}

fn partner(reader: &mut Reader<'_>, entry: &Entry<'_>, parts: &mut Parts) {
    let partner = read_partner(reader, entry);
    if let Some(first) = parts.partner_places.get(entry.key) {
        twice(
            reader,
            &format!("partner `{}`", entry.key),
            &entry.place,
            &first.clone(),
        );
        return;
    }
    parts
        .partner_places
        .insert(entry.key.to_owned(), entry.place.clone());
    parts.partners.extend(partner);
}

fn gateway(reader: &mut Reader<'_>, entry: &Entry<'_>, parts: &mut Parts) {
    let gateway = read_gateway(reader, entry);
    if let Some((_, first)) = &parts.gateway {
        twice(reader, "[gateway]", &entry.place, &first.clone());
        return;
    }
    parts.gateway = Some((gateway, entry.place.clone()));
}

fn twice(reader: &mut Reader<'_>, what: &str, again: &Place, first: &Place) {
    reader.push(
        Diagnostic::error("duplicate", format!("{what} is defined twice"))
            .at(again, "again here")
            .at(first, "first here")
            .help("rename or remove one of the two"),
    );
}

/// Partners that are the gateway itself.
fn loops(parts: &Parts) -> Vec<Diagnostic> {
    let (listen, place) = match &parts.gateway {
        None => (GatewayConfig::default().listen, None),
        Some((read, _)) => match &read.listen {
            Said::Wrongly => return Vec::new(),
            Said::Not => (read.gateway.listen, None),
            Said::At(place) => (read.gateway.listen, Some(place)),
        },
    };
    let partners = parts.partners.iter();
    partners
        .filter_map(|partner| itself::check(partner, listen, place))
        .collect()
}

/// Puts the policies together and checks what hangs together.
fn policies(parts: &Parts, found: &mut Vec<Diagnostic>) -> BTreeMap<String, NamedPolicy> {
    found.extend(layer::links(&parts.layers));
    let mut policies = Config::default().policies;
    for leaf in parts.layers.values() {
        let used = parts
            .partners
            .iter()
            .any(|partner| partner.policy == leaf.name);
        let fallback = if used {
            Mode::Durable
        } else {
            Mode::Synchronous
        };
        found.extend(layer::objections(&parts.layers, leaf, fallback));
        if let Some(named) = layer::resolve(&parts.layers, leaf, fallback) {
            policies.insert(leaf.name.clone(), named);
        }
    }
    for partner in &parts.partners {
        let place = partner.policy_place.as_ref().unwrap_or(&partner.place);
        match policies.get(&partner.policy) {
            // One that stands there but is broken has its own error.
            None if parts.layers.contains_key(&partner.policy) => {}
            None => found.push(no_such_policy(&parts.layers, &partner.policy, place)),
            Some(named) if named.policy.mode == Mode::Synchronous => found.push(
                Diagnostic::error(
                    "contradiction",
                    format!(
                        "partner `{}` has a policy for callers who wait",
                        partner.name
                    ),
                )
                .at(
                    place,
                    format!(
                        "`{}` is synchronous, and the gateway delivers durably",
                        partner.policy
                    ),
                )
                .help("write \"durable\", or a policy with mode = \"durable\""),
            ),
            Some(_) => {}
        }
    }
    policies
}
