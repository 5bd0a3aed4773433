//! Where a reply goes: stdout, a file that is whole or absent, or nowhere.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ressac_http::Reply;
use tempfile::NamedTempFile;

use crate::draft;
use crate::exit::Stop;
use crate::output::Output;

/// Where a reply goes.
#[derive(Debug)]
pub(super) enum Sink {
    /// To stdout.
    Stdout(Output),
    /// Written beside its place, and renamed: an old file stays until the new one is whole.
    Draft(NamedTempFile, PathBuf),
    /// A pipe or a device.
    Device(File),
    /// Not kept.
    Nowhere,
}

impl Sink {
    /// A file. Opened before anything is sent, so that a place that cannot be written to is found
    /// out in time.
    pub(super) fn file(path: &Path) -> Result<Sink, Stop> {
        open(path).map_err(|error| {
            Stop::usage(format_args!(
                "--output {} cannot be written: {error}",
                path.display()
            ))
        })
    }

    /// Writes the reply, its head first where that is wanted.
    pub(super) fn keep(self, reply: &Reply, head: bool) -> io::Result<()> {
        let mut bytes = if head { head_of(reply) } else { Vec::new() };
        bytes.extend_from_slice(&reply.body);
        match self {
            Sink::Nowhere => Ok(()),
            Sink::Stdout(output) => output.bytes(&bytes),
            Sink::Device(mut file) => file.write_all(&bytes),
            Sink::Draft(mut draft, path) => {
                // Past the draft itself: its errors show its own name, which nobody has given.
                draft.as_file_mut().write_all(&bytes)?;
                draft.as_file().sync_all()?;
                draft.persist(path).map_err(|error| error.error)?;
                Ok(())
            }
        }
    }
}

fn open(path: &Path) -> io::Result<Sink> {
    // Through a link to what it names: the rename must not replace the link.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => {
            let file = OpenOptions::new().write(true).open(&path)?;
            return Ok(Sink::Device(file));
        }
        _ => {}
    }
    Ok(Sink::Draft(draft::beside(&path)?, path))
}

fn head_of(reply: &Reply) -> Vec<u8> {
    let phrase = reply.status.canonical_reason().unwrap_or("");
    let mut head = format!("HTTP/1.1 {} {phrase}\r\n", reply.status.as_u16()).into_bytes();
    for (name, value) in &reply.headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}
