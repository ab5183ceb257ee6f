//! The smaller policies of a container: keys, expiry, computed properties, conflicts, the feed.

use serde_json::{Value, json};

use super::error::DefinitionError;
use super::fields::{
    Object, Parsed, as_array, as_bool, as_integer, as_object, as_str, check_count, get, list,
    property_path, require,
};
use super::path::PropertyPath;
use crate::limits::TTL_SECONDS_MAX;
use crate::partition_key::{
    HashVersion, PARTITION_KEY_LEVELS_MAX, PartitionKeyDefinition, PartitionKind,
};

/// Most unique keys of a container (the service's documented quota).
pub const UNIQUE_KEYS_MAX: usize = 10;
/// Most paths of one unique key (the service's documented quota).
pub const UNIQUE_KEY_PATHS_MAX: usize = 16;
/// Most computed properties of a container (the service's documented quota).
pub const COMPUTED_PROPERTIES_MAX: usize = 20;

/// Properties that the server itself gives to items.
pub const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// When items expire that do not say so themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultTtl {
    /// Expiry is off, also for items that have a `ttl`.
    Off,
    /// Only items that have a `ttl` expire.
    Never,
    /// This long after the last write.
    Seconds(u32),
}

/// A combination of paths that no two items of a logical partition may share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueKey {
    /// One to sixteen paths.
    pub paths: Vec<PropertyPath>,
}

/// A property that queries can use although items do not store it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedProperty {
    /// Top-level name.
    pub name: String,
    /// `SELECT VALUE … FROM c`.
    pub query: String,
}

/// Who wins when two regions write the same item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConflictResolution {
    /// The larger number at a path.
    LastWriterWins {
        /// `/_ts` unless chosen.
        path: String,
    },
    /// A stored procedure, or the client through the conflicts feed.
    Custom {
        /// Link of the procedure; empty for none.
        procedure: String,
    },
}

pub(super) fn parse_partition_key(value: &Value) -> Parsed<PartitionKeyDefinition> {
    let object = as_object(value, "partitionKey")?;
    let paths = parse_key_paths(object)?;
    let kind = parse_kind(object, paths.len())?;
    let version = parse_version(object, kind)?;
    let system_key = get(object, "systemKey")
        .map_or(Ok(false), |value| as_bool(value, "partitionKey.systemKey"))?;
    Ok(PartitionKeyDefinition { paths, kind, version, system_key })
}

fn parse_key_paths(object: &Object) -> Parsed<Vec<PropertyPath>> {
    const PROPERTY: &str = "partitionKey.paths";
    let values = as_array(require(object, "paths", PROPERTY)?, PROPERTY)?;
    check_count(PROPERTY, values.len(), (1, PARTITION_KEY_LEVELS_MAX))?;
    let paths = distinct_paths(values, PROPERTY)?;
    let is_system =
        |path: &&PropertyPath| SYSTEM_PROPERTIES.iter().any(|name| path.is_property(name));
    match paths.iter().find(is_system) {
        Some(path) => Err(DefinitionError::SystemPath { path: path.text().to_owned() }),
        None => Ok(paths),
    }
}

fn parse_kind(object: &Object, paths: usize) -> Parsed<PartitionKind> {
    let default = if paths == 1 { "Hash" } else { "MultiHash" };
    let value = get(object, "kind").map(|value| as_str(value, "partitionKey.kind"));
    match value.unwrap_or(Ok(default))? {
        "Hash" if paths == 1 => Ok(PartitionKind::Hash),
        "MultiHash" if paths > 1 => Ok(PartitionKind::MultiHash),
        "Hash" | "MultiHash" => Err(DefinitionError::PathsOfKind { paths }),
        _ => Err(DefinitionError::Invalid {
            property: "partitionKey.kind",
            expected: "'Hash' or 'MultiHash'",
        }),
    }
}

/// Every client takes a missing version for 1; hierarchical keys know only 2. The Java SDK writes its
/// name.
fn parse_version(object: &Object, kind: PartitionKind) -> Parsed<HashVersion> {
    let version = get(object, "version");
    let version = version.map(|value| match value.as_str() {
        Some("V1") => Ok(1),
        Some("V2") => Ok(2),
        _ => as_integer(value, "partitionKey.version", (1, 2)),
    });
    match (kind, version.transpose()?) {
        (PartitionKind::MultiHash, Some(1)) => Err(DefinitionError::MultiHashVersion),
        (PartitionKind::MultiHash, _) | (PartitionKind::Hash, Some(2)) => Ok(HashVersion::V2),
        (PartitionKind::Hash, _) => Ok(HashVersion::V1),
    }
}

pub(super) fn partition_key_json(key: &PartitionKeyDefinition) -> Value {
    let paths: Vec<&str> = key.paths.iter().map(PropertyPath::text).collect();
    let kind = match key.kind {
        PartitionKind::Hash => "Hash",
        PartitionKind::MultiHash => "MultiHash",
    };
    let version = match key.version {
        HashVersion::V1 => 1,
        HashVersion::V2 => 2,
    };
    match key.system_key {
        true => json!({"paths": paths, "kind": kind, "version": version, "systemKey": true}),
        false => json!({"paths": paths, "kind": kind, "version": version}),
    }
}

pub(super) fn parse_default_ttl(value: Option<&Value>) -> Parsed<DefaultTtl> {
    const PROPERTY: &str = "defaultTtl";
    let Some(value) = value else { return Ok(DefaultTtl::Off) };
    match as_integer(value, PROPERTY, (-1, i64::from(TTL_SECONDS_MAX)))? {
        -1 => Ok(DefaultTtl::Never),
        0 => Err(DefinitionError::Invalid {
            property: PROPERTY,
            expected: "-1 or a positive number of seconds",
        }),
        seconds => Ok(DefaultTtl::Seconds(seconds as u32)),
    }
}

