//! From a workload file to a checked workload.
//!
//! Checks go from top to bottom: entities, samples, models, patterns, sweeps. The first mistake is
//! reported with its line (W2); what compiles has no names left to look up (W1).

mod patterns;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path as FilePath;

use toml::Spanned;

use crate::expression::{Each, Expression, Path, Step as PathStep, Template};
use crate::file;
use crate::generate::{Generator, parse_day};
use crate::workload::{
    Action, Check, Container, Entity, Mapping, Model, Over, Pattern, Pipeline, Reference, Sample,
    Script, Side, Step, Sweep, Workload, WriteKind,
};

use patterns::Usual;

/// A mistake in a workload or budget file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct Mistake {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// Reads the file of a name, or says why not.
pub type Beside<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// A workload file and how to read the scripts beside it.
pub struct Source<'a> {
    /// What the file is called in messages.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Reads a file beside it.
    pub beside: Box<Beside<'a>>,
}

impl Source<'_> {
    /// A file on disk.
    pub fn open(path: &FilePath) -> std::io::Result<Source<'static>> {
        let text = std::fs::read_to_string(path)?;
        let directory = path.parent().unwrap_or(FilePath::new("")).to_owned();
        let beside = move |name: &str| {
            std::fs::read_to_string(directory.join(name)).map_err(|error| error.to_string())
        };
        Ok(Source { name: path.display().to_string(), text, beside: Box::new(beside) })
    }

    /// Reads and checks it.
    pub fn read(&self) -> Result<Workload, Mistake> {
        let file: file::File =
            toml::from_str(&self.text).map_err(|error| mistake(&self.name, &self.text, &error))?;
        Reader { source: self, entities: Vec::new(), samples: Vec::new() }.workload(file)
    }

    fn mistake(&self, span: &Range<usize>, message: impl Into<String>) -> Mistake {
        let line = line_of(&self.text, span.start);
        Mistake { file: self.name.clone(), line, message: message.into() }
    }
}

/// What a TOML reader found, in our form.
pub(crate) fn mistake(name: &str, text: &str, error: &toml::de::Error) -> Mistake {
    let line = line_of(text, error.span().map_or(0, |span| span.start));
    Mistake { file: name.to_owned(), line, message: error.message().to_owned() }
}

/// The line a byte is on.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// What a name stands for, as far as it is known before anything runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Instance(usize),
    Any,
}

type Names = BTreeMap<String, Kind>;

struct Reader<'a> {
    source: &'a Source<'a>,
    entities: Vec<Entity>,
    samples: Vec<Sample>,
}

type Checked<T> = Result<T, Mistake>;

fn is_positive(number: f64) -> bool {
    number > 0.0 && number.is_finite()
}

