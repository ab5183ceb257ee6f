//! Models: containers with their scripts, items, pipelines, checks.

use toml::Spanned;

use super::{Checked, Kind, Names, Reader};
use crate::expression::Template;
use crate::file;
use crate::workload::{Check, Container, Mapping, Model, Pipeline, Script, Side};

/// The containers a step can name.
pub(super) struct Place<'a> {
    pub(super) containers: &'a [Container],
}

impl Place<'_> {
    pub(super) fn find(&self, name: &str) -> Result<usize, String> {
        self.containers.iter().position(|container| container.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.containers.iter().map(|known| &known.name[..]).collect();
            format!("there is no container `{name}` in this model; there are {}", known.join(", "))
        })
    }
}

impl Reader<'_> {
    pub(super) fn model(&self, model: &file::Model) -> Checked<Model> {
        self.unique(model.containers.iter().map(|container| &container.name), "container")?;
        let containers = model.containers.iter().map(|container| self.container(container));
        let containers = containers.collect::<Checked<Vec<Container>>>()?;
        let place = Place { containers: &containers };
        let mapping = |mapping: &file::Mapping| {
            let entity = self.entity_named(&mapping.entity)?;
            let container =
                self.at(mapping.container.span(), place.find(mapping.container.get_ref()))?;
            let names = Names::from([(self.entities[entity].name.clone(), Kind::Instance(entity))]);
            let item = self.item(&mapping.item, &names, &containers[container])?;
            Ok(Mapping { entity, container, item })
        };
        let items = model.items.iter().map(mapping).collect::<Checked<Vec<Mapping>>>()?;
        let pipelines = model.pipelines.iter().map(|pipeline| self.pipeline(pipeline, &place));
        let pipelines = pipelines.collect::<Checked<Vec<Pipeline>>>()?;
        let checks = model.checks.iter().map(|check| self.check(check, &place));
        let checks = checks.collect::<Checked<Vec<Check>>>()?;
        Ok(Model {
            id: model.id.get_ref().clone(),
            title: model.title.clone().unwrap_or_else(|| model.id.get_ref().clone()),
            about: model.about.clone().unwrap_or_default(),
            containers,
            items,
            pipelines,
            checks,
        })
    }

    /// An item with its id and the properties of its partition key.
    pub(super) fn item(
        &self,
        value: &file::Json,
        names: &Names,
        container: &Container,
    ) -> Checked<Template> {
        let item = self.template(value, names)?;
        let lacks = |path: &&String| {
            let segments: Vec<&str> = path.split('/').skip(1).collect();
            !item.may_have(&segments)
        };
        if !item.may_have(&["id"]) {
            return self.fail(value.span(), "an item needs an `id`");
        }
        match container.partition_key.iter().find(lacks) {
            Some(path) => self.fail(
                value.span(),
                format!("an item of `{}` needs {path}, its partition key", container.name),
            ),
            None => Ok(item),
        }
    }

    pub(super) fn container(&self, container: &file::Container) -> Checked<Container> {
        let partition_key = match container.partition_key.get_ref() {
            file::PartitionKey::Path(path) => vec![path.clone()],
            file::PartitionKey::Levels(paths) => paths.clone(),
        };
        let is_path = |path: &String| path.len() > 1 && path.starts_with('/');
        if partition_key.is_empty() || !partition_key.iter().all(is_path) {
            return self
                .fail(container.partition_key.span(), "a partition key is a path such as /id");
        }
        let scripts = |scripts: &[file::Script]| {
            scripts.iter().map(|script| self.script(script)).collect::<Checked<Vec<Script>>>()
        };
        let plain = Container {
            name: container.name.get_ref().clone(),
            partition_key,
            throughput: None,
            indexing: None,
            unique_keys: None,
            procedures: scripts(&container.procedures)?,
            triggers: scripts(&container.triggers)?,
        };
        self.policies(container, plain)
    }

    fn script(&self, script: &file::Script) -> Checked<Script> {
        let file = script.file.get_ref();
        let body = (self.source.beside)(file).map_err(|error| format!("{file}: {error}"));
        let is_before = match script.kind.as_ref().map(|kind| &kind.get_ref()[..]) {
            Some("pre") => true,
            Some("post") | None => false,
            Some(other) => {
                let span = script.kind.as_ref().map_or(0..0, Spanned::span);
                return self.fail(span, format!("a trigger is `pre` or `post`, not `{other}`"));
            }
        };
        Ok(Script {
            name: script.name.clone(),
            body: self.at(script.file.span(), body)?,
            is_before,
            operation: script.operation.clone().unwrap_or_else(|| "All".to_owned()),
        })
    }

    pub(super) fn pipeline(
        &self,
        pipeline: &file::Pipeline,
        place: &Place<'_>,
    ) -> Checked<Pipeline> {
        let source = self.at(pipeline.source.span(), place.find(pipeline.source.get_ref()))?;
        let from_beginning = match pipeline.start.as_ref().map(|start| &start.get_ref()[..]) {
            Some("beginning") | None => true,
            Some("now") => false,
            Some(other) => {
                let span = pipeline.start.as_ref().map_or(0..0, Spanned::span);
                let message = format!("a pipeline starts at `beginning` or `now`, not `{other}`");
                return self.fail(span, message);
            }
        };
        let mut names = Names::from([("change".to_owned(), Kind::Any)]);
        let when = self.condition(&pipeline.when, &names)?;
        let steps = self.steps(&pipeline.steps, place, &mut names)?;
        Ok(Pipeline { name: pipeline.name.get_ref().clone(), source, from_beginning, when, steps })
    }

    pub(super) fn check(&self, check: &file::Check, place: &Place<'_>) -> Checked<Check> {
        let side = |side: &file::Side| {
            let container = self.at(side.container.span(), place.find(side.container.get_ref()))?;
            Ok(Side { container, sql: self.sql_of_side(side)?, is_tally: side.tally })
        };
        Ok(Check {
            name: check.name.clone(),
            copies: side(&check.copies)?,
            sources: side(&check.sources)?,
            is_complete: check.complete,
            missing: check.missing.clone(),
        })
    }
}
