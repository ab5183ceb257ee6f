//! Orders that no index brings: by what expressions give, by nearness, by relevance, by both.

use std::cmp::Ordering;

use crate::Direction;
use crate::Error;
use crate::eval::Env;
use crate::expr::Expr;
use crate::full_text::{Statistics, TextScore};
use crate::vectors::Distance;

/// The constant of reciprocal rank fusion (as in the service's clients).
const FUSION_CONSTANT: f64 = 60.0;

/// How all rows are sorted before the first comes out.
#[derive(Clone, Debug)]
pub(crate) enum Ranking {
    /// By values, as ORDER BY sorts them.
    Values(Vec<(Expr, Direction)>),
    /// By scores, best first. Of several, their ranks are fused.
    Scores(Vec<Component>),
}

/// One scoring function.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    pub score: Score,
    /// What its rank counts for in a fusion; below zero the worst has the first rank.
    pub weight: f64,
}

/// What makes a row better than another: larger is better.
#[derive(Clone, Debug)]
pub(crate) enum Score {
    Nearness(Distance),
    Relevance(TextScore),
}

impl Score {
    /// The score of the current row; `None` puts it last.
    pub fn value<'a>(
        &'a self,
        statistics: &Statistics,
        env: &mut Env<'a>,
    ) -> Result<Option<f64>, Error> {
        match self {
            Score::Nearness(distance) => distance.nearness(env),
            Score::Relevance(text) => text.score(statistics, env),
        }
    }
}

/// Reciprocal rank fusion: one score for each row from its scores for each component.
pub(crate) fn fuse(components: &[Component], scores: &[Vec<Option<f64>>]) -> Vec<f64> {
    let mut fused = vec![0.0; scores.len()];
    for (at, component) in components.iter().enumerate() {
        let column: Vec<_> = scores.iter().map(|row| row[at]).collect();
        let ranks = dense_ranks(&column, component.weight < 0.0);
        for (fused, rank) in fused.iter_mut().zip(ranks) {
            *fused += component.weight / (FUSION_CONSTANT + rank as f64);
        }
    }
    fused
}

/// The rank of each score, from 1; equal scores share one, and no rank is left out.
fn dense_ranks(scores: &[Option<f64>], worst_first: bool) -> Vec<usize> {
    let compare = |a: &usize, b: &usize| match (scores[*a], scores[*b]) {
        (Some(a), Some(b)) if worst_first => a.total_cmp(&b),
        (Some(a), Some(b)) => b.total_cmp(&a),
        (None, None) => Ordering::Equal,
        (a, b) => b.is_some().cmp(&a.is_some()),
    };
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(compare);
    let (mut ranks, mut rank) = (vec![0; scores.len()], 0);
    for (at, row) in order.iter().enumerate() {
        let is_next = at == 0 || scores[order[at - 1]] != scores[*row];
        rank += usize::from(is_next);
        ranks[*row] = rank;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_dense_and_shared() {
        let scores = [Some(1.0), Some(3.0), None, Some(3.0), Some(0.0)];
        assert_eq!(dense_ranks(&scores, false), [2, 1, 4, 1, 3]);
        assert_eq!(dense_ranks(&scores, true), [2, 3, 4, 3, 1]);
        assert_eq!(dense_ranks(&[], false), [0; 0]);
    }
}
