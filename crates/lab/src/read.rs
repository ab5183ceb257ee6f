//! From a workload file to a checked workload.
//!
//! Checks go from top to bottom: entities, samples, models, patterns, sweeps. The first mistake is
//! reported with its line (W2); what compiles has no names left to look up (W1).

mod models;
mod patterns;
mod policies;
mod queries;
mod steps;
mod sweeps;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path as FilePath;

use toml::Spanned;

use crate::expression::{Each, Expression, Path, Step as PathStep, Template};
use crate::file;
use crate::generate::{Generator, parse_day};
use crate::workload::{Entity, Model, Pattern, Reference, Sample, Workload};

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

/// Price lists of servers.
const RU_PROFILES: [&str; 2] = ["2019", "modern"];

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
            let checked = self.sweep(sweep, &file.drivers)?;
            self.weights_along(sweep, &checked, &patterns, &file.drivers)?;
            sweeps.push(checked);
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
            ru_profile: self.ru_profile(&file.ru_profile)?,
            per: file.per.unwrap_or_else(|| "day".to_owned()),
            drivers: file.drivers,
            entities: self.entities,
            samples: self.samples,
            models,
            patterns,
            sweeps,
        })
    }

    fn ru_profile(&self, name: &Option<Spanned<String>>) -> Checked<Option<String>> {
        match name {
            Some(name) if !RU_PROFILES.contains(&&name.get_ref()[..]) => self.fail(
                name.span(),
                format!("there is no price list `{}`; there are 2019, modern", name.get_ref()),
            ),
            Some(name) => Ok(Some(name.get_ref().clone())),
            None => Ok(None),
        }
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
