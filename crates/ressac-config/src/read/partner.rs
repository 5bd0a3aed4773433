//! `[partner.NAME]`.

use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use toml::de::{DeTable, DeValue};

use super::header::{check_name, key_header};
use super::version::http_version;
use super::{Entry, Reader, text};
use crate::diagnostic::Diagnostic;
use crate::model::{HttpVersion, Idempotency, PartnerConfig};
use crate::secret::Secret;
use crate::settings::{Fault, PARTNER, duration, flag};
use crate::source::{Place, is_reference};

/// What a key's header is called most often.
const DAY: Duration = Duration::from_secs(86_400);
const MAX_HEADERS: usize = 64;

/// Reads one partner table; `None` if it is none.
///
/// Where its URL is missing or wrong there is an error, so nobody is handed the partner; the empty
/// one that stands in lets its other faults be found.
pub(crate) fn read_partner(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<PartnerConfig> {
    let section = format!("[partner.{}]", entry.key);
    let DeValue::Table(table) = entry.value else {
        let fault = Fault::kind(
            entry.value,
            "a table",
            format!("write {section} and its settings below"),
        );
        reader.fault(&format!("partner.{}", entry.key), &entry.value_place, fault);
        return None;
    };
    let mut draft = Draft::default();
    for item in reader.entries(table) {
        one(reader, &section, &mut draft, &item);
    }
    if let (Some((key, place)), Some(twin)) = (&draft.key, draft.twin()) {
        let title = format!("{section} sets the header {} twice", key.header);
        reader.push(
            Diagnostic::error("contradiction", title)
                .at(
                    &twin.clone(),
                    "the key of every operation comes in this header",
                )
                .at(&place.clone(), "as this says")
                .help("leave it out of `headers`"),
        );
    }
    if draft.url_place.is_none() {
        reader.push(
            Diagnostic::error("missing-key", format!("{section} has no `url`"))
                .at(&entry.place, "where is this partner?")
                .help("write e.g. url = \"https://api.acme.example\""),
        );
    }
    let (policy, policy_place) = draft.policy.unwrap_or_else(|| ("durable".to_owned(), None));
    Some(PartnerConfig {
        name: entry.key.to_owned(),
        url: draft.url.unwrap_or_default(),
        policy,
        idempotency: draft.key.map(|(key, _)| key),
        headers: draft
            .headers
            .into_iter()
            .map(|(name, value, _)| (name, value))
            .collect(),
        ca_file: draft.ca_file,
        http_version: draft.http_version,
        place: entry.place.clone(),
        url_place: draft.url_place,
        policy_place,
        idempotency_place: draft.idempotency_place,
    })
}

#[derive(Default)]
struct Draft {
    url: Option<Uri>,
    url_place: Option<Place>,
    policy: Option<(String, Option<Place>)>,
    key: Option<(Idempotency, Place)>,
    idempotency_place: Option<Place>,
    headers: Vec<(String, Secret, Place)>,
    ca_file: Option<PathBuf>,
    http_version: HttpVersion,
}

impl Draft {
    /// The header that the key comes in, if it is among the fixed ones.
    fn twin(&self) -> Option<&Place> {
        let (key, _) = self.key.as_ref()?;
        let twin = self
            .headers
            .iter()
            .find(|(name, ..)| name.eq_ignore_ascii_case(&key.header));
        twin.map(|(_, _, place)| place)
    }
}

fn one(reader: &mut Reader<'_>, section: &str, draft: &mut Draft, item: &Entry<'_>) {
    match item.key {
        "url" => {
            draft.url_place = Some(item.value_place.clone());
            draft.url = reader.take("url", item, url);
        }
        "policy" => {
            let fix = "write the name of a policy, e.g. \"durable\"";
            draft.policy = reader
                .take("policy", item, |value| text(value, fix).map(str::to_owned))
                .map(|name| (name, Some(item.value_place.clone())));
        }
        "idempotency" => {
            draft.idempotency_place = Some(item.value_place.clone());
            draft.key =
                idempotency(reader, section, item).map(|key| (key, item.value_place.clone()));
        }
        "headers" => headers(reader, draft, item),
        "ca_file" => draft.ca_file = ca_file(reader, item),
        "http_version" => {
            let said = reader.take("http_version", item, http_version);
            draft.http_version = said.unwrap_or_default();
        }
        _ => {
            let known = PARTNER
                .iter()
                .filter_map(|setting| setting.name.split('.').next());
            let hint = crate::settings::policy_setting(item.key).map(|_| {
                "it is a policy's: write it into a [policy.…] that extends this one's".to_owned()
            });
            reader.unknown(section, item, dedup(known), hint);
        }
    }
}

fn dedup<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<_> = names.collect();
    names.dedup();
    names
}

