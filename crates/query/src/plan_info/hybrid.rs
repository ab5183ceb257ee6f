//! Plans of ORDER BY RANK.
//!
//! How relevant a text is depends on all texts, and a rank on all rows, so a client goes twice over
//! the ranges: it adds up what the statistics query counts in each, writes the sums into the query of
//! every component in place of placeholders, merges the best rows of each, and fuses their ranks.
//!
//! ```text
//! statistics   SELECT COUNT(1) AS documentCount, [{"totalWordCount": …, "hitCounts": […]}] AS fullTextStatistics …
//! component    SELECT TOP n c._rid, [{"item": score}] AS orderByItems,
//!                 {"payload": row, "componentScores": [score ?? worst, …]} AS payload … ORDER BY score
//! ```

use std::fmt::Write;

use sql::{OrderBy, Query, Scalar, ScalarKind};

use super::{
    DistinctType, FILTER_PLACEHOLDER, PlanInfo, first_alias, object, payload, push_from, quoted,
};
use crate::bind::BoundQuery;
use crate::ranking::{Component, Ranking, Score};
use crate::{Metric, full_text::TextScore};

/// Rows of a component for each row wanted, and at least: a row may be good in one component and be
/// found by another.
const ROWS_PER_ROW: u64 = 2;
const ROWS_MIN: u64 = 120;

/// How a client ranks rows.
#[derive(Clone, Debug, PartialEq)]
pub struct HybridInfo {
    /// What is to be known of all texts; empty if nothing is.
    pub statistics_query: String,
    /// The query of each scoring function.
    pub components: Vec<PlanInfo>,
    /// What each counts for; empty if all count the same.
    pub weights: Vec<f64>,
    /// Rows to leave out.
    pub skip: u64,
    /// Rows to return.
    pub take: u64,
}

/// A scoring function as clients ask for it.
struct Asked {
    text: String,
    is_descending: bool,
    /// What a row has that has no score.
    worst: &'static str,
}

impl HybridInfo {
    /// The plan of a query with ORDER BY RANK that says how many rows it wants.
    pub(super) fn of(query: &Query, bound: &BoundQuery, info: &PlanInfo) -> Option<HybridInfo> {
        let Some(OrderBy::Rank(_)) = &query.order_by else { return None };
        let Some(Ranking::Scores(components)) = &bound.ranking else { return None };
        let calls = scoring_calls(query);
        let is_plain = bound.outer.is_empty() && info.distinct == DistinctType::None;
        if !is_plain || calls.len() != components.len() {
            return None;
        }
        let (skip, take) = (info.offset.unwrap_or(0), info.limit.or(info.top)?);
        let asked = asked(&calls, components);
        let weights: Vec<f64> = components.iter().map(|component| component.weight).collect();
        let is_weighted = weights.iter().any(|weight| *weight != 1.0);
        let rows = (ROWS_PER_ROW * (skip + take)).max(ROWS_MIN);
        let component = |own: &Asked| component(query, info, own, &asked, rows);
        Some(HybridInfo {
            statistics_query: statistics_query(query, &calls, components),
            components: asked.iter().map(component).collect(),
            weights: if is_weighted { weights } else { Vec::new() },
            skip,
            take,
        })
    }

    pub(super) fn to_json(&self) -> String {
        let components: Vec<String> = self.components.iter().map(PlanInfo::query_info).collect();
        // The Java SDK takes nothing for a weight that has no point.
        let weights: Vec<String> =
            self.weights.iter().map(|weight| format!("{weight:?}")).collect();
        object(&[
            ("globalStatisticsQuery", quoted(&self.statistics_query)),
            ("componentQueryInfos", format!("[{}]", components.join(","))),
            ("componentWithoutPayloadQueryInfos", "[]".to_owned()),
            ("projectionQueryInfo", "null".to_owned()),
            ("componentWeights", format!("[{}]", weights.join(","))),
            ("skip", self.skip.to_string()),
            ("take", self.take.to_string()),
            ("requiresGlobalStatistics", (!self.statistics_query.is_empty()).to_string()),
        ])
    }
}

