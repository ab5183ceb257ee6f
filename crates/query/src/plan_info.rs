//! What the query-plan endpoint answers, for clients that fan out on their own.
//!
//! Such a client sends the rewritten query to every range and merges the rows itself: the plan
//! says how. The forms of rewritten queries are those of the service's planner; the executor runs
//! them like any other query.
//!
//! ```text
//! ORDER BY    SELECT c._rid, [{"item": key}] AS orderByItems, row AS payload … WHERE (resume filter)
//! aggregate   SELECT VALUE [{"item": aggregate}] …
//! GROUP BY    SELECT [{"item": key}] AS groupByItems, {…} AS payload … GROUP BY key
//! OFFSET a LIMIT b                                                      OFFSET 0 LIMIT a + b
//! ```
//!
//! ELSEWHERE  ORDER BY RANK, which takes several queries: `hybrid`.

mod hybrid;

use std::fmt::Write;

use sql::{Collection, OrderBy, OrderItem, Query, Scalar, ScalarKind, SelectItem, Selection};
use sql::{SortDirection, SourceKind, Step};

use crate::aggregate::AggregateKind;
use crate::bind::blocks::{has_aggregate, output_names};
use crate::bind::{BoundQuery, Counts, bind_with, counts, is_aggregate};
use crate::ranking::{Component, Ranking, Score};
use crate::{Error, Metric, Parameters, Schema};
pub use hybrid::HybridInfo;

/// What clients put in place of the resume filter.
pub const FILTER_PLACEHOLDER: &str = "{documentdb-formattableorderbyquery-filter}";

/// How a client runs a query over several ranges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanInfo {
    /// How rows are made distinct.
    pub distinct: DistinctType,
    /// The TOP count.
    pub top: Option<u64>,
    /// The OFFSET count.
    pub offset: Option<u64>,
    /// The LIMIT count.
    pub limit: Option<u64>,
    /// One direction for each ORDER BY key.
    pub order_by: Vec<&'static str>,
    /// The text of each ORDER BY key.
    pub order_by_expressions: Vec<String>,
    /// The text of each GROUP BY key.
    pub group_by_expressions: Vec<String>,
    /// The output names of a query with groups or aggregates, in order.
    pub group_by_aliases: Vec<String>,
    /// The aggregate of `SELECT VALUE aggregate`.
    pub aggregates: Vec<&'static str>,
    /// For each output name its aggregate, if it is one.
    pub alias_to_aggregate: Vec<(String, Option<&'static str>)>,
    /// What to send instead of the original; empty to send the original.
    pub rewritten_query: String,
    /// `SELECT VALUE` was written.
    pub has_select_value: bool,
    /// Rows of a range come sorted but only when all are known: ORDER BY VectorDistance.
    pub has_non_streaming_order_by: bool,
    /// The rows are to be counted: under this name, or as they are if it is empty.
    pub distinct_count: Option<String>,
    /// What no client can merge: the query has to see all ranges itself.
    pub unmergeable: Option<&'static str>,
    /// How rows are ranked; then nothing else is of interest.
    pub hybrid: Option<Box<HybridInfo>>,
}

/// How rows are made distinct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DistinctType {
    /// Not at all.
    #[default]
    None,
    /// Equal rows may lie anywhere.
    Unordered,
    /// Equal rows follow each other, because they are sorted by all of their values.
    Ordered,
}

/// A range of effective partition keys, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryRange {
    /// Where it begins, inclusive.
    pub min: String,
    /// Where it ends.
    pub max: String,
    /// Whether `max` belongs to it, as it does for a single key.
    pub is_max_inclusive: bool,
}

impl QueryRange {
    /// All keys.
    pub fn full() -> QueryRange {
        QueryRange { min: String::new(), max: "FF".to_owned(), is_max_inclusive: false }
    }

    /// The first key, for what may be asked anywhere but is to be asked once.
    pub fn first() -> QueryRange {
        QueryRange { min: String::new(), max: String::new(), is_max_inclusive: true }
    }
}

/// Analyses a query for a client that fans out on its own. Errors in the query are found as they
/// would be by executing it.
pub fn plan_info(query: &Query, parameters: &Parameters) -> Result<PlanInfo, Error> {
    plan_info_with(query, parameters, Schema::EMPTY)
}

