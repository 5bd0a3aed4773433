//! From files and a script on the command line to one scenario.

use std::path::PathBuf;

use ressac_mock::{Route, Scenario, Script};

use crate::exit::Stop;

/// Reads the files and lays them together.
///
/// Routes and outages add up in the order of the files. A seed, a store or listeners are the
/// scenario's own, so of several files only one may have them.
pub(super) fn load(files: &[PathBuf]) -> Result<Scenario, Stop> {
    let plain = Scenario::default();
    let mut whole = Scenario::default();
    for file in files {
        let one = Scenario::load(file)
            .map_err(|error| Stop::usage(format_args!("{error}{}", words(error.message()))))?;
        let twice = |what: &str| {
            Stop::usage(format_args!(
                "{}: {what} stands in an earlier file already; leave it in one of them",
                file.display()
            ))
        };
        for route in &one.routes {
            if whole.routes.iter().any(|other| other.name == route.name) {
                return Err(twice(&format!("a route named `{}`", route.name)));
            }
        }
        whole.routes.extend(one.routes);
        whole.outages.extend(one.outages);
        take(&mut whole.seed, one.seed, &plain.seed).map_err(|()| twice("another seed"))?;
        take(&mut whole.idempotency, one.idempotency, &plain.idempotency)
            .map_err(|()| twice("another [idempotency]"))?;
        take(&mut whole.listeners, one.listeners, &plain.listeners)
            .map_err(|()| twice("another [[listener]]"))?;
    }
    Ok(whole)
}

/// Takes a value that says something, unless another one stands there.
fn take<T: PartialEq>(slot: &mut T, value: T, silent: &T) -> Result<(), ()> {
    if value == *silent || value == *slot {
        return Ok(());
    }
    if *slot != *silent {
        return Err(());
    }
    *slot = value;
    Ok(())
}

/// Where the words of a script are listed, for whoever wrote one that is none.
fn words(message: &str) -> &'static str {
    match message.starts_with("unknown word") {
        true => " (docs/mock.md)",
        false => "",
    }
}

/// The route of `--script` and `--path`.
pub(super) fn route(script: &str, path: Option<&str>) -> Result<Route, Stop> {
    script.parse::<Script>().map_err(|error| {
        Stop::usage(format_args!(
            "--script, column {}: {}; {}{}",
            error.column(),
            error.message(),
            error.fix(),
            words(error.message())
        ))
    })?;
    let path = path.unwrap_or("/{rest...}");
    // A JSON string is a TOML string, and the file's reader checks more than the notation.
    let text = format!(
        "version = 1\n[[route]]\nname = \"script\"\npath = {}\nscript = {}\n",
        serde_json::Value::from(path),
        serde_json::Value::from(script)
    );
    let scenario = Scenario::parse(&text).map_err(|error| {
        // Its line and column are those of a file that nobody has.
        Stop::usage(format_args!(
            "--script or --path: {}; {}",
            error.message(),
            error.fix()
        ))
    })?;
    let route = scenario.routes.into_iter().next();
    route.ok_or_else(|| Stop::fault("the script made no route"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn files(texts: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let paths = texts.iter().enumerate().map(|(index, text)| {
            let path = folder.path().join(format!("{index}.toml"));
            std::fs::write(&path, format!("version = 1\n{text}")).unwrap();
            path
        });
        let paths = paths.collect();
        (folder, paths)
    }

    #[test]
    fn files_add_up_in_their_order() {
        let (_folder, paths) = files(&[
            "[[route]]\nname = \"a\"\npath = \"/a\"\nscript = \"200 x*\"\n",
            "seed = 7\n[[route]]\nname = \"b\"\npath = \"/b\"\nscript = \"503 x*\"\n",
        ]);
        let scenario = load(&paths).unwrap();
        let names: Vec<_> = scenario.routes.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(scenario.seed, 7);
    }

    #[test]
    fn what_two_files_say_differently_is_refused() {
        for (one, other, word) in [
            ("seed = 7", "seed = 8", "seed"),
            (
                "idempotency = \"off\"",
                "idempotency = { ttl = \"1h\" }",
                "idempotency",
            ),
            (
                "[[route]]\nname = \"a\"\npath = \"/a\"\nscript = \"200\"\n",
                "[[route]]\nname = \"a\"\npath = \"/b\"\nscript = \"200\"\n",
                "`a`",
            ),
        ] {
            let (_folder, paths) = files(&[one, other]);
            let stop = load(&paths).unwrap_err().to_string();
            assert!(stop.contains(word) && stop.contains("1.toml"), "{stop}");
        }
    }

    #[test]
    fn a_script_is_a_route_for_its_path() {
        assert_eq!(route("503 x2, 200", Some("/pay")).unwrap().name, "script");
        let stop = route("503 hodl=2s", None).unwrap_err().to_string();
        assert!(
            stop.contains("column 5") && stop.contains("`hold`"),
            "{stop}"
        );
        assert!(route("200", Some("no-slash")).is_err());
        assert!(route("200 text=\"a \\\"b\"", Some("/\"quoted")).is_ok());
    }
}
