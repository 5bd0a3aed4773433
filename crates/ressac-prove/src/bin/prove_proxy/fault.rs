//! Faults that can be switched on by name: mistakes that proxies really make. Each is named in the
//! case that it must turn red.

/// At most one fault.
#[derive(Clone, Debug)]
pub(crate) struct Fault(Option<String>);

impl Fault {
    pub(crate) fn named(name: Option<&str>) -> Self {
        Self(name.map(str::to_owned))
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.0.as_deref() == Some(name)
    }
}
