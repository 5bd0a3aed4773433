//! `[[listener]]`.

use super::ListenerSpec;
use super::reader::{Doc, Res, Value};

/// The most listeners of one mock.
const MAX_LISTENERS: usize = 64;

pub(super) fn parse(doc: Doc<'_>, v: &Value<'_>) -> Res<Vec<ListenerSpec>> {
    let mut out: Vec<ListenerSpec> = Vec::new();
    for item in doc.array(v, "listener")? {
        let t = doc.table(item, "listener")?;
        doc.only(
            t,
            "[[listener]]",
            &["name", "speak"],
            &["tls", "accept", "tcp"],
        )?;
        let Some(name) = t.get("name") else {
            return doc.err(
                item.span(),
                "a listener without a name",
                "add `name = \"plain\"`",
            );
        };
        let text = doc.str(name, "name")?.to_owned();
        if out.iter().any(|l| l.name == text) {
            return doc.err(
                name.span(),
                format!("two listeners named `{text}`"),
                "rename one",
            );
        }
        if let Some(speak) = t.get("speak") {
            for word in doc.strings(speak, "speak")? {
                match word.as_str() {
                    "http/1.1" => {}
                    "h2" | "h2c" => {
                        let what = format!("`{word}` is not supported yet");
                        return doc.err(speak.span(), what, "write `speak = [\"http/1.1\"]`");
                    }
                    _ => {
                        let what = format!("unknown protocol `{word}`");
                        return doc.err(speak.span(), what, "write `speak = [\"http/1.1\"]`");
                    }
                }
            }
        }
        out.push(ListenerSpec { name: text });
    }
    if out.is_empty() || out.len() > MAX_LISTENERS {
        return doc.err(
            v.span(),
            format!("{} listeners", out.len()),
            "write 1 to 64",
        );
    }
    Ok(out)
}
