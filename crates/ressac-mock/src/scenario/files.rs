//! `file=`: content from a file, read once.

use std::path::Path;

use crate::notation::MAX_BODY;
use crate::step::{Body, Reply};

/// Reads the file of a reply, if it names one. Without a folder, reading is not allowed.
pub(crate) fn read(reply: &mut Reply, folder: Option<&Path>) -> Result<(), (String, String)> {
    let Some(Body::File(file)) = &mut reply.body else {
        return Ok(());
    };
    let Some(folder) = folder else {
        return Err((
            "`file=` is read at the start only, not over the network".into(),
            "write the content with `text=` or `json=`".into(),
        ));
    };
    let path = folder.join(&file.path);
    let bad = |why: String| {
        Err((
            format!("{} cannot be read: {why}", path.display()),
            "check the path; a relative one starts at the scenario's folder".to_owned(),
        ))
    };
    match std::fs::metadata(&path) {
        Ok(m) if !m.is_file() => return bad("it is no file".into()),
        Ok(m) if m.len() > MAX_BODY => return bad("it is larger than 64 MiB".into()),
        Ok(_) => {}
        Err(e) => return bad(e.to_string()),
    }
    match std::fs::read(&path) {
        Ok(bytes) => {
            file.content = bytes.into();
            Ok(())
        }
        Err(e) => bad(e.to_string()),
    }
}
