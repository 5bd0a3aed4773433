//! The example runs.

#[path = "../../examples/idempotent_server.rs"]
mod idempotent_server;

#[tokio::test]
async fn the_example_ends_with_one_payment() {
    let story = idempotent_server::story().await.unwrap();
    assert!(story.ends_with("payments made: 1\n"), "{story}");
}
