//! Counters and latencies of everything served, as Prometheus text.
//!
//! A request touches a handful of atomics in one cell, chosen by what it did to what; nothing is
//! locked or allocated. The text is built when somebody asks for it.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use engine::{ContainerUsage, PartitionUsage};
use model::RequestCharge;

use crate::routes::{Action, Kind};

/// Upper bounds of the latency buckets in microseconds; above the last is the infinite one.
const BUCKETS_US: [u64; 15] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 5_000_000,
];

const KINDS: [&str; 12] = [
    "account",
    "database",
    "container",
    "item",
    "script",
    "conflict",
    "partition_key_range",
    "partition_delete",
    "user",
    "permission",
    "client_encryption_key",
    "offer",
];

const ACTIONS: [&str; 13] = [
    "create",
    "upsert",
    "read",
    "replace",
    "patch",
    "delete",
    "list",
    "query",
    "plan",
    "change_feed",
    "batch",
    "bulk",
    "execute",
];

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

const _: () = {
    assert!(Kind::Offer as usize == KINDS.len() - 1, "every kind has a label");
    assert!(Action::Execute as usize == ACTIONS.len() - 1, "every action has a label");
};

/// All counters of a gateway.
pub struct Metrics {
    cells: Box<[Cell]>,
    refused: AtomicU64,
    throttled: AtomicU64,
    connections: AtomicU64,
    connections_open: AtomicU64,
}

/// The counters of one action on one kind.
#[derive(Default)]
struct Cell {
    classes: [AtomicU64; CLASSES.len()],
    latencies: [AtomicU64; BUCKETS_US.len() + 1],
    latency_us: AtomicU64,
    charge_raw: AtomicU64,
}

/// What came of one request.
pub struct Sample {
    /// What it did to what; `None` if it named neither.
    pub operation: Option<(Kind, Action)>,
    /// The status it was answered with.
    pub status: u16,
    /// Its price.
    pub charge: RequestCharge,
    /// How long it took.
    pub latency: Duration,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let cells = (0..KINDS.len() * ACTIONS.len()).map(|_| Cell::default()).collect();
        Metrics {
            cells,
            refused: AtomicU64::new(0),
            throttled: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            connections_open: AtomicU64::new(0),
        }
    }
}

impl Metrics {
    /// Counts one answered request.
    pub fn record(&self, sample: &Sample) {
        if sample.status == 429 {
            self.throttled.fetch_add(1, Relaxed);
        }
        let Some((kind, action)) = sample.operation else {
            self.refused.fetch_add(1, Relaxed);
            return;
        };
        let cell = &self.cells[kind as usize * ACTIONS.len() + action as usize];
        let latency_us = sample.latency.as_micros() as u64;
        let class = usize::from(sample.status / 100).clamp(1, CLASSES.len()) - 1;
        let bucket = BUCKETS_US.partition_point(|&bound| bound < latency_us);
        cell.classes[class].fetch_add(1, Relaxed);
        cell.latencies[bucket].fetch_add(1, Relaxed);
        cell.latency_us.fetch_add(latency_us, Relaxed);
        cell.charge_raw.fetch_add(sample.charge.raw(), Relaxed);
    }

    /// Counts a connection until the guard is dropped.
    pub fn connection(self: &Arc<Metrics>) -> OpenConnection {
        self.connections.fetch_add(1, Relaxed);
        self.connections_open.fetch_add(1, Relaxed);
        OpenConnection(self.clone())
    }

    /// Everything counted so far, in the text format of Prometheus, and what containers spent.
    pub fn text(&self, usage: &[ContainerUsage]) -> String {
        let mut out = String::with_capacity(4096);
        self.write_single(&mut out);
        self.write_requests(&mut out);
        self.write_charges(&mut out);
        self.write_latencies(&mut out);
        write_partitions(&mut out, usage);
        write_containers(&mut out, usage);
        out
    }

