//! Container definitions: what a client asks for, checked, and what it is shown in return.
//!
//! The body of a create or replace becomes typed parts that the engine uses and JSON that
//! responses echo. Everything has a default except `id` and `partitionKey`; unknown properties
//! are stored and echoed as they came, so that newer clients keep what they rely on.
//!
//! INVARIANTS
//! (D1) `parse(to_json(d))` is `d`.
//! (D2) The echo always has id, indexingPolicy, partitionKey with kind and version,
//!      conflictResolutionPolicy and geospatialConfig.
//!
//! ELSEWHERE  `_rid`, `_etag` and other properties of the stored resource: the catalog.

mod error;
mod fields;
mod indexing;
pub mod path;
mod policies;
mod search;
mod spatial;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

pub use error::DefinitionError;
pub use indexing::{
    COMPOSITE_PATHS_MAX, COMPOSITE_PATHS_TOTAL_MAX, CompositeIndex, INDEX_PATHS_MAX, IndexingMode,
    IndexingPolicy, Order,
};
pub use path::PropertyPath;
pub use policies::{
    COMPUTED_PROPERTIES_MAX, ComputedProperty, ConflictResolution, DefaultTtl, SYSTEM_PROPERTIES,
    UNIQUE_KEY_PATHS_MAX, UNIQUE_KEYS_MAX, UniqueKey,
};
pub use search::{
    DistanceFunction, FLAT_DIMENSIONS_MAX, FullTextIndex, FullTextPath, FullTextPolicy,
    VECTOR_DIMENSIONS_MAX, VectorDataType, VectorEmbedding, VectorIndex, VectorIndexType,
};
pub use spatial::{Geospatial, SpatialIndex, SpatialType};

use crate::name::ResourceName;
use crate::partition_key::PartitionKeyDefinition;
use fields::{Object, Parsed, as_object, as_str, get, require};

/// Everything that is fixed or configured about a container.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerDefinition {
    /// The name.
    pub id: String,
    /// Where the partition key of an item is.
    pub partition_key: PartitionKeyDefinition,
    /// What is indexed.
    pub indexing: IndexingPolicy,
    /// When items expire.
    pub default_ttl: DefaultTtl,
    /// What is unique within a logical partition.
    pub unique_keys: Vec<UniqueKey>,
    /// Properties that queries compute.
    pub computed: Vec<ComputedProperty>,
    /// Who wins between regions.
    pub conflicts: ConflictResolution,
    /// How coordinates are read.
    pub geospatial: Geospatial,
    /// Which paths hold vectors.
    pub embeddings: Vec<VectorEmbedding>,
    /// Which paths hold prose.
    pub full_text: FullTextPolicy,
    /// Minutes for which all versions are kept for the change feed; 0 if they are not.
    pub retention_minutes: u32,
    /// Echoed as sent: policies with unknown members, and unknown properties.
    verbatim: Object,
}

/// Properties of the stored resource, which clients send back in a replacement.
const RESOURCE_PROPERTIES: [&str; 9] =
    ["_rid", "_self", "_etag", "_ts", "_docs", "_sprocs", "_triggers", "_udfs", "_conflicts"];
/// Properties that `to_json` writes from typed parts.
const TYPED_PROPERTIES: [&str; 5] =
    ["id", "indexingPolicy", "partitionKey", "conflictResolutionPolicy", "geospatialConfig"];

/// What checks a query of a computed property, which may not use those of these names.
pub type CheckComputed<'a> = &'a dyn Fn(&str, &[&str]) -> Result<(), String>;

impl ContainerDefinition {
    /// Reads and checks the body of a create or replace request. The queries of computed
    /// properties are checked by [`ContainerDefinition::check_computed`].
    pub fn parse(body: &Value) -> Result<Self, DefinitionError> {
        let body = as_object(body, "body")?;
        if get(body, "materializedViewDefinition").is_some() {
            return Err(DefinitionError::Unsupported { property: "materializedViewDefinition" });
        }
        let definition = Self::read(body)?;
        definition.check_together()?;
        Ok(definition)
    }

    fn read(body: &Object) -> Parsed<Self> {
        let part = |name: &str| get(body, name);
        policies::check_analytical_ttl(part("analyticalStorageTtl"))?;
        part("clientEncryptionPolicy")
            .map_or(Ok(()), |value| as_object(value, "clientEncryptionPolicy").map(drop))?;
        Ok(ContainerDefinition {
            id: parse_id(body)?,
            partition_key: policies::parse_partition_key(require(
                body,
                "partitionKey",
                "partitionKey",
            )?)?,
            indexing: part("indexingPolicy")
                .map_or_else(|| Ok(IndexingPolicy::default()), IndexingPolicy::parse)?,
            default_ttl: policies::parse_default_ttl(part("defaultTtl"))?,
            unique_keys: policies::parse_unique_keys(part("uniqueKeyPolicy"))?,
            computed: policies::parse_computed(part("computedProperties"))?,
            conflicts: policies::parse_conflicts(part("conflictResolutionPolicy"))?,
            geospatial: spatial::parse_geospatial(part("geospatialConfig"))?,
            embeddings: search::parse_embeddings(part("vectorEmbeddingPolicy"))?,
            full_text: search::parse_full_text_policy(part("fullTextPolicy"))?,
            retention_minutes: policies::parse_retention(part("changeFeedPolicy"))?,
            verbatim: verbatim(body),
        })
    }