/// The same for a container with these policies.
pub fn plan_info_with(
    query: &Query,
    parameters: &Parameters,
    schema: &Schema,
) -> Result<PlanInfo, Error> {
    let bound = bind_with(query, parameters, schema)?;
    let Counts { top, offset_limit } = counts(query, parameters)?;
    let mut info = PlanInfo {
        distinct: distinct_type(query),
        top,
        offset: offset_limit.map(|(offset, _)| offset),
        limit: offset_limit.map(|(_, limit)| limit),
        has_select_value: matches!(query.select.selection, Selection::Value { .. }),
        ..PlanInfo::default()
    };
    if let Some(counted) = counted_query(query).filter(|_| bound.outer.len() == 1) {
        info.counted(query, counted);
        return Ok(info);
    }
    if !bound.reads_items {
        return Ok(info.pass_through());
    }
    if let Some(hybrid) = HybridInfo::of(query, &bound, &info) {
        info.hybrid = Some(Box::new(hybrid));
        return Ok(info);
    }
    info.unmergeable = unmergeable(query, &bound);
    if info.unmergeable.is_some() {
        return Ok(info);
    }
    let is_grouped = !query.group_by.is_empty() || selects_aggregate(query);
    if is_grouped {
        info.grouped(query)?;
    } else if let Some(OrderBy::Values(keys)) = &query.order_by {
        info.ordered(query, keys);
        info.nearest(&bound);
    } else {
        info.plain(query);
    }
    Ok(info)
}

fn expressions(selection: &Selection) -> Vec<&Scalar> {
    match selection {
        Selection::Star => Vec::new(),
        Selection::Value { expression, .. } => vec![expression],
        Selection::List(items) => items.iter().map(|item| &item.expression).collect(),
    }
}

fn selects_aggregate(query: &Query) -> bool {
    expressions(&query.select.selection).into_iter().any(has_aggregate)
}

fn distinct_type(query: &Query) -> DistinctType {
    if !query.select.distinct {
        return DistinctType::None;
    }
    let Some(OrderBy::Values(keys)) = &query.order_by else { return DistinctType::Unordered };
    let rows = expressions(&query.select.selection);
    let covers = !rows.is_empty()
        && rows.iter().all(|row| keys.iter().any(|key| key.expression == **row))
        && keys.iter().all(|key| rows.contains(&&key.expression));
    if covers { DistinctType::Ordered } else { DistinctType::Unordered }
}

impl PlanInfo {
    /// Neither sorted nor grouped: only counts change.
    fn plain(&mut self, query: &Query) {
        let is_distinct = self.distinct != DistinctType::None;
        let drops_top = is_distinct && self.top.is_some();
        if !drops_top && self.offset.is_none() {
            return;
        }
        let mut text = String::from("SELECT ");
        push_if(&mut text, is_distinct, "DISTINCT ");
        self.push_top(&mut text);
        let _ = write!(text, "{}", query.select.selection);
        push_from(&mut text, query);
        if let Some(filter) = &query.filter {
            let _ = write!(text, " WHERE {filter}");
        }
        self.push_limit(&mut text);
        self.rewritten_query = text;
    }

    fn ordered(&mut self, query: &Query, keys: &[OrderItem]) {
        for key in keys {
            self.order_by.push(match key.effective_direction() {
                SortDirection::Ascending => "Ascending",
                SortDirection::Descending => "Descending",
            });
            self.order_by_expressions.push(key.expression.to_string());
        }
        let root = first_alias(query);
        let mut text = String::from("SELECT ");
        self.push_top(&mut text);
        let items = item_list(keys.iter().map(|key| &key.expression));
        let payload = payload(query, &root);
        let _ = write!(text, "{root}._rid, {items} AS orderByItems, {payload} AS payload");
        push_from(&mut text, query);
        PlanInfo::push_resume_filter(&mut text, query);
        if let Some(order_by) = &query.order_by {
            let _ = write!(text, " {order_by}");
        }
        self.push_limit(&mut text);
        self.rewritten_query = text;
    }