    fn write_single(&self, out: &mut String) {
        let singles = [
            ("connections_total", "counter", "Connections accepted.", &self.connections),
            ("connections_open", "gauge", "Connections open now.", &self.connections_open),
            ("throttled_total", "counter", "Requests answered 429.", &self.throttled),
            ("unrouted_total", "counter", "Requests that named no operation.", &self.refused),
        ];
        for (name, kind, help, value) in singles {
            head(out, name, kind, help);
            line(out, format_args!("cosmolabe_{name} {}", value.load(Relaxed)));
        }
    }

    fn write_requests(&self, out: &mut String) {
        head(out, "requests_total", "counter", "Requests answered, by operation and status class.");
        for (labels, cell) in self.used() {
            for (class, count) in CLASSES.iter().zip(&cell.classes) {
                let count = count.load(Relaxed);
                if count > 0 {
                    let text = format_args!(
                        "cosmolabe_requests_total{{{labels},status=\"{class}\"}} {count}"
                    );
                    line(out, text);
                }
            }
        }
    }

    fn write_charges(&self, out: &mut String) {
        head(out, "request_units_total", "counter", "Request units charged, by operation.");
        for (labels, cell) in self.used() {
            let charge = RequestCharge::from_raw(cell.charge_raw.load(Relaxed));
            line(out, format_args!("cosmolabe_request_units_total{{{labels}}} {charge}"));
        }
    }

    fn write_latencies(&self, out: &mut String) {
        let name = "request_seconds";
        head(out, name, "histogram", "Time from request head to response, by operation.");
        for (labels, cell) in self.used() {
            let mut total = 0;
            for (at, count) in cell.latencies.iter().enumerate() {
                total += count.load(Relaxed);
                let bound = BUCKETS_US.get(at).map(|&us| us as f64 / 1e6);
                let bound = bound.map_or("+Inf".to_owned(), |seconds| seconds.to_string());
                let text =
                    format_args!("cosmolabe_{name}_bucket{{{labels},le=\"{bound}\"}} {total}");
                line(out, text);
            }
            let sum = cell.latency_us.load(Relaxed) as f64 / 1e6;
            line(out, format_args!("cosmolabe_{name}_sum{{{labels}}} {sum}"));
            line(out, format_args!("cosmolabe_{name}_count{{{labels}}} {total}"));
        }
    }

    fn used(&self) -> impl Iterator<Item = (String, &Cell)> {
        self.cells.iter().enumerate().filter(|(_, cell)| cell.is_used()).map(|(at, cell)| {
            let (kind, action) = (KINDS[at / ACTIONS.len()], ACTIONS[at % ACTIONS.len()]);
            (format!("resource=\"{kind}\",operation=\"{action}\""), cell)
        })
    }
}

impl Cell {
    fn is_used(&self) -> bool {
        self.classes.iter().any(|count| count.load(Relaxed) > 0)
    }
}

/// A connection that is open.
pub struct OpenConnection(Arc<Metrics>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections_open.fetch_sub(1, Relaxed);
    }
}

/// What physical partitions spent, and how often they had nothing left.
fn write_partitions(out: &mut String, usage: &[ContainerUsage]) {
    let name = "partition_request_units_total";
    head(out, name, "counter", "Request units spent, by container and physical partition.");
    for (labels, PartitionUsage { id, spent, .. }) in partitions(usage) {
        line(out, format_args!("cosmolabe_{name}{{{labels},partition=\"{id}\"}} {spent}"));
    }
    let name = "partition_background_request_units_total";
    head(out, name, "counter", "Request units of background work, by physical partition.");
    for (labels, PartitionUsage { id, background, .. }) in partitions(usage) {
        line(out, format_args!("cosmolabe_{name}{{{labels},partition=\"{id}\"}} {background}"));
    }
    let name = "partition_throttled_total";
    head(out, name, "counter", "Requests refused, by container and physical partition.");
    for (labels, PartitionUsage { id, refused, .. }) in partitions(usage) {
        line(out, format_args!("cosmolabe_{name}{{{labels},partition=\"{id}\"}} {refused}"));
    }
}

fn partitions(usage: &[ContainerUsage]) -> impl Iterator<Item = (String, &PartitionUsage)> {
    usage.iter().flat_map(|one| one.partitions.iter().map(|partition| (labels_of(one), partition)))
}

