//! Policies that build on each other: field by field, and who said what is remembered.

use std::collections::BTreeMap;
use std::fmt;

use ressac_policy::{Mode, Policy};

use crate::diagnostic::Diagnostic;
use crate::doubt::Doubt;
use crate::named::{NamedPolicy, Said};
use crate::settings::{Change, GROUPS};
use crate::source::Place;
use crate::suggest::nearest;

/// What one `[policy.NAME]` says.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) name: String,
    /// The name in the table's head.
    pub(crate) place: Place,
    pub(crate) mode: Option<(Mode, Place)>,
    pub(crate) extends: Option<(String, Place)>,
    pub(crate) changes: Vec<Laid>,
    /// Settings and groups whose value was refused; and those that an unknown key may have meant.
    pub(crate) refused: Vec<&'static str>,
    /// `mode` or `extends` was refused: what lies below is not known.
    pub(crate) baseless: bool,
}

/// One setting of a layer.
#[derive(Clone)]
pub(crate) struct Laid {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    pub(crate) change: Change,
}

impl fmt::Debug for Laid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Laid")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Layer {
    pub(crate) fn new(name: &str, place: Place) -> Self {
        Layer {
            name: name.to_owned(),
            place,
            mode: None,
            extends: None,
            changes: Vec::new(),
            refused: Vec::new(),
            baseless: false,
        }
    }
}

/// The word for a mode, which is also the name of its built-in policy.
pub(crate) fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Synchronous => "sync",
        Mode::Durable => "durable",
    }
}

/// The mode whose built-in policy has this name.
pub(crate) fn built_in(name: &str) -> Option<Mode> {
    match name {
        "sync" => Some(Mode::Synchronous),
        "durable" => Some(Mode::Durable),
        _ => None,
    }
}

/// The layers of a configuration by name.
pub(crate) type Layers = BTreeMap<String, Layer>;

/// A policy's layers, its own first, and the built-in name at the end if one stands there.
struct Chain<'a> {
    layers: Vec<&'a Layer>,
    built_in: Option<Mode>,
    /// It leads to a built-in policy.
    whole: bool,
}

/// Follows `extends`, as far as a name is known and does not come round again: [`links`] says so.
fn chain<'a>(layers: &'a Layers, leaf: &'a Layer) -> Chain<'a> {
    let mut chain = Chain {
        layers: vec![leaf],
        built_in: None,
        whole: true,
    };
    let mut last = leaf;
    while let Some((name, _)) = &last.extends {
        if let Some(mode) = built_in(name) {
            chain.built_in = Some(mode);
            break;
        }
        // A chain longer than there are layers is a circle.
        let next = layers.get(name);
        let Some(next) = next.filter(|_| chain.layers.len() < layers.len()) else {
            chain.whole = false;
            break;
        };
        last = next;
        chain.layers.push(last);
    }
    chain
}

/// Reports every `extends` that leads nowhere or round in a circle.
pub(crate) fn links(layers: &Layers) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for layer in layers.values() {
        let Some((name, place)) = &layer.extends else {
            continue;
        };
        if built_in(name).is_none() && !layers.contains_key(name) {
            found.push(no_such_policy(layers, name, place));
        }
        if let (Some(own), Some((mode, mode_place))) = (built_in(name), &layer.mode)
            && own != *mode
        {
            found.push(
                Diagnostic::error(
                    "contradiction",
                    format!("`{}` is told to be both sync and durable", layer.name),
                )
                .at(mode_place, "this mode")
                .at(place, "is not that of the policy extended")
                .help("leave out one of the two"),
            );
        }
    }
    found.extend(circles(layers));
    found
}

/// An error for a name that no policy has.
pub(crate) fn no_such_policy(layers: &Layers, name: &str, place: &Place) -> Diagnostic {
    let known = || {
        ["sync", "durable"]
            .into_iter()
            .chain(layers.keys().map(String::as_str))
    };
    let help = match nearest(name, known()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!(
            "known policies: {}",
            known().take(20).collect::<Vec<_>>().join(", ")
        ),
    };
    Diagnostic::error("unknown-policy", format!("there is no policy `{name}`"))
        .at(place, "no [policy.…] has this name")
        .help(help)
}