    /// Nearest first means largest first, except for lengths.
    fn nearest(&mut self, bound: &BoundQuery) {
        let Some(Ranking::Scores(components)) = &bound.ranking else { return };
        let is_length = |component: &Component| match &component.score {
            Score::Nearness(distance) => distance.metric == Metric::Euclidean,
            Score::Relevance(_) => false,
        };
        let ascending = components.iter().any(is_length);
        self.order_by = vec![if ascending { "Ascending" } else { "Descending" }];
        self.has_non_streaming_order_by = true;
    }

    /// Each range returns its distinct rows, the client counts them.
    fn counted(&mut self, query: &Query, inner: &Query) {
        self.distinct = DistinctType::Unordered;
        self.rewritten_query = inner.to_string();
        self.distinct_count = Some(match &query.select.selection {
            Selection::List(items) => output_names(items).concat(),
            Selection::Star | Selection::Value { .. } => String::new(),
        });
    }

    fn push_resume_filter(text: &mut String, query: &Query) {
        let mut conditions: Vec<String> = Vec::new();
        conditions.extend(query.filter.iter().map(|filter| format!("({filter})")));
        conditions.push(format!("({FILTER_PLACEHOLDER})"));
        // Rows with an undefined value would come out as no row.
        match &query.select.selection {
            Selection::Value { expression, .. } => {
                let root = ScalarKind::Identifier(first_alias(query));
                let is_item = expression.kind == root;
                conditions.extend((!is_item).then(|| format!("IS_DEFINED({expression})")));
            }
            Selection::Star | Selection::List(_) => {}
        }
        let all = conditions.into_iter().reduce(|all, next| format!("({all} AND {next})"));
        let _ = write!(text, " WHERE {}", all.unwrap_or_default());
    }

    fn grouped(&mut self, query: &Query) -> Result<(), Error> {
        self.group_by_expressions = query.group_by.iter().map(Scalar::to_string).collect();
        let payload = match &query.select.selection {
            Selection::Star => String::new(),
            Selection::Value { expression, .. } => self.value_payload(expression)?,
            Selection::List(items) => self.list_payload(items)?,
        };
        let mut text = String::from("SELECT ");
        if !query.group_by.is_empty() {
            let keys = item_list(&query.group_by);
            let _ = write!(text, "{keys} AS groupByItems, {payload} AS payload");
        } else if self.has_select_value {
            let _ = write!(text, "VALUE {payload}");
        } else {
            let _ = write!(text, "{payload} AS payload");
        }
        push_from(&mut text, query);
        if let Some(filter) = &query.filter {
            let _ = write!(text, " WHERE {filter}");
        }
        if !query.group_by.is_empty() {
            let _ = write!(text, " GROUP BY {}", self.group_by_expressions.join(", "));
        }
        self.rewritten_query = text;
        Ok(())
    }

    fn value_payload(&mut self, expression: &Scalar) -> Result<String, Error> {
        match aggregate_of(expression)? {
            Some((kind, argument)) => {
                self.aggregates.push(kind.plan_name());
                Ok(format!("[{}]", partial(kind, argument)))
            }
            None => Ok(expression.to_string()),
        }
    }

    fn list_payload(&mut self, items: &[SelectItem]) -> Result<String, Error> {
        let mut properties = Vec::with_capacity(items.len());
        for (item, name) in items.iter().zip(output_names(items)) {
            let aggregate = aggregate_of(&item.expression)?;
            let value = match aggregate {
                Some((kind, argument)) => partial(kind, argument),
                None => item.expression.to_string(),
            };
            properties.push(format!("{}: {value}", quoted(&name)));
            let plan_name = aggregate.map(|(kind, _)| kind.plan_name());
            self.alias_to_aggregate.push((name.clone(), plan_name));
            self.group_by_aliases.push(name);
        }
        Ok(format!("{{{}}}", properties.join(", ")))
    }

    /// TOP stays where each range can stop early.
    fn push_top(&self, text: &mut String) {
        if let Some(top) = self.top.filter(|_| self.distinct == DistinctType::None) {
            let _ = write!(text, "TOP {top} ");
        }
    }