/// The calls of scoring functions, those in RRF one by one.
fn scoring_calls(query: &Query) -> Vec<&Scalar> {
    let Some(OrderBy::Rank(items)) = &query.order_by else { return Vec::new() };
    let mut calls = Vec::new();
    for item in items {
        match arguments_of(&item.expression) {
            Some((name, arguments)) if name.eq_ignore_ascii_case("RRF") => {
                calls.extend(arguments.iter().filter(|scalar| arguments_of(scalar).is_some()));
            }
            _ => calls.push(&item.expression),
        }
    }
    calls
}

fn arguments_of(scalar: &Scalar) -> Option<(&str, &[Scalar])> {
    let ScalarKind::Call { name, arguments, .. } = &scalar.kind else { return None };
    Some((name, arguments))
}

/// The text that a call searches.
fn searched(call: &Scalar) -> String {
    let first = arguments_of(call).and_then(|(_, arguments)| arguments.first());
    first.map(Scalar::to_string).unwrap_or_default()
}

fn terms(score: &TextScore) -> Vec<String> {
    score.written.iter().map(item::Value::to_json).collect()
}

fn asked(calls: &[&Scalar], components: &[Component]) -> Vec<Asked> {
    const PLACE: &str = "documentdb-formattablehybridsearchquery";
    let mut texts = 0;
    let mut found = Vec::with_capacity(calls.len());
    for (call, component) in calls.iter().zip(components) {
        found.push(match &component.score {
            Score::Relevance(score) => {
                let (path, terms) = (searched(call), terms(score).join(", "));
                let text = format!(
                    "_FullTextScore({path}, [{terms}], {{{PLACE}-totaldocumentcount}}, \
                     {{{PLACE}-totalwordcount-{texts}}}, {{{PLACE}-hitcountsarray-{texts}}})"
                );
                texts += 1;
                Asked { text, is_descending: true, worst: "-1" }
            }
            Score::Nearness(distance) if distance.metric == Metric::Euclidean => {
                Asked { text: call.to_string(), is_descending: false, worst: "1e308" }
            }
            Score::Nearness(_) => {
                Asked { text: call.to_string(), is_descending: true, worst: "-1e308" }
            }
        });
    }
    found
}

fn statistics_query(query: &Query, calls: &[&Scalar], components: &[Component]) -> String {
    let mut texts = Vec::new();
    for (call, component) in calls.iter().zip(components) {
        let Score::Relevance(score) = &component.score else { continue };
        let path = searched(call);
        let hits = terms(score).into_iter();
        let hits = hits.map(|term| format!("COUNTIF(FullTextContains({path}, {term}))"));
        let hits = hits.collect::<Vec<_>>().join(", ");
        texts.push(format!(
            "{{\"totalWordCount\": SUM(_FullTextWordCount({path})), \"hitCounts\": [{hits}]}}"
        ));
    }
    if texts.is_empty() {
        return String::new();
    }
    let texts = texts.join(", ");
    let mut text = format!("SELECT COUNT(1) AS documentCount, [{texts}] AS fullTextStatistics");
    push_from(&mut text, query);
    text
}

