//! What a part stands on: its mock, the authority it trusts, the bodies it sends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ressac_mock::{Mock, Options as MockOptions, Scenario};

use super::Bench;
use crate::judge::pattern;
use crate::plan::PartPlan;
use crate::record::Arrival;

/// How many bytes of each direction are kept of each connection.
const RAW: usize = 512;

pub(super) async fn start_mock(bench: &Bench, plan: &PartPlan) -> Result<Arc<Mock>, String> {
    let scenario = Scenario::parse(&plan.scenario)
        .map_err(|e| format!("the mock of this version cannot play it: {e}"))?;
    let mut options = MockOptions {
        control: None,
        journal_entries: 50_000,
        raw_bytes: RAW,
        tokens: Some(plan.ops.iter().map(|op| op.token.clone()).collect()),
        ..Default::default()
    };
    if let Some(url) = &bench.options.claims.client.fixed_url {
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        options.bind = address
            .parse()
            .map_err(|_| format!("fixed_url {url} is no http://ADDRESS:PORT"))?;
    }
    Mock::start_with(scenario, options)
        .await
        .map(Arc::new)
        .map_err(|e| e.to_string())
}

/// A name where there is a certificate to be checked.
pub(super) fn base_url(mock: &Mock) -> String {
    let url = mock.url();
    match url.strip_prefix("https://127.0.0.1:") {
        Some(port) => format!("https://localhost:{port}"),
        None => url,
    }
}

/// The authority that a client has to trust.
pub(super) fn ca_file(
    mock: &Mock,
    plan: &PartPlan,
    folder: &Path,
) -> Result<Option<String>, String> {
    if !plan.tls {
        return Ok(None);
    }
    let file = folder.join("ca.pem");
    std::fs::write(&file, mock.ca_pem())
        .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    Ok(Some(file.display().to_string()))
}

/// Arrivals and connections, in the order they were written down.
pub(super) fn journal(mock: &Mock) -> Vec<Arrival> {
    let entries = mock.journal();
    let connections = mock.connections();
    let mut all: Vec<Arrival> = entries
        .iter()
        .filter_map(Arrival::of)
        .chain(connections.iter().filter_map(Arrival::of))
        .collect();
    all.sort_by_key(|a| a.seq);
    all
}

/// One file for each size of body.
pub(super) fn write_bodies(
    plan: &PartPlan,
    folder: &Path,
) -> Result<BTreeMap<u64, PathBuf>, String> {
    let mut out = BTreeMap::new();
    for len in plan.ops.iter().filter_map(|op| op.body) {
        let file = folder.join(format!("body-{len}"));
        if out.insert(len, file.clone()).is_none() {
            std::fs::write(&file, pattern(len))
                .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        }
    }
    Ok(out)
}