    /// Each range may hold all rows of the window.
    fn push_limit(&self, text: &mut String) {
        let window = self.offset.zip(self.limit);
        if let Some((offset, limit)) = window.filter(|_| self.distinct == DistinctType::None) {
            let _ = write!(text, " OFFSET 0 LIMIT {}", offset + limit);
        }
    }

    /// What a client must be able to do to follow the plan, in the words it advertises.
    pub fn features(&self) -> Vec<&'static str> {
        let has_aggregate = !self.aggregates.is_empty()
            || self.alias_to_aggregate.iter().any(|(_, aggregate)| aggregate.is_some());
        let of_aliases = self.alias_to_aggregate.iter().filter_map(|(_, aggregate)| *aggregate);
        let mut aggregates = self.aggregates.iter().copied().chain(of_aliases);
        let count_if = AggregateKind::CountIf.plan_name();
        let needs = [
            ("Aggregate", has_aggregate),
            ("CountIf", aggregates.any(|aggregate| aggregate == count_if)),
            ("GroupBy", !self.group_by_expressions.is_empty()),
            ("Distinct", self.distinct != DistinctType::None),
            ("OrderBy", !self.order_by.is_empty()),
            ("MultipleOrderBy", self.order_by.len() > 1),
            ("OffsetAndLimit", self.offset.is_some()),
            ("Top", self.top.is_some()),
            ("NonStreamingOrderBy", self.has_non_streaming_order_by),
            ("DCount", self.distinct_count.is_some()),
            ("HybridSearch", self.hybrid.is_some()),
            (
                "WeightedRankFusion",
                self.hybrid.as_ref().is_some_and(|hybrid| !hybrid.weights.is_empty()),
            ),
        ];
        let needed = needs.into_iter().filter(|(_, is_needed)| *is_needed).map(|(name, _)| name);
        needed.chain(self.unmergeable).collect()
    }

    /// The plan for a single range: send the original there, the rows are final.
    pub fn pass_through(&self) -> PlanInfo {
        PlanInfo { has_select_value: self.has_select_value, ..PlanInfo::default() }
    }

    /// The body of the answer.
    pub fn to_json(&self, ranges: &[QueryRange]) -> String {
        let info = match &self.hybrid {
            None => format!("\"queryInfo\":{}", self.query_info()),
            Some(hybrid) => format!("\"hybridSearchQueryInfo\":{}", hybrid.to_json()),
        };
        let ranges: Vec<String> = ranges.iter().map(QueryRange::to_json).collect();
        let ranges = ranges.join(",");
        format!("{{\"partitionedQueryExecutionInfoVersion\":2,{info},\"queryRanges\":[{ranges}]}}")
    }

    fn query_info(&self) -> String {
        let distinct = match self.distinct {
            DistinctType::None => "None",
            DistinctType::Unordered => "Unordered",
            DistinctType::Ordered => "Ordered",
        };
        let count = |count: Option<u64>| count.map_or("null".to_owned(), |n| n.to_string());
        let aggregates = self.alias_to_aggregate.iter().map(|(alias, aggregate)| {
            format!("{}:{}", quoted(alias), aggregate.map_or("null".to_owned(), quoted))
        });
        let fields = [
            ("distinctType", quoted(distinct)),
            ("top", count(self.top)),
            ("offset", count(self.offset)),
            ("limit", count(self.limit)),
            ("orderBy", json_list(&self.order_by)),
            ("orderByExpressions", json_list(&self.order_by_expressions)),
            ("groupByExpressions", json_list(&self.group_by_expressions)),
            ("groupByAliases", json_list(&self.group_by_aliases)),
            ("aggregates", json_list(&self.aggregates)),
            (
                "groupByAliasToAggregateType",
                format!("{{{}}}", aggregates.collect::<Vec<_>>().join(",")),
            ),
            ("rewrittenQuery", quoted(&self.rewritten_query)),
            ("hasSelectValue", self.has_select_value.to_string()),
            ("hasNonStreamingOrderBy", self.has_non_streaming_order_by.to_string()),
            ("dCountInfo", self.distinct_count.as_deref().map_or("null".to_owned(), counted)),
        ];
        object(&fields)
    }
}

