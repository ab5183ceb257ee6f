//! The parameters that came with a query.

use std::collections::HashMap;

use item::Value;

/// Values by name; names include the `@`.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    values: HashMap<String, Value>,
}

impl Parameters {
    /// No parameters.
    pub fn new() -> Parameters {
        Parameters::default()
    }

    /// The value of a parameter, if it was given.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Gives a parameter a value; the last one given wins.
    pub fn insert(&mut self, name: impl Into<String>, value: Value) {
        self.values.insert(name.into(), value);
    }

    /// Names and values in the order of the names.
    pub(crate) fn sorted(&self) -> Vec<(&str, &Value)> {
        let mut all: Vec<_> = self.values.iter().map(|(name, value)| (&**name, value)).collect();
        all.sort_by_key(|(name, _)| *name);
        all
    }
}

impl<N: Into<String>> FromIterator<(N, Value)> for Parameters {
    fn from_iter<I: IntoIterator<Item = (N, Value)>>(parameters: I) -> Parameters {
        let values = parameters.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Parameters { values }
    }
}
