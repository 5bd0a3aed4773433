//! WireMock, the Java program: processes of their own, held on one core.
//!
//! Its jar is the file that `RESSAC_WIREMOCK_JAR` names, or what `npm ci --prefix bench/wiremock`
//! brings. Replies are not chunked. In one process the request journal holds as many entries as
//! ours; the other keeps none, for the journal is what takes most of its time.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Contender;
use crate::servers::plain;

/// Tokens of the scenario; each runs through it again and again.
const TOKENS: usize = 32;
/// It is sent this part of what the others are: it takes many times as long.
const SHARE: usize = 40;
/// And this part of it, of each kind of request, before the first round: on one core a JVM goes on
/// compiling for some thousands of replies, and the journal of the one has to be full.
const WARM_UP: usize = 2;
/// How long a JVM may take to start.
const START: Duration = Duration::from_secs(60);

/// The process, ended with the bench.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts both and warms them up; why not, where it cannot be had.
pub(crate) fn start(warm_up: usize) -> Result<Vec<Contender>, String> {
    let jar = jar()?;
    let keeping = Server::start(&jar, &["--max-request-journal-entries", "10000"])?;
    let bare = Server::start(&jar, &["--no-request-journal"])?;
    let mut contenders = vec![
        keeping.contender("WireMock: `200`", plain),
        keeping.contender("WireMock: `503 x2, 200` per token", per_token),
        bare.contender("WireMock, no journal: `200`", plain),
    ];
    // What a JVM has not compiled yet is not what it can do.
    for contender in &mut contenders {
        contender.run((warm_up / WARM_UP).max(crate::CONNECTIONS));
    }
    Ok(contenders)
}

/// A process, and where it listens.
struct Server {
    addr: SocketAddr,
    id: u32,
    running: Rc<Running>,
}

impl Server {
    fn start(jar: &Path, journal: &[&str]) -> Result<Server, String> {
        let port = free_port()?;
        let mut command = Command::new("taskset");
        command.args(["-c", "1", "java", "-jar"]).arg(jar);
        command.args(["--port", &port.to_string()]);
        command.args(["--bind-address", "127.0.0.1", "--disable-banner"]);
        command.args(["--use-chunked-encoding", "never"]);
        command.args(journal);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|e| format!("taskset: {e}"))?;
        // taskset becomes java, so that the id is that of the server.
        let id = child.id();
        let mut running = Running(child);
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        wait(addr, &mut running)?;
        stub(addr)?;
        Ok(Server {
            addr,
            id,
            running: Rc::new(running),
        })
    }

    fn contender(&self, name: &'static str, request: fn(usize) -> String) -> Contender {
        Contender {
            name,
            addr: self.addr,
            request,
            sent: 0,
            share: SHARE,
            process: Some(self.id),
            _alive: Box::new(Rc::clone(&self.running)),
        }
    }
}

/// Three requests in a row for each token.
fn per_token(i: usize) -> String {
    let token = i / 3 % TOKENS;
    format!("GET /t{token}/pay HTTP/1.1\r\nHost: m\r\n\r\n")
}

fn jar() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("RESSAC_WIREMOCK_JAR") {
        let path = PathBuf::from(path);
        return match path.is_file() {
            true => Ok(path),
            false => Err(format!(
                "RESSAC_WIREMOCK_JAR: {} is no file",
                path.display()
            )),
        };
    }
    let build = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../bench/wiremock/node_modules/wiremock/build"
    );
    let files = std::fs::read_dir(build).map_err(
        |_| "no jar; `npm ci --prefix bench/wiremock` brings one, or RESSAC_WIREMOCK_JAR names it",
    )?;
    let jar = files
        .filter_map(|f| Some(f.ok()?.path()))
        .find(|p| p.extension().is_some_and(|e| e == "jar"));
    jar.ok_or_else(|| format!("no jar in {build}"))
}

fn free_port() -> Result<u16, String> {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| e.to_string())?;
    Ok(socket.local_addr().map_err(|e| e.to_string())?.port())
}

fn wait(addr: SocketAddr, running: &mut Running) -> Result<(), String> {
    let begun = Instant::now();
    while call(addr, "GET", "/__admin/mappings", "").is_err() {
        if let Ok(Some(status)) = running.0.try_wait() {
            return Err(format!("java ended: {status}"));
        }
        if begun.elapsed() > START {
            return Err(format!("it did not answer within {} s", START.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// `200` at `/hello`, and for each token a scenario of three states that begins again.
fn stub(addr: SocketAddr) -> Result<(), String> {
    let mut mappings = vec![json!({
        "request": { "method": "GET", "url": "/hello" },
        "response": { "status": 200, "body": "Hello, World!" },
    })];
    let states = ["Started", "twice", "done"];
    let step = |token: usize, i: usize| -> Value {
        json!({
            "scenarioName": format!("t{token}"),
            "requiredScenarioState": states[i],
            "newScenarioState": states[(i + 1) % 3],
            "request": { "method": "GET", "url": format!("/t{token}/pay") },
            "response": { "status": if i == 2 { 200 } else { 503 } },
        })
    };
    let steps = (0..TOKENS).flat_map(|t| (0..3).map(move |i| (t, i)));
    mappings.extend(steps.map(|(t, i)| step(t, i)));
    let body = json!({ "mappings": mappings }).to_string();
    call(addr, "POST", "/__admin/mappings/import", &body)
}

/// One call on a connection of its own; anything but a 200 is an error.
fn call(addr: SocketAddr, method: &str, path: &str, body: &str) -> Result<(), String> {
    let talk = || -> std::io::Result<Vec<u8>> {
        let mut socket = TcpStream::connect(addr)?;
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut reply = Vec::new();
        socket.read_to_end(&mut reply)?;
        Ok(reply)
    };
    let reply = talk().map_err(|e| e.to_string())?;
    match reply.starts_with(b"HTTP/1.1 200") {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&reply).into_owned()),
    }
}
