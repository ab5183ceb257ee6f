//! A naive source in memory, for tests of this crate and of what is built on it.

mod functions;

use base::{Ctx, Random};
use bytes::Bytes;
use item::{Draft, Item, Kind, Stamp, Value};

use crate::{
    Batch, BoundQuery, Bounds, Direction, PageLimits, Parameters, Path, Plan, Point, Position,
    Segment, Sizes, Source, SourceError, Span, State, bind_with, execute_with, plan,
};
pub use functions::TestFunctions;

/// An item with this body and ordinal; panics if the body is not a JSON object.
pub fn item(body: &str, ordinal: u64) -> Item {
    let rid = format!("AAAAAIAAAAAB{ordinal:012}");
    let self_link = format!("dbs/AAAAAA==/colls/AAAAAIAAAAA=/docs/{rid}/");
    let stamp = Stamp {
        rid: &rid,
        self_link: &self_link,
        etag: "00000000-0000-0000-0000-000000000000",
        ts: 1_700_000_000,
        lsn: ordinal,
        position: 0,
        ordinal,
        is_indexed: true,
    };
    Draft::parse(body.as_bytes()).expect("the body of a test item is a JSON object").stamp(&stamp)
}

/// Few, so that whoever asks for items has to go on.
const ITEMS_AT_ONCE: usize = 3;

/// Items in a vector, dealt out to partitions. Every call walks all of them.
#[derive(Clone, Debug)]
pub struct VecSource {
    partitions: Vec<Vec<Item>>,
    partition_key_paths: Vec<Path>,
    /// Whether paths have a range index.
    pub is_indexed: bool,
    /// Paths that have none all the same.
    pub excluded: Vec<Path>,
    /// The composite indexes.
    pub composites: Vec<Vec<(Path, Direction)>>,
    /// Paths of English prose whose words are indexed.
    pub full_text: Vec<Path>,
    /// What [`Source::fixed_key`] answers.
    pub fixed_key: Option<Vec<Value>>,
    /// What [`Source::sizes`] says of itself.
    pub is_exact: bool,
    /// Bytes of a string that a key keeps.
    pub string_bytes_max: usize,
}

impl VecSource {
    /// A source of these items, in the order of their ordinals, dealt out to so many partitions.
    /// Everything is indexed.
    pub fn new(items: impl IntoIterator<Item = Item>, partitions: usize) -> VecSource {
        let mut dealt = vec![Vec::new(); partitions];
        for (at, item) in items.into_iter().enumerate() {
            dealt[at % partitions].push(item);
        }
        dealt.iter_mut().for_each(|items| items.sort_by_key(Item::ordinal));
        VecSource {
            partitions: dealt,
            partition_key_paths: vec![Path::of(["id"])],
            is_indexed: true,
            excluded: Vec::new(),
            composites: Vec::new(),
            full_text: Vec::new(),
            fixed_key: None,
            is_exact: true,
            string_bytes_max: 64,
        }
    }

    /// The same with other partition key paths than `/id`.
    pub fn keyed(mut self, paths: &[Vec<String>]) -> VecSource {
        self.partition_key_paths = paths.iter().map(Path::of).collect();
        self
    }

    /// The part of it that is one logical partition.
    pub fn fixed(mut self, key: Vec<Value>) -> VecSource {
        let mut partitions = std::mem::take(&mut self.partitions);
        partitions.iter_mut().for_each(|items| items.retain(|item| self.has_key(item, &key)));
        VecSource { partitions, fixed_key: Some(key), ..self }
    }

    fn has_key(&self, item: &Item, key: &[Value]) -> bool {
        let mut parts = self.partition_key_paths.iter().zip(key);
        parts.all(|(path, part)| path.value(item.root()).deep_eq(part))
    }

    fn is_point(&self, item: &Item, point: &Point) -> bool {
        let has_key = |key: &Vec<Value>| self.has_key(item, key);
        item.id().as_deref() == Some(point.id.as_str()) && point.key.as_ref().is_none_or(has_key)
    }