    /// Rules that concern two parts at once.
    fn check_together(&self) -> Parsed<()> {
        let expires = self.default_ttl != DefaultTtl::Off;
        if expires && self.indexing.mode == IndexingMode::None {
            return Err(DefinitionError::TtlWithoutIndex);
        }
        spatial::check_spatial(&self.indexing.spatial, self.geospatial)?;
        search::check_vector_indexes(&self.indexing.vector, &self.embeddings)?;
        search::check_full_text(&self.indexing.full_text, &self.full_text)
    }

    /// Has every query of a computed property checked by whoever understands queries; `check` is
    /// told the names of the other computed properties, too, which it may not use.
    pub fn check_computed(&self, check: CheckComputed<'_>) -> Result<(), DefinitionError> {
        self.computed.iter().try_for_each(|property| {
            let others = self.computed.iter().map(|other| &other.name[..]);
            let others: Vec<&str> = others.filter(|name| *name != property.name).collect();
            check(&property.query, &others).map_err(|reason| DefinitionError::ComputedQuery {
                name: property.name.clone(),
                reason,
            })
        })
    }

    /// For how long all versions are kept for the change feed; `None` if they are not.
    pub fn change_feed_retention_minutes(&self) -> Option<u32> {
        Some(self.retention_minutes).filter(|minutes| *minutes > 0)
    }

    /// Whether `new` may take the place of `old`.
    pub fn check_replacement(old: &Self, new: &Self) -> Result<(), DefinitionError> {
        let fixed = [
            ("id", old.id == new.id),
            ("partitionKey", old.partition_key == new.partition_key),
            ("uniqueKeyPolicy", old.unique_keys == new.unique_keys),
            ("vectorEmbeddingPolicy", keeps_embeddings(old, new)),
            ("indexingPolicy.vectorIndexes", keeps_vector_indexes(old, new)),
            ("conflictResolutionPolicy", !becomes_custom(old, new)),
        ];
        match fixed.into_iter().find(|(_, same)| !same) {
            Some((property, _)) => Err(DefinitionError::Immutable { property }),
            None => Ok(()),
        }
    }

    /// The definition as responses show it, defaults filled in (D2), in the service's order.
    pub fn to_json(&self) -> Value {
        let geospatial = match self.geospatial {
            Geospatial::Geography => "Geography",
            Geospatial::Geometry => "Geometry",
        };
        let mut json = Map::new();
        let mut put = |name: &str, value: Value| json.insert(name.to_owned(), value);
        put("id", self.id.clone().into());
        put("indexingPolicy", self.indexing.to_json());
        put("partitionKey", policies::partition_key_json(&self.partition_key));
        put("conflictResolutionPolicy", policies::conflicts_json(&self.conflicts));
        put("geospatialConfig", json!({"type": geospatial}));
        json.extend(self.verbatim.clone());
        Value::Object(json)
    }
}

/// Settings of a vector path stay as long as the path does.
fn keeps_embeddings(old: &ContainerDefinition, new: &ContainerDefinition) -> bool {
    let kept = |old: &VectorEmbedding| {
        let new = new.embeddings.iter().find(|new| new.path == old.path);
        new.is_none_or(|new| new == old)
    };
    old.embeddings.iter().all(kept)
}

fn keeps_vector_indexes(old: &ContainerDefinition, new: &ContainerDefinition) -> bool {
    let kept = |old: &VectorIndex| {
        let new = new.indexing.vector.iter().find(|new| new.path == old.path);
        new.is_none_or(|new| new == old)
    };
    old.indexing.vector.iter().all(kept)
}

/// A procedure that resolves conflicts is chosen when the container is created, or never.
fn becomes_custom(old: &ContainerDefinition, new: &ContainerDefinition) -> bool {
    let is_custom = matches!(new.conflicts, ConflictResolution::Custom { .. });
    is_custom && old.conflicts != new.conflicts
}

/// What `to_json` repeats as it came.
fn verbatim(body: &Object) -> Object {
    let keep = |name: &str, value: &Value| {
        !value.is_null()
            && !TYPED_PROPERTIES.contains(&name)
            && !RESOURCE_PROPERTIES.contains(&name)
    };
    let kept = body.iter().filter(|(name, value)| keep(name, value));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn parse_id(body: &Object) -> Parsed<String> {
    let id = as_str(require(body, "id", "id")?, "id")?;
    ResourceName::new(id)?;
    Ok(id.to_owned())
}
