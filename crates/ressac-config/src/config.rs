//! The whole configuration: one file or several, read and checked together.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ressac_policy::Mode;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{ConfigError, Diagnostic};
use crate::layer::{self, Layers, built_in, no_such_policy};
use crate::model::{GatewayConfig, PartnerConfig};
use crate::named::NamedPolicy;
use crate::read::{
    Entry, Environment, NAME_RULE, Reader, is_name, read_gateway, read_partner, read_policy,
};
use crate::settings::Fault;
use crate::source::{Place, Source};

/// The largest configuration file that is read.
const MAX_FILE: u64 = 1 << 20;
/// The most files that are read together.
const MAX_FILES: usize = 256;

/// A configuration that holds together: every key known, every value possible, every reference
/// resolved. Immutable; a reload makes a new one, and a bad file changes nothing.
///
/// ```
/// use std::time::Duration;
/// use ressac_config::{Config, Environment};
///
/// let text = r#"
/// [policy.payments]
/// retries = 3
/// window = "15m"
///
/// [partner.acme]
/// url = "https://api.acme.example"
/// policy = "payments"
/// idempotency = { header = "Idempotency-Key" }
/// "#;
/// let config = Config::parse("ressac.toml", text, &Environment::process()).unwrap();
/// let acme = config.partner("acme").unwrap();
/// let policy = config.policy_of(acme).policy();
/// assert_eq!(policy.retries, 3);
/// assert_eq!(policy.window, Some(Duration::from_secs(900)));
///
/// let error = Config::parse("ressac.toml", "[policy.payments]\nretrys = 3", &Environment::process());
/// assert!(error.unwrap_err().to_string().contains("did you mean `retries`?"));
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    layers: Layers,
    policies: BTreeMap<String, NamedPolicy>,
    partners: Vec<PartnerConfig>,
    gateway: GatewayConfig,
}

impl Default for Config {
    /// What stands where there is no file: the built-in policies, no partner.
    fn default() -> Self {
        let built_in = [Mode::Synchronous, Mode::Durable].map(NamedPolicy::built_in);
        Config {
            layers: Layers::new(),
            policies: built_in
                .into_iter()
                .map(|named| (named.name.clone(), named))
                .collect(),
            partners: Vec::new(),
            gateway: GatewayConfig::default(),
        }
    }
}

impl Config {
    /// Reads these files together, with the environment of this process.
    ///
    /// Paths in a file start from its folder. Each name stands in one place only.
    ///
    /// # Errors
    ///
    /// Everything that is wrong in any of them, at once: unreadable (or larger than 1 MiB), syntax,
    /// unknown key, wrong type, bad value, contradiction, unknown policy, unresolved reference.
    pub fn load<P: AsRef<Path>>(paths: &[P]) -> Result<Config, ConfigError> {
        Config::load_with(paths, &Environment::process())
    }

