//! The partner: a mock in this process.

use ressac_mock::{Mock, Options, Scenario};

/// A partner whose every path is one route with these lines (`script`, `scope`), honouring
/// `Idempotency-Key`.
pub async fn partner(route: &str) -> Mock {
    partner_of("idempotency = { header = 'Idempotency-Key' }", route).await
}

/// As [`partner`], with these lines before the route (`seed`, `idempotency`, `outage`).
pub async fn partner_of(top: &str, route: &str) -> Mock {
    let text =
        format!("version = 1\n{top}\n[[route]]\nname = 'in'\npath = '/{{rest...}}'\n{route}\n");
    let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let options = Options {
        control: None,
        journal_entries: 100_000,
        ..Options::default()
    };
    Mock::start_with(scenario, options).await.unwrap()
}
