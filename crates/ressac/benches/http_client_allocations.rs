//! Allocations for a call, for the contenders of `http_client`. Apart from it: counting has a price.
//!
//! `cargo bench -p ressac --features reqwest --bench http_client_allocations`
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod http;

use std::alloc::System;

use http::{Server, contenders, setting};
use ressac::{Partner, Policy};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    http::serve_if_asked();
    let calls = setting("RESSAC_BENCH_CALLS", 1_000, 20);
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    println!("| POST of 32 bytes, reply of 64 | allocations a call | bytes a call |");
    println!("| --- | --- | --- |");
    for contender in contenders(&server.url) {
        let (count, bytes) = runtime.block_on(async {
            for _ in 0..calls / 10 {
                (contender.call)().await;
            }
            let region = Region::new(ALLOCATOR);
            for _ in 0..calls {
                (contender.call)().await;
            }
            per_call(&region, calls)
        });
        println!("| {} | {count:.1} | {bytes:.0} |", contender.name);
    }
    let partner = Partner::new(Policy::sync());
    let (count, bytes) = runtime.block_on(async {
        let region = Region::new(ALLOCATOR);
        for _ in 0..calls {
            let op = |_| std::future::ready(Ok::<_, std::io::Error>(()));
            partner.retry(op).await.unwrap();
        }
        per_call(&region, calls)
    });
    println!("| `partner.retry` of a closure that allocates nothing | {count:.1} | {bytes:.0} |");
}

fn per_call(region: &Region<'_, System>, calls: usize) -> (f64, f64) {
    let change = region.change();
    let count = change.allocations + change.reallocations;
    (
        count as f64 / calls as f64,
        change.bytes_allocated as f64 / calls as f64,
    )
}
