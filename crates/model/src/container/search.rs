//! Vector and full-text search: which paths hold embeddings or prose, and how they are indexed.
//!
//! A policy describes the data at a path, an index the structure built over it; an index without
//! a policy for its path is refused.

use serde_json::Value;

use super::error::DefinitionError;
use super::fields::{
    Object, Parsed, as_integer, as_object, as_str, get, list, property_path, require,
};
use super::path::PropertyPath;

/// Most dimensions of a vector with a `flat` index (documented).
pub const FLAT_DIMENSIONS_MAX: i64 = 505;
/// Most dimensions of any vector (documented).
pub const VECTOR_DIMENSIONS_MAX: i64 = 4096;

/// Type of the elements of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorDataType {
    /// binary32.
    Float32,
    /// binary16.
    Float16,
    /// Signed byte.
    Int8,
    /// Unsigned byte.
    Uint8,
}

/// How far apart two vectors are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DistanceFunction {
    /// Angle.
    Cosine,
    /// Inner product.
    DotProduct,
    /// Straight line.
    Euclidean,
}

/// The vectors at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorEmbedding {
    /// Where the vectors are.
    pub path: PropertyPath,
    /// Type of their elements.
    pub data_type: VectorDataType,
    /// Number of their elements.
    pub dimensions: u32,
    /// How they are compared.
    pub distance: DistanceFunction,
}

/// The structure of a vector index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorIndexType {
    /// Every vector, compared exactly.
    Flat,
    /// Every vector, compressed.
    QuantizedFlat,
    /// A graph, approximate.
    DiskAnn,
}

/// A vector index over one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorIndex {
    /// Where the vectors are.
    pub path: PropertyPath,
    /// Structure of the index.
    pub kind: VectorIndexType,
    /// Bytes per compressed vector, 1–512.
    pub quantization_bytes: Option<u32>,
    /// Candidates looked at while building, 10–500.
    pub search_list_size: Option<u32>,
}

/// A path with prose, and its language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullTextPath {
    /// Where the prose is.
    pub path: PropertyPath,
    /// Such as `en-US`; `None` means the default of the policy.
    pub language: Option<String>,
}

/// Which paths hold prose.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FullTextPolicy {
    /// Language of paths that name none.
    pub default_language: Option<String>,
    /// The paths.
    pub paths: Vec<FullTextPath>,
}

/// A full-text index over one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullTextIndex {
    /// Where the prose is.
    pub path: PropertyPath,
}

pub(super) fn parse_embeddings(value: Option<&Value>) -> Parsed<Vec<VectorEmbedding>> {
    const LIST: &str = "vectorEmbeddingPolicy.vectorEmbeddings";
    let Some(value) = value else { return Ok(Vec::new()) };
    let entries = list(as_object(value, "vectorEmbeddingPolicy")?, "vectorEmbeddings", LIST)?;
    let embeddings = entries.iter().map(parse_embedding).collect::<Parsed<Vec<_>>>()?;
    check_distinct(LIST, embeddings.iter().map(|embedding| &embedding.path))?;
    Ok(embeddings)
}

fn parse_embedding(value: &Value) -> Parsed<VectorEmbedding> {
    const DIMENSIONS: &str = "vectorEmbeddingPolicy.vectorEmbeddings.dimensions";
    let entry = as_object(value, "vectorEmbeddingPolicy.vectorEmbeddings")?;
    let path = require(entry, "path", "vectorEmbeddingPolicy.vectorEmbeddings.path")?;
    let dimensions = require(entry, "dimensions", DIMENSIONS)?;
    Ok(VectorEmbedding {
        path: property_path(path, "vectorEmbeddingPolicy.vectorEmbeddings.path")?,
        data_type: parse_data_type(entry)?,
        dimensions: as_integer(dimensions, DIMENSIONS, (1, VECTOR_DIMENSIONS_MAX))? as u32,
        distance: parse_distance(entry)?,
    })
}