/// The analytical store does not exist here; its setting is checked and echoed.
pub(super) fn check_analytical_ttl(value: Option<&Value>) -> Parsed<()> {
    let bounds = (-1, i64::from(TTL_SECONDS_MAX));
    value.map_or(Ok(()), |value| as_integer(value, "analyticalStorageTtl", bounds).map(drop))
}

pub(super) fn parse_unique_keys(value: Option<&Value>) -> Parsed<Vec<UniqueKey>> {
    const KEYS: &str = "uniqueKeyPolicy.uniqueKeys";
    const PATHS: &str = "uniqueKeyPolicy.uniqueKeys.paths";
    let Some(value) = value else { return Ok(Vec::new()) };
    let entries = list(as_object(value, "uniqueKeyPolicy")?, "uniqueKeys", KEYS)?;
    check_count(KEYS, entries.len(), (0, UNIQUE_KEYS_MAX))?;
    let key = |entry: &Value| {
        let paths = as_array(require(as_object(entry, KEYS)?, "paths", PATHS)?, PATHS)?;
        check_count(PATHS, paths.len(), (1, UNIQUE_KEY_PATHS_MAX))?;
        Ok(UniqueKey { paths: distinct_paths(paths, PATHS)? })
    };
    entries.iter().map(key).collect()
}

pub(super) fn parse_computed(value: Option<&Value>) -> Parsed<Vec<ComputedProperty>> {
    const PROPERTY: &str = "computedProperties";
    let Some(value) = value else { return Ok(Vec::new()) };
    let entries = as_array(value, PROPERTY)?;
    check_count(PROPERTY, entries.len(), (0, COMPUTED_PROPERTIES_MAX))?;
    let mut properties: Vec<ComputedProperty> = Vec::with_capacity(entries.len());
    for entry in entries {
        let property = parse_computed_property(as_object(entry, PROPERTY)?)?;
        if properties.iter().any(|other| other.name == property.name) {
            return Err(DefinitionError::Duplicate { property: PROPERTY, value: property.name });
        }
        properties.push(property);
    }
    Ok(properties)
}

fn parse_computed_property(entry: &Object) -> Parsed<ComputedProperty> {
    const NAME: &str = "computedProperties.name";
    const QUERY: &str = "computedProperties.query";
    let name = as_str(require(entry, "name", NAME)?, NAME)?.to_owned();
    let query = as_str(require(entry, "query", QUERY)?, QUERY)?.to_owned();
    let reserved = name == "id" || SYSTEM_PROPERTIES.contains(&name.as_str());
    match reserved || name.is_empty() || name.contains('/') {
        true => Err(DefinitionError::ComputedName { name }),
        false => Ok(ComputedProperty { name, query }),
    }
}

pub(super) fn parse_conflicts(value: Option<&Value>) -> Parsed<ConflictResolution> {
    const MODE: &str = "conflictResolutionPolicy.mode";
    let empty = Object::new();
    let policy = value.map_or(Ok(&empty), |value| as_object(value, "conflictResolutionPolicy"))?;
    let text = |name: &str, property: &'static str, default: &str| {
        get(policy, name)
            .map_or(Ok(default.to_owned()), |value| as_str(value, property).map(str::to_owned))
    };
    let path =
        text("conflictResolutionPath", "conflictResolutionPolicy.conflictResolutionPath", "/_ts")?;
    let procedure = text(
        "conflictResolutionProcedure",
        "conflictResolutionPolicy.conflictResolutionProcedure",
        "",
    )?;
    match text("mode", MODE, "LastWriterWins")?.to_ascii_lowercase().as_str() {
        "lastwriterwins" => {
            let path = if path.is_empty() { "/_ts".to_owned() } else { path };
            Ok(ConflictResolution::LastWriterWins { path })
        }
        "custom" => Ok(ConflictResolution::Custom { procedure }),
        _ => Err(DefinitionError::Invalid {
            property: MODE,
            expected: "'LastWriterWins' or 'Custom'",
        }),
    }
}

pub(super) fn conflicts_json(policy: &ConflictResolution) -> Value {
    let (mode, path, procedure) = match policy {
        ConflictResolution::LastWriterWins { path } => ("LastWriterWins", path.as_str(), ""),
        ConflictResolution::Custom { procedure } => ("Custom", "", procedure.as_str()),
    };
    json!({
        "mode": mode,
        "conflictResolutionPath": path,
        "conflictResolutionProcedure": procedure,
    })
}

/// Minutes for which all versions are kept; 0 means that they are not.
pub(super) fn parse_retention(value: Option<&Value>) -> Parsed<u32> {
    const PROPERTY: &str = "changeFeedPolicy.retentionDuration";
    let Some(value) = value else { return Ok(0) };
    let retention = get(as_object(value, "changeFeedPolicy")?, "retentionDuration");
    let bounds = (0, i64::from(i32::MAX));
    retention.map_or(Ok(0), |value| as_integer(value, PROPERTY, bounds).map(|n| n as u32))
}

fn distinct_paths(values: &[Value], property: &'static str) -> Parsed<Vec<PropertyPath>> {
    let mut paths: Vec<PropertyPath> = Vec::with_capacity(values.len());
    for value in values {
        let path = property_path(value, property)?;
        if paths.contains(&path) {
            return Err(DefinitionError::Duplicate { property, value: path.text().to_owned() });
        }
        paths.push(path);
    }
    Ok(paths)
}
