//! Queries: scope and routing in, pages out.
//!
//! The server runs the whole query over all physical partitions in scope and answers with final
//! rows. A filter that pins the partition key narrows the scope first; since that depends on the
//! query and the scope alone, every page of a query is narrowed alike and a continuation means the
//! same place each time.

use std::time::{Duration, Instant};

use base::Ctx;
use bytes::Bytes;
use item::{Json, Node, Value};
use model::container::IndexingMode;
use model::epk::EpkRange;
use model::limits;
use model::partition_key::PartitionKey;
use query::{
    BoundQuery, PageLimits, Parameters, Pin, PlanInfo, QueryRange, Routing, Source, State,
    Strategy, Timed, Times, Udf,
};
use sql::Condition;

use crate::charge::{Profile, QueryTerms};
use crate::container::Selection;
use crate::continuation::Purpose;
use crate::feed::{check_sessions, items_max, session_of};
use crate::ops::{FeedPage, PageRequest, QueryText, Resource, Scope};
use crate::scripts::Functions;
use crate::source::{ContainerSource, key_of};
use crate::{Container, Core, Engine, Error, Result, charge};

/// Memory that sorting, grouping and DISTINCT of one query may hold.
const MEMORY_BYTES_MAX: usize = 64 << 20;

impl From<query::Error> for Error {
    fn from(error: query::Error) -> Error {
        match error {
            query::Error::Deadline => Error::Timeout,
            query::Error::WrongState => Error::Invalid(error.to_string()),
            query::Error::TooLarge { .. } => Error::Invalid(error.to_string()),
            query::Error::Source(source) => match source.downcast::<storage::Error>() {
                Ok(error) => (*error).into(),
                Err(other) => Error::Fault(other.to_string()),
            },
            query::Error::Text(_)
            | query::Error::Unsupported { .. }
            | query::Error::OrderByNotIndexed { .. }
            | query::Error::NoCompositeIndex
            | query::Error::Refused(_)
            | query::Error::Function(_) => Error::InvalidQuery(error.to_document()),
        }
    }
}

/// Whether a query may call user-defined functions. Most texts tell at a glance that theirs does not.
pub(crate) fn may_call_functions(text: &str) -> bool {
    text.contains("udf")
}

fn calls_functions(text: &str, parsed: &sql::Query) -> bool {
    may_call_functions(text) && parsed.calls_functions()
}

/// Reads the condition of a patch.
pub(crate) fn parse_condition(text: &str) -> Result<Condition> {
    sql::parse_condition(text).map_err(|error| query::Error::from(error).into())
}

/// Whether an item satisfies the condition of a patch.
pub(crate) fn matches(ctx: &Ctx, condition: &Condition, root: Node<'_>) -> Result<bool> {
    Ok(query::matches(ctx, condition, root, &Parameters::new())?)
}

/// How queries are run so that they do what the price list counts.
pub(crate) fn strategy(profile: Profile) -> Strategy {
    match profile {
        Profile::Of2019 => Strategy::Literal,
        Profile::Modern => Strategy::Least,
    }
}

fn parameters(query: &QueryText) -> Parameters {
    let mut parameters = Parameters::new();
    for (name, value) in &query.parameters {
        parameters.insert(name.clone(), value.clone());
    }
    parameters
}

impl Core {
    /// Runs one page of a query that may call these functions.
    pub(crate) fn query_page(
        &self,
        ctx: &Ctx,
        container: &Container,
        scope: &Scope,
        bound: BoundQuery,
        page: &PageRequest,
        functions: &dyn Udf,
    ) -> Result<FeedPage> {
        check_scan(container, &bound, page)?;
        check_aggregates(container, &bound, scope)?;
        let (source, routing) = self.query_source(ctx, container, scope, &bound)?;
        check_sessions(container, &source.view, &source.selection, page.session.as_ref())?;
        self.admit(ctx, container, &source.selection.partitions)?;
        let state = page.continuation.as_deref().map(|token| {
            let bytes = self.unseal(Purpose::Query, container, token)?;
            State::decode(&bytes).map_err(Error::from)
        });
        let state = state.transpose()?;
        let strategy = strategy(self.profile);
        let watch = page.wants_times.then(|| (Instant::now(), Timed::new(&source)));
        let plan = query::plan_by(bound, &routing, &source, state.as_ref(), strategy)?;
        let planned = watch.as_ref().map(|(started, _)| started.elapsed());
        let limits = PageLimits {
            rows_max: items_max(page.items_max),
            bytes_max: limits::PAGE_BYTES_MAX,
            memory_bytes_max: MEMORY_BYTES_MAX,
        };
        let items: &dyn Source = watch.as_ref().map_or(&source, |(_, timed)| timed);
        let found = query::execute_with(ctx, &plan, items, state.as_ref(), limits, functions)?;
        ctx.meter().items_returned(found.rows.len() as u64);
        ctx.meter().fuel(functions.fuel());
        let is_cut_by_time = found.end == query::PageEnd::Deadline;
        let continuation =
            found.state.map(|state| self.seal(Purpose::Query, container, &state.encode()));
        let partition = source.selection.partitions.first().copied().unwrap_or(0);
        if let Some(items) = plan.items_counted() {
            source.counted(ctx, items);
        }
        let terms = QueryTerms {
            profile: self.profile,
            filters: plan.lookups(),
            is_covered: plan.is_covered(),
        };
        let (bill, shares) = charge::query(ctx.wants_receipt(), ctx.meter(), terms);
        let (charge, receipt) = bill.finish();
        // What was tried in vain is done again, and paid for then.
        if !(ctx.is_trial() && is_cut_by_time) {
            for (&number, share) in source.selection.partitions.iter().zip(shares) {
                self.spend(ctx, container, number, source.logical_key(), share);
            }
        }
        let meter = ctx.meter().read();
        Ok(FeedPage {
            rows: found.rows,
            continuation,
            charge,
            receipt,
            session: session_of(container, &source.view, &source.selection),
            partition: u32::from(partition),
            lsn: source.view.position(container.layout.partitions[usize::from(partition)].log),
            meter,
            is_cut_by_time,
            times: watch.zip(planned).map(|((_, timed), planned)| timed.times(planned)),
            index_use: page.wants_index_use.then(|| plan.index_use(&source)),
            is_reversed: plan.is_reversed(),
        })
    }

