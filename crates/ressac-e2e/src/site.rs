//! A folder with a configuration and a store.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder of its own for one gateway: `ressac.toml`, and the store `ressac.db`. Gone when dropped.
#[derive(Debug)]
pub struct Site {
    folder: TempDir,
}

impl Site {
    /// A site with these partners and policies, and a gateway on a free port.
    pub fn new(toml: &str) -> Self {
        Self::with_gateway(toml, "")
    }

    /// As [`Site::new`], with more lines under `[gateway]`.
    pub fn with_gateway(toml: &str, gateway: &str) -> Self {
        let site = Site {
            folder: tempfile::tempdir().unwrap(),
        };
        site.configure(toml, gateway);
        site
    }

    /// Writes the configuration anew; a running gateway does not notice.
    pub fn configure(&self, toml: &str, gateway: &str) {
        let text = format!(
            "{toml}\n[gateway]\nlisten = '127.0.0.1:0'\nstore = 'sqlite:{}'\n{gateway}\n",
            self.store().display()
        );
        std::fs::write(self.config(), text).unwrap();
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The configuration.
    pub fn config(&self) -> PathBuf {
        self.folder().join("ressac.toml")
    }

    /// The file of the store. In a folder of its own, so that a small disk can be mounted there.
    pub fn store(&self) -> PathBuf {
        let folder = self.folder().join("disk");
        // Whether it was there before is of no interest.
        let _ = std::fs::create_dir(&folder);
        folder.join("ressac.db")
    }
}