fn counted(alias: &str) -> String {
    format!("{{\"dCountAlias\":{}}}", quoted(alias))
}

/// The subquery whose distinct rows are counted, if the query does nothing else.
fn counted_query(query: &Query) -> Option<&Query> {
    let is_plain = query.filter.is_none()
        && query.group_by.is_empty()
        && query.order_by.is_none()
        && query.offset_limit.is_none()
        && query.select.top.is_none()
        && !query.select.distinct;
    let from = query.from.as_ref().filter(|from| is_plain && from.joins.is_empty())?;
    let SourceKind::Values { collection: Collection::Query(inner), .. } = &from.first.kind else {
        return None;
    };
    let [counted] = expressions(&query.select.selection)[..] else { return None };
    let is_count = match aggregate_of(counted) {
        Ok(Some((AggregateKind::Count, argument))) => {
            matches!(argument.kind, ScalarKind::Literal(_))
        }
        _ => false,
    };
    let is_distinct = inner.select.distinct && inner.group_by.is_empty();
    (is_count && is_distinct && !selects_aggregate(inner)).then_some(inner)
}

/// What of a query no client can merge, in a word.
fn unmergeable(query: &Query, bound: &BoundQuery) -> Option<&'static str> {
    match &query.order_by {
        Some(OrderBy::Rank(_)) => Some("CrossPartitionRank"),
        _ if !bound.outer.is_empty() => Some("CrossPartitionSubquery"),
        _ => None,
    }
}

