//! Resources that were made, and how many effects each token and each key has had.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

/// The most resources, tokens or keys that are kept.
const MAX: usize = 100_000;
/// The most bytes that the contents of resources take.
const MAX_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Resources {
    made: BTreeMap<String, Vec<Resource>>,
    /// How many each route has ever made: an id is never used twice.
    numbers: HashMap<String, u64>,
    total: usize,
    /// What the contents take.
    bytes: usize,
    pub(crate) by_token: HashMap<String, u64>,
    pub(crate) by_key: HashMap<String, u64>,
}

/// A resource that a `create` on POST made.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Resource {
    /// Its id.
    pub id: String,
    /// The token of the operation that made it.
    pub token: String,
    /// The key it was made with.
    pub key: Option<String>,
    /// When, in nanoseconds of the mock's clock.
    pub at: u64,
    /// The body it was made with, or last replaced with; its first 64 KiB.
    pub content: String,
}

/// What a resource is made from.
pub(crate) struct New<'a> {
    pub(crate) token: &'a str,
    pub(crate) key: Option<&'a str>,
    pub(crate) at: u64,
    pub(crate) content: String,
}

impl Resources {
    /// Whether one more effect of this token and key can be counted.
    pub(crate) fn has_room(&self, token: &str, key: Option<&str>) -> bool {
        let fits = |map: &HashMap<String, u64>, k: &str| map.len() < MAX || map.contains_key(k);
        let room = self.total < MAX && self.bytes < MAX_BYTES;
        room && fits(&self.by_token, token) && key.is_none_or(|k| fits(&self.by_key, k))
    }

    /// Counts one effect.
    pub(crate) fn count(&mut self, token: &str, key: Option<&str>) {
        *self.by_token.entry(token.to_owned()).or_default() += 1;
        if let Some(key) = key {
            *self.by_key.entry(key.to_owned()).or_default() += 1;
        }
    }

    /// Makes a resource of a route and returns its id.
    pub(crate) fn make(&mut self, route: &str, template: Option<&str>, new: New<'_>) -> String {
        let count = self.numbers.entry(route.to_owned()).or_default();
        *count += 1;
        let n = count.to_string();
        let id = match template {
            Some(t) => t.replace("{n}", &n),
            None => format!("{route}_{n}"),
        };
        self.bytes += new.content.len();
        self.made
            .entry(route.to_owned())
            .or_default()
            .push(Resource {
                id: id.clone(),
                token: new.token.to_owned(),
                key: new.key.map(str::to_owned),
                at: new.at,
                content: new.content,
            });
        self.total += 1;
        id
    }

    /// Replaces the content of a resource, or removes it; whether there is one. Without a route, it
    /// is looked for in all.
    pub(crate) fn change(&mut self, route: Option<&str>, id: &str, new: Option<String>) -> bool {
        for (name, list) in &mut self.made {
            if route.is_some_and(|r| r != name) {
                continue;
            }
            let Some(i) = list.iter().position(|r| r.id == id) else {
                continue;
            };
            self.bytes -= list[i].content.len();
            match new {
                Some(content) => {
                    self.bytes += content.len();
                    list[i].content = content;
                }
                None => {
                    list.remove(i);
                    self.total -= 1;
                }
            }
            return true;
        }
        false
    }

    /// One resource of a route.
    pub(crate) fn get(&self, route: &str, id: &str) -> Option<&Resource> {
        self.made.get(route)?.iter().find(|r| r.id == id)
    }

    /// The resources of a route.
    pub(crate) fn of(&self, route: &str) -> &[Resource] {
        self.made.get(route).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
