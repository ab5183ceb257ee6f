//! The indexing policy: what of an item is indexed, and how.
//!
//! A policy keeps two forms of itself: typed parts, which the index compiles, and the JSON it
//! echoes, which is what the client sent with defaults filled in. Old clients put
//! `indexes: [{kind, dataType, precision}]` into paths; that is echoed and means nothing.
//!
//! INVARIANTS
//! (I1) In consistent mode `/*` is in exactly one of the two lists.
//! (I2) No path is in both lists.
//! (I3) With mode none there is no path at all.

use serde_json::{Value, json};

use super::error::DefinitionError;
use super::fields::{
    Object, Parsed, as_array, as_bool, as_object, as_str, bad_path, check_count, fill, get, list,
    property_path, require,
};
use super::path::{IndexPath, PathEnd, PropertyPath};
use super::search::{FullTextIndex, VectorIndex, parse_full_text_indexes, parse_vector_indexes};
use super::spatial::{SpatialIndex, parse_spatial_indexes};

/// Most included paths, and most excluded paths (the service's documented quota).
pub const INDEX_PATHS_MAX: usize = 1500;
/// Most paths in one composite index (the service's documented quota).
pub const COMPOSITE_PATHS_MAX: usize = 8;
/// Most paths in all composite indexes of a container (the service's documented quota).
pub const COMPOSITE_PATHS_TOTAL_MAX: usize = 100;

const ETAG_PATH: &str = "/\"_etag\"/?";

/// Whether there is an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexingMode {
    /// Updated in the transaction of the write.
    Consistent,
    /// No index; only point reads, the change feed and scans.
    None,
}

/// Direction of one path of a composite index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// An index over the combination of several scalars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositeIndex {
    /// Two to eight paths with their directions.
    pub paths: Vec<(PropertyPath, Order)>,
}

/// What of an item is indexed, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexingPolicy {
    /// Whether there is an index.
    pub mode: IndexingMode,
    /// Whether items are indexed without being asked for. Echoed.
    pub automatic: bool,
    /// Paths that are indexed.
    pub included: Vec<IndexPath>,
    /// Paths that are not.
    pub excluded: Vec<IndexPath>,
    /// Combinations of scalars.
    pub composite: Vec<CompositeIndex>,
    /// Shapes.
    pub spatial: Vec<SpatialIndex>,
    /// Embeddings.
    pub vector: Vec<VectorIndex>,
    /// Words.
    pub full_text: Vec<FullTextIndex>,
    echo: Object,
}

impl IndexingPolicy {
    /// Reads a policy. An empty object becomes the default: everything but `_etag`.
    pub fn parse(value: &Value) -> Parsed<Self> {
        let mut echo = as_object(value, "indexingPolicy")?.clone();
        let mode = parse_mode(&echo)?;
        fill_paths(&mut echo, mode);
        let policy = IndexingPolicy {
            mode,
            automatic: parse_automatic(&echo, mode)?,
            included: parse_paths(&echo, "includedPaths", "indexingPolicy.includedPaths")?,
            excluded: parse_paths(&echo, "excludedPaths", "indexingPolicy.excludedPaths")?,
            composite: parse_composites(&mut echo)?,
            spatial: parse_spatial_indexes(&mut echo)?,
            vector: parse_vector_indexes(&echo)?,
            full_text: parse_full_text_indexes(&echo)?,
            echo,
        };
        policy.check()?;
        Ok(policy.with_filled_echo())
    }

    /// The policy as responses show it.
    pub fn to_json(&self) -> Value {
        Value::Object(self.echo.clone())
    }

    fn check(&self) -> Parsed<()> {
        match self.mode {
            IndexingMode::Consistent => self.check_paths(),
            IndexingMode::None => self.check_none(),
        }
    }

    fn check_paths(&self) -> Parsed<()> {
        let roots = self.included.iter().chain(&self.excluded).filter(|path| path.is_root());
        if roots.count() == 0 {
            return Err(DefinitionError::NoRootPath); // I1; twice is caught by I2
        }
        if let Some(path) = self.included.iter().find(|path| self.excluded.contains(path)) {
            return Err(DefinitionError::IncludedAndExcluded { path: path.text().to_owned() });
        }
        let is_tuple = |path: &&IndexPath| matches!(path.end(), PathEnd::Tuple(_));
        match self.excluded.iter().find(is_tuple) {
            Some(path) => Err(DefinitionError::ExcludedTuple { path: path.text().to_owned() }),
            None => Ok(()),
        }
    }

    /// I3.
    fn check_none(&self) -> Parsed<()> {
        let lists = [
            ("includedPaths", self.included.is_empty()),
            ("excludedPaths", self.excluded.is_empty()),
            ("compositeIndexes", self.composite.is_empty()),
            ("spatialIndexes", self.spatial.is_empty()),
            ("vectorIndexes", self.vector.is_empty()),
            ("fullTextIndexes", self.full_text.is_empty()),
        ];
        match lists.into_iter().find(|(_, empty)| !empty) {
            Some((property, _)) => Err(DefinitionError::NoneHasPaths { property }),
            None => Ok(()),
        }
    }

    /// The echo in the order in which the service prints a policy.
    fn with_filled_echo(mut self) -> Self {
        let mut sent = std::mem::take(&mut self.echo);
        let mode = match self.mode {
            IndexingMode::Consistent => "consistent",
            IndexingMode::None => "none",
        };
        self.echo.insert("indexingMode".into(), mode.into());
        self.echo.insert("automatic".into(), self.automatic.into());
        for name in ["includedPaths", "excludedPaths"] {
            self.echo.insert(name.into(), sent.get(name).cloned().unwrap_or(json!([])));
        }
        sent.retain(|name, value| !self.echo.contains_key(name) && !value.is_null());
        self.echo.extend(sent);
        self
    }
}

