//! The whole configuration: one file or several, read and checked together.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use ressac_policy::Mode;

use crate::assemble::build;
use crate::diagnostic::{ConfigError, Diagnostic};
use crate::doubt::Doubt;
use crate::layer::{self, Layers, built_in};
use crate::model::{GatewayConfig, PartnerConfig};
use crate::named::NamedPolicy;
use crate::read::Environment;
use crate::source::Source;

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
/// let wrong = "[policy.payments]\nretrys = 3";
/// let error = Config::parse("ressac.toml", wrong, &Environment::process());
/// assert!(error.unwrap_err().to_string().contains("did you mean `retries`?"));
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) layers: Layers,
    pub(crate) policies: BTreeMap<String, NamedPolicy>,
    pub(crate) partners: Vec<PartnerConfig>,
    pub(crate) gateway: GatewayConfig,
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
        let objections = named.objections(&Doubt::default());
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