/// `http` or `https`, a host, and nothing that must not be in a file: the error never repeats it.
fn url(value: &DeValue<'_>) -> Result<Uri, Fault> {
    const FIX: &str = "write e.g. \"https://api.acme.example/v1\"";
    const LONGEST: usize = 2_048;
    let written = text(value, FIX)?;
    if written.len() > LONGEST {
        return Err(Fault::value("longer than 2048 bytes", FIX));
    }
    if written.contains('#') {
        return Err(Fault::value(
            "a fragment is never sent",
            "leave out the `#` and what follows",
        ));
    }
    let uri: Uri = written
        .parse()
        .map_err(|_| Fault::value("not a URL", FIX))?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(Fault::value("no scheme or no host", FIX));
    };
    if !matches!(scheme, "http" | "https") {
        return Err(Fault::value("neither http nor https", FIX));
    }
    if authority.as_str().contains('@') {
        return Err(Fault::value(
            "a user or password in a URL ends up in logs",
            "use headers = { Authorization = \"env:NAME\" }",
        ));
    }
    if uri.query().is_some() {
        return Err(Fault::value(
            "a query does not belong to a partner, but to a message",
            "leave out the `?` and what follows; a secret belongs into `headers`",
        ));
    }
    let host = authority.host();
    let after_host = authority.as_str().strip_prefix(host).unwrap_or_default();
    let port_is_sound = after_host.is_empty() || authority.port_u16().is_some_and(|port| port > 0);
    if host.is_empty() || !port_is_sound {
        return Err(Fault::value("no host, or no port from 1 to 65535", FIX));
    }
    Ok(uri)
}

fn idempotency(reader: &mut Reader<'_>, section: &str, item: &Entry<'_>) -> Option<Idempotency> {
    const FIX: &str = "write idempotency = { header = \"Idempotency-Key\" }";
    let DeValue::Table(table) = item.value else {
        reader.fault(
            "idempotency",
            &item.value_place,
            Fault::kind(item.value, "a table", FIX),
        );
        return None;
    };
    let (mut header, mut ttl, mut quoted, mut sound) = (None, DAY, false, true);
    for member in reader.entries(table) {
        match member.key {
            "header" => {
                header = reader.take("idempotency.header", &member, key_header);
                sound &= header.is_some();
            }
            "ttl" => match reader.take("idempotency.ttl", &member, ttl_value) {
                Some(read) => ttl = read,
                None => sound = false,
            },
            "quoted" => match reader.take("idempotency.quoted", &member, flag) {
                Some(read) => quoted = read,
                None => sound = false,
            },
            _ => {
                let section = format!("`idempotency` of {section}");
                reader.unknown(&section, &member, ["header", "ttl", "quoted"], None);
                sound = false;
            }
        }
    }
    if header.is_none() && sound {
        reader.push(
            Diagnostic::error(
                "missing-key",
                format!("`idempotency` of {section} has no `header`"),
            )
            .at(
                &item.value_place,
                "which header does the partner read the key from?",
            )
            .help(FIX),
        );
    }
    Some(Idempotency {
        header: header?,
        ttl,
        quoted,
    })
}