impl Reader<'_> {
    fn fail<T>(&self, span: Range<usize>, message: impl Into<String>) -> Checked<T> {
        Err(self.source.mistake(&span, message))
    }

    /// Gives an error its place.
    fn at<T>(&self, span: Range<usize>, result: Result<T, String>) -> Checked<T> {
        result.map_err(|message| self.source.mistake(&span, message))
    }

    fn workload(mut self, file: file::File) -> Checked<Workload> {
        for entity in &file.entities {
            let entity = self.entity(entity)?;
            self.entities.push(entity);
        }
        self.computed_fields(&file.entities)?;
        for sample in &file.samples {
            let sample = self.sample(sample)?;
            self.samples.push(sample);
        }
        let models = file.models.iter().map(|model| self.model(model));
        let models = models.collect::<Checked<Vec<Model>>>()?;
        self.unique(file.models.iter().map(|model| &model.id), "model")?;
        self.unique(file.patterns.iter().map(|pattern| &pattern.id), "pattern")?;
        let repeat = self.positive(&file.repeat, 10)?;
        let usual = Usual { repeat, bar: self.bar(&file.bar)? };
        let patterns = file.patterns.iter();
        let patterns =
            patterns.map(|pattern| self.pattern(pattern, &models, &usual, &file.drivers));
        let patterns = patterns.collect::<Checked<Vec<Pattern>>>()?;
        let mut sweeps = Vec::new();
        for sweep in &file.sweeps {
            sweeps.push(self.sweep(sweep, &file.drivers)?);
        }
        if models.is_empty() || patterns.is_empty() {
            return self.fail(0..0, "a workload needs at least one model and one pattern");
        }
        let scale = match &file.scale {
            Some(scale) if !is_positive(*scale.get_ref()) => {
                return self.fail(scale.span(), "the scale is a number above 0");
            }
            Some(scale) => *scale.get_ref(),
            None => 1.0,
        };
        Ok(Workload {
            title: file.title.unwrap_or_else(|| file.name.clone()),
            name: file.name,
            about: file.about.unwrap_or_default(),
            seed: file.seed,
            scale,
            repeat,
            warmup: file.warmup.unwrap_or(2),
            ru_profile: file.ru_profile,
            per: file.per.unwrap_or_else(|| "day".to_owned()),
            drivers: file.drivers,
            entities: self.entities,
            samples: self.samples,
            models,
            patterns,
            sweeps,
        })
    }

    fn positive(&self, number: &Option<Spanned<usize>>, default: usize) -> Checked<usize> {
        match number {
            Some(number) if *number.get_ref() == 0 => {
                self.fail(number.span(), "it must be at least 1")
            }
            Some(number) => Ok(*number.get_ref()),
            None => Ok(default),
        }
    }

    fn unique<'n>(
        &self,
        names: impl Iterator<Item = &'n Spanned<String>>,
        what: &str,
    ) -> Checked<()> {
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            if !seen.insert(name.get_ref()) {
                return self.fail(
                    name.span(),
                    format!("there are two {what}s {name:?}", name = name.get_ref()),
                );
            }
        }
        Ok(())
    }

    fn entity_named(&self, name: &Spanned<String>) -> Checked<usize> {
        self.at(name.span(), self.find_entity(name.get_ref()))
    }

    fn find_entity(&self, name: &str) -> Result<usize, String> {
        self.entities.iter().position(|entity| entity.name == name).ok_or_else(|| {
            let known = self.entities.iter().map(|entity| &entity.name[..]).collect::<Vec<_>>();
            format!("there is no entity `{name}` above; there are {}", known.join(", "))
        })
    }

    fn entity(&self, entity: &file::Entity) -> Checked<Entity> {
        let name = entity.name.get_ref().clone();
        if self.entities.iter().any(|known| known.name == name) {
            return self.fail(entity.name.span(), format!("there are two entities `{name}`"));
        }
        let parent = entity.per.as_ref().map(|per| self.entity_named(per)).transpose()?;
        self.at(entity.count.span(), entity.count.get_ref().check())?;
        let reference = |(name, reference): (&String, &Spanned<file::Reference>)| {
            let file::Reference { entity, skew } = reference.get_ref();
            let entity = self.at(reference.span(), self.find_entity(entity))?;
            match (0.0..1.0).contains(skew) {
                true => Ok(Reference { name: name.clone(), entity, skew: *skew }),
                false => self.fail(reference.span(), "skew is from 0 up to, without, 1"),
            }
        };
        let refs = entity.refs.iter().map(reference).collect::<Checked<Vec<Reference>>>()?;
        let field = |(name, generator): (&String, &Spanned<file::Generator>)| {
            let made = self.at(generator.span(), self::generator(generator.get_ref()));
            Ok((name.clone(), made?))
        };
        let fields = entity.fields.iter().map(field).collect::<Checked<Vec<_>>>()?;
        Ok(Entity { name, parent, count: *entity.count.get_ref(), refs, fields })
    }

    /// Computed fields see their own instance, under the name of its entity.
    fn computed_fields(&self, files: &[file::Entity]) -> Checked<()> {
        for (at, (entity, file)) in self.entities.iter().zip(files).enumerate() {
            let names = Names::from([(entity.name.clone(), Kind::Instance(at))]);
            for (name, generator) in &entity.fields {
                if let Generator::Computed(template) = generator {
                    let span = file.fields[name].span();
                    self.at(span, self.check_template(template, &names))?;
                }
            }
        }
        Ok(())
    }

    fn sample(&self, sample: &file::Sample) -> Checked<Sample> {
        let entity = self.entity_named(&sample.entity)?;
        let of = match &sample.of {
            None => None,
            Some(of) => {
                let known = self.samples.iter().position(|known| known.name == *of.get_ref());
                let is_parent =
                    |at: &usize| Some(self.samples[*at].entity) == self.entities[entity].parent;
                match known.filter(is_parent) {
                    Some(at) => Some(at),
                    None => {
                        let message = format!(
                            "`of` names a sample above whose entity `{}` belongs to",
                            sample.entity.get_ref()
                        );
                        return self.fail(of.span(), message);
                    }
                }
            }
        };
        let count = |(name, count): (&String, &Spanned<u64>)| {
            let child = self.at(count.span(), self.find_entity(name))?;
            match self.entities[child].parent == Some(entity) {
                true => Ok((child, *count.get_ref())),
                false => self.fail(
                    count.span(),
                    format!("`{name}` is not counted per `{}`", sample.entity.get_ref()),
                ),
            }
        };
        let counts = sample.counts.iter().map(count).collect::<Checked<Vec<_>>>()?;
        let name = sample.name.get_ref().clone();
        let is_taken = self.samples.iter().any(|known| known.name == name);
        if is_taken || self.find_entity(&name).is_ok() {
            return self.fail(sample.name.span(), format!("the name `{name}` is taken"));
        }
        Ok(Sample { name, entity, of, counts })
    }

    fn model(&self, model: &file::Model) -> Checked<Model> {
        self.unique(model.containers.iter().map(|container| &container.name), "container")?;
        let containers = model.containers.iter().map(|container| self.container(container));
        let containers = containers.collect::<Checked<Vec<Container>>>()?;
        let place = Place { containers: &containers };
        let mapping = |mapping: &file::Mapping| {
            let entity = self.entity_named(&mapping.entity)?;
            let container =
                self.at(mapping.container.span(), place.find(mapping.container.get_ref()))?;
            let names = Names::from([(self.entities[entity].name.clone(), Kind::Instance(entity))]);
            let item = self.template(&mapping.item, &names)?;
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

    fn container(&self, container: &file::Container) -> Checked<Container> {
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
        Ok(Container {
            name: container.name.get_ref().clone(),
            partition_key,
            throughput: container.throughput,
            indexing: container.indexing.clone(),
            unique_keys: container.unique_keys.clone(),
            procedures: scripts(&container.procedures)?,
            triggers: scripts(&container.triggers)?,
        })
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

    fn pipeline(&self, pipeline: &file::Pipeline, place: &Place<'_>) -> Checked<Pipeline> {
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

    fn check(&self, check: &file::Check, place: &Place<'_>) -> Checked<Check> {
        let side = |side: &file::Side| {
            let container = self.at(side.container.span(), place.find(side.container.get_ref()))?;
            Ok(Side { container, sql: self.sql(&side.sql)?, is_tally: side.tally })
        };
        Ok(Check {
            name: check.name.clone(),
            copies: side(&check.copies)?,
            sources: side(&check.sources)?,
            is_complete: check.complete,
            missing: check.missing.clone(),
        })
    }

    fn sql(&self, text: &Spanned<String>) -> Checked<String> {
        let parsed = sql::parse(text.get_ref()).map(|_| text.get_ref().clone());
        self.at(text.span(), parsed.map_err(|error| format!("the query is wrong: {error}")))
    }

    fn steps(
        &self,
        steps: &[Spanned<file::Step>],
        place: &Place<'_>,
        names: &mut Names,
    ) -> Checked<Vec<Step>> {
        steps.iter().map(|step| self.step(step.get_ref(), step.span(), place, names)).collect()
    }

    fn step(
        &self,
        step: &file::Step,
        span: Range<usize>,
        place: &Place<'_>,
        names: &mut Names,
    ) -> Checked<Step> {
        let words = [
            ("read", &step.read),
            ("query", &step.query),
            ("create", &step.create),
            ("upsert", &step.upsert),
            ("replace", &step.replace),
            ("delete", &step.delete),
            ("execute", &step.execute),
        ];
        let given: Vec<_> =
            words.iter().filter_map(|(word, text)| Some((*word, text.as_ref()?))).collect();
        let [(word, target)] = given[..] else {
            return self.fail(
                span,
                "a step is one of read, query, create, upsert, replace, delete, execute",
            );
        };
        let container = self.at(target.span(), place.find(target.get_ref()))?;
        let mut inner = names.clone();
        let each = match &step.each {
            None => None,
            Some(text) => {
                let each = self.at(text.span(), Each::parse(text.get_ref(), usize::MAX))?;
                let kind = self.at(text.span(), self.check_each(&each, names))?;
                inner.insert(each.name.clone(), kind);
                Some(each)
            }
        };
        let when = self.condition(&step.when, &inner)?;
        let parts = Parts { step, span, names: &inner, container: &place.containers[container] };
        let action = self.action(word, &parts)?;
        let bind = step.bind.as_ref().map(|bind| bind.get_ref().clone());
        if let Some(bind) = &bind {
            names.insert(bind.clone(), Kind::Any);
        }
        Ok(Step { container, action, each, when, bind })
    }

    fn action(&self, word: &str, parts: &Parts<'_>) -> Checked<Action> {
        let Parts { step, names, .. } = parts;
        let need = |value: &Option<file::Json>, name: &str| match value {
            Some(value) => self.template(value, names),
            None => self.fail(parts.span.clone(), format!("a {word} step needs `{name}`")),
        };
        let write = |kind| {
            Ok(Action::Write {
                kind,
                item: need(&step.item, "item")?,
                before: self.trigger(&step.pre_trigger, parts.container, true)?,
                after: self.trigger(&step.post_trigger, parts.container, false)?,
            })
        };
        let used: &[&str] = match word {
            "read" | "delete" => &["id", "key"],
            "query" => &["sql", "key", "parameters", "page"],
            "execute" => &["procedure", "key", "arguments"],
            _ => &["item", "pre_trigger", "post_trigger"],
        };
        self.refuse_others(word, used, parts)?;
        match word {
            "read" => Ok(Action::Read { id: need(&step.id, "id")?, key: need(&step.key, "key")? }),
            "delete" => {
                Ok(Action::Delete { id: need(&step.id, "id")?, key: need(&step.key, "key")? })
            }
            "query" => self.query(parts),
            "execute" => self.execute(parts, need(&step.key, "key")?),
            "create" => write(WriteKind::Create),
            "upsert" => write(WriteKind::Upsert),
            _ => write(WriteKind::Replace),
        }
    }

    fn refuse_others(&self, word: &str, used: &[&str], parts: &Parts<'_>) -> Checked<()> {
        let step = parts.step;
        let given = [
            ("id", step.id.is_some()),
            ("key", step.key.is_some()),
            ("sql", step.sql.is_some()),
            ("parameters", !step.parameters.is_empty()),
            ("page", step.page.is_some()),
            ("item", step.item.is_some()),
            ("procedure", step.procedure.is_some()),
            ("arguments", step.arguments.is_some()),
            ("pre_trigger", step.pre_trigger.is_some()),
            ("post_trigger", step.post_trigger.is_some()),
        ];
        match given.iter().find(|(name, is_given)| *is_given && !used.contains(name)) {
            Some((name, _)) => {
                self.fail(parts.span.clone(), format!("a {word} step has no `{name}`"))
            }
            None => Ok(()),
        }
    }

    fn query(&self, parts: &Parts<'_>) -> Checked<Action> {
        let Parts { step, names, .. } = parts;
        let Some(text) = &step.sql else {
            return self.fail(parts.span.clone(), "a query step needs `sql`");
        };
        let parameter = |(name, value): (&String, &file::Json)| match name.starts_with('@') {
            true => Ok((name.clone(), self.template(value, names)?)),
            false => self.fail(value.span(), format!("a parameter is called `@{name}`")),
        };
        Ok(Action::Query {
            sql: self.sql(text)?,
            key: step.key.as_ref().map(|key| self.template(key, names)).transpose()?,
            parameters: step.parameters.iter().map(parameter).collect::<Checked<_>>()?,
            page: step.page.map_or(100, i64::from),
        })
    }

    fn execute(&self, parts: &Parts<'_>, key: Template) -> Checked<Action> {
        let Some(name) = &parts.step.procedure else {
            return self.fail(parts.span.clone(), "an execute step needs `procedure`");
        };
        let procedure = name.get_ref().clone();
        if !parts.container.procedures.iter().any(|script| script.name == procedure) {
            let container = &parts.container.name;
            let message = format!("container `{container}` has no procedure `{procedure}`");
            return self.fail(name.span(), message);
        }
        let arguments = match &parts.step.arguments {
            None => Template::Array(Vec::new()),
            Some(arguments) if arguments.get_ref().is_array() => {
                self.template(arguments, parts.names)?
            }
            Some(arguments) => return self.fail(arguments.span(), "`arguments` is an array"),
        };
        Ok(Action::Execute { procedure, key, arguments })
    }

    fn trigger(
        &self,
        name: &Option<Spanned<String>>,
        container: &Container,
        is_before: bool,
    ) -> Checked<Option<String>> {
        let Some(name) = name else { return Ok(None) };
        let is_it =
            |script: &&Script| script.name == *name.get_ref() && script.is_before == is_before;
        match container.triggers.iter().find(is_it) {
            Some(script) => Ok(Some(script.name.clone())),
            None => {
                let (word, name_text) = (if is_before { "pre" } else { "post" }, name.get_ref());
                let message =
                    format!("container `{}` has no {word}-trigger `{name_text}`", container.name);
                self.fail(name.span(), message)
            }
        }
    }

    fn condition(
        &self,
        text: &Option<Spanned<String>>,
        names: &Names,
    ) -> Checked<Option<Expression>> {
        let Some(text) = text else { return Ok(None) };
        let expression = self.at(text.span(), Expression::parse(text.get_ref()))?;
        self.at(text.span(), self.check_expression(&expression, names))?;
        Ok(Some(expression))
    }

    fn template(&self, value: &file::Json, names: &Names) -> Checked<Template> {
        let template = self.at(value.span(), Template::parse(value.get_ref()))?;
        self.at(value.span(), self.check_template(&template, names))?;
        Ok(template)
    }

    fn check_template(&self, template: &Template, names: &Names) -> Result<(), String> {
        template.visit(&mut Vec::new(), &mut |around, expression| {
            let mut names = names.clone();
            for each in around {
                let kind = self.check_each(each, &names)?;
                names.insert(each.name.clone(), kind);
            }
            self.check_expression(expression, &names)
        })
    }

    fn check_expression(&self, expression: &Expression, names: &Names) -> Result<(), String> {
        expression.paths().into_iter().try_for_each(|path| self.kind_of(path, names).map(drop))
    }

    /// What the elements of a loop are.
    fn check_each(&self, each: &Each, names: &Names) -> Result<Kind, String> {
        let path = &each.path;
        let Some((PathStep::Name(last), front)) = path.steps.split_last() else {
            return self.kind_of(path, names).map(|_| Kind::Any);
        };
        let owner = Path { root: path.root.clone(), steps: front.to_vec() };
        match self.kind_of(&owner, names)? {
            Kind::Any => Ok(Kind::Any),
            Kind::Instance(entity) => match self.related(entity, last) {
                Some(Related::Children(child)) => Ok(Kind::Instance(child)),
                Some(Related::One(_) | Related::Field) | None => {
                    let name = &self.entities[entity].name;
                    Err(format!("`{last}` is not an entity counted per `{name}`"))
                }
            },
        }
    }

    /// What a path leads to; an error if its names mean nothing.
    fn kind_of(&self, path: &Path, names: &Names) -> Result<Kind, String> {
        let known = || names.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let root = names.get(&path.root);
        let unknown = || format!("`{}` means nothing here; there are {}", path.root, known());
        let mut kind = *root.ok_or_else(unknown)?;
        for step in &path.steps {
            let Kind::Instance(entity) = kind else { return Ok(Kind::Any) };
            let owner = &self.entities[entity].name;
            let PathStep::Name(name) = step else {
                return Err(format!("`{owner}` is one thing and has no [index]"));
            };
            kind = match self.related(entity, name) {
                Some(Related::One(other)) => Kind::Instance(other),
                Some(Related::Children(_) | Related::Field) => Kind::Any,
                None => return Err(format!("`{owner}` has no field `{name}`")),
            };
        }
        Ok(kind)
    }

    fn related(&self, entity: usize, name: &str) -> Option<Related> {
        related(&self.entities, entity, name)
    }

    fn sweep(&mut self, sweep: &file::Sweep, drivers: &BTreeMap<String, f64>) -> Checked<Sweep> {
        let id = sweep.id.get_ref().clone();
        let over = match (&sweep.driver, &sweep.sample) {
            (Some(driver), None) => self.over_driver(sweep, driver, drivers)?,
            (None, Some(sample)) => self.over_count(sweep, sample)?,
            (Some(_), Some(_)) | (None, None) => {
                return self.fail(sweep.id.span(), "a sweep has a `driver`, or a `sample`");
            }
        };
        let title = sweep.title.clone().unwrap_or_else(|| id.clone());
        Ok(Sweep { id, title, is_log: sweep.log, over })
    }

    fn over_driver(
        &self,
        sweep: &file::Sweep,
        driver: &Spanned<String>,
        drivers: &BTreeMap<String, f64>,
    ) -> Checked<Over> {
        let name = driver.get_ref().clone();
        if !drivers.contains_key(&name) {
            return self.fail(driver.span(), format!("there is no driver `{name}`"));
        }
        match (sweep.from, sweep.to) {
            (Some(from), Some(to)) if from < to && (!sweep.log || from > 0.0) => {
                Ok(Over::Driver { name, from, to })
            }
            _ => self.fail(driver.span(), "it needs `from` below `to`, above 0 if `log`"),
        }
    }

    /// Adds a sample for each point; it belongs to no other sample, so that those keep their counts.
    fn over_count(&mut self, sweep: &file::Sweep, sample: &Spanned<String>) -> Checked<Over> {
        let found = self.samples.iter().position(|known| known.name == *sample.get_ref());
        let Some(at) = found else {
            return self.fail(sample.span(), format!("there is no sample `{}`", sample.get_ref()));
        };
        let (Some(child), Some(points)) = (&sweep.child, &sweep.points) else {
            return self.fail(sample.span(), "a sweep over a sample needs `child` and `points`");
        };
        let child_at = self.entity_named(child)?;
        let base = self.samples[at].clone();
        if self.entities[child_at].parent != Some(base.entity) {
            return self.fail(child.span(), format!("`{}` is not counted per it", child.get_ref()));
        }
        let is_rising = points.get_ref().is_sorted_by(|a, b| a < b);
        if points.get_ref().len() < 2 || !is_rising {
            return self.fail(points.span(), "`points` are at least two rising numbers");
        }
        let mut samples = Vec::new();
        for &count in points.get_ref() {
            let mut counts = base.counts.clone();
            counts.retain(|(entity, _)| *entity != child_at);
            counts.push((child_at, count));
            let name = format!("{}@{}={count}", base.name, child.get_ref());
            samples.push((count, self.samples.len()));
            self.samples.push(Sample { name, entity: base.entity, of: None, counts });
        }
        Ok(Over::Count { sample: at, points: samples })
    }
}

/// The containers a step can name.
struct Place<'a> {
    containers: &'a [Container],
}

impl Place<'_> {
    fn find(&self, name: &str) -> Result<usize, String> {
        self.containers.iter().position(|container| container.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.containers.iter().map(|known| &known.name[..]).collect();
            format!("there is no container `{name}` in this model; there are {}", known.join(", "))
        })
    }
}

