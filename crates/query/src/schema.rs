//! What the definition of a container says that queries depend on.

use text::Language;

use crate::{Metric, Path};

/// The policies and functions of a container as far as they change what a query means.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// Paths that hold vectors.
    pub vectors: Vec<VectorPath>,
    /// Paths that hold prose.
    pub full_text: Vec<FullTextPath>,
    /// The computed properties.
    pub computed: Vec<Computed>,
    /// The names of the user-defined functions.
    pub functions: Vec<String>,
}

/// A path of the vector policy.
#[derive(Clone, Debug)]
pub struct VectorPath {
    /// Where the vectors are.
    pub path: Path,
    /// How they are compared where a query does not say.
    pub metric: Metric,
}

/// A path of the full-text policy.
#[derive(Clone, Debug)]
pub struct FullTextPath {
    /// Where the prose is.
    pub path: Path,
    /// Its language, such as `en-US`; one we do not know is read as English.
    pub language: String,
}

/// A computed property.
#[derive(Clone, Debug)]
pub struct Computed {
    /// Its name at the root of the item.
    pub name: String,
    /// `SELECT VALUE … FROM c`.
    pub query: String,
}

impl Schema {
    /// A container without policies.
    pub(crate) const EMPTY: &'static Schema = &Schema {
        vectors: Vec::new(),
        full_text: Vec::new(),
        computed: Vec::new(),
        functions: Vec::new(),
    };

    /// How the vectors at a path are compared, if a policy says so.
    pub(crate) fn metric(&self, path: &Path) -> Option<Metric> {
        self.vectors.iter().find(|vector| vector.path == *path).map(|vector| vector.metric)
    }

    /// The language of the prose at a path.
    pub(crate) fn language(&self, path: &Path) -> Language {
        let found = self.full_text.iter().find(|text| text.path == *path);
        found.and_then(|text| Language::from_tag(&text.language)).unwrap_or_default()
    }
}
