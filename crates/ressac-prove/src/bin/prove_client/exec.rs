//! Exec mode: one process, one operation.

use tokio::sync::watch;

use crate::Kind;
use crate::client::Instance;
use crate::fault::Fault;
use crate::lines::terminated;
use crate::policy::policy;
use crate::told::Told;

pub(crate) async fn run(kind: Kind, fault: Fault) -> u8 {
    let told = Told::environment();
    let policy = policy(&told, kind, &fault);
    let hears = fault.hears_signals();
    let instance = match Instance::new(policy, &told, &told, kind, fault) {
        Ok(instance) => instance,
        Err(error) => {
            eprintln!("prove-client: {error}");
            return 64;
        }
    };
    let cancel = watch::Sender::new(false);
    let listening = cancel.subscribe();
    tokio::spawn(async move {
        loop {
            terminated().await;
            if hears {
                cancel.send_replace(true);
            }
        }
    });
    let line = instance.perform(told.clone(), listening).await;
    match told.get("result_file") {
        Some(file) => {
            if let Err(error) = std::fs::write(file, format!("{line}\n")) {
                eprintln!("prove-client: {file}: {error}");
            }
        }
        None => println!("{line}"),
    }
    u8::from(line["ok"] != true)
}
