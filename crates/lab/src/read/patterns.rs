//! Patterns, with the figures they are compared with.

use std::collections::BTreeMap;

use serde_json::Value;
use toml::Spanned;

use super::models::Place;
use super::{Checked, Kind, Names, Reader, is_positive};
use crate::expression::Expression;
use crate::file;
use crate::mix;
use crate::workload::{Model, Over, Pattern, Published, Step, Sweep};

/// What holds for patterns that say nothing else.
pub(super) struct Usual {
    pub(super) repeat: usize,
    /// The share of a published time that the p50 may take.
    pub(super) bar: Option<f64>,
}

impl Reader<'_> {
    pub(super) fn pattern(
        &self,
        pattern: &file::Pattern,
        models: &[Model],
        usual: &Usual,
        drivers: &BTreeMap<String, f64>,
    ) -> Checked<Pattern> {
        let mut names = Names::new();
        for sample in &self.samples {
            names.insert(sample.name.clone(), Kind::Instance(sample.entity));
        }
        let entities = |from: &BTreeMap<String, Spanned<String>>| {
            let one = |(name, entity): (&String, &Spanned<String>)| {
                Ok((name.clone(), self.entity_named(entity)?))
            };
            from.iter().map(one).collect::<Checked<Vec<(String, usize)>>>()
        };
        let (picks, makes) = (entities(&pattern.pick)?, entities(&pattern.make)?);
        for (name, entity) in picks.iter().chain(&makes) {
            names.insert(name.clone(), Kind::Instance(*entity));
        }
        self.check_model_names(pattern, models)?;
        let steps = |model: &Model| self.pattern_steps(pattern, model, &names);
        let published = |model: &Model| {
            let figures = pattern.published.get(&model.id);
            figures.map(|figures| self.published(figures, usual)).transpose()
        };
        Ok(Pattern {
            id: pattern.id.get_ref().clone(),
            title: pattern.title.clone().unwrap_or_default(),
            weight: self.weight(&pattern.weight, drivers)?,
            repeat: self.positive(&pattern.repeat, usual.repeat)?,
            picks,
            makes,
            models: models.iter().map(steps).collect::<Checked<_>>()?,
            published: models.iter().map(published).collect::<Checked<_>>()?,
        })
    }

    fn published(&self, figures: &Spanned<file::Published>, usual: &Usual) -> Checked<Published> {
        let (span, figures) = (figures.span(), figures.get_ref().clone());
        let numbers = [figures.ru, figures.ms, figures.expected, figures.bar];
        if numbers.into_iter().flatten().any(|number| !is_positive(number)) {
            return self.fail(span, "figures are numbers above 0");
        }
        match (figures.ru, figures.ms) {
            (None, _) if figures.because.is_some() => {
                return self.fail(span, "`because` says why `ru` is not met: there is none");
            }
            (_, None) if figures.bar.is_some() => {
                return self.fail(span, "`bar` is a share of `ms`: there is none");
            }
            (_, _) => {}
        }
        let share = figures.bar.or(usual.bar);
        Ok(Published {
            ru: figures.ru,
            ms: figures.ms,
            expected_ru: figures.expected,
            because: figures.because,
            bar_ms: figures.ms.zip(share).map(|(ms, share)| ms * share),
        })
    }

    /// The share of published times that is good enough.
    pub(super) fn bar(&self, bar: &Option<Spanned<f64>>) -> Checked<Option<f64>> {
        match bar {
            Some(bar) if !is_positive(*bar.get_ref()) => {
                self.fail(bar.span(), "the bar is a number above 0")
            }
            Some(bar) => Ok(Some(*bar.get_ref())),
            None => Ok(None),
        }
    }

    fn check_model_names(&self, pattern: &file::Pattern, models: &[Model]) -> Checked<()> {
        let is_known = |id: &String| models.iter().any(|model| model.id == *id);
        let span = |id: &String| match (pattern.same.get(id), pattern.published.get(id)) {
            (Some(same), _) => same.span(),
            (None, Some(published)) => published.span(),
            (None, None) => pattern.id.span(),
        };
        let known = || models.iter().map(|model| &model.id[..]).collect::<Vec<_>>().join(", ");
        for (id, other) in &pattern.same {
            if !is_known(other.get_ref()) {
                let message =
                    format!("there is no model `{}`; there are {}", other.get_ref(), known());
                return self.fail(other.span(), message);
            }
            if pattern.models.contains_key(id) {
                return self.fail(other.span(), format!("model `{id}` has steps of its own"));
            }
        }
        let ids = pattern.models.keys().chain(pattern.same.keys()).chain(pattern.published.keys());
        match ids.into_iter().find(|id| !is_known(id)) {
            Some(id) => {
                self.fail(span(id), format!("there is no model `{id}`; there are {}", known()))
            }
            None => Ok(()),
        }
    }

    fn pattern_steps(
        &self,
        pattern: &file::Pattern,
        model: &Model,
        names: &Names,
    ) -> Checked<Vec<Step>> {
        let same = pattern.same.get(&model.id);
        let written = same.map_or(&model.id, |same| same.get_ref());
        let id = pattern.id.get_ref();
        match pattern.models.get(written) {
            Some(steps) if !steps.is_empty() => {
                let place = Place { containers: &model.containers };
                self.steps(steps, &place, &mut names.clone())
            }
            Some(_) | None => {
                let span = same.map_or(pattern.id.span(), Spanned::span);
                self.fail(span, format!("pattern {id} has no steps for model {}", model.id))
            }
        }
    }

    fn weight(
        &self,
        weight: &Option<Spanned<Value>>,
        drivers: &BTreeMap<String, f64>,
    ) -> Checked<Expression> {
        let Some(weight) = weight else { return Ok(Expression::Literal(1.into())) };
        let names = drivers.keys().map(|name| (name.clone(), Kind::Any)).collect();
        let parsed = match weight.get_ref() {
            Value::String(text) => Expression::parse(text),
            value @ Value::Number(_) => Ok(Expression::Literal(value.clone())),
            other @ (Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
                Err(format!("a weight is a number or an expression, not {other}"))
            }
        };
        let parsed = self.at(weight.span(), parsed)?;
        self.at(weight.span(), self.check_expression(&parsed, &names))?;
        self.at(weight.span(), weight_at(&parsed, drivers))?;
        Ok(parsed)
    }

    /// Weights are weights all along a sweep.
    pub(super) fn weights_along(
        &self,
        file: &file::Sweep,
        sweep: &Sweep,
        patterns: &[Pattern],
        drivers: &BTreeMap<String, f64>,
    ) -> Checked<()> {
        let Over::Driver { name, from, to } = &sweep.over else { return Ok(()) };
        for (pattern, end) in patterns.iter().flat_map(|pattern| [(pattern, from), (pattern, to)]) {
            let mut there = drivers.clone();
            there.insert(name.clone(), *end);
            let named = |message| format!("at {name} = {end}, {}: {message}", pattern.id);
            let weight = weight_at(&pattern.weight, &there).map_err(named);
            self.at(file.id.span(), weight)?;
        }
        Ok(())
    }
}

/// How often something happens is no negative number.
fn weight_at(weight: &Expression, drivers: &BTreeMap<String, f64>) -> Result<(), String> {
    match mix::number_of(weight, drivers)? {
        number if number >= 0.0 && number.is_finite() => Ok(()),
        number => Err(format!("a weight is a number from 0, not {number}")),
    }
}