/// One error for each circle, at the member that comes first in the alphabet.
fn circles(layers: &Layers) -> Vec<Diagnostic> {
    let mut done: BTreeMap<&str, ()> = BTreeMap::new();
    let mut found = Vec::new();
    for start in layers.values() {
        let mut path: Vec<&Layer> = Vec::new();
        let mut at = Some(start);
        while let Some(layer) = at {
            if done.insert(&layer.name, ()).is_some() {
                // Seen before: a circle only if it was in this very walk.
                if let Some(from) = path.iter().position(|seen| seen.name == layer.name) {
                    found.push(circle(&path[from..]));
                }
                break;
            }
            path.push(layer);
            at = layer
                .extends
                .as_ref()
                .and_then(|(name, _)| layers.get(name));
        }
    }
    found
}

fn circle(members: &[&Layer]) -> Diagnostic {
    let mut names: Vec<&str> = members.iter().map(|layer| layer.name.as_str()).collect();
    names.extend(names.first().copied());
    let mut diagnostic = Diagnostic::error(
        "extends-circle",
        format!("policies extend each other: {}", names.join(" → ")),
    );
    for layer in members.iter().take(5) {
        if let Some((name, place)) = &layer.extends {
            diagnostic = diagnostic.at(place, format!("`{}` extends `{name}`", layer.name));
        }
    }
    diagnostic.help("let one of them extend \"sync\" or \"durable\"")
}

/// Lays the layers over the built-in policy. `None` if the chain is broken.
pub(crate) fn resolve(layers: &Layers, leaf: &Layer, fallback: Mode) -> Option<NamedPolicy> {
    let chain = chain(layers, leaf);
    chain.whole.then(|| lay(&chain, leaf, fallback).0)
}

/// What the policy says against itself, over the settings that are known: what was refused, there
/// or in a policy it extends, has its own error.
pub(crate) fn objections(layers: &Layers, leaf: &Layer, fallback: Mode) -> Vec<Diagnostic> {
    let (named, doubt) = lay(&chain(layers, leaf), leaf, fallback);
    named.objections(&doubt)
}

fn lay(chain: &Chain<'_>, leaf: &Layer, fallback: Mode) -> (NamedPolicy, Doubt) {
    let said = chain
        .layers
        .iter()
        .find_map(|layer| layer.mode.as_ref().map(|(mode, _)| *mode));
    let mode = said.or(chain.built_in).unwrap_or(fallback);
    let mut named = NamedPolicy::built_in(mode);
    named.name.clone_from(&leaf.name);
    named.place = Some(leaf.place.clone());
    let baseless = !chain.whole || chain.layers.iter().any(|layer| layer.baseless);
    let mut doubt = match baseless {
        true => Doubt::of_all(),
        false => Doubt::default(),
    };
    for layer in chain.layers.iter().rev() {
        for name in &layer.refused {
            doubt.add(name);
        }
        for laid in &layer.changes {
            (laid.change)(&mut named.policy);
            // Switched off, or on again from the defaults: what was said before is void.
            let group = format!("{}.", laid.name);
            let off = |policy: &Policy| match laid.name {
                "budget" => policy.budget.is_none(),
                "breaker" => policy.breaker.is_none(),
                _ => false,
            };
            if off(&named.policy) {
                named.said.retain(|name, _| !name.starts_with(&group));
                doubt.lift(laid.name);
            } else if !GROUPS.iter().any(|(name, ..)| *name == laid.name) {
                doubt.lift(laid.name);
            }
            let said = Said {
                policy: layer.name.clone(),
                place: laid.place.clone(),
            };
            named.said.insert(laid.name, said);
        }
    }
    (named, doubt)
}