    /// The entries of a span in one partition, in order.
    fn span(&self, partition: usize, span: &Span) -> Vec<Position> {
        let items = self.partitions[partition].iter();
        let mut entries: Vec<Position> = match span {
            Span::Path { path, bounds } => {
                items.flat_map(|item| self.entries_of(item, path, bounds)).collect()
            }
            Span::Composite { keys, equal, bounds } => {
                items.filter_map(|item| self.composite(item, keys, equal, bounds)).collect()
            }
            Span::Word { path, stem } => {
                let has = |item: &&Item| {
                    let text = path.value(item.root());
                    let words =
                        text::tokens(text::Language::default(), text.as_str().unwrap_or(""));
                    words.iter().any(|word| word.stem == *stem)
                };
                let entry = |item: &Item| Position::exact(Bytes::new(), item.ordinal());
                items.filter(has).map(entry).collect()
            }
            // Everything may be near; twice, to show that it does not matter.
            Span::Near { path, .. } => {
                let is_there = |item: &&Item| !path.values(item.root()).is_empty();
                let entry = |item: &Item| {
                    [1, 2].map(|cell| Position::exact(vec![cell].into(), item.ordinal()))
                };
                items.filter(is_there).flat_map(entry).collect()
            }
        };
        entries.sort_by(|a, b| (&a.key, a.ordinal).cmp(&(&b.key, b.ordinal)));
        entries.dedup();
        entries
    }

    fn entries_of(&self, item: &Item, path: &Path, bounds: &Bounds) -> Vec<Position> {
        let mut entries = Vec::new();
        for node in path.values(item.root()) {
            let value = node.to_value();
            let (key, is_exact) = self.key(&value);
            let cut = (!is_exact).then_some(key.len());
            // What was cut may be anything that begins alike.
            let is_alike = !is_exact && bounds.single().is_none_or(|own| self.key(own).0 == key);
            if bounds.contains(&value) || is_alike {
                entries.push(Position { key, ordinal: item.ordinal(), cut });
            }
        }
        entries
    }

    fn composite(
        &self,
        item: &Item,
        keys: &[(Path, Direction)],
        equal: &[Value],
        bounds: &Bounds,
    ) -> Option<Position> {
        let (mut bytes, mut cut) = (Vec::new(), None);
        for (at, (path, direction)) in keys.iter().enumerate() {
            let value = path.value(item.root());
            let (mut key, is_exact) = self.key(&value);
            if *direction == Direction::Descending {
                key = key.iter().map(|byte| !byte).collect();
            }
            bytes.extend_from_slice(&key);
            if !is_exact {
                cut = cut.or(Some(bytes.len()));
            }
            let is_within = match equal.get(at) {
                Some(own) => own.deep_eq(&value),
                None if at == equal.len() && *bounds != Bounds::ALL => {
                    !value.is_undefined() && bounds.contains(&value)
                }
                None => true,
            };
            if !is_within && is_exact {
                return None;
            }
        }
        Some(Position { key: bytes.into(), ordinal: item.ordinal(), cut })
    }

    /// Order-preserving bytes of a value, and whether they hold all of it.
    fn key(&self, value: &Value) -> (Bytes, bool) {
        let mut key = vec![value.kind().map_or(0, |kind| kind as u8 + 1)];
        let mut is_exact = true;
        match value {
            Value::Bool(value) => key.push(u8::from(*value)),
            Value::Number(number) => {
                let bits = (number + 0.0).to_bits();
                let sign = 1 << 63;
                let ordered = if bits & sign == 0 { bits | sign } else { !bits };
                key.extend_from_slice(&ordered.to_be_bytes());
            }
            Value::String(text) => {
                is_exact = text.len() <= self.string_bytes_max;
                key.extend(text.bytes().take(self.string_bytes_max));
                key.push(if is_exact { 0 } else { 0xff });
            }
            // The type is all there is.
            Value::Array(_) | Value::Object(_) => is_exact = false,
            Value::Undefined | Value::Null => {}
        }
        (key.into(), is_exact)
    }
}