/// The best rows by one score, with what they have by all of them.
fn component(query: &Query, info: &PlanInfo, own: &Asked, all: &[Asked], rows: u64) -> PlanInfo {
    let root = first_alias(query);
    let score = &own.text;
    let scores = all.iter().map(|asked| format!("({} ?? {})", asked.text, asked.worst));
    let scores = scores.collect::<Vec<_>>().join(", ");
    let has_limit = info.limit.is_some();
    let mut text = String::from("SELECT ");
    if !has_limit {
        let _ = write!(text, "TOP {rows} ");
    }
    let row = payload(query, &root);
    let _ = write!(
        text,
        "{root}._rid, [{{\"item\": {score}}}] AS orderByItems, {{\"payload\": {row}, \
         \"componentScores\": [{scores}]}} AS payload"
    );
    push_from(&mut text, query);
    let _ = match &query.filter {
        Some(filter) => write!(text, " WHERE (({filter}) AND ({FILTER_PLACEHOLDER}))"),
        None => write!(text, " WHERE ({FILTER_PLACEHOLDER})"),
    };
    let _ = write!(text, " ORDER BY {score}");
    // Nearness has a direction of its own.
    let is_relevance = score.starts_with('_');
    let _ = write!(text, "{}", if is_relevance { " DESC" } else { "" });
    if has_limit {
        let _ = write!(text, " OFFSET 0 LIMIT {rows}");
    }
    PlanInfo {
        top: (!has_limit).then_some(rows),
        offset: has_limit.then_some(0),
        limit: has_limit.then_some(rows),
        order_by: vec![if own.is_descending { "Descending" } else { "Ascending" }],
        order_by_expressions: vec![score.clone()],
        rewritten_query: text,
        has_non_streaming_order_by: true,
        ..PlanInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parameters, plan_info};

    fn plan(text: &str) -> HybridInfo {
        let parameters = Parameters::from_iter([("@v", item::Value::parse(b"[1,2]").unwrap())]);
        *plan_info(&sql::parse(text).unwrap(), &parameters).unwrap().hybrid.unwrap()
    }

    /// As the service has it, but for the line breaks.
    #[test]
    fn relevance_is_asked_for_by_placeholders() {
        let plan = plan(
            "SELECT c.name FROM c ORDER BY RANK FullTextScore(c.text, 'swim') OFFSET 0 LIMIT 10",
        );
        assert_eq!(
            plan.statistics_query,
            r#"SELECT COUNT(1) AS documentCount, [{"totalWordCount": SUM(_FullTextWordCount(c.text)), "hitCounts": [COUNTIF(FullTextContains(c.text, "swim"))]}] AS fullTextStatistics FROM c"#
        );
        let score = r#"_FullTextScore(c.text, ["swim"], {documentdb-formattablehybridsearchquery-totaldocumentcount}, {documentdb-formattablehybridsearchquery-totalwordcount-0}, {documentdb-formattablehybridsearchquery-hitcountsarray-0})"#;
        let expect = format!(
            r#"SELECT c._rid, [{{"item": {score}}}] AS orderByItems, {{"payload": {{"name": c.name}}, "componentScores": [({score} ?? -1)]}} AS payload FROM c WHERE ({FILTER_PLACEHOLDER}) ORDER BY {score} DESC OFFSET 0 LIMIT 120"#
        );
        let [component] = &plan.components[..] else { panic!("{plan:?}") };
        assert_eq!(component.rewritten_query, expect);
        assert_eq!(component.order_by_expressions, [score]);
        assert_eq!((component.offset, component.limit, component.top), (Some(0), Some(120), None));
        assert_eq!((plan.skip, plan.take), (0, 10));
    }

    #[test]
    fn components_are_numbered_by_texts() {
        let plan = plan(
            "SELECT TOP 100 * FROM c WHERE c.x = 1 ORDER BY RANK RRF(VectorDistance(c.v, @v), \
             FullTextScore(c.t, 'a b', 'c'), FullTextScore(c.u, ['d', 'e']), [1, 2, 0.5])",
        );
        assert_eq!(plan.weights, [1.0, 2.0, 0.5]);
        assert_eq!(plan.components.len(), 3);
        assert!(plan.statistics_query.contains(r#"FullTextContains(c.u, "e")"#));
        let [vector, text, _] = &plan.components[..] else { panic!() };
        assert!(vector.rewritten_query.starts_with("SELECT TOP 200 c._rid, "));
        assert!(vector.rewritten_query.ends_with(" ORDER BY VectorDistance(c.v, @v)"));
        assert!(vector.rewritten_query.contains("c.x = 1) AND"));
        for text in [&vector.rewritten_query, &text.rewritten_query] {
            assert!(text.contains("totalwordcount-0}") && text.contains("totalwordcount-1}"));
            assert!(!text.contains("totalwordcount-2}"));
        }
    }

    #[test]
    fn without_a_number_of_rows_there_is_none() {
        let text = "SELECT * FROM c ORDER BY RANK FullTextScore(c.text, 'swim')";
        let info = plan_info(&sql::parse(text).unwrap(), &Parameters::new()).unwrap();
        assert!(info.hybrid.is_none() && info.unmergeable.is_some());
    }
}
