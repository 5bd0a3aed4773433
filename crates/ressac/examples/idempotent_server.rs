//! An axum server that takes each payment once, and a client that does not make it easy.
//!
//! ```text
//! cargo run --example idempotent_server --features idempotency
//! ```

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use ressac::idempotency::{IdempotencyLayer, MemoryStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Failure = Box<dyn Error + Send + Sync>;

/// What the handler does once for a key.
async fn pay(
    State(payments): State<Arc<AtomicU32>>,
    Json(order): Json<Value>,
) -> (StatusCode, Json<Value>) {
    tokio::time::sleep(Duration::from_millis(100)).await;
    let number = payments.fetch_add(1, Ordering::SeqCst) + 1;
    (
        StatusCode::CREATED,
        Json(json!({ "payment": number, "paid": order["amount"] })),
    )
}

/// Serves, asks, and tells what was answered.
///
/// # Errors
///
/// If a socket of this machine fails.
pub(crate) async fn story() -> Result<String, Failure> {
    let payments = Arc::new(AtomicU32::new(0));
    let keys = IdempotencyLayer::new(MemoryStore::new());
    let app = Router::new()
        .route("/payments", post(pay))
        .with_state(Arc::clone(&payments))
        .layer(keys.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = listener.local_addr()?;
    let serving = tokio::spawn(axum::serve(listener, app).into_future());

    let mut story = String::new();
    let mut tell = |what: &str, reply: &str| story.push_str(&format!("{what:<34}{reply}\n"));

    let order = r#"{"amount":"10 EUR"}"#;
    // The client sends an order and loses the connection before the answer.
    let mut lost = begin(server, Some("order-7"), order).await?;
    tokio::time::sleep(Duration::from_millis(50)).await;
    lost.shutdown().await?;
    drop(lost);
    tell("POST order-7, connection lost", "-");
    tell(
        "POST order-7, again at once",
        &ask(server, Some("order-7"), order).await?,
    );
    // Nothing was stopped by the lost connection: the payment is made, its answer kept.
    keys.drain().await;
    tell(
        "POST order-7, again later",
        &ask(server, Some("order-7"), order).await?,
    );
    tell(
        "POST \"order-7\", quoted",
        &ask(server, Some("\"order-7\""), order).await?,
    );
    let dearer = r#"{"amount":"99 EUR"}"#;
    tell(
        "POST order-7, another amount",
        &ask(server, Some("order-7"), dearer).await?,
    );
    tell("POST without a key", &ask(server, None, order).await?);

    serving.abort();
    let made = payments.load(Ordering::SeqCst);
    story.push_str(&format!("payments made: {made}\n"));
    Ok(story)
}

async fn begin(server: SocketAddr, key: Option<&str>, body: &str) -> Result<TcpStream, Failure> {
    let key = key.map_or(String::new(), |key| format!("idempotency-key: {key}\r\n"));
    let request = format!(
        "POST /payments HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{key}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// Status, whether it is a replay, and what the body says.
async fn ask(server: SocketAddr, key: Option<&str>, body: &str) -> Result<String, Failure> {
    let mut stream = begin(server, key, body).await?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await?;
    let (head, body) = reply
        .split_once("\r\n\r\n")
        .ok_or("the server sent no reply")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    let replayed = if head.contains("idempotent-replayed: true") {
        " replayed"
    } else {
        ""
    };
    let body: Value = serde_json::from_str(body)?;
    let says = body.get("title").map_or(body.to_string(), Value::to_string);
    Ok(format!("{status}{replayed} {says}"))
}

#[allow(dead_code, reason = "a test runs the story instead")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let story = tokio::time::timeout(Duration::from_secs(30), story()).await??;
    std::io::stdout().write_all(story.as_bytes())?;
    Ok(())
}