impl Default for IndexingPolicy {
    fn default() -> Self {
        IndexingPolicy::parse(&json!({})).expect("the empty policy is valid")
    }
}

fn parse_mode(policy: &Object) -> Parsed<IndexingMode> {
    const PROPERTY: &str = "indexingPolicy.indexingMode";
    let Some(value) = get(policy, "indexingMode") else { return Ok(IndexingMode::Consistent) };
    match as_str(value, PROPERTY)?.to_ascii_lowercase().as_str() {
        "consistent" => Ok(IndexingMode::Consistent),
        "none" => Ok(IndexingMode::None),
        "lazy" => Err(DefinitionError::LazyIndexing),
        _ => {
            Err(DefinitionError::Invalid { property: PROPERTY, expected: "'consistent' or 'none'" })
        }
    }
}

fn parse_automatic(policy: &Object, mode: IndexingMode) -> Parsed<bool> {
    let consistent = mode == IndexingMode::Consistent;
    let Some(value) = get(policy, "automatic") else { return Ok(consistent) };
    match as_bool(value, "indexingPolicy.automatic")? {
        true if !consistent => Err(DefinitionError::NoneIsAutomatic),
        automatic => Ok(automatic),
    }
}

/// Two empty lists mean the default; and where everything is included, the etag, which changes
/// with every write and is never searched for, is excluded unless it is listed.
fn fill_paths(policy: &mut Object, mode: IndexingMode) {
    if mode == IndexingMode::None {
        return;
    }
    let is_empty = |name: &str| {
        get(policy, name).is_none_or(|list| list.as_array().is_some_and(Vec::is_empty))
    };
    if is_empty("includedPaths") && is_empty("excludedPaths") {
        policy.insert("includedPaths".into(), json!([{"path": "/*"}]));
        policy.insert("excludedPaths".into(), json!([]));
    }
    fill(policy, "excludedPaths", json!([]));
    if lists(policy, "includedPaths", "/*") && !lists(policy, "includedPaths", ETAG_PATH) {
        exclude_etag(policy);
    }
}

fn exclude_etag(policy: &mut Object) {
    if lists(policy, "excludedPaths", ETAG_PATH) {
        return;
    }
    if let Some(Value::Array(excluded)) = policy.get_mut("excludedPaths") {
        excluded.push(json!({"path": ETAG_PATH}));
    }
}

/// Whether a list has a path, however it is written.
fn lists(policy: &Object, name: &str, path: &str) -> bool {
    let wanted = IndexPath::parse(path);
    let Some(Value::Array(entries)) = policy.get(name) else { return false };
    let paths = entries.iter().filter_map(|entry| entry.get("path")?.as_str());
    paths.map(IndexPath::parse).any(|path| path.is_ok() && path == wanted)
}

fn parse_paths(policy: &Object, name: &str, property: &'static str) -> Parsed<Vec<IndexPath>> {
    let entries = list(policy, name, property)?;
    // The etag path that we add ourselves does not count.
    let own = usize::from(name == "excludedPaths" && lists(policy, name, ETAG_PATH));
    check_count(property, entries.len() - own, (0, INDEX_PATHS_MAX))?;
    entries.iter().map(|entry| parse_path(entry, property)).collect()
}

fn parse_path(entry: &Value, property: &'static str) -> Parsed<IndexPath> {
    let text = as_str(require(as_object(entry, property)?, "path", property)?, property)?;
    IndexPath::parse(text).map_err(|source| bad_path(property, text, source))
}

const COMPOSITE: &str = "indexingPolicy.compositeIndexes";

fn parse_composites(policy: &mut Object) -> Parsed<Vec<CompositeIndex>> {
    let indexes = list(policy, "compositeIndexes", COMPOSITE)?;
    let indexes = indexes.iter().map(parse_composite).collect::<Parsed<Vec<_>>>()?;
    let total = indexes.iter().map(|index| index.paths.len()).sum();
    check_count(COMPOSITE, total, (0, COMPOSITE_PATHS_TOTAL_MAX))?;
    let entries = policy.get_mut("compositeIndexes").and_then(Value::as_array_mut);
    let entries = entries.into_iter().flatten().filter_map(Value::as_array_mut).flatten();
    entries.filter_map(Value::as_object_mut).for_each(|entry| fill(entry, "order", "ascending"));
    Ok(indexes)
}

fn parse_composite(value: &Value) -> Parsed<CompositeIndex> {
    let entries = as_array(value, COMPOSITE)?;
    check_count(COMPOSITE, entries.len(), (2, COMPOSITE_PATHS_MAX))?;
    let mut paths: Vec<(PropertyPath, Order)> = Vec::with_capacity(entries.len());
    for entry in entries {
        let entry = as_object(entry, COMPOSITE)?;
        let path = property_path(require(entry, "path", COMPOSITE)?, COMPOSITE)?;
        if paths.iter().any(|(other, _)| *other == path) {
            let value = path.text().to_owned();
            return Err(DefinitionError::Duplicate { property: COMPOSITE, value });
        }
        paths.push((path, parse_order(entry)?));
    }
    Ok(CompositeIndex { paths })
}

fn parse_order(entry: &Object) -> Parsed<Order> {
    const PROPERTY: &str = "indexingPolicy.compositeIndexes.order";
    let Some(value) = get(entry, "order") else { return Ok(Order::Ascending) };
    match as_str(value, PROPERTY)?.to_ascii_lowercase().as_str() {
        "ascending" => Ok(Order::Ascending),
        "descending" => Ok(Order::Descending),
        _ => Err(DefinitionError::Invalid {
            property: PROPERTY,
            expected: "'ascending' or 'descending'",
        }),
    }
}