/// The first rows of what is left, and whether that is all.
/// As stores have it, who gets as much as was asked for does not know whether that was all.
fn batch<T>(mut rows: Vec<T>, rows_max: usize) -> Batch<T> {
    let is_last = rows.len() < rows_max;
    rows.truncate(rows_max);
    Batch { rows, is_last }
}

impl Source for VecSource {
    fn partitions(&self) -> usize {
        self.partitions.len()
    }

    fn fixed_key(&self) -> Option<&[Value]> {
        self.fixed_key.as_deref()
    }

    fn scan(
        &self,
        _: &Ctx,
        partition: usize,
        after: Option<u64>,
        rows_max: usize,
    ) -> Result<Batch<Item>, SourceError> {
        let items = self.partitions[partition].iter();
        let rest = items.filter(|item| after.is_none_or(|after| item.ordinal() > after));
        let batch = batch(rest.cloned().collect(), rows_max);
        Ok(batch)
    }

    fn points(
        &self,
        _: &Ctx,
        partition: usize,
        points: &[Point],
        after: Option<u64>,
        rows_max: usize,
    ) -> Result<Batch<Item>, SourceError> {
        let items = self.partitions[partition].iter();
        let rest = items.filter(|item| after.is_none_or(|after| item.ordinal() > after));
        let found = rest.filter(|item| points.iter().any(|point| self.is_point(item, point)));
        let batch = batch(found.cloned().collect(), rows_max);
        Ok(batch)
    }

    fn is_indexed(&self, path: &Path) -> bool {
        self.is_indexed && !self.excluded.contains(path)
    }

    fn is_spatial(&self, _: &Path) -> bool {
        self.is_indexed
    }

    fn is_full_text(&self, path: &Path) -> bool {
        self.is_indexed && self.full_text.contains(path)
    }

    fn composites(&self) -> &[Vec<(Path, Direction)>] {
        &self.composites
    }

    fn entries(
        &self,
        _: &Ctx,
        partition: usize,
        span: &Span,
        direction: Direction,
        after: Option<&Position>,
        rows_max: usize,
    ) -> Result<Batch<Position>, SourceError> {
        let mut entries = self.span(partition, span);
        if direction == Direction::Descending {
            entries.reverse();
        }
        entries.retain(|position| {
            after.is_none_or(|after| {
                let order = (&position.key, position.ordinal).cmp(&(&after.key, after.ordinal));
                if direction == Direction::Ascending { order.is_gt() } else { order.is_lt() }
            })
        });
        let batch = batch(entries, rows_max);
        Ok(batch)
    }

    fn value_of(&self, key: &[u8]) -> Option<Value> {
        let (kind, rest) = key.split_first()?;
        let is = |known: Kind| *kind == known as u8 + 1;
        match rest {
            [] if is(Kind::Null) => Some(Value::Null),
            [value] if is(Kind::Bool) => Some(Value::Bool(*value == 1)),
            [text @ .., 0] if is(Kind::String) => std::str::from_utf8(text).ok().map(Value::from),
            _ if is(Kind::Number) => {
                let ordered = u64::from_be_bytes(rest.try_into().ok()?);
                let sign = 1 << 63;
                let bits = if ordered & sign == 0 { !ordered } else { ordered ^ sign };
                Some(Value::Number(f64::from_bits(bits)))
            }
            _ => None,
        }
    }

    fn items(
        &self,
        _: &Ctx,
        partition: usize,
        ordinals: &[u64],
    ) -> Result<Vec<Option<Item>>, SourceError> {
        let all = &self.partitions[partition];
        let find = |ordinal: &u64| all.iter().find(|item| item.ordinal() == *ordinal).cloned();
        let items: Vec<Option<Item>> = ordinals.iter().take(ITEMS_AT_ONCE).map(find).collect();
        Ok(items)
    }

