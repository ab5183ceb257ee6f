//! Steps of patterns and pipelines: one request each, or one for each row of an earlier one.

use std::ops::Range;

use toml::Spanned;

use super::models::Place;
use super::{Checked, Kind, Names, Reader};
use crate::expression::{Each, Template};
use crate::file;
use crate::workload::{Action, Container, Script, Step, WriteKind};

/// A step under check.
struct Parts<'a> {
    step: &'a file::Step,
    span: Range<usize>,
    names: &'a Names,
    container: &'a Container,
}

impl Reader<'_> {
    pub(super) fn steps(
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
                item: self.written(word, parts)?,
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

    /// The item of a step that writes.
    fn written(&self, word: &str, parts: &Parts<'_>) -> Checked<Template> {
        match &parts.step.item {
            Some(item) => self.item(item, parts.names, parts.container),
            None => self.fail(parts.span.clone(), format!("a {word} step needs `item`")),
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
        let parameters = step.parameters.iter().map(parameter).collect::<Checked<_>>()?;
        Ok(Action::Query {
            sql: self.sql(text, &step.parameters)?,
            key: step.key.as_ref().map(|key| self.template(key, names)).transpose()?,
            parameters,
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
}