fn parse_data_type(entry: &Object) -> Parsed<VectorDataType> {
    const PROPERTY: &str = "vectorEmbeddingPolicy.vectorEmbeddings.dataType";
    let Some(value) = get(entry, "dataType") else { return Ok(VectorDataType::Float32) };
    match as_str(value, PROPERTY)?.to_ascii_lowercase().as_str() {
        "float32" => Ok(VectorDataType::Float32),
        "float16" => Ok(VectorDataType::Float16),
        "int8" => Ok(VectorDataType::Int8),
        "uint8" => Ok(VectorDataType::Uint8),
        _ => Err(DefinitionError::Invalid {
            property: PROPERTY,
            expected: "'float32', 'float16', 'int8' or 'uint8'",
        }),
    }
}

fn parse_distance(entry: &Object) -> Parsed<DistanceFunction> {
    const PROPERTY: &str = "vectorEmbeddingPolicy.vectorEmbeddings.distanceFunction";
    let Some(value) = get(entry, "distanceFunction") else { return Ok(DistanceFunction::Cosine) };
    match as_str(value, PROPERTY)?.to_ascii_lowercase().as_str() {
        "cosine" => Ok(DistanceFunction::Cosine),
        "dotproduct" => Ok(DistanceFunction::DotProduct),
        "euclidean" => Ok(DistanceFunction::Euclidean),
        _ => Err(DefinitionError::Invalid {
            property: PROPERTY,
            expected: "'cosine', 'dotproduct' or 'euclidean'",
        }),
    }
}

const VECTOR_INDEXES: &str = "indexingPolicy.vectorIndexes";

pub(super) fn parse_vector_indexes(policy: &Object) -> Parsed<Vec<VectorIndex>> {
    let entries = list(policy, "vectorIndexes", VECTOR_INDEXES)?;
    let indexes = entries.iter().map(parse_vector_index).collect::<Parsed<Vec<_>>>()?;
    check_distinct(VECTOR_INDEXES, indexes.iter().map(|index| &index.path))?;
    Ok(indexes)
}

fn parse_vector_index(value: &Value) -> Parsed<VectorIndex> {
    const QUANTIZATION: &str = "indexingPolicy.vectorIndexes.quantizationByteSize";
    const SEARCH_LIST: &str = "indexingPolicy.vectorIndexes.indexingSearchListSize";
    let entry = as_object(value, VECTOR_INDEXES)?;
    let size = |name: &str, property, bounds| {
        let value = get(entry, name).map(|value| as_integer(value, property, bounds));
        value.transpose().map(|size| size.map(|size| size as u32))
    };
    Ok(VectorIndex {
        path: property_path(require(entry, "path", VECTOR_INDEXES)?, VECTOR_INDEXES)?,
        kind: parse_vector_index_type(entry)?,
        quantization_bytes: size("quantizationByteSize", QUANTIZATION, (1, 512))?,
        search_list_size: size("indexingSearchListSize", SEARCH_LIST, (10, 500))?,
    })
}

fn parse_vector_index_type(entry: &Object) -> Parsed<VectorIndexType> {
    const PROPERTY: &str = "indexingPolicy.vectorIndexes.type";
    match as_str(require(entry, "type", PROPERTY)?, PROPERTY)?.to_ascii_lowercase().as_str() {
        "flat" => Ok(VectorIndexType::Flat),
        "quantizedflat" => Ok(VectorIndexType::QuantizedFlat),
        "diskann" => Ok(VectorIndexType::DiskAnn),
        _ => Err(DefinitionError::Invalid {
            property: PROPERTY,
            expected: "'flat', 'quantizedFlat' or 'diskANN'",
        }),
    }
}

