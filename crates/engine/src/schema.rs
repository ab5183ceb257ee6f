//! What queries must know of a container's definition.

use model::container::{ContainerDefinition, DistanceFunction, PropertyPath};
use query::{Computed, FullTextPath, Metric, Path, Schema, VectorPath};

use crate::ops::ResourceKind;
use crate::{Container, Core};

impl Core {
    /// What changes the meaning of a query: the policies, and the names of functions if it calls
    /// any.
    pub(crate) fn schema(&self, container: &Container, calls_functions: bool) -> Schema {
        let mut schema = of_definition(&container.definition());
        if calls_functions {
            let functions = self.catalog.scripts_of(ResourceKind::Udf, container.layout.container);
            let names = functions.iter().filter_map(|udf| udf.body.get("id")?.as_str());
            schema.functions = names.map(str::to_owned).collect();
        }
        schema
    }
}

fn of_definition(definition: &ContainerDefinition) -> Schema {
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
