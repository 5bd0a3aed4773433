//! `[gateway]`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeValue;

use super::{Entry, Reader, text};
use crate::diagnostic::Diagnostic;
use crate::model::{Addresses, GatewayConfig, StoreConfig};
use crate::settings::{Fault, GATEWAY, duration, one_of, or_word, policy_setting, size};
use crate::source::Place;

/// What the store takes at most; above it a lower layer would cap in silence (CF-4).
const MAX_BODY: u64 = 512 << 20;
/// What the store needs at least.
const MIN_STORE: u64 = 1 << 20;
/// Below an hour a caller that repeats its key after an outage would be taken for a new one.
const KEEP: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(3_600)..=Duration::from_secs(3_650 * 86_400);
const MAX_STOP: Duration = Duration::from_secs(3_600);

/// The gateway's table as read.
pub(crate) struct GatewayRead {
    pub(crate) gateway: GatewayConfig,
    pub(crate) listen: Said,
}

/// Was a setting said?
pub(crate) enum Said {
    /// The default stands.
    Not,
    /// It was refused: nothing is known of it.
    Wrongly,
    /// Here.
    At(Place),
}

/// Reads the gateway's table.
pub(crate) fn read_gateway(reader: &mut Reader<'_>, entry: &Entry<'_>) -> GatewayRead {
    let folder = reader.source.folder.clone();
    let mut gateway = GatewayConfig::in_folder(&folder);
    let (mut body, mut store, mut listen) = (Said::Not, Said::Not, Said::Not);
    let DeValue::Table(table) = entry.value else {
        let fault = Fault::kind(
            entry.value,
            "a table",
            "write [gateway] and its settings below",
        );
        reader.fault("gateway", &entry.value_place, fault);
        listen = Said::Wrongly;
        return GatewayRead { gateway, listen };
    };
    for item in reader.entries(table) {
        let before = reader.found.len();
        one(reader, &mut gateway, &item);
        let said = match reader.found.len() == before {
            true => Said::At(item.value_place),
            false => Said::Wrongly,
        };
        match item.key {
            "max_body" => body = said,
            "max_store" => store = said,
            "listen" => listen = said,
            _ => {}
        }
    }
    let less = |store| store / 2 < gateway.max_body;
    if gateway.max_store.is_some_and(less)
        && let (Said::At(place), Said::Not | Said::At(_)) = (&store, &body)
    {
        reader.push(too_small(place));
    }
    GatewayRead { gateway, listen }
}

fn too_small(place: &Place) -> Diagnostic {
    Diagnostic::error("contradiction", "`max_store` is less than twice `max_body`")
        .at(
            place,
            "beside the largest message there is no room for what becomes of it",
        )
        .help("raise max_store, or lower max_body")
}

fn one(reader: &mut Reader<'_>, gateway: &mut GatewayConfig, item: &Entry<'_>) {
    let folder = reader.source.folder.clone();
    match item.key {
        "listen" => set(&mut gateway.listen, reader.take("listen", item, listen)),
        "store" => set(
            &mut gateway.store,
            reader.take("store", item, |value| store(value, &folder)),
        ),
        "max_body" => set(
            &mut gateway.max_body,
            reader.take("max_body", item, max_body),
        ),
        "max_store" => set(
            &mut gateway.max_store,
            reader.take("max_store", item, |value| or_word(value, "off", max_store)),
        ),
        "keep" => set(
            &mut gateway.keep,
            reader.take("keep", item, |value| or_word(value, "off", keep)),
        ),
        "stop_timeout" => set(
            &mut gateway.stop_timeout,
            reader.take("stop_timeout", item, stop_timeout),
        ),
        "addresses" => {
            let word = reader.take("addresses", item, |value| one_of(value, &["any", "public"]));
            let chosen = word.map(|word| {
                if word == "public" {
                    Addresses::Public
                } else {
                    Addresses::Any
                }
            });
            set(&mut gateway.addresses, chosen);
        }
        _ => {
            let hint = policy_setting(item.key)
                .map(|_| "it is a policy's: write it into a [policy.…]".to_owned());
            reader.unknown(
                "[gateway]",
                item,
                GATEWAY.iter().map(|setting| setting.name),
                hint,
            );
        }
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn listen(value: &DeValue<'_>) -> Result<SocketAddr, Fault> {
    const FIX: &str = "write an address and a port, e.g. \"127.0.0.1:7070\" or \"[::1]:7070\"";
    let address: SocketAddr = text(value, FIX)?
        .parse()
        .map_err(|_| Fault::value("not an address with a port", FIX))?;
    // CF-1: an open door is never the default, and there is no lock to put on it yet.
    if !address.ip().to_canonical().is_loopback() {
        return Err(Fault::value(
            "others could reach this, and there are no tokens yet to keep them out",
            "listen to 127.0.0.1 or [::1], and put a proxy that asks who is there in front",
        ));
    }
    Ok(address)
}

fn store(value: &DeValue<'_>, folder: &Path) -> Result<StoreConfig, Fault> {
    const FIX: &str = "write \"sqlite:PATH\", e.g. \"sqlite:ressac.db\"";
    let written = text(value, FIX)?;
    let scheme = written.split(':').next().unwrap_or_default();
    if matches!(scheme, "postgres" | "postgresql") {
        return Err(Fault::value("PostgreSQL is not there yet", FIX));
    }
    match written.strip_prefix("sqlite:") {
        Some(":memory:") => Err(Fault::value(
            "a store in memory loses what was accepted",
            FIX,
        )),
        Some(path) if !path.is_empty() && !path.contains(['\0', '?']) => {
            let path: PathBuf = folder.join(path.strip_prefix("//").unwrap_or(path));
            Ok(StoreConfig::Sqlite(path))
        }
        _ => Err(Fault::value("not a store that is known here", FIX)),
    }
}

fn max_body(value: &DeValue<'_>) -> Result<u64, Fault> {
    let bytes = size(value)?;
    if !(1..=MAX_BODY).contains(&bytes) {
        return Err(Fault::value(
            "out of range",
            "write a size from 1B to 512MiB",
        ));
    }
    Ok(bytes)
}

fn max_store(value: &DeValue<'_>) -> Result<u64, Fault> {
    let bytes = size(value)?;
    if bytes < MIN_STORE {
        return Err(Fault::value(
            "an empty store is larger than this",
            "write at least \"1MiB\"",
        ));
    }
    Ok(bytes)
}

fn keep(value: &DeValue<'_>) -> Result<Duration, Fault> {
    let time = duration(value)?;
    if !KEEP.contains(&time) {
        return Err(Fault::value(
            "out of range",
            "write a duration from \"1h\" to \"3650d\", or \"off\" to keep all for ever",
        ));
    }
    Ok(time)
}

fn stop_timeout(value: &DeValue<'_>) -> Result<Duration, Fault> {
    let limit = duration(value)?;
    if limit > MAX_STOP {
        return Err(Fault::value(
            "longer than an hour",
            "write a duration from \"0s\" to \"1h\"",
        ));
    }
    Ok(limit)
}
