//! The operations of a part, each with its own token.

use serde::{Deserialize, Serialize};

use crate::case::{OpSpec, Part};
use crate::claims::{Claims, Mode};

/// One operation, ready to start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedOp {
    /// `1`, `2`, ...: its id within the part.
    pub id: String,
    /// The index of its description in the part.
    pub spec: usize,
    /// Its number among those alike, from 0.
    pub number: u32,
    /// 96 random bits, in the path.
    pub token: String,
    /// The client instance.
    pub client: String,
    /// Method.
    pub method: String,
    /// Target, from the root.
    pub target: String,
    /// Header lines to send.
    pub headers: Vec<(String, String)>,
    /// Bytes of its body.
    pub body: Option<u64>,
    /// The body can be read once only.
    pub stream: bool,
    /// `none`, `given`, `own`.
    pub key_mode: String,
    /// The key given.
    pub key: Option<String>,
    /// The caller declares it repeatable.
    pub safe: bool,
    /// Signing secret.
    pub secret: Option<String>,
    /// `1.1`, `2`, `h2c`.
    pub http: String,
    /// Started so long after the part, ms.
    pub at_ms: f64,
    /// Started after the result of this one.
    pub after: Option<String>,
    /// So long after it, ms.
    pub delay_ms: u64,
    /// Watched so long, ms, or until the result; 0: a result is needed.
    pub watch_ms: u64,
    /// Steps of its script that end.
    pub finite: u64,
}

/// Plans the operations; the second list are those left out, with the need that is missing.
pub(crate) fn plan_ops(part: &Part, claims: &Claims) -> (Vec<PlannedOp>, Vec<(String, String)>) {
    let (mut ops, mut left_out) = (Vec::new(), Vec::new());
    let mut first_of = Vec::new();
    let salt = random_hex(4);
    for (spec, op) in part.op.iter().enumerate() {
        first_of.push(None);
        let missing = op.needs.iter().find(|need| !claims.has(need)).cloned();
        let claimed = op.unless.iter().find(|need| claims.has(need));
        if let Some(why) = missing.or(claimed.map(|c| format!("not {c}"))) {
            left_out.push((op.name.clone(), why));
            continue;
        }
        let count = match (claims.client.mode, op.count_exec) {
            (Mode::Exec, Some(n)) => n,
            _ => op.count,
        };
        first_of[spec] = Some(ops.len());
        for number in 0..count {
            ops.push(planned(op, spec, number, ops.len() + 1, &salt));
        }
    }
    for i in 0..ops.len() {
        let Some(name) = &part.op[ops[i].spec].after else {
            continue;
        };
        let index = part.op.iter().position(|op| op.name == *name);
        let before = index.and_then(|index| first_of[index]);
        ops[i].after = before.map(|b| ops[b].id.clone());
    }
    ops.sort_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
    (ops, left_out)
}

fn planned(op: &OpSpec, spec: usize, number: u32, id: usize, salt: &str) -> PlannedOp {
    let token = random_hex(12);
    let query = match op.query.as_str() {
        "" => String::new(),
        query => format!("?{query}"),
    };
    let paced = if op.rate > 0.0 {
        f64::from(number) * 1000.0 / op.rate
    } else {
        0.0
    };
    let key = (op.key == "given").then(|| match &op.key_name {
        Some(name) => format!("{name}-{salt}"),
        None => format!("key-{}", random_hex(8)),
    });
    let signed = op.needs.iter().any(|n| n == "signed");
    PlannedOp {
        id: id.to_string(),
        spec,
        number,
        target: format!("/{token}/s{spec}{query}"),
        token,
        client: match op.client.as_str() {
            "own" => format!("c{id}"),
            shared => shared.to_owned(),
        },
        method: op.method.clone(),
        headers: op.headers.clone(),
        body: op.body,
        stream: op.stream,
        key_mode: op.key.clone(),
        key,
        safe: op.safe,
        secret: signed.then(|| "whsec_cmVzc2FjLXByb3ZlLXNpZ25pbmctc2VjcmV0".to_owned()),
        http: op.http.clone(),
        at_ms: op.at_ms as f64 + paced,
        after: None,
        delay_ms: op.delay_ms,
        watch_ms: op.watch_ms,
        finite: op
            .script
            .replace("{COUNT}", "2")
            .parse::<ressac_mock::Script>()
            .map_or(1, |s| s.finite_len()),
    }
}

/// Random bytes as hex; a machine without them has no tokens that nobody can guess.
pub(crate) fn random_hex(bytes: usize) -> String {
    let mut raw = vec![0; bytes];
    if getrandom::fill(&mut raw).is_err() {
        // Uniqueness is what counts here; secrecy only keeps accidents apart.
        let id = uuid::Uuid::now_v7();
        raw = id
            .as_bytes()
            .iter()
            .rev()
            .copied()
            .cycle()
            .take(bytes)
            .collect();
    }
    raw.iter().map(|b| format!("{b:02x}")).collect()
}