    fn may_lack(&self, partition: usize, path: &Path) -> Result<bool, SourceError> {
        let lacks = |item: &Item| path.values(item.root()).is_empty();
        Ok(self.partitions[partition].iter().any(lacks))
    }

    fn probe(&self, span: &Span, most: usize) -> Result<usize, SourceError> {
        let entries = (0..self.partitions.len()).map(|partition| self.span(partition, span).len());
        Ok(entries.sum::<usize>().min(most))
    }

    fn count(&self, _: &Ctx, partition: usize, span: &Span) -> Result<Option<u64>, SourceError> {
        let entries = self.span(partition, span);
        let is_exact = entries.iter().all(|entry| entry.cut.is_none());
        Ok(is_exact.then_some(entries.len() as u64))
    }

    fn sizes(&self) -> Result<Sizes, SourceError> {
        let items = self.partitions.iter().map(|items| items.len() as u64).sum();
        Ok(Sizes { scope: items, partitions: items, is_exact: self.is_exact })
    }

    fn lacking(
        &self,
        _: &Ctx,
        partition: usize,
        path: &Path,
        direction: Direction,
        after: Option<u64>,
        rows_max: usize,
    ) -> Result<Batch<Item>, SourceError> {
        let items = self.partitions[partition].iter();
        let mut lacking: Vec<Item> =
            items.filter(|item| path.values(item.root()).is_empty()).cloned().collect();
        if direction == Direction::Descending {
            lacking.reverse();
        }
        lacking.retain(|item| {
            after.is_none_or(|after| match direction {
                Direction::Ascending => item.ordinal() > after,
                Direction::Descending => item.ordinal() < after,
            })
        });
        let batch = batch(lacking, rows_max);
        Ok(batch)
    }
}

/// Every plan that could serve a query, not only the one that would be taken.
pub fn all_plans(
    query: &BoundQuery,
    partition_key_paths: &[Vec<String>],
    source: &dyn Source,
) -> Vec<Plan> {
    crate::plan::all_plans(query, partition_key_paths, source)
}