/// A step under check.
struct Parts<'a> {
    step: &'a file::Step,
    span: Range<usize>,
    names: &'a Names,
    container: &'a Container,
}

/// What a name means on an instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Related {
    /// Its parent, or an instance it refers to.
    One(usize),
    /// The instances that belong to it or refer to it.
    Children(usize),
    /// A value of its own.
    Field,
}

/// What a name means on an instance of an entity.
pub(crate) fn related(entities: &[Entity], entity: usize, name: &str) -> Option<Related> {
    let of = &entities[entity];
    if let Some(parent) = of.parent
        && entities[parent].name == name
    {
        return Some(Related::One(parent));
    }
    if let Some(reference) = of.refs.iter().find(|reference| reference.name == name) {
        return Some(Related::One(reference.entity));
    }
    if of.fields.iter().any(|(field, _)| field == name) {
        return Some(Related::Field);
    }
    let is_child = |other: &Entity| other.parent == Some(entity) && other.name == name;
    let refers = |other: &Entity| {
        let other_name = &other.name;
        other.refs.iter().any(|r| r.entity == entity && format!("{other_name}_{}", r.name) == name)
    };
    entities.iter().position(|other| is_child(other) || refers(other)).map(Related::Children)
}

fn generator(raw: &file::Generator) -> Result<Generator, String> {
    if let Some(value) = &raw.value {
        return match raw.kind {
            None => Ok(Generator::Computed(Template::parse(value)?)),
            Some(_) => Err("a field has a `kind` or a `value`".to_owned()),
        };
    }
    let length = || {
        let length = raw.length.ok_or("it needs a `length`")?;
        length.check().map(|()| length)
    };
    let bounds = || match (raw.min, raw.max) {
        (Some(min), Some(max)) if min <= max => Ok((min, max)),
        _ => Err("it needs `min` and, not below it, `max`".to_owned()),
    };
    let day = |text: &Option<String>, name: &str| {
        let day = text.as_deref().and_then(parse_day);
        day.ok_or_else(|| format!("it needs `{name}`, a day like 2019-06-30"))
    };
    match raw.kind.as_deref() {
        Some("guid") => Ok(Generator::Guid),
        Some("sequence") => Ok(Generator::Sequence),
        Some("word") => Ok(Generator::Word { length: length()? }),
        Some("text") => Ok(Generator::Text { length: length()? }),
        Some("integer") => {
            bounds().map(|(min, max)| Generator::Integer { min: min as i64, max: max as i64 })
        }
        Some("number") => bounds().map(|(min, max)| Generator::Number {
            min,
            max,
            decimals: raw.decimals.unwrap_or(2),
        }),
        Some("choice") => match &raw.of {
            Some(of) if !of.is_empty() => Ok(Generator::Choice(of.clone())),
            Some(_) | None => Err("it needs values in `of`".to_owned()),
        },
        Some("date") => {
            let (from_ms, to_ms) = (day(&raw.from, "from")?, day(&raw.to, "to")?);
            match from_ms < to_ms {
                true => Ok(Generator::Date { from_ms, to_ms }),
                false => Err("`from` is not before `to`".to_owned()),
            }
        }
        Some(other) => Err(format!(
            "there is no kind `{other}`; there are guid, sequence, word, text, integer, number, \
             choice, date"
        )),
        None => Err("a field has a `kind` or a `value`".to_owned()),
    }
}

#[cfg(test)]
#[path = "read/tests.rs"]
mod tests;