    /// Reads a query over a container.
    pub(crate) fn bind(&self, container: &Container, query: &QueryText) -> Result<BoundQuery> {
        let parsed = self.parsed.get(&query.text).map_err(query::Error::from)?;
        let schema = self.schema(container, calls_functions(&query.text, &parsed.query));
        let (parsed, printed) = (&parsed.query, &parsed.printed);
        Ok(query::bind_printed(parsed, printed, &parameters(query), &schema)?)
    }

    /// What a query reads from, and where its filter leads to.
    pub(crate) fn query_source<'a>(
        &'a self,
        ctx: &Ctx,
        container: &'a Container,
        scope: &Scope,
        query: &BoundQuery,
    ) -> Result<(ContainerSource<'a>, Routing<'a>)> {
        let routing = query::routing(query, &container.layout.key_paths);
        let selection = narrowed(container, container.select(scope)?, &routing.pins);
        let now = ctx.now().as_secs() as u32;
        Ok((ContainerSource::new(self, container, selection, now), routing))
    }

    /// The value of an expression that refers to no item.
    pub(crate) fn evaluate(&self, ctx: &Ctx, query: &QueryText) -> Result<Value> {
        let parsed = self.parsed.get(&query.text).map_err(query::Error::from)?;
        let bound = query::bind(&parsed.query, &parameters(query))?;
        let fault = |error: item::IngestError| Error::Fault(error.to_string());
        // One row is evaluated for each root, whatever it is.
        let root = Json::parse(b"{}").map_err(fault)?;
        let rows = query::rows_over(ctx, &bound, [root.root()])?;
        let value = rows.first().map(|row| Value::parse(row)).transpose();
        Ok(value.map_err(fault)?.unwrap_or_default())
    }
}

impl FeedPage {
    /// The same, and it is known how long the query took to understand.
    pub(crate) fn compiled_in(mut self, compile: Option<Duration>) -> FeedPage {
        self.times =
            self.times.map(|times| Times { compile: compile.unwrap_or_default(), ..times });
        self
    }
}

impl Engine {
    /// Runs one page of a query that calls no user-defined functions.
    pub fn query_items(
        &self,
        ctx: &Ctx,
        container: &Container,
        scope: &Scope,
        query: &QueryText,
        page: &PageRequest,
    ) -> Result<FeedPage> {
        let started = page.wants_times.then(Instant::now);
        let bound = self.core.bind(container, query)?;
        let compiled = started.map(|started| started.elapsed());
        let found = self.core.query_page(ctx, container, scope, bound, page, &Functions::NONE)?;
        Ok(found.compiled_in(compiled))
    }

    /// The plan of a query, as clients that fan out themselves want it. `features` is what the
    /// client says it can do, separated by commas.
    ///
    /// A client that cannot merge what the query needs is told so, unless there is nothing to
    /// merge: with one physical partition it gets a plan that just passes the query on.
    pub fn query_plan(
        &self,
        container: &Container,
        query: &QueryText,
        features: Option<&str>,
    ) -> Result<String> {
        let parsed = sql::parse(&query.text).map_err(query::Error::from)?;
        let schema = self.core.schema(container, calls_functions(&query.text, &parsed));
        let mut info = query::plan_info_with(&parsed, &parameters(query), &schema)?;
        let missing = missing_features(&info, features);
        if !missing.is_empty() {
            if container.layout.partitions.len() > 1 {
                return Err(Error::Invalid(format!(
                    "Query contains the following features, which the calling client does not \
                     support: {}. Update your client.",
                    missing.join(", ")
                )));
            }
            info = info.pass_through();
        }
        let bound = query::bind_with(&parsed, &parameters(query), &schema)?;
        let routing = query::routing(&bound, &container.layout.key_paths);
        let ranges = match bound.reads_items() {
            true => ranges_of(container, &routing.pins),
            false => vec![QueryRange::first()],
        };
        Ok(info.to_json(&ranges))
    }

