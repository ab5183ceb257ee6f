//! Binding vector and full-text functions, and ORDER BY RANK.

use item::Value;
use sql::{Code, Collection, OrderItem, Query, Scalar, ScalarKind, SourceKind, Span};
use text::Language;

use super::Binder;
use super::scalars::{check_arguments, root_name};
use crate::Error;
use crate::expr::Expr;
use crate::full_text::{Prose, Statistics, Terms, TextMatch, TextScore, flat, phrases};
use crate::functions::{self, Function};
use crate::ranking::{Component, Ranking, Score};
use crate::vectors::{Distance, Metric};

/// The smallest and the largest value of an option that multiplies the length of a search list.
const MULTIPLIERS: std::ops::RangeInclusive<f64> = 1.0..=100.0;

/// The element types a query may name.
const DATA_TYPES: [&str; 4] = ["float32", "float16", "int8", "uint8"];

impl Binder<'_> {
    /// A call of a function that becomes an expression of its own, outside ORDER BY RANK. The
    /// number of arguments is right.
    pub(super) fn search_call(
        &mut self,
        function: &Function,
        arguments: &[Scalar],
        span: Span,
    ) -> Result<Expr, Error> {
        match function.name {
            "VectorDistance" => {
                let distance = self.distance(arguments)?;
                Ok(distance.map_or(Expr::Constant(Value::Undefined), |distance| {
                    Expr::Distance(Box::new(distance))
                }))
            }
            "FullTextScore" | "RRF" => {
                let name = function.name;
                let message =
                    format!("The {name} function is only allowed in the ORDER BY RANK clause.");
                Err(sql::Error::at(Code::ScoreOutsideRank, span, message).into())
            }
            "_FullTextWordCount" => {
                let (text, language) = self.prose(&arguments[0])?;
                Ok(Expr::Prose(Box::new(Prose::Words { text, language })))
            }
            "_FullTextScore" => self.known_score(arguments, span),
            name => self.text_match(arguments, name != "FullTextContainsAny"),
        }
    }

    /// `None` if an argument is of the wrong type, so that the result is undefined.
    fn distance(&mut self, arguments: &[Scalar]) -> Result<Option<Distance>, Error> {
        let operands = [self.scalar(&arguments[0])?, self.scalar(&arguments[1])?];
        let is_exact = arguments.get(2).map(|argument| self.scalar(argument)).transpose()?;
        let options = match arguments.get(3) {
            Some(options) => Some(self.constant(options)?),
            None => None,
        };
        let metric = match &options {
            Some(options) => check_options(options, arguments[3].span)?,
            None => None,
        };
        let is_bool = |expr: Expr| expr.as_constant().is_none_or(|value| value.as_bool().is_some());
        let is_object = |value: Value| value.as_object().is_some();
        if !is_exact.is_none_or(is_bool) || !options.is_none_or(is_object) {
            return Ok(None);
        }
        let metric = metric.or_else(|| self.default_metric(&operands)).unwrap_or_default();
        Ok(Some(Distance { operands, metric }))
    }

    fn default_metric(&self, operands: &[Expr; 2]) -> Option<Metric> {
        let paths = self.paths_in_scope();
        operands.iter().find_map(|operand| self.schema.metric(&operand.path(&paths)?))
    }

    fn text_match(&mut self, arguments: &[Scalar], wants_all: bool) -> Result<Expr, Error> {
        let (text, language) = self.prose(&arguments[0])?;
        let terms = self.scalars(&arguments[1..])?;
        let constants: Option<Vec<_>> = terms.iter().map(|t| t.as_constant().cloned()).collect();
        let terms = match constants {
            None => Terms::Dynamic(terms),
            Some(values) => match phrases(language, &values) {
                Some(phrases) => Terms::Constant(phrases),
                None => return Ok(Expr::Constant(Value::Undefined)),
            },
        };
        Ok(Expr::TextMatch(Box::new(TextMatch { text, language, terms, wants_all })))
    }

    /// The first argument of a full-text function, which is a path, and its language.
    fn prose(&mut self, argument: &Scalar) -> Result<(Expr, Language), Error> {
        if root_name(argument).is_none() {
            let message = "The first argument of a full-text function must be a property path.";
            return Err(sql::Error::at(Code::Other, argument.span, message).into());
        }
        let text = self.scalar(argument)?;
        let path = text.path(&self.paths_in_scope());
        let language = path.map_or(Language::default(), |path| self.schema.language(&path));
        Ok((text, language))
    }

    /// The value of an argument that may not depend on the row.
    fn constant(&mut self, argument: &Scalar) -> Result<Value, Error> {
        self.scalar(argument)?.as_constant().cloned().ok_or_else(|| {
            let message = "An argument that must be constant depends on the item.";
            sql::Error::at(Code::Other, argument.span, message).into()
        })
    }

    /// `_FullTextScore(text, [term, …], texts, words, [texts with the term, …])`
    fn known_score(&mut self, arguments: &[Scalar], span: Span) -> Result<Expr, Error> {
        let score = self.text_score(&arguments[..2], span)?;
        let mut known = Vec::with_capacity(3);
        for argument in &arguments[2..] {
            known.push(self.constant(argument)?);
        }
        let statistics = match &known[..] {
            [rows, words, hits] => Statistics::of(rows, words, hits),
            _ => None,
        };
        match statistics.filter(|statistics| statistics.is_of(&score.terms)) {
            Some(statistics) => Ok(Expr::Prose(Box::new(Prose::Score { score, statistics }))),
            None => Ok(Expr::Constant(Value::Undefined)),
        }
    }

    /// `ORDER BY _FullTextScore(…)`, as a client has it that ranks rows itself.
    pub(super) fn by_known_score(&mut self, items: &[OrderItem]) -> Result<Option<Ranking>, Error> {
        let [item] = items else { return Ok(None) };
        if !is_call(&item.expression, "_FullTextScore") {
            return Ok(None);
        }
        let key = self.scalar(&item.expression)?;
        Ok(Some(Ranking::Values(vec![(key, super::direction(item))])))
    }

    /// `ORDER BY VectorDistance(…)`: nearest first.
    pub(super) fn nearest(&mut self, items: &[OrderItem]) -> Result<Option<Ranking>, Error> {
        let Some(item) = items.iter().find(|item| is_call(&item.expression, "VectorDistance"))
        else {
            return Ok(None);
        };
        if items.len() > 1 || item.direction.is_some() {
            let message = "'ORDER BY VectorDistance' takes neither further keys nor a direction.";
            return Err(sql::Error::at(Code::Other, item.expression.span, message).into());
        }
        let score = self.score(&item.expression)?;
        Ok(Some(Ranking::Scores(vec![Component { score, weight: 1.0 }])))
    }

    /// The functions of `ORDER BY RANK`.
    pub(super) fn rank(&mut self, query: &Query, items: &[OrderItem]) -> Result<Ranking, Error> {
        items.iter().try_for_each(|item| check_scoring(&item.expression, true))?;
        check_rank_sources(query)?;
        let [OrderItem { expression, direction: None }] = items else {
            let message = "'ORDER BY RANK' takes one scoring function without a direction.";
            return Err(sql::Error::at(Code::Other, items[0].expression.span, message).into());
        };
        let components = match &expression.kind {
            ScalarKind::Call { name, arguments, .. } if is_named(name, "RRF") => {
                self.fusion(arguments, expression.span)?
            }
            _ => vec![Component { score: self.score(expression)?, weight: 1.0 }],
        };
        Ok(Ranking::Scores(components))
    }

    /// The components of `RRF(f1, f2, …, weights)`.
    fn fusion(&mut self, arguments: &[Scalar], span: Span) -> Result<Vec<Component>, Error> {
        let (scores, weights) = match arguments.split_last() {
            Some((last, scores)) if !matches!(last.kind, ScalarKind::Call { .. }) => {
                (scores, Some(last))
            }
            _ => (arguments, None),
        };
        scores.iter().try_for_each(|score| check_scoring(score, false))?;
        check_arguments("RRF", 2, functions::MANY, scores.len(), span)?;
        let weights = match weights {
            Some(weights) => self.weights(weights, scores.len())?,
            None => vec![1.0; scores.len()],
        };
        let components = scores.iter().zip(weights);
        components
            .map(|(score, weight)| Ok(Component { score: self.score(score)?, weight }))
            .collect()
    }

    fn weights(&mut self, weights: &Scalar, count: usize) -> Result<Vec<f64>, Error> {
        let is_literal = matches!(weights.kind, ScalarKind::Array(_));
        let bound = self.scalar(weights)?;
        let values = bound.as_constant().and_then(Value::as_array).filter(|_| is_literal);
        let numbers: Option<Vec<f64>> =
            values.and_then(|values| values.iter().map(Value::as_f64).collect());
        numbers.filter(|numbers| numbers.len() == count).ok_or_else(|| {
            let message = "The weights of the RRF function must be a literal array of numbers, one \
                           for each component.";
            sql::Error::at(Code::FusionWeights, weights.span, message).into()
        })
    }

    /// A call of FullTextScore or VectorDistance.
    fn score(&mut self, scalar: &Scalar) -> Result<Score, Error> {
        let ScalarKind::Call { name, arguments, .. } = &scalar.kind else {
            return Err(not_scoring(scalar.span));
        };
        if let Some(Function { name, least, most, .. }) = functions::find(name) {
            check_arguments(name, *least, *most, arguments.len(), scalar.span)?;
        }
        if is_named(name, "VectorDistance") {
            let wrong_type = || {
                let message = "An argument of the VectorDistance function has the wrong type.";
                Error::from(sql::Error::at(Code::Other, scalar.span, message))
            };
            return Ok(Score::Nearness(self.distance(arguments)?.ok_or_else(wrong_type)?));
        }
        Ok(Score::Relevance(self.text_score(arguments, scalar.span)?))
    }

    /// A text and the terms it is searched for.
    fn text_score(&mut self, arguments: &[Scalar], span: Span) -> Result<TextScore, Error> {
        let (text, language) = self.prose(&arguments[0])?;
        let mut terms = Vec::with_capacity(arguments.len() - 1);
        for argument in &arguments[1..] {
            terms.push(self.constant(argument)?);
        }
        let written = flat(&terms);
        let terms = phrases(language, &written).ok_or_else(|| {
            let message = "The terms of the FullTextScore function must be strings.";
            sql::Error::at(Code::Other, span, message)
        })?;
        Ok(TextScore { text, language, terms, written })
    }
}