/// Which logical partitions of containers spent the most, and what autoscale came to.
fn write_containers(out: &mut String, usage: &[ContainerUsage]) {
    let name = "hot_partition_key_request_units";
    head(out, name, "gauge", "Request units of the partition keys that spent the most, at most.");
    for one in usage {
        for (key, spent) in &one.hottest {
            let (labels, key) = (labels_of(one), escaped(key));
            line(out, format_args!("cosmolabe_{name}{{{labels},key=\"{key}\"}} {spent}"));
        }
    }
    let name = "autoscale_request_units_per_second";
    head(out, name, "gauge", "What autoscale came to in this hour, by container.");
    for one in usage {
        if let Some(scaled) = one.scaled {
            line(out, format_args!("cosmolabe_{name}{{{}}} {scaled}", labels_of(one)));
        }
    }
}

fn labels_of(one: &ContainerUsage) -> String {
    let (database, container) = (escaped(&one.database), escaped(&one.container));
    format!("database=\"{database}\",container=\"{container}\"")
}

/// A text as a label may hold it.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    line(out, format_args!("# HELP cosmolabe_{name} {help}\n# TYPE cosmolabe_{name} {kind}"));
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = writeln!(out, "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_containers_spent() {
        let partition = |id: u32, units| PartitionUsage {
            id,
            spent: RequestCharge::ONE * units,
            background: RequestCharge::ONE * (units + 1),
            refused: u64::from(id),
        };
        let usage = ContainerUsage {
            database: "d".into(),
            container: "c\"".into(),
            partitions: vec![partition(0, 5), partition(1, 7)],
            hottest: vec![("[\"k\"]".into(), RequestCharge::ONE * 3)],
            scaled: Some(400),
        };
        let text = Metrics::default().text(&[usage]);
        let labels = "database=\"d\",container=\"c\\\"\"";
        for expect in [
            format!("cosmolabe_partition_request_units_total{{{labels},partition=\"1\"}} 7"),
            format!(
                "cosmolabe_partition_background_request_units_total{{{labels},partition=\"1\"}} 8"
            ),
            format!("cosmolabe_partition_throttled_total{{{labels},partition=\"1\"}} 1"),
            format!("cosmolabe_hot_partition_key_request_units{{{labels},key=\"[\\\"k\\\"]\"}} 3"),
            format!("cosmolabe_autoscale_request_units_per_second{{{labels}}} 400"),
        ] {
            assert!(text.lines().any(|line| line == expect), "{expect}\n{text}");
        }
    }

    #[test]
    fn counted_and_printed() {
        let metrics = Arc::new(Metrics::default());
        let connection = metrics.connection();
        for (status, micros) in [(200, 60), (404, 3), (200, 9_000_000)] {
            metrics.record(&Sample {
                operation: Some((Kind::Item, Action::Read)),
                status,
                charge: RequestCharge::ONE,
                latency: Duration::from_micros(micros),
            });
        }
        let text = metrics.text(&[]);
        let labels = "resource=\"item\",operation=\"read\"";
        for expect in [
            format!("cosmolabe_requests_total{{{labels},status=\"2xx\"}} 2"),
            format!("cosmolabe_requests_total{{{labels},status=\"4xx\"}} 1"),
            format!("cosmolabe_request_units_total{{{labels}}} 3"),
            format!("cosmolabe_request_seconds_bucket{{{labels},le=\"0.00005\"}} 1"),
            format!("cosmolabe_request_seconds_bucket{{{labels},le=\"0.0001\"}} 2"),
            format!("cosmolabe_request_seconds_bucket{{{labels},le=\"+Inf\"}} 3"),
            format!("cosmolabe_request_seconds_count{{{labels}}} 3"),
            "cosmolabe_connections_open 1".to_owned(),
        ] {
            assert!(text.lines().any(|line| line == expect), "{expect}\n{text}");
        }
        drop(connection);
        assert!(metrics.text(&[]).contains("cosmolabe_connections_open 0"));
    }
}
