//! Resources that were made, and how many effects each token and each key has had.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

/// The most resources, tokens or keys that are kept.
const MAX: usize = 100_000;

#[derive(Debug, Default)]
pub(crate) struct Resources {
    made: BTreeMap<String, Vec<Resource>>,
    total: usize,
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
}

impl Resources {
    /// Whether one more effect of this token and key can be counted.
    pub(crate) fn has_room(&self, token: &str, key: Option<&str>) -> bool {
        let fits = |map: &HashMap<String, u64>, k: &str| map.len() < MAX || map.contains_key(k);
        self.total < MAX && fits(&self.by_token, token) && key.is_none_or(|k| fits(&self.by_key, k))
    }

    /// Counts one effect.
    pub(crate) fn count(&mut self, token: &str, key: Option<&str>) {
        *self.by_token.entry(token.to_owned()).or_default() += 1;
        if let Some(key) = key {
            *self.by_key.entry(key.to_owned()).or_default() += 1;
        }
    }

    /// Makes a resource of a route and returns its id.
    pub(crate) fn make(
        &mut self,
        route: &str,
        template: Option<&str>,
        token: &str,
        key: Option<&str>,
        at: u64,
    ) -> String {
        let list = self.made.entry(route.to_owned()).or_default();
        let n = (list.len() + 1).to_string();
        let id = match template {
            Some(t) => t.replace("{n}", &n),
            None => format!("{route}_{n}"),
        };
        let (token, key) = (token.to_owned(), key.map(str::to_owned));
        list.push(Resource {
            id: id.clone(),
            token,
            key,
            at,
        });
        self.total += 1;
        id
    }

    /// The resources of a route.
    pub(crate) fn of(&self, route: &str) -> &[Resource] {
        self.made.get(route).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
