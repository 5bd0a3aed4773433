//! What is wrong between a policy and the partner that has it.

use ressac_policy::Policy;

use crate::config::Config;
use crate::diagnostic::Diagnostic;
use crate::explain::{time, worst};
use crate::model::PartnerConfig;
use crate::named::NamedPolicy;
use crate::units::format_duration;

pub(super) fn lint(config: &Config, found: &mut Vec<Diagnostic>) {
    for partner in config.partners() {
        let named = config.policy_of(partner);
        found.extend(unsafe_writes(named, Some(partner)));
        found.extend(forgotten_key(named, partner));
    }
    for named in config.policies() {
        let used = config
            .partners()
            .iter()
            .any(|partner| partner.policy == named.name());
        if !used {
            found.extend(unsafe_writes(named, None));
        }
    }
}

/// Answers said to prove that nothing was done, which prove no such thing: a proxy in front gives
/// them while the application goes on.
fn unproven(policy: &Policy) -> Vec<String> {
    let said = policy.rules.unprocessed.iter();
    said.filter(|status| *status >= 500)
        .map(|status| status.to_string())
        .collect()
}

fn unsafe_writes(named: &NamedPolicy, partner: Option<&PartnerConfig>) -> Option<Diagnostic> {
    let policy = named.policy();
    let statuses = unproven(policy).join(", ");
    let again = worst(policy).attempts - 1;
    if statuses.is_empty()
        || again == 0
        || partner.is_some_and(|partner| partner.idempotency.is_some())
    {
        return None;
    }
    let place = named.place_of("unprocessed")?;
    let title = format!(
        "policy `{}` sends writes without a key again after {statuses}",
        named.name()
    );
    let harm = format!(
        "a proxy says this while the application goes on: up to {again} retries, each perhaps a \
         second payment"
    );
    let mut warning = Diagnostic::warning("unsafe-writes", title).at(place, harm);
    if let Some(partner) = partner {
        warning = warning.at(&partner.place, "this partner honours no idempotency key");
    }
    Some(warning.help(
        "write \"503+retry-after\" instead, or give the partner idempotency = { header = … }",
    ))
}

fn forgotten_key(named: &NamedPolicy, partner: &PartnerConfig) -> Option<Diagnostic> {
    let key = partner.idempotency.as_ref()?;
    let place = partner.idempotency_place.as_ref()?;
    let policy = named.policy();
    let title = format!(
        "partner `{}` forgets keys before the window of policy `{}` ends",
        partner.name,
        named.name()
    );
    let ttl = format_duration(key.ttl);
    let harm = match policy.window {
        Some(window) if window > key.ttl => format!(
            "keys live {ttl}, the window is {}: for the last {} a write that may have arrived is \
             not sent again",
            format_duration(window),
            time((window - key.ttl).as_secs_f64())
        ),
        Some(_) => return None,
        None => format!(
            "keys live {ttl}, the window has no end: after {ttl} a write that may have arrived \
             is not sent again"
        ),
    };
    Some(
        Diagnostic::warning("forgotten-key", title)
            .at(place, harm)
            .help("shorten the window to the ttl, or raise the ttl to what the partner promises"),
    )
}