fn is_named(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

fn is_call(scalar: &Scalar, function: &str) -> bool {
    matches!(&scalar.kind, ScalarKind::Call { udf: false, name, .. } if is_named(name, function))
}

fn check_scoring(scalar: &Scalar, is_outermost: bool) -> Result<(), Error> {
    let is_score = is_call(scalar, "FullTextScore")
        || is_call(scalar, "VectorDistance")
        || is_outermost && is_call(scalar, "RRF");
    if is_score { Ok(()) } else { Err(not_scoring(scalar.span)) }
}

fn not_scoring(span: Span) -> Error {
    let message = "ORDER BY RANK must be followed by VectorDistance and/or FullTextScore calls.";
    sql::Error::at(Code::RankFunction, span, message).into()
}

fn check_rank_sources(query: &Query) -> Result<(), Error> {
    let Some(from) = &query.from else { return Ok(()) };
    let refuse = |code, what: &str| {
        let message = format!("'ORDER BY RANK' is not supported with {what}.");
        Err(sql::Error::at(code, query.span, message).into())
    };
    if !from.joins.is_empty() {
        return refuse(Code::RankWithJoin, "'JOIN'");
    }
    if matches!(from.first.kind, SourceKind::Iterate { .. }) {
        return refuse(Code::RankWithIterator, "'FROM … IN'");
    }
    if matches!(from.first.collection(), Collection::Query(_)) {
        return refuse(Code::RankWithSubquery, "a subquery in 'FROM'");
    }
    Ok(())
}

/// Checks the options of VectorDistance and returns the metric they name.
fn check_options(options: &Value, span: Span) -> Result<Option<Metric>, Error> {
    let refuse = |name: &str| {
        let message = format!("The option '{name}' of the VectorDistance function is not valid.");
        Error::from(sql::Error::at(Code::VectorOption, span, message))
    };
    for name in ["searchListSizeMultiplier", "quantizedVectorListMultiplier"] {
        let value = options.get(name);
        let is_in_range = value.as_f64().is_some_and(|number| MULTIPLIERS.contains(&number));
        if !value.is_undefined() && !is_in_range {
            return Err(refuse(name));
        }
    }
    let is_type = |name: &str| DATA_TYPES.iter().any(|own| is_named(own, name));
    match options.get("dataType") {
        Value::Undefined => {}
        value if value.as_str().is_some_and(is_type) => {}
        _ => return Err(refuse("dataType")),
    }
    match options.get("distanceFunction") {
        Value::Undefined => Ok(None),
        value => match value.as_str().and_then(Metric::from_name) {
            Some(metric) => Ok(Some(metric)),
            None => Err(refuse("distanceFunction")),
        },
    }
}
