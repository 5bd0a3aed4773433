//! The reference page `docs/ressac.toml.md`, from the table of settings.

use std::fmt::Write as _;

use ressac_policy::Policy;

use crate::settings::{By, GATEWAY, GROUPS, PARTNER, POLICY, PolicySetting, Setting, Shape};

const HEAD: &str = r#"# ressac.toml

<!-- Made from the table of settings in crates/ressac-config:
     RESSAC_UPDATE=1 cargo test -p ressac-config writes it. -->

One file, or several read together; a name stands in one of them only. Unknown keys, impossible
values and contradictions are refused, all at once, each with its line, the reason and the fix.
`ressac check` also warns of bad habits, `ressac explain` puts a policy into numbers and says whose
value won.

```toml
[policy.payments]
mode = "durable"
retries = 10
window = "15m"
budget = { ratio = 0.1, reserve = 20 }

[policy.invoices]
extends = "payments"                       # all of its settings, but for these
window = "24h"

[partner.acme]
url = "https://api.acme.example"
policy = "payments"
idempotency = { header = "Idempotency-Key" }
headers = { Authorization = "env:ACME_TOKEN" }

[gateway]
listen = "127.0.0.1:7070"
```

**How values are written.** Durations: `"500ms"`, `"10s"`, `"1h 30m"`, `"2d"`, at most 366 days.
Rates: `"50/s"`, `"100/min"`, `"1000/h"`, `"5/d"`. Sizes: `"10MB"` (thousands), `"256KiB"` (1024s).
Shares are numbers: 0.5 is one half. `"off"` switches a thing off where the table says so. Names of
policies and partners: 1 to 64 of `a-z 0-9 _ -`, beginning with a letter or digit. Paths start from
the folder of the file.

**What errors show.** The line, but never the value of a header, a password in a URL, or what stands
under an unknown name: it may be a header misspelt.
"#;

const POLICY_HEAD: &str = r#"
## `[policy.NAME]`

`sync` (for callers who wait) and `durable` (for messages in the store) are built in and always
there; they cannot be redefined. Everything is on unless it is set to `"off"`.

"#;

const MODE: &str = "| `mode` | `\"sync\"` or `\"durable\"` | durable if a partner uses the \
                    policy, else sync | Which built-in policy lies at the bottom. A partner's \
                    policy must be durable. |\n";
const EXTENDS: &str = "| `extends` | a policy's name | | Its settings are taken over, field by \
                       field; what stands here wins. |\n";

/// The page.
///
/// ```
/// assert!(ressac_config::reference_page().contains("| `retries` |"));
/// ```
#[must_use]
pub fn reference_page() -> String {
    let mut page = HEAD.to_owned();
    for part in [POLICY_HEAD, TABLE, MODE, EXTENDS] {
        page.push_str(part);
    }
    for known in POLICY
        .iter()
        .filter(|known| !known.setting.name.contains('.'))
    {
        policy_row(&mut page, known, known.setting.name);
    }
    for (group, off, doc) in GROUPS {
        let off = if *off {
            " The word `\"off\"` stands for switching it off."
        } else {
            ""
        };
        let _ = write!(page, "\n### `{group} = {{ … }}`\n\n{doc}{off}\n\n{TABLE}");
        for known in POLICY {
            if let Some(name) = known
                .setting
                .name
                .strip_prefix(group)
                .and_then(|rest| rest.strip_prefix('.'))
            {
                policy_row(&mut page, known, name);
            }
        }
    }
    let _ = write!(page, "\n## `[partner.NAME]`\n\n{TABLE}");
    for setting in PARTNER {
        row(&mut page, setting, setting.name, setting.default);
    }
    let _ = write!(page, "\n## `[gateway]`\n\n{TABLE}");
    for setting in GATEWAY {
        row(&mut page, setting, setting.name, setting.default);
    }
    page.push_str(&honoured());
    page
}

const TABLE: &str = "| setting | value | default | what it does |\n|---|---|---|---|\n";

fn policy_row(page: &mut String, known: &PolicySetting, name: &str) {
    let (sync, durable) = (
        (known.show)(&Policy::sync()),
        (known.show)(&Policy::durable()),
    );
    let default = if sync == durable {
        sync
    } else {
        format!("{sync} sync, {durable} durable")
    };
    row(page, &known.setting, name, &default);
}

fn row(page: &mut String, setting: &Setting, name: &str, default: &str) {
    let mut value = shape(setting.shape).to_owned();
    if let Shape::Words(words) = setting.shape {
        value = words.map_join(" or ");
    }
    if let Some(word) = setting.word {
        let _ = write!(value, " or `\"{word}\"`");
    }
    if !setting.range.is_empty() {
        let _ = write!(value, "; {}", setting.range);
    }
    let _ = writeln!(page, "| `{name}` | {value} | {default} | {} |", setting.doc);
}

trait MapJoin {
    fn map_join(&self, between: &str) -> String;
}

impl MapJoin for [&str] {
    fn map_join(&self, between: &str) -> String {
        self.iter()
            .map(|word| format!("`\"{word}\"`"))
            .collect::<Vec<_>>()
            .join(between)
    }
}

fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Duration => "duration",
        Shape::Rate => "rate",
        Shape::Size => "size",
        Shape::Share => "share",
        Shape::Count(..) => "whole number",
        Shape::Number => "number",
        Shape::Flag => "true or false",
        Shape::Words(_) => "word",
        Shape::CallWindow => "duration or number of calls",
        Shape::RetryOn => "list",
        Shape::Unprocessed => "list",
        Shape::Statuses => "list",
        Shape::Vendors => "list",
        Shape::Text => "text",
        Shape::Headers => "table of names and texts",
    }
}

/// CF-4: who honours what is said, not left to be found out.
fn honoured() -> String {
    let names = |by: By| {
        let names: Vec<_> = POLICY
            .iter()
            .filter(|known| known.setting.by == by)
            .map(|known| format!("`{}`", known.setting.name))
            .collect();
        names.join(", ")
    };
    format!(
        "\n## Who honours what\n\n\
         A policy means the same wherever it is used, but for these. By the gateway only: {}, and \
         all of `[partner.NAME]` and `[gateway]`. By callers who wait (library, `ressac send`) \
         only: {}.\n",
        names(By::Gateway),
        names(By::Synchronous)
    )
}
