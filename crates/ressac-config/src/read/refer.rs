//! `env:NAME` and `file:PATH`: where a secret lies, instead of the secret.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use crate::secret::Secret;

/// What `env:NAME` and `file:PATH` are resolved against.
///
/// ```
/// use ressac_config::{Config, Environment};
///
/// let text = "[partner.acme]\nurl = \"https://acme.example\"\n\
///             headers = { Authorization = \"env:ACME_TOKEN\" }\n";
/// let environment = Environment::of([("ACME_TOKEN", "Bearer 1")]);
/// let config = Config::parse("ressac.toml", text, &environment).unwrap();
/// assert_eq!(config.partner("acme").unwrap().headers[0].1.expose(), "Bearer 1");
///
/// // A reference that does not resolve is an error, never the value itself.
/// assert!(Config::parse("ressac.toml", text, &Environment::of([])).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Environment(Kind);

#[derive(Clone)]
enum Kind {
    Process,
    Fixed(BTreeMap<String, String>),
    Ignored,
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Process => "Process",
            Kind::Fixed(_) => "Fixed",
            Kind::Ignored => "Ignored",
        })
    }
}

impl Environment {
    /// The environment of this process, and its files.
    #[must_use]
    pub fn process() -> Self {
        Environment(Kind::Process)
    }

    /// These variables and no others, and the files.
    #[must_use]
    pub fn of<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Environment(Kind::Fixed(variables.into_iter().map(own).collect()))
    }

    /// References are not looked at, headers that hold one are left out, `ca_file` need not
    /// exist. For whoever wants the policies only.
    #[must_use]
    pub fn ignored() -> Self {
        Environment(Kind::Ignored)
    }

    pub(crate) fn is_ignored(&self) -> bool {
        matches!(self.0, Kind::Ignored)
    }

    /// The secret of a reference; why it does not resolve, without any of it.
    pub(crate) fn resolve(&self, reference: &str, folder: &Path) -> Result<Secret, String> {
        let value = if let Some(name) = reference.strip_prefix("env:") {
            self.variable(name)?
        } else if let Some(path) = reference.strip_prefix("file:") {
            file(&folder.join(path))?
        } else {
            return Err("not a reference".into());
        };
        if value.is_empty() {
            return Err("it resolves to nothing: an empty value".into());
        }
        Ok(Secret::new(value))
    }

    fn variable(&self, name: &str) -> Result<String, String> {
        // Names that would make the look-up itself panic or mean something else.
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err("not the name of an environment variable".into());
        }
        match &self.0 {
            Kind::Process => std::env::var(name).map_err(|error| match error {
                std::env::VarError::NotPresent => {
                    format!("the environment variable {name} is not set")
                }
                std::env::VarError::NotUnicode(_) => {
                    format!("the environment variable {name} is not UTF-8")
                }
            }),
            Kind::Fixed(variables) => variables
                .get(name)
                .cloned()
                .ok_or_else(|| format!("the environment variable {name} is not set")),
            Kind::Ignored => Err("not looked up".into()),
        }
    }
}

/// A secret's file: at most 64 KiB, without the line end that editors put behind it.
fn file(path: &Path) -> Result<String, String> {
    const LONGEST: u64 = 64 * 1024;
    let shown = path.display();
    let open = std::fs::File::open(path).and_then(|file| {
        let is_file = file.metadata()?.is_file();
        Ok((file, is_file))
    });
    let file = match open {
        Ok((file, true)) => file,
        Ok((_, false)) => return Err(format!("{shown} is not a file")),
        Err(error) => return Err(format!("{shown} cannot be read: {error}")),
    };
    let mut text = String::new();
    let read = file.take(LONGEST + 1).read_to_string(&mut text);
    match read {
        Err(error) => Err(format!("{shown} cannot be read: {error}")),
        Ok(bytes) if bytes as u64 > LONGEST => Err(format!("{shown} is larger than 64 KiB")),
        Ok(_) => {
            let line = text.strip_suffix('\n').unwrap_or(&text);
            Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
        }
    }
}
