//! What a client is told: the same names as environment variables and as JSON fields.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::claims::Mode;
use crate::plan::{PartPlan, PlannedOp};

/// What stays the same for all operations of a part.
#[derive(Clone, Debug)]
pub(super) struct Teller {
    pub(super) case: String,
    pub(super) mode: Mode,
    pub(super) base: String,
    pub(super) ca_file: Option<String>,
    pub(super) state_dir: String,
    /// What a proxy is to speak to its upstream.
    http: String,
    /// Where the suite's own client puts a given key.
    pub(super) key_header: String,
    pub(super) pace: Vec<(String, String)>,
}

impl Teller {
    pub(super) fn new(case: &str, mode: Mode, base: String, plan: &PartPlan, state: &Path) -> Self {
        Self {
            case: case.to_owned(),
            mode,
            base,
            ca_file: None,
            state_dir: state.display().to_string(),
            http: plan.ops.first().map_or("1.1", |op| &op.http).to_owned(),
            key_header: "Idempotency-Key".to_owned(),
            pace: plan.pace.told.clone(),
        }
    }

    /// The environment of every process.
    pub(super) fn environment(&self) -> Vec<(String, String)> {
        let mut out = vec![
            ("PROVE".to_owned(), "1".to_owned()),
            ("PROVE_MODE".to_owned(), self.mode.word().to_owned()),
            ("PROVE_CASE".to_owned(), self.case.clone()),
            ("PROVE_STATE_DIR".to_owned(), self.state_dir.clone()),
        ];
        if self.mode != Mode::Lines {
            out.extend(
                self.pace
                    .iter()
                    .map(|(n, v)| (format!("PROVE_{n}"), v.clone())),
            );
        }
        out
    }

    /// What a proxy is told besides: where to listen, and where to send on.
    pub(super) fn of_proxy(&self, listen: SocketAddr) -> Vec<(String, String)> {
        let mut out = vec![
            ("PROVE_UPSTREAM".to_owned(), self.base.clone()),
            ("PROVE_LISTEN".to_owned(), listen.to_string()),
            ("PROVE_HTTP".to_owned(), self.http.clone()),
        ];
        if let Some(file) = &self.ca_file {
            out.push(("PROVE_CA_FILE".to_owned(), file.clone()));
        }
        out
    }

    /// The first line of lines mode.
    pub(super) fn hello(&self) -> String {
        let mut fields = Map::new();
        fields.insert("hello".to_owned(), json!(1));
        fields.insert("case".to_owned(), json!(self.case));
        fields.insert("state_dir".to_owned(), json!(self.state_dir));
        for (name, value) in &self.pace {
            fields.insert(name.to_ascii_lowercase(), typed(name, value));
        }
        Value::Object(fields).to_string()
    }

    /// One operation as fields: names without `PROVE_`, in capitals.
    fn fields(&self, op: &PlannedOp, body_file: Option<&Path>) -> Vec<(&'static str, Value)> {
        let mut out = vec![
            ("OP", json!(op.id)),
            ("CLIENT", json!(op.client)),
            ("URL", json!(format!("{}{}", self.base, op.target))),
            ("METHOD", json!(op.method)),
            ("HEADERS", json!(op.headers)),
            ("KEY_MODE", json!(op.key_mode)),
            ("HTTP", json!(op.http)),
        ];
        if let Some(file) = body_file {
            out.push(("BODY_FILE", json!(file.display().to_string())));
            out.push((
                "BODY_MODE",
                json!(if op.stream { "stream" } else { "buffer" }),
            ));
        }
        if let Some(key) = &op.key {
            out.push(("KEY", json!(key)));
        }
        if op.safe {
            out.push(("SAFE", json!("1")));
        }
        if let Some(file) = &self.ca_file {
            out.push(("CA_FILE", json!(file)));
        }
        if let Some(secret) = &op.secret {
            out.push(("SECRET", json!(secret)));
        }
        out
    }

    /// The line that starts an operation.
    pub(super) fn line(&self, op: &PlannedOp, body_file: Option<&Path>) -> String {
        let fields = self.fields(op, body_file).into_iter();
        let object: Map<String, Value> = fields
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect();
        Value::Object(object).to_string()
    }

    /// The environment that starts an operation, besides [`Teller::environment`].
    pub(super) fn variables(
        &self,
        op: &PlannedOp,
        body_file: Option<&Path>,
    ) -> Vec<(String, String)> {
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        self.fields(op, body_file)
            .into_iter()
            .map(|(name, value)| (format!("PROVE_{name}"), text(value)))
            .collect()
    }
}

/// Numbers as numbers.
fn typed(name: &str, value: &str) -> Value {
    let number = name.ends_with("_MS") || matches!(name, "ATTEMPTS" | "FACTOR");
    match value.parse::<u64>() {
        Ok(n) if number => json!(n),
        _ => match value.parse::<f64>() {
            Ok(x) if number => json!(x),
            _ => json!(value),
        },
    }
}