fn ttl_value(value: &DeValue<'_>) -> Result<Duration, Fault> {
    let ttl = duration(value)?;
    if ttl.is_zero() {
        return Err(Fault::value(
            "a partner that forgets a key at once does not honour it",
            "leave out `idempotency`, or write e.g. \"24h\"",
        ));
    }
    Ok(ttl)
}

fn headers(reader: &mut Reader<'_>, draft: &mut Draft, item: &Entry<'_>) {
    const FIX: &str = "write headers = { Name = \"value\" }";
    let DeValue::Table(table) = item.value else {
        reader.fault(
            "headers",
            &item.value_place,
            Fault::kind(item.value, "a table", FIX),
        );
        return;
    };
    if table.len() > MAX_HEADERS {
        let fault = Fault::value(format!("more than {MAX_HEADERS} headers"), "leave some out");
        reader.fault("headers", &item.value_place, fault);
    }
    header_entries(reader, draft, table);
}

fn header_entries(reader: &mut Reader<'_>, draft: &mut Draft, table: &DeTable<'_>) {
    for entry in reader.entries(table) {
        let path = format!("headers.{}", entry.key);
        if let Err(fault) = check_name(entry.key) {
            reader.fault(&path, &entry.place, fault);
            continue;
        }
        let twin = draft
            .headers
            .iter()
            .find(|(name, ..)| name.eq_ignore_ascii_case(entry.key));
        if let Some((_, _, first)) = twin {
            let first = first.clone();
            reader.push(
                Diagnostic::error(
                    "duplicate",
                    format!("the header {} is set twice", entry.key),
                )
                .at(&entry.place, "again here: case does not matter")
                .at(&first, "first here")
                .help("leave out one of the two"),
            );
            continue;
        }
        let Some(written) = reader.take(&path, &entry, |value| {
            text(value, "write a text").map(str::to_owned)
        }) else {
            continue;
        };
        if let Some(secret) = header_value(reader, &path, &entry, &written) {
            draft
                .headers
                .push((entry.key.to_owned(), secret, entry.place.clone()));
        }
    }
}

/// CF-2: a reference that does not resolve is an error. HT-8: a bad value is never repeated.
fn header_value(
    reader: &mut Reader<'_>,
    path: &str,
    entry: &Entry<'_>,
    written: &str,
) -> Option<Secret> {
    let secret = if is_reference(written) {
        if reader.environment.is_ignored() {
            return None;
        }
        match reader.environment.resolve(written, &reader.source.folder) {
            Ok(secret) => secret,
            Err(why) => {
                reader.push(
                    Diagnostic::error(
                        "unresolved",
                        format!("`{path}` refers to what is not there"),
                    )
                    .at(&entry.value_place, why)
                    .help("set it before the start, or name another place"),
                );
                return None;
            }
        }
    } else {
        Secret::new(written)
    };
    if http::HeaderValue::from_str(secret.expose()).is_err() {
        let fault = Fault::value(
            "the value has a line break, a control character or a letter outside ASCII",
            "use visible ASCII characters only",
        );
        reader.fault(path, &entry.value_place, fault);
        return None;
    }
    Some(secret)
}

fn ca_file(reader: &mut Reader<'_>, item: &Entry<'_>) -> Option<PathBuf> {
    let written = reader.take("ca_file", item, |value| {
        text(value, "write the path of a PEM file").map(str::to_owned)
    })?;
    let path = reader.source.folder.join(&written);
    if !reader.environment.is_ignored() && !path.is_file() {
        reader.push(
            Diagnostic::error("unresolved", "`ca_file` refers to what is not there")
                .at(
                    &item.value_place,
                    format!("{} is not a file", path.display()),
                )
                .help("paths start from the folder of the configuration file"),
        );
        return None;
    }
    Some(path)
}