    /// As [`Config::load`], with this environment.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn load_with<P: AsRef<Path>>(
        paths: &[P],
        environment: &Environment,
    ) -> Result<Config, ConfigError> {
        let (mut sources, mut found) = (Vec::new(), Vec::new());
        if paths.len() > MAX_FILES {
            found.push(Diagnostic::error(
                "unreadable",
                format!("more than {MAX_FILES} files"),
            ));
        }
        for path in paths.iter().take(MAX_FILES).map(AsRef::as_ref) {
            match read_file(path) {
                Ok(text) => {
                    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
                    sources.push(Source::new(path.display().to_string(), folder, text));
                }
                Err(why) => {
                    let title = format!("{} cannot be read", path.display());
                    found.push(Diagnostic::error("unreadable", title).help(why));
                }
            }
        }
        build(sources, environment, found)
    }

    /// Reads one text; `name` is what errors call it. Paths in it start from the working folder.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn parse(name: &str, text: &str, environment: &Environment) -> Result<Config, ConfigError> {
        let source = Source::new(name.to_owned(), PathBuf::new(), text.to_owned());
        build(vec![source], environment, Vec::new())
    }

    /// The policy of `FILE:NAME`, for a caller who waits: `sync` unless the file says otherwise.
    /// `sync` and `durable` alone name the built-in ones. References to secrets are not resolved.
    ///
    /// # Errors
    ///
    /// As [`Config::load`]; also if there is no such policy, or no colon.
    ///
    /// ```
    /// use ressac_config::Config;
    ///
    /// assert_eq!(Config::policy_from("sync").unwrap().policy().retries, 5);
    /// assert!(Config::policy_from("no-such-file.toml:payments").is_err());
    /// ```
    pub fn policy_from(spec: &str) -> Result<NamedPolicy, ConfigError> {
        if let Some(mode) = built_in(spec) {
            return Ok(NamedPolicy::built_in(mode));
        }
        let Some((file, name)) = spec.rsplit_once(':').filter(|(file, _)| !file.is_empty()) else {
            let title = format!("`{spec}` names no policy");
            return Err(ConfigError::new(vec![
                Diagnostic::error("unknown-policy", title)
                    .help("write FILE:NAME, e.g. ressac.toml:payments; or sync, or durable"),
            ]));
        };
        let config = Config::load_with(&[file], &Environment::ignored())?;
        config.policy_as(name, Mode::Synchronous)
    }

    /// The policy of this name, as [`Config::policy`] has it, but with this mode where neither it
    /// nor what it extends says one.
    ///
    /// # Errors
    ///
    /// If there is no such policy, or it contradicts itself in this mode.
    pub fn policy_as(&self, name: &str, fallback: Mode) -> Result<NamedPolicy, ConfigError> {
        if let Some(mode) = built_in(name) {
            return Ok(NamedPolicy::built_in(mode));
        }
        let layer = self.layers.get(name);
        let Some(named) = layer.and_then(|layer| layer::resolve(&self.layers, layer, fallback))
        else {
            let known: Vec<_> = self.policies.keys().map(String::as_str).collect();
            let title = format!("there is no policy `{name}`");
            return Err(ConfigError::new(vec![
                Diagnostic::error("unknown-policy", title)
                    .help(format!("known policies: {}", known.join(", "))),
            ]));
        };
        let objections = named.objections();
        if objections.is_empty() {
            Ok(named)
        } else {
            Err(ConfigError::new(objections))
        }
    }

    /// The policy of this name; `sync` and `durable` are always there.
    ///
    /// Where neither it nor what it extends says a mode, it is durable if a partner uses it, else
    /// synchronous.
    #[must_use]
    pub fn policy(&self, name: &str) -> Option<&NamedPolicy> {
        self.policies.get(name)
    }

    /// All policies by name, the built-in ones among them.
    pub fn policies(&self) -> impl Iterator<Item = &NamedPolicy> {
        self.policies.values()
    }

    /// The partner of this name.
    #[must_use]
    pub fn partner(&self, name: &str) -> Option<&PartnerConfig> {
        self.partners.iter().find(|partner| partner.name == name)
    }

    /// All partners, in the order of the files.
    #[must_use]
    pub fn partners(&self) -> &[PartnerConfig] {
        &self.partners
    }

    /// The policy of a partner of this configuration: always a durable one.
    ///
    /// # Panics
    ///
    /// If the partner is of another configuration that has a policy of a name unknown here.
    #[must_use]
    pub fn policy_of(&self, partner: &PartnerConfig) -> &NamedPolicy {
        &self.policies[&partner.policy]
    }

    /// The gateway's settings; the defaults where no file has any.
    #[must_use]
    pub fn gateway(&self) -> &GatewayConfig {
        &self.gateway
    }
}

fn read_file(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_FILE {
        return Err("larger than 1 MiB: is it a configuration at all?".into());
    }
    String::from_utf8(bytes)
        .map_err(|error| format!("not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
}

/// What the files say, before it is put together.
#[derive(Default)]
struct Parts {
    layers: Layers,
    partners: Vec<PartnerConfig>,
    partner_places: BTreeMap<String, Place>,
    gateway: Option<(GatewayConfig, Place)>,
}

fn build(
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
    if !found.is_empty() {
        return Err(ConfigError::new(found));
    }
    Ok(Config {
        layers: parts.layers,
        policies,
        partners: parts.partners,
        gateway: parts
            .gateway
            .map_or_else(|| GatewayConfig::in_folder(&folder), |(gateway, _)| gateway),
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
        if let Some(named) = layer::resolve(&parts.layers, leaf, fallback) {
            // Over values that were refused there is nothing to say.
            if layer::is_sound(&parts.layers, leaf) {
                found.extend(named.objections());
            }
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