/// Every index has an embedding, and a `flat` one no more dimensions than it can take.
pub(super) fn check_vector_indexes(
    indexes: &[VectorIndex],
    embeddings: &[VectorEmbedding],
) -> Parsed<()> {
    for index in indexes {
        let embedding = embeddings.iter().find(|embedding| embedding.path == index.path);
        let embedding = embedding.ok_or_else(|| DefinitionError::NotInPolicy {
            property: VECTOR_INDEXES,
            path: index.path.text().to_owned(),
            policy: "vectorEmbeddingPolicy",
        })?;
        let flat = index.kind == VectorIndexType::Flat;
        if flat && i64::from(embedding.dimensions) > FLAT_DIMENSIONS_MAX {
            return Err(DefinitionError::Range {
                property: "vectorEmbeddingPolicy.vectorEmbeddings.dimensions",
                min: 1,
                max: FLAT_DIMENSIONS_MAX,
            });
        }
    }
    Ok(())
}

pub(super) fn parse_full_text_policy(value: Option<&Value>) -> Parsed<FullTextPolicy> {
    const PATHS: &str = "fullTextPolicy.fullTextPaths";
    let Some(value) = value else { return Ok(FullTextPolicy::default()) };
    let policy = as_object(value, "fullTextPolicy")?;
    let entries = list(policy, "fullTextPaths", PATHS)?;
    let paths = entries.iter().map(parse_full_text_path).collect::<Parsed<Vec<_>>>()?;
    check_distinct(PATHS, paths.iter().map(|entry| &entry.path))?;
    let default_language = language(policy, "defaultLanguage")?;
    Ok(FullTextPolicy { default_language, paths })
}

fn parse_full_text_path(value: &Value) -> Parsed<FullTextPath> {
    const PROPERTY: &str = "fullTextPolicy.fullTextPaths";
    let entry = as_object(value, PROPERTY)?;
    let path = property_path(require(entry, "path", PROPERTY)?, PROPERTY)?;
    Ok(FullTextPath { path, language: language(entry, "language")? })
}

fn language(object: &Object, name: &str) -> Parsed<Option<String>> {
    let text = get(object, name).map(|value| as_str(value, "fullTextPolicy.language"));
    text.transpose().map(|text| text.map(str::to_owned))
}

const FULL_TEXT_INDEXES: &str = "indexingPolicy.fullTextIndexes";

pub(super) fn parse_full_text_indexes(policy: &Object) -> Parsed<Vec<FullTextIndex>> {
    let entries = list(policy, "fullTextIndexes", FULL_TEXT_INDEXES)?;
    let index = |entry: &Value| {
        let entry = as_object(entry, FULL_TEXT_INDEXES)?;
        let path = require(entry, "path", FULL_TEXT_INDEXES)?;
        Ok(FullTextIndex { path: property_path(path, FULL_TEXT_INDEXES)? })
    };
    let indexes = entries.iter().map(index).collect::<Parsed<Vec<_>>>()?;
    check_distinct(FULL_TEXT_INDEXES, indexes.iter().map(|index| &index.path))?;
    Ok(indexes)
}

/// Every full-text index is over a path of the policy.
pub(super) fn check_full_text(indexes: &[FullTextIndex], policy: &FullTextPolicy) -> Parsed<()> {
    let known = |index: &&FullTextIndex| policy.paths.iter().any(|entry| entry.path == index.path);
    match indexes.iter().find(|index| !known(index)) {
        Some(index) => Err(DefinitionError::NotInPolicy {
            property: FULL_TEXT_INDEXES,
            path: index.path.text().to_owned(),
            policy: "fullTextPolicy",
        }),
        None => Ok(()),
    }
}

fn check_distinct<'a>(
    property: &'static str,
    paths: impl Iterator<Item = &'a PropertyPath>,
) -> Parsed<()> {
    let mut seen: Vec<&PropertyPath> = Vec::new();
    for path in paths {
        if seen.contains(&path) {
            return Err(DefinitionError::Duplicate { property, value: path.text().to_owned() });
        }
        seen.push(path);
    }
    Ok(())
}