impl QueryRange {
    fn to_json(&self) -> String {
        format!(
            r#"{{"min":{},"max":{},"isMinInclusive":true,"isMaxInclusive":{}}}"#,
            quoted(&self.min),
            quoted(&self.max),
            self.is_max_inclusive
        )
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    sql::quote(&mut out, text);
    out
}

fn object<S: AsRef<str>>(fields: &[(&str, S)]) -> String {
    let fields = fields.iter().map(|(name, value)| format!("\"{name}\":{}", value.as_ref()));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn json_list<S: AsRef<str>>(items: &[S]) -> String {
    let items: Vec<_> = items.iter().map(|item| quoted(item.as_ref())).collect();
    format!("[{}]", items.join(","))
}

fn push_if(text: &mut String, condition: bool, what: &str) {
    if condition {
        text.push_str(what);
    }
}

fn push_from(text: &mut String, query: &Query) {
    if let Some(from) = &query.from {
        let _ = write!(text, " {from}");
    }
}

/// `[{"item": a}, {"item": b}]`
fn item_list<'a>(scalars: impl IntoIterator<Item = &'a Scalar>) -> String {
    let items: Vec<_> = scalars.into_iter().map(|s| format!("{{\"item\": {s}}}")).collect();
    format!("[{}]", items.join(", "))
}

/// What a query projects, as one expression.
fn payload(query: &Query, root: &str) -> String {
    match &query.select.selection {
        Selection::Star => root.to_owned(),
        Selection::Value { expression, .. } => expression.to_string(),
        Selection::List(items) => {
            let names = output_names(items).into_iter().zip(items);
            let property = |(name, item): (String, &SelectItem)| {
                format!("{}: {}", quoted(&name), item.expression)
            };
            format!("{{{}}}", names.map(property).collect::<Vec<_>>().join(", "))
        }
    }
}

/// The name by which the first source is known.
fn first_alias(query: &Query) -> String {
    let Some(from) = &query.from else { return "root".to_owned() };
    let (alias, collection) = match &from.first.kind {
        SourceKind::Iterate { alias, collection } => (Some(alias), collection),
        SourceKind::Values { alias, collection } => (alias.as_ref(), collection),
    };
    match (alias, collection) {
        (Some(alias), _) => alias.name.clone(),
        (None, Collection::Path { root, steps }) => match steps.last() {
            Some(Step::Property(name)) => name.clone(),
            Some(Step::Index(_)) | None => root.name.clone(),
        },
        (None, Collection::Query(_) | Collection::Call(_)) => "root".to_owned(),
    }
}

/// The aggregate an expression is. One inside another expression cannot be merged by clients.
fn aggregate_of(expression: &Scalar) -> Result<Option<(AggregateKind, &Scalar)>, Error> {
    if let ScalarKind::Call { udf: false, name, arguments } = &expression.kind
        && is_aggregate(name)
    {
        let kind = AggregateKind::from_name(name);
        return Ok(kind.zip(arguments.first()));
    }
    if has_aggregate(expression) {
        return Err(Error::Refused(
            "Compositions of aggregates and other expressions are not allowed.",
        ));
    }
    Ok(None)
}

/// What a range returns of an aggregate, so that a client can merge it.
fn partial(kind: AggregateKind, argument: &Scalar) -> String {
    match kind {
        AggregateKind::Count => format!("{{\"item\": COUNT({argument})}}"),
        AggregateKind::CountIf => format!("{{\"item\": COUNTIF({argument})}}"),
        AggregateKind::Sum => format!("{{\"item\": SUM({argument})}}"),
        AggregateKind::MakeList => format!("{{\"item\": MAKELIST({argument})}}"),
        AggregateKind::MakeSet => format!("{{\"item\": MAKESET({argument})}}"),
        AggregateKind::Average => {
            format!("{{\"item\": {{\"sum\": SUM({argument}), \"count\": COUNT({argument})}}}}")
        }
        AggregateKind::Min => extreme("MIN", "min", argument),
        AggregateKind::Max => extreme("MAX", "max", argument),
    }
}

fn extreme(function: &str, name: &str, argument: &Scalar) -> String {
    let value = format!("{function}({argument})");
    format!(
        "{{\"item\": {value}, \"item2\": {{\"{name}\": {value}, \"count\": COUNT({argument})}}}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Path, VectorPath, bind};

    fn info(text: &str) -> PlanInfo {
        let parameters = Parameters::from_iter([("@n", item::Value::Number(3.0))]);
        plan_info(&sql::parse(text).unwrap(), &parameters).unwrap()
    }

    /// The rewritten query is as expected, and runs once the placeholder is filled in.
    fn check(text: &str, rewritten: &str) {
        let info = info(text);
        assert_eq!(info.rewritten_query, rewritten, "{text}");
        if !rewritten.is_empty() {
            let filled = rewritten.replace(FILTER_PLACEHOLDER, "true");
            let parsed = sql::parse(&filled).unwrap_or_else(|error| panic!("{filled}: {error}"));
            bind(&parsed, &Parameters::new()).unwrap_or_else(|error| panic!("{filled}: {error}"));
        }
    }

    #[test]
    fn rewritten_queries() {
        let filter = FILTER_PLACEHOLDER;
        check("SELECT * FROM c", "");
        check("SELECT TOP 5 * FROM c", "");
        check("SELECT DISTINCT c.x FROM c", "");
        check("SELECT DISTINCT TOP 5 c.x FROM c", "SELECT DISTINCT c.x FROM c");
        check("SELECT * FROM c OFFSET 1 LIMIT 2", "SELECT * FROM c OFFSET 0 LIMIT 3");
        check(
            "SELECT * FROM Root r ORDER BY r.a DESC",
            &format!(
                "SELECT r._rid, [{{\"item\": r.a}}] AS orderByItems, r AS payload FROM Root AS r WHERE ({filter}) ORDER BY r.a DESC"
            ),
        );
        check(
            "SELECT TOP 10 * FROM r WHERE r.k = 'x' ORDER BY r.a",
            &format!(
                "SELECT TOP 10 r._rid, [{{\"item\": r.a}}] AS orderByItems, r AS payload FROM r WHERE ((r.k = \"x\") AND ({filter})) ORDER BY r.a"
            ),
        );
        check(
            "SELECT c.p, c.q FROM c ORDER BY c.a, c.b",
            &format!(
                "SELECT c._rid, [{{\"item\": c.a}}, {{\"item\": c.b}}] AS orderByItems, {{\"p\": c.p, \"q\": c.q}} AS payload FROM c WHERE ({filter}) ORDER BY c.a, c.b"
            ),
        );
        check(
            "SELECT DISTINCT VALUE c.x FROM c ORDER BY c.x",
            &format!(
                "SELECT c._rid, [{{\"item\": c.x}}] AS orderByItems, c.x AS payload FROM c WHERE (({filter}) AND IS_DEFINED(c.x)) ORDER BY c.x"
            ),
        );
        check(
            "SELECT VALUE c FROM c ORDER BY c.a",
            &format!(
                "SELECT c._rid, [{{\"item\": c.a}}] AS orderByItems, c AS payload FROM c WHERE ({filter}) ORDER BY c.a"
            ),
        );
        check(
            "SELECT VALUE c.x FROM c WHERE c.k = 1 ORDER BY c.a",
            &format!(
                "SELECT c._rid, [{{\"item\": c.a}}] AS orderByItems, c.x AS payload FROM c WHERE (((c.k = 1) AND ({filter})) AND IS_DEFINED(c.x)) ORDER BY c.a"
            ),
        );
    }

    #[test]
    fn without_items_there_is_nothing_to_merge() {
        for text in
            ["SELECT 5", "SELECT TOP 2 5", "SELECT VALUE COUNT(1)", "SELECT 1 OFFSET 0 LIMIT 3"]
        {
            assert_eq!(info(text), info(text).pass_through(), "{text}");
        }
    }

    #[test]
    fn nearest_first_is_sorted_by_ranges_and_merged() {
        let vectors = vec![VectorPath { path: Path::of(["v"]), metric: Metric::Euclidean }];
        let schema = Schema { vectors, ..Schema::default() };
        let text = "SELECT TOP 3 c.id FROM c ORDER BY VectorDistance(c.v, [1])";
        let parsed = sql::parse(text).unwrap();
        let near = plan_info_with(&parsed, &Parameters::new(), &schema).unwrap();
        assert_eq!(
            (near.has_non_streaming_order_by, &near.order_by[..]),
            (true, &["Ascending"][..])
        );
        assert_eq!(info(text).order_by, ["Descending"]);
        assert!(info(text).features().contains(&"NonStreamingOrderBy"));
        let filter = FILTER_PLACEHOLDER;
        check(
            text,
            &format!(
                "SELECT TOP 3 c._rid, [{{\"item\": VectorDistance(c.v, [1])}}] AS orderByItems, {{\"id\": c.id}} AS payload FROM c WHERE ({filter}) ORDER BY VectorDistance(c.v, [1])"
            ),
        );
    }

    #[test]
    fn distinct_rows_are_counted_by_clients() {
        let inner = "SELECT DISTINCT c.x FROM c";
        check(&format!("SELECT VALUE COUNT(1) FROM ({inner})"), inner);
        check(&format!("SELECT COUNT(1) AS n FROM ({inner}) AS d"), inner);
        let info = info(&format!("SELECT COUNT(1) AS n FROM ({inner})"));
        assert_eq!(info.distinct_count.as_deref(), Some("n"));
        assert!(info.to_json(&[]).contains(r#""dCountInfo":{"dCountAlias":"n"}"#));
        assert_eq!(info.features(), ["Distinct", "DCount"]);
    }

    #[test]
    fn some_queries_cannot_be_merged() {
        let of = |text: &str| info(text).features();
        assert_eq!(
            of("SELECT * FROM c ORDER BY RANK FullTextScore(c.t, 'x')"),
            ["CrossPartitionRank"]
        );
        assert_eq!(
            of("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.x FROM c) d WHERE d.x > 1"),
            ["CrossPartitionSubquery"]
        );
    }

    #[test]
    fn rewritten_aggregates() {
        check("SELECT VALUE COUNT(1) FROM c", "SELECT VALUE [{\"item\": COUNT(1)}] FROM c");
        let counts = "SELECT VALUE COUNTIF(c.x > 1) FROM c";
        check(counts, "SELECT VALUE [{\"item\": COUNTIF(c.x > 1)}] FROM c");
        assert_eq!(info(counts).features(), ["Aggregate", "CountIf"]);
        check(
            "SELECT VALUE AVG(c.x) FROM c WHERE c.y",
            "SELECT VALUE [{\"item\": {\"sum\": SUM(c.x), \"count\": COUNT(c.x)}}] FROM c WHERE c.y",
        );
        check(
            "SELECT VALUE MIN(c.x) FROM c",
            "SELECT VALUE [{\"item\": MIN(c.x), \"item2\": {\"min\": MIN(c.x), \"count\": COUNT(c.x)}}] FROM c",
        );
        check(
            "SELECT AVG(c.x) FROM c",
            "SELECT {\"$1\": {\"item\": {\"sum\": SUM(c.x), \"count\": COUNT(c.x)}}} AS payload FROM c",
        );
        check(
            "SELECT c.t, COUNT(1) AS n FROM c GROUP BY c.t",
            "SELECT [{\"item\": c.t}] AS groupByItems, {\"t\": c.t, \"n\": {\"item\": COUNT(1)}} AS payload FROM c GROUP BY c.t",
        );
        check(
            "SELECT VALUE COUNT(1) FROM c GROUP BY c.t",
            "SELECT [{\"item\": c.t}] AS groupByItems, [{\"item\": COUNT(1)}] AS payload FROM c GROUP BY c.t",
        );
    }

    #[test]
    fn functions_stay_in_rewritten_queries() {
        let schema = crate::testing::TestFunctions::schema();
        let check = |text: &str, rewritten: &str| {
            let parsed = sql::parse(text).unwrap();
            let info = plan_info_with(&parsed, &Parameters::new(), &schema).unwrap();
            assert_eq!(info.rewritten_query, rewritten, "{text}");
            let filled = sql::parse(&rewritten.replace(FILTER_PLACEHOLDER, "true")).unwrap();
            bind_with(&filled, &Parameters::new(), &schema).unwrap();
        };
        let filter = FILTER_PLACEHOLDER;
        check(
            "SELECT udf.same(c.x) AS y FROM c WHERE udf.isLarge(c.x) ORDER BY c.x",
            &format!(
                "SELECT c._rid, [{{\"item\": c.x}}] AS orderByItems, {{\"y\": udf.same(c.x)}} AS payload FROM c WHERE ((udf.isLarge(c.x)) AND ({filter})) ORDER BY c.x"
            ),
        );
        check(
            "SELECT VALUE SUM(udf.same(c.x)) FROM c WHERE udf.isLarge(c.x)",
            "SELECT VALUE [{\"item\": SUM(udf.same(c.x))}] FROM c WHERE udf.isLarge(c.x)",
        );
        check(
            "SELECT udf.same(c.x) AS k, COUNT(1) AS n FROM c GROUP BY udf.same(c.x)",
            "SELECT [{\"item\": udf.same(c.x)}] AS groupByItems, {\"k\": udf.same(c.x), \"n\": {\"item\": COUNT(1)}} AS payload FROM c GROUP BY udf.same(c.x)",
        );
    }

    #[test]
    fn compositions_are_refused() {
        let query = sql::parse("SELECT VALUE MIN(c.x) / 2 FROM c").unwrap();
        assert!(plan_info(&query, &Parameters::new()).is_err());
    }

    #[test]
    fn the_answer_has_every_key() {
        let json = info("SELECT TOP @n c.t, COUNT(1) AS n FROM c GROUP BY c.t")
            .to_json(&[QueryRange::full()]);
        assert_eq!(
            json,
            concat!(
                r#"{"partitionedQueryExecutionInfoVersion":2,"queryInfo":{"distinctType":"None","#,
                r#""top":3,"offset":null,"limit":null,"orderBy":[],"orderByExpressions":[],"#,
                r#""groupByExpressions":["c.t"],"groupByAliases":["t","n"],"aggregates":[],"#,
                r#""groupByAliasToAggregateType":{"t":null,"n":"Count"},"#,
                r#""rewrittenQuery":"SELECT [{\"item\": c.t}] AS groupByItems, "#,
                r#"{\"t\": c.t, \"n\": {\"item\": COUNT(1)}} AS payload FROM c GROUP BY c.t","#,
                r#""hasSelectValue":false,"hasNonStreamingOrderBy":false,"dCountInfo":null},"#,
                r#""queryRanges":[{"min":"","max":"FF","isMinInclusive":true,"isMaxInclusive":false}]}"#
            )
        );
        let parsed = item::Value::parse(json.as_bytes()).unwrap();
        assert_eq!(parsed.as_object().unwrap().len(), 3);
    }
}
