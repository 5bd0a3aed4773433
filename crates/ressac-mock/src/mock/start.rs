//! What happens before a mock serves: checks, sockets, the certificate's file.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use super::{MockError, Options};
use crate::scenario::Scenario;
use crate::state::{Extras, Shared};
use crate::upstream::Upstream;
use crate::wire::{Port, Slot};

/// Checks what does not depend on sockets.
pub(super) fn prepare(scenario: Scenario, options: &Options) -> Result<Arc<Shared>, MockError> {
    let open = |a: &SocketAddr| !a.ip().is_loopback() && options.control_token.is_none();
    if let Some(addr) = options.control.filter(open) {
        return Err(MockError::ControlNotLoopback(addr));
    }
    if options.control_on_plain && open(&options.bind) {
        return Err(MockError::ControlNotLoopback(options.bind));
    }
    let upstream = match &options.upstream {
        Some(url) => Some(Upstream::parse(url).map_err(MockError::Upstream)?),
        None => None,
    };
    if upstream.is_none()
        && let Some(route) = scenario.passing_route()
    {
        return Err(MockError::NoUpstream(route.to_owned()));
    }
    let entries = options.journal_entries.max(1);
    let extras = Extras {
        upstream,
        tokens: options.tokens.clone(),
        raw_bytes: options.raw_bytes.min(64 * 1024),
    };
    Ok(Shared::new(scenario, entries, extras))
}

pub(super) fn open_listeners(shared: &Arc<Shared>, bind: SocketAddr) -> Result<(), MockError> {
    let (specs, early) = {
        let core = shared.core();
        (core.scenario.listeners.clone(), core.scenario.has_early())
    };
    let mut slots = Vec::with_capacity(specs.len());
    for (i, spec) in specs.into_iter().enumerate() {
        let mut addr = bind;
        if i > 0 {
            addr.set_port(0);
        }
        let (port, listener) =
            Port::open(addr).map_err(|source| MockError::Bind { addr, source })?;
        let slot = Slot::new(i, spec, port, listener);
        if early {
            slot.shrink_buffer();
        }
        slots.push(Arc::new(slot));
    }
    // One that begins by refusing must do so before anybody knows its port.
    for slot in slots.iter().filter(|s| s.down_state(shared).0) {
        slot.close();
    }
    shared.set_listeners(slots);
    Ok(())
}

pub(super) fn write_ca(shared: &Shared, path: &Path) -> Result<(), MockError> {
    let tls = shared.tls().map_err(MockError::Certificate)?;
    std::fs::write(path, tls.ca_pem()).map_err(|source| MockError::CaFile {
        path: path.to_owned(),
        source,
    })
}
