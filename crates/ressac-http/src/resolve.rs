//! Names to addresses, one lookup at a time for each name.
//!
//! The system's resolver blocks a thread, and keeps it for half a minute when the name servers
//! are silent, whether or not somebody still waits. Were there a thread for each attempt, the
//! attempts to one partner could use up the runtime's and stop the deliveries to all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// What a lookup brought, or the resolver's words.
pub(crate) type Found = Result<Vec<IpAddr>, String>;

/// Lookups under way. Nothing is kept once they are done: the system has its own cache.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    flights: Mutex<HashMap<String, watch::Receiver<Option<Found>>>>,
}

impl Resolver {
    pub(crate) async fn lookup(self: &Arc<Self>, name: &str) -> Found {
        self.join(name, system).await
    }

    /// Waits for the lookup of `name` that is under way, or starts one.
    async fn join<F, L>(self: &Arc<Self>, name: &str, look: F) -> Found
    where
        F: FnOnce(String) -> L,
        L: Future<Output = Found> + Send + 'static,
    {
        let mut flight = {
            let mut flights = self.lock();
            match flights.get(name) {
                Some(flight) => flight.clone(),
                None => {
                    let (tell, flight) = watch::channel(None);
                    flights.insert(name.to_owned(), flight.clone());
                    let entry = Entry {
                        resolver: Arc::clone(self),
                        name: name.to_owned(),
                    };
                    let lookup = look(name.to_owned());
                    tokio::spawn(async move {
                        let found = lookup.await;
                        // First out of the map, so that whoever comes now starts anew.
                        drop(entry);
                        let _ = tell.send(Some(found));
                    });
                    flight
                }
            }
        };
        match flight.wait_for(Option::is_some).await {
            Ok(found) => found.clone().unwrap_or_else(|| Ok(Vec::new())),
            Err(_) => Err("the lookup was abandoned".to_owned()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Receiver<Option<Found>>>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name's place in the map, given up also when the lookup panics or its runtime ends.
struct Entry {
    resolver: Arc<Resolver>,
    name: String,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.resolver.lock().remove(&self.name);
    }
}

async fn system(name: String) -> Found {
    match tokio::net::lookup_host((name, 0)).await {
        Ok(addresses) => Ok(addresses.map(|address| address.ip()).collect()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::sync::Semaphore;

    use super::*;

    /// A resolver that answers once `gate` opens, and counts how often it is asked.
    fn slow(
        gate: &Arc<Semaphore>,
        asked: &Arc<AtomicUsize>,
    ) -> impl FnOnce(String) -> std::pin::Pin<Box<dyn Future<Output = Found> + Send>> {
        let (gate, asked) = (Arc::clone(gate), Arc::clone(asked));
        move |_| {
            asked.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                Ok(vec!["192.0.2.7".parse().unwrap()])
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_attempts_wait_for_one_lookup_even_when_the_first_gives_up() {
        let resolver = Arc::new(Resolver::default());
        let (gate, asked) = (Arc::new(Semaphore::new(0)), Arc::default());
        for _ in 0..100 {
            let waiting = resolver.join("a.example", slow(&gate, &asked));
            assert!(
                tokio::time::timeout(Duration::from_secs(5), waiting)
                    .await
                    .is_err()
            );
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        assert_eq!(resolver.lock().len(), 1);

        gate.add_permits(1);
        let found = resolver
            .join("a.example", slow(&gate, &asked))
            .await
            .unwrap();
        assert_eq!(found, ["192.0.2.7".parse::<IpAddr>().unwrap()]);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        assert!(resolver.lock().is_empty());
    }

    #[tokio::test]
    async fn what_is_done_is_not_kept() {
        let resolver = Arc::new(Resolver::default());
        let (gate, asked) = (Arc::new(Semaphore::new(2)), Arc::default());
        for expected in 1..=2 {
            resolver
                .join("a.example", slow(&gate, &asked))
                .await
                .unwrap();
            assert_eq!(asked.load(Ordering::SeqCst), expected);
        }
    }

    #[test]
    fn a_runtime_that_ends_leaves_no_lookup_behind() {
        let resolver = Arc::new(Resolver::default());
        let (gate, asked) = (Arc::new(Semaphore::new(0)), Arc::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let waiting = resolver.join("a.example", slow(&gate, &asked));
            assert!(
                tokio::time::timeout(Duration::from_millis(10), waiting)
                    .await
                    .is_err()
            );
        });
        assert_eq!(resolver.lock().len(), 1);
        drop(runtime);
        assert!(resolver.lock().is_empty());
    }
}
