//! How near two vectors are.

use std::borrow::Cow;

use item::{Kind, Value};

use crate::Error;
use crate::datum::Datum;
use crate::eval::{Env, eval};
use crate::expr::Expr;

/// How vectors are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// The cosine of their angle: 1 is the same direction.
    #[default]
    Cosine,
    /// Their inner product: larger is nearer.
    DotProduct,
    /// The length of their difference: smaller is nearer.
    Euclidean,
}

impl Metric {
    /// The metric of this name, in any case.
    pub(crate) fn from_name(name: &str) -> Option<Metric> {
        Some(match name.to_ascii_lowercase().as_str() {
            "cosine" => Metric::Cosine,
            "dotproduct" => Metric::DotProduct,
            "euclidean" => Metric::Euclidean,
            _ => return None,
        })
    }

    /// `None` for vectors of different or no dimensions, and where there is no such number.
    fn compare(self, a: &[f64], b: &[f64]) -> Option<f64> {
        if a.len() != b.len() || a.is_empty() {
            return None;
        }
        let score = match self {
            Metric::Cosine => dot(a, b) / (dot(a, a).sqrt() * dot(b, b).sqrt()),
            Metric::DotProduct => dot(a, b),
            Metric::Euclidean => a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt(),
        };
        score.is_finite().then_some(score)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// VectorDistance, bound.
#[derive(Clone, Debug)]
pub(crate) struct Distance {
    pub operands: [Expr; 2],
    pub metric: Metric,
}

impl Distance {
    /// The score, in the sense of the metric.
    pub fn value<'a>(&'a self, env: &mut Env<'a>) -> Result<Datum<'a>, Error> {
        Ok(self.score(env)?.map_or(Datum::UNDEFINED, Datum::number))
    }

    /// How near the vectors are: larger is nearer, whatever the metric.
    pub fn nearness<'a>(&'a self, env: &mut Env<'a>) -> Result<Option<f64>, Error> {
        let score = self.score(env)?;
        Ok(if self.metric == Metric::Euclidean { score.map(|score| -score) } else { score })
    }

    fn score<'a>(&'a self, env: &mut Env<'a>) -> Result<Option<f64>, Error> {
        let a = numbers(&eval(&self.operands[0], env)?);
        let b = numbers(&eval(&self.operands[1], env)?);
        Ok(a.zip(b).and_then(|(a, b)| self.metric.compare(&a, &b)))
    }
}

/// The elements of an array of numbers.
fn numbers(vector: &Datum<'_>) -> Option<Vec<f64>> {
    match vector {
        Datum::Node(node) if node.kind() == Kind::Array => {
            node.elements().map(|element| element.as_f64()).collect()
        }
        Datum::Node(_) => None,
        Datum::Value(Cow::Borrowed(value)) => values(value),
        Datum::Value(Cow::Owned(value)) => values(value),
    }
}

fn values(vector: &Value) -> Option<Vec<f64>> {
    vector.as_array()?.iter().map(Value::as_f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(metric: Metric, a: &[f64], b: &[f64], expect: Option<f64>) {
        assert_eq!(metric.compare(a, b), expect, "{metric:?} {a:?} {b:?}");
    }

    #[test]
    fn metrics() {
        check(Metric::Cosine, &[3.0, 4.0], &[3.0, 4.0], Some(1.0));
        check(Metric::Cosine, &[1.0, 0.0], &[-2.0, 0.0], Some(-1.0));
        check(Metric::DotProduct, &[1.0, 2.0], &[3.0, 4.0], Some(11.0));
        check(Metric::Euclidean, &[0.0, 0.0], &[3.0, 4.0], Some(5.0));
    }

    #[test]
    fn what_cannot_be_compared() {
        check(Metric::DotProduct, &[1.0], &[1.0, 2.0], None);
        check(Metric::Euclidean, &[], &[], None);
        check(Metric::Cosine, &[0.0, 0.0], &[1.0, 2.0], None);
        check(Metric::DotProduct, &[f64::MAX], &[f64::MAX], None);
    }
}
