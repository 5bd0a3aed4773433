//! Routes made while the mock runs.

use std::path::Path;
use std::sync::Arc;

use super::Mock;
use crate::handle::ScriptHandle;
use crate::notation::NotationError;
use crate::scenario::{PathPattern, Route, Scope, check_script, read_file};
use crate::state::RouteState;
use crate::step::Script;

/// Why [`Mock::try_script`] refused a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bad script {script:?}: {error}")]
pub struct ScriptError {
    script: String,
    error: NotationError,
}

impl Mock {
    /// Adds a route of its own, with a fresh token as its path, for one operation of a test.
    /// `method` may be `*`.
    ///
    /// # Panics
    ///
    /// If the script is wrong; [`Mock::try_script`] returns that as an error.
    pub fn script(&self, method: &str, script: &str) -> ScriptHandle {
        match self.try_script(method, script) {
            Ok(handle) => handle,
            Err(e) => panic!("{e}"),
        }
    }

    /// As [`Mock::script`].
    ///
    /// # Errors
    ///
    /// That the script is wrong, where, and how to write it.
    pub fn try_script(&self, method: &str, script: &str) -> Result<ScriptHandle, ScriptError> {
        let wrong = |error| ScriptError {
            script: script.to_owned(),
            error,
        };
        let mut parsed: Script = script.parse().map_err(wrong)?;
        let bad = |(what, fix): (String, String)| wrong(NotationError::new(0, what, fix));
        check_script(&parsed).map_err(bad)?;
        for reply in parsed.replies_mut() {
            read_file(reply, Some(Path::new(""))).map_err(bad)?;
        }
        if parsed.replies().any(|r| r.pass) && self.shared.upstream.is_none() {
            let what = "`pass` needs an upstream".to_owned();
            return Err(bad((what, "start the mock with one".to_owned())));
        }
        if parsed.replies().any(|r| r.early) {
            self.shared.shrink_buffers();
        }
        let pattern = PathPattern::parse("/{token}").map_err(bad)?;
        let salt = self.shared.clock.anchor_unix_ns() & 0xff_ffff;
        let mut core = self.shared.core();
        let index = core.routes.len();
        let mut name = format!("script-{index}");
        // A route of the scenario may be called like this.
        while core.scenario.routes.iter().any(|r| r.name == name) {
            name.push('_');
        }
        let token = format!("op{index}-{salt:x}");
        core.by_path.insert(format!("/{token}"), index);
        core.routes.push(RouteState::new(Route {
            name: name.clone(),
            methods: if method == "*" {
                Vec::new()
            } else {
                vec![method.to_owned()]
            },
            path: pattern,
            scope: Scope::Token,
            token_header: None,
            listener: None,
            script: parsed.clone(),
            resource_id: None,
            quota: None,
        }));
        drop(core);
        let tls = self.shared.listeners().iter();
        let tls = tls
            .filter(|s| s.spec.certificate.is_some())
            .map(|s| s.url());
        Ok(ScriptHandle::new(
            Arc::clone(&self.shared),
            (self.url(), tls.take(1).next()),
            name,
            token,
            parsed,
        ))
    }
}