    /// Runs a query over the bodies of resources.
    pub fn query_resources(
        &self,
        ctx: &Ctx,
        resources: &[Resource],
        query: &QueryText,
    ) -> Result<Vec<Bytes>> {
        let parsed = sql::parse(&query.text).map_err(query::Error::from)?;
        let bound = query::bind(&parsed, &parameters(query))?;
        let bodies: Vec<Json> = resources
            .iter()
            .map(|resource| Json::parse(resource.body.to_string().as_bytes()))
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| Error::Fault(error.to_string()))?;
        Ok(query::rows_over(ctx, &bound, bodies.iter().map(Json::root))?)
    }
}

/// Groups over several logical partitions have few aggregates.
fn check_aggregates(container: &Container, query: &BoundQuery, scope: &Scope) -> Result<()> {
    let definition = &container.layout.key_definition;
    let is_one = match scope {
        Scope::PartitionKey(key) | Scope::KeyInRange { key, .. } => definition.is_complete(key),
        Scope::Container | Scope::Range { .. } => false,
    };
    if is_one || query.grouped_aggregates() <= limits::GROUPED_AGGREGATES_MAX {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "A query with GROUP BY over several partition keys can have {} aggregates at most; this \
         one has {}.",
        limits::GROUPED_AGGREGATES_MAX,
        query.grouped_aggregates()
    )))
}

/// A container without an index answers a filter only by a scan, which the client must ask for.
/// Items named by key and id are found without either.
fn check_scan(container: &Container, query: &BoundQuery, page: &PageRequest) -> Result<()> {
    let is_indexed = container.definition().indexing.mode == IndexingMode::Consistent;
    if is_indexed || page.is_scan_enabled || !query.has_filter() {
        return Ok(());
    }
    let pins = query::routing(query, &container.layout.key_paths).pins;
    if pins.iter().all(|pin| pin.ids.is_some()) {
        return Ok(());
    }
    Err(Error::Invalid(
        "An invalid query has been specified with filters against path(s) excluded from indexing. \
         Consider adding allow scan header in the request."
            .into(),
    ))
}

/// What a plan needs that a client does not offer. A client that says nothing offers everything
/// that a client can do.
fn missing_features(info: &PlanInfo, features: Option<&str>) -> Vec<&'static str> {
    let Some(features) = features else { return info.unmergeable.into_iter().collect() };
    let offered: Vec<&str> = features.split(',').map(str::trim).collect();
    info.features().into_iter().filter(|feature| !offered.contains(feature)).collect()
}

/// The part of a selection in which a filter with these pins can find anything.
fn narrowed(container: &Container, selection: Selection, pins: &[Pin]) -> Selection {
    if pins.iter().any(|pin| pin.key.is_empty()) {
        return selection;
    }
    let nothing = Selection { partitions: Vec::new(), key: None, range: None };
    let definition = &container.layout.key_definition;
    if let [pin] = pins {
        let key = key_of(&pin.key);
        let is_wider = selection.key.as_ref().is_some_and(|own| own.0.len() > key.0.len());
        if is_wider || (selection.range.is_some() && !definition.is_complete(&key)) {
            return selection;
        }
        if definition.is_complete(&key) && !selection.contains(container, &key) {
            return nothing;
        }
        let partitions = overlapping(container, &selection, std::slice::from_ref(&key));
        return Selection { partitions, key: Some(key), range: None };
    }
    let keys: Vec<PartitionKey> = pins.iter().map(|pin| key_of(&pin.key)).collect();
    let partitions = overlapping(container, &selection, &keys);
    Selection { partitions, ..selection }
}

fn overlapping(container: &Container, selection: &Selection, keys: &[PartitionKey]) -> Vec<u16> {
    let layout = &container.layout;
    let touches = |number: u16| {
        let range = &layout.partitions[usize::from(number)].range;
        keys.iter().any(|key| match layout.key_definition.is_complete(key) {
            true => container.partition_of(key) == u32::from(number),
            false => range.overlaps(&EpkRange::of_prefix(&layout.key_definition, key)),
        })
    };
    selection.partitions.iter().copied().filter(|&number| touches(number)).collect()
}

/// The intervals of effective partition keys a query concerns: a key is a closed interval.
fn ranges_of(container: &Container, pins: &[Pin]) -> Vec<QueryRange> {
    let definition = &container.layout.key_definition;
    if pins.is_empty() || pins.iter().any(|pin| pin.key.is_empty()) {
        return vec![QueryRange::full()];
    }
    let range = |pin: &Pin| {
        let key = key_of(&pin.key);
        let is_max_inclusive = definition.is_complete(&key);
        let range = EpkRange::of_prefix(definition, &key);
        let max = if is_max_inclusive { &range.min } else { &range.max };
        QueryRange { min: range.min.to_string(), max: max.to_string(), is_max_inclusive }
    };
    let mut ranges: Vec<QueryRange> = pins.iter().map(range).collect();
    ranges.sort_by(|a, b| a.min.cmp(&b.min));
    ranges.dedup();
    ranges
}
