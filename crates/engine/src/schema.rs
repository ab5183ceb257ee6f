//! What queries must know of a container's definition.

use model::container::{ContainerDefinition, DistanceFunction, PropertyPath};
use query::{Computed, FullTextPath, Metric, Path, Schema, VectorPath};

/// The policies that change what a query means.
pub(crate) fn schema(definition: &ContainerDefinition) -> Schema {
    let vectors = definition.embeddings.iter().map(|embedding| VectorPath {
        path: path(&embedding.path),
        metric: match embedding.distance {
            DistanceFunction::Cosine => Metric::Cosine,
            DistanceFunction::DotProduct => Metric::DotProduct,
            DistanceFunction::Euclidean => Metric::Euclidean,
        },
    });
    let language = &definition.full_text.default_language;
    let full_text = definition.full_text.paths.iter().map(|text| FullTextPath {
        path: path(&text.path),
        language: text.language.as_ref().or(language.as_ref()).cloned().unwrap_or_default(),
    });
    let computed = definition
        .computed
        .iter()
        .map(|computed| Computed { name: computed.name.clone(), query: computed.query.clone() });
    Schema {
        vectors: vectors.collect(),
        full_text: full_text.collect(),
        computed: computed.collect(),
        functions: Vec::new(),
    }
}

fn path(path: &PropertyPath) -> Path {
    Path::of(path.segments())
}