/// The rows of a query over all pages of at most `rows_max` rows, planned anew for each page as the
/// engine does, with [`TestFunctions`]; panics if anything goes wrong.
pub fn rows_in_pages(source: &VecSource, text: &str, rows_max: usize) -> Vec<String> {
    let names = |path: &Path| path.segments().iter().filter_map(Segment::name).collect();
    let keys: Vec<Vec<String>> = source.partition_key_paths.iter().map(names).collect();
    let parsed = sql::parse(text).expect("the query of a test parses");
    let bound = bind_with(&parsed, &Parameters::new(), &TestFunctions::schema());
    let bound = bound.expect("the query of a test binds");
    let functions = TestFunctions::of(&bound);
    let ctx = Ctx::background();
    let limits = PageLimits { rows_max, ..PageLimits::default() };
    let (mut rows, mut state) = (Vec::new(), None);
    loop {
        let plan = plan(bound.clone(), &keys, source, state.as_ref()).expect("a plan");
        let page = execute_with(&ctx, &plan, source, state.as_ref(), limits, &functions);
        let page = page.expect("a page");
        assert!(page.rows.len() <= rows_max, "{text}");
        rows.extend(page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
        let Some(next) = page.state else { return rows };
        state = Some(State::decode(&next.encode()).expect("a state decodes"));
    }
}

/// Makes items and queries over few names and values, so that ties, absent values and alike
/// beginnings are common.
#[derive(Debug)]
pub struct Generator {
    random: Random,
    /// In front of some strings, long enough to be cut from index entries.
    pub long_prefix: String,
    /// Queries call [`TestFunctions`] too.
    pub calls_functions: bool,
}

/// A query with what may be expected of it.
#[derive(Clone, Debug)]
pub struct GeneratedQuery {
    /// The query.
    pub text: String,
    /// The paths its rows are ordered by: the rows are objects that have them under these names.
    pub order: Vec<(&'static str, Direction)>,
}

/// The composite indexes that generated queries rely on.
pub fn generated_composites() -> Vec<Vec<(Path, Direction)>> {
    let index = |keys: &[(&str, Direction)]| {
        keys.iter().map(|(name, direction)| (Path::of([name]), *direction)).collect()
    };
    let (up, down) = (Direction::Ascending, Direction::Descending);
    vec![
        index(&[("a", up), ("id", up)]),
        index(&[("a", down), ("id", up)]),
        index(&[("b", up), ("a", up), ("id", up)]),
        index(&[("a", up), ("b", up)]),
    ]
}

impl Generator {
    /// Everything follows from the seed.
    pub fn new(seed: u64, long_prefix: &str) -> Generator {
        let (random, long_prefix) = (Random::from_seed(seed), long_prefix.to_owned());
        Generator { random, long_prefix, calls_functions: false }
    }

    fn below(&self, limit: u64) -> u64 {
        self.random.next() % limit
    }

    fn pick<'a>(&self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// A JSON value, the one comparisons use too.
    fn value(&self) -> String {
        match self.below(12) {
            0 => "null".to_owned(),
            1 => "true".to_owned(),
            2 => "false".to_owned(),
            3..=6 => self.below(4).to_string(),
            7 => "2.5".to_owned(),
            8 | 9 => format!("\"{}\"", self.pick(&["x", "y", "xy", ""])),
            _ => format!("\"{}{}\"", self.long_prefix, self.pick(&["x", "y", "xy"])),
        }
    }

    /// The body of item number `number`.
    pub fn body(&self, number: usize) -> String {
        let mut body = format!("{{\"id\":\"i{number:02}\",\"pk\":\"p{}\"", self.below(3));
        for name in ["a", "b"] {
            if self.below(8) > 0 {
                let value = match self.below(10) {
                    0 => "[1]".to_owned(),
                    1 => "{\"x\":1}".to_owned(),
                    _ => self.value(),
                };
                body.push_str(&format!(",\"{name}\":{value}"));
            }
        }
        if self.below(4) > 0 {
            body.push_str(&format!(",\"n\":{{\"x\":{}}}", self.value()));
        }
        if self.below(3) > 0 {
            let tags: Vec<String> = (0..self.below(4)).map(|_| self.value()).collect();
            body.push_str(&format!(",\"tags\":[{}]", tags.join(",")));
        }
        body + "}"
    }

    /// A query.
    pub fn query(&self) -> GeneratedQuery {
        match self.below(8) {
            0..=2 => self.plain(),
            3 => self.grouped(),
            4 => self.aggregated(),
            _ => self.ordered(),
        }
    }

    fn plain(&self) -> GeneratedQuery {
        if self.calls_functions && self.below(4) == 0 {
            return self.called();
        }
        let select = self.pick(&[
            "*",
            "VALUE c.id",
            "c.id, c.a",
            "VALUE c.a",
            "DISTINCT VALUE c.a",
            "DISTINCT c.b, c.n.x",
        ]);
        let text = format!("SELECT {select} FROM c{}", self.filter());
        if self.below(4) == 0 && !select.contains('*') {
            let value = self.value();
            let on_element = match self.below(4) {
                0 => format!(" WHERE t = {value}"),
                1 => format!(" WHERE t > {value} AND {}", self.condition(1)),
                2 => format!(" WHERE t IN ({value}, {}) OR {}", self.value(), self.condition(0)),
                _ => self.filter(),
            };
            let text = format!("SELECT {select}, t FROM c JOIN t IN c.tags{on_element}")
                .replace("VALUE c.id, t", "c.id, t")
                .replace("VALUE c.a, t", "c.a, t");
            return GeneratedQuery { text, order: Vec::new() };
        }
        GeneratedQuery { text, order: Vec::new() }
    }

    /// A query whose rows are made by functions.
    fn called(&self) -> GeneratedQuery {
        let query = self.pick(&[
            "SELECT VALUE udf.same(c.a) FROM c",
            "SELECT c.id, udf.add(c.a, c.n.x) AS sum FROM c",
            "SELECT DISTINCT VALUE udf.add(c.a, 1) FROM c",
            "SELECT c.id, t FROM c JOIN t IN (SELECT VALUE udf.tags(c))",
            "SELECT VALUE {\"n\": udf.count(c.id, c.pk, 1, 2, 3), \"a\": [udf.same(c.b)]} FROM c",
            "SELECT COUNT(udf.isLarge(c.a)) AS n, MAX(udf.same(c.id)) AS most FROM c",
        ]);
        let text = match self.below(4) {
            0 => format!(
                "SELECT udf.same(c.a) AS k, COUNT(1) AS n FROM c{} GROUP BY udf.same(c.a)",
                self.filter()
            ),
            _ => format!("{query}{}", self.filter()),
        };
        GeneratedQuery { text, order: Vec::new() }
    }

    fn grouped(&self) -> GeneratedQuery {
        if self.below(3) == 0 {
            let (key, filter) = match self.below(3) {
                0 => ("c.a, c.id", String::new()),
                1 => ("c.id", format!(" WHERE c.a = {}", self.value())),
                _ => ("c.a, c.b", String::new()),
            };
            let text = format!("SELECT {key}, COUNT(1) AS n FROM c{filter} GROUP BY {key}");
            return GeneratedQuery { text, order: Vec::new() };
        }
        let key = self.pick(&["c.a", "c.b", "c.n.x", "c.pk"]);
        let text = format!(
            "SELECT {key} AS k, COUNT(1) AS n, MIN(c.id) AS least, MAX(c.b) AS most FROM c{} \
             GROUP BY {key}",
            self.filter()
        );
        GeneratedQuery { text, order: Vec::new() }
    }

    fn aggregated(&self) -> GeneratedQuery {
        let select = self.pick(&[
            "VALUE COUNT(1)",
            "COUNT(1) AS n",
            "COUNT(c.a) AS n, MIN(c.a) AS least, MAX(c.a) AS most",
            "VALUE MAX(c.id)",
            "VALUE MIN(c.n.x)",
            "SUM(c.a) AS s",
        ]);
        let text = format!("SELECT {select} FROM c{}", self.filter());
        GeneratedQuery { text, order: Vec::new() }
    }

    fn ordered(&self) -> GeneratedQuery {
        let (up, down) = (Direction::Ascending, Direction::Descending);
        let order: Vec<(&'static str, Direction)> = match self.below(6) {
            0 => vec![("a", up)],
            1 => vec![("a", down)],
            2 => vec![("id", up)],
            3 => vec![("a", up), ("id", up)],
            4 => vec![("a", up), ("id", down)],
            _ => vec![("b", down), ("a", down), ("id", down)],
        };
        let direction = |d: Direction| if d == up { "" } else { " DESC" };
        let keys: Vec<String> =
            order.iter().map(|(name, d)| format!("c.{name}{}", direction(*d))).collect();
        let is_total = order.iter().any(|(name, _)| *name == "id");
        let (top, tail) = match self.below(4) {
            0 if is_total => (format!("TOP {} ", self.below(6)), String::new()),
            1 if is_total => {
                (String::new(), format!(" OFFSET {} LIMIT {}", self.below(4), self.below(9)))
            }
            _ => (String::new(), String::new()),
        };
        let text = format!(
            "SELECT {top}c.id, c.a, c.b FROM c{} ORDER BY {}{tail}",
            self.filter(),
            keys.join(", ")
        );
        GeneratedQuery { text, order }
    }

    fn filter(&self) -> String {
        if self.below(5) == 0 { String::new() } else { format!(" WHERE {}", self.condition(2)) }
    }

    fn condition(&self, depth: u64) -> String {
        let nested = || self.condition(depth - 1);
        match self.below(8) {
            0 | 1 if depth > 0 => format!("({} AND {})", nested(), nested()),
            2 if depth > 0 => format!("({} OR {})", nested(), nested()),
            3 if depth > 0 => format!("(NOT {})", nested()),
            _ => self.predicate(),
        }
    }

    fn predicate(&self) -> String {
        let path = self.pick(&["c.a", "c.a", "c.b", "c.n.x", "c.id", "c.pk"]);
        let value = || match path {
            "c.pk" => format!("\"p{}\"", self.below(4)),
            "c.id" => format!("\"i{:02}\"", self.below(20)),
            _ => self.value(),
        };
        if self.calls_functions && self.below(4) == 0 {
            return match self.below(5) {
                0 => format!("udf.same({path}) = {}", value()),
                1 => format!("udf.isLarge({path})"),
                2 => format!("{path} = udf.same({})", value()),
                3 => format!("udf.add({path}, {}) IN ({}, 'xx', 4)", value(), value()),
                _ => format!("ARRAY_CONTAINS(udf.tags(c), {})", self.value()),
            };
        }
        match self.below(15) {
            0..=3 => format!("{path} = {}", value()),
            4 => format!("{path} {} {}", self.pick(&["<", "<=", ">", ">=", "!="]), value()),
            5 => format!("{path} IN ({}, {}, {})", value(), value(), value()),
            6 => format!("{path} BETWEEN {} AND {}", value(), value()),
            7 => format!("STARTSWITH({path}, \"{}\")", self.pick(&["x", "i0", &self.long_prefix])),
            8 => format!("ARRAY_CONTAINS(c.tags, {})", self.value()),
            9 => {
                let of = if self.below(4) == 0 { "c" } else { path };
                let name = self.pick(&["IS_DEFINED", "IS_STRING", "IS_NUMBER", "IS_NULL"]);
                format!("{name}({of})")
            }
            10 => format!("{path} != {}", value()),
            11 => format!("{path} NOT IN ({}, {})", value(), value()),
            12 => self.on_text(path),
            13 => {
                format!("LEFT({path}, {}) = \"{}\"", self.below(3), self.pick(&["x", "i0", "xy"]))
            }
            _ => format!("{path} LIKE \"{}%\"", self.pick(&["x", "p", "i1"])),
        }
    }
}

impl Generator {
    /// A condition that the keys of an index are asked one by one.
    fn on_text(&self, path: &str) -> String {
        let not = self.pick(&["", "", "NOT "]);
        let text = self.pick(&["x", "y", "1", "XY", ""]);
        let condition = match self.below(5) {
            0 => format!("CONTAINS({path}, \"{text}\")"),
            1 => format!("ENDSWITH({path}, \"{text}\", true)"),
            2 => format!("StringEquals({path}, \"{text}\", true)"),
            3 => format!("RegexMatch({path}, \"[{text}0-3]$\")"),
            _ => format!("{path} LIKE \"%{text}\""),
        };
        format!("({not}{condition})")
    }
}

/// Properties that the engine adds; cases do not list them.
const SYSTEM: [&str; 5] = ["_rid", "_ts", "_etag", "_self", "_attachments"];

/// Whether rows are those a conformance case expects: numbers within a relative 1e-12, properties
/// in any order, those of the system aside; rows in any order unless `is_ordered`.
pub fn same_rows(actual: &[Value], expect: &[Value], is_ordered: bool) -> bool {
    if is_ordered {
        let mut pairs = actual.iter().zip(expect);
        return actual.len() == expect.len() && pairs.all(|(a, b)| same_value(a, b));
    }
    let mut left: Vec<&Value> = actual.iter().collect();
    let all_found = expect.iter().all(|row| {
        let found = left.iter().position(|other| same_value(other, row));
        found.map(|at| left.swap_remove(at)).is_some()
    });
    all_found && left.is_empty()
}

fn same_value(actual: &Value, expect: &Value) -> bool {
    match (actual, expect) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let own = a.iter().filter(|(name, _)| !SYSTEM.contains(name)).count();
            own == b.iter().count() && b.iter().all(|(name, value)| same_value(a.get(name), value))
        }
        (a, b) => a.deep_eq(b),
    }
}
