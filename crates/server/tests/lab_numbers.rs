//! Goal: the numbers of one run hold together: a curve says what a run at that point would say, the
//! lines of a receipt add up to the charge beside them.
//! Method: small workloads against a real server, compared with themselves.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use client::{Client, Key};
use common::Server;
use lab::receipt::Receipt;
use lab::{Counted, Data, Results, Run, Source, Watch};
use serde_json::Value;

struct Nobody;

impl Watch for Nobody {
    fn begin(&self, _: &str, _: Counted, _: u64) {}
    fn set(&self, _: u64) {}
    fn end(&self) {}
    fn warn(&self, _: &str) {}
}

/// The text of a workload that comes with the binary, with pieces of it replaced.
fn edited(name: &str, edits: &[(&str, &str)]) -> String {
    let text = lab::shelf::find(name).unwrap().text;
    edits.iter().fold(text, |text, (old, new)| {
        assert!(text.contains(old), "{old} is not in {name}");
        text.replace(old, new)
    })
}

/// Runs a workload on a server of its own.
fn run(text: &str, scale: f64) -> Results {
    run_with(&[], text, scale)
}

fn run_with(flags: &[&str], text: &str, scale: f64) -> Results {
    let server = Server::with(&[&["--in-memory"], flags].concat());
    let endpoint = format!("http://{}", server.client.address);
    let beside = |_: &str| Err("no file".to_owned());
    let source = Source { name: "w".into(), text: text.to_owned(), beside: Box::new(beside) };
    let workload = Arc::new(source.read().unwrap());
    let (seed, models) = (workload.seed, (0..workload.models.len()).collect());
    let run = Run {
        data: Arc::new(Data::new(workload, seed, scale)),
        client: Client::new(&endpoint, Key::development()).unwrap(),
        models,
        replaces: false,
        asks_for_prices: true,
        repeat: None,
        settle: None,
        watch: Arc::new(Nobody),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let results = runtime.block_on(run.run()).unwrap();
    server.stop();
    results
}

/// The total of each model at the first and last point of a sweep, and where the sample is now.
fn ends_of_sweep(results: &Results, id: &str) -> Vec<[f64; 2]> {
    let sweep = results.sweeps.iter().find(|sweep| sweep.id == id).unwrap();
    let ends = |curve: &Vec<f64>| [curve[0], *curve.last().unwrap()];
    sweep.curves.iter().map(ends).collect()
}

/// The ends of a sweep are what runs say whose sample has that count. All texts have one length, and
/// all comments one author: else it would depend on which sample has which.
fn assert_ends(name: &str, sweep: &str, edits: &[(&str, &str)], count: &dyn Fn(u64) -> String) {
    let text = edited(name, edits);
    let ends = ends_of_sweep(&run(&text, 0.1), sweep);
    let now = count(100);
    assert!(text.contains(&now), "{now}");
    for (at, other) in [1, 40].into_iter().enumerate() {
        let there = run(&text.replace(&now, &count(other)), 0.1);
        for (model, ends) in there.models.iter().zip(&ends) {
            let (total, end) = (there.total(&model.id), ends[at]);
            assert!(
                (total - end).abs() < 1e-6 * total,
                "{} at {other}: {end}, not {total}",
                model.id
            );
        }
    }
}

#[test]
fn a_point_of_a_sweep_is_what_a_run_there_says() {
    assert_ends(
        "comments",
        "length",
        &[
            ("points = [0, 3, 10, 30, 100, 300, 1000]", "points = [1, 40]"),
            ("{ min = 40, max = 400 }", "200"),
            ("count = 50", "count = 1"),
        ],
        &|count| format!("counts = {{ comment = {count} }}"),
    );
}

/// What pipelines spend on copies belongs to the pattern, on a curve as in the table.
#[test]
fn copies_are_on_curves_as_well() {
    assert_ends(
        "publisher",
        "size",
        &[("points = [1, 5, 20, 100, 500]", "points = [1, 40]"), ("{ min = 10, max = 60 }", "30")],
        &|count| format!("counts = {{ book = {count} }}"),
    );
}

/// The charge of a cell, and what its lines add up to: as JSON, as people read it, as a budget.
fn assert_adds_up(cell: &Value, ru: &str, units: &str, receipt: &str) {
    let Some(total) = cell[units].as_u64() else {
        assert!(cell[ru].as_f64().unwrap_or(0.0) == 0.0, "{ru} without a receipt: {cell}");
        return;
    };
    let lines = cell[receipt].as_array().unwrap();
    let sum = |name: &str| lines.iter().map(|line| line[name].as_f64().unwrap()).sum::<f64>();
    assert_eq!(sum("units"), total as f64, "{cell}");
    let exact = total as f64 / 2_100_000.0 / cell["executions"].as_f64().unwrap();
    assert!((sum("ru") - exact).abs() < 1e-5, "{cell}");
    assert_eq!(cell[ru].as_f64().unwrap(), (exact * 100.0).round() / 100.0, "{cell}");
}

#[test]
fn lines_of_receipts_add_up_to_the_charge() {
    for name in ["person", "publisher"] {
        let results = run(&edited(name, &[]), 0.05);
        let json = results.to_json();
        let cells = json["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 9);
        for cell in cells {
            assert_adds_up(cell, "ru", "units", "receipt");
            assert_adds_up(cell, "propagation_ru", "propagation_units", "propagation_receipt");
        }
        let copies = cells.iter().filter(|cell| cell.get("propagation_units").is_some()).count();
        assert_eq!(copies, usize::from(name == "publisher"), "only its counts are copies");
        for cell in &results.cells {
            let shown = |receipt: &Receipt| receipt.shown(cell.executions);
            let lines = [shown(&cell.receipt), shown(&cell.copies_receipt)];
            let sums = lines.map(|lines| lines.iter().map(|line| line.ru).sum::<f64>());
            let near = |sum: f64, ru: f64| (sum - (ru * 100.0).round() / 100.0).abs() < 1e-9;
            let is_sum = near(sums[0], cell.ru) && near(sums[1], cell.propagation_ru);
            assert!(is_sum, "{sums:?}: {cell:?}");
        }
        let written: toml::Table = lab::budget::write(&results).parse().unwrap();
        for cell in &results.cells {
            let budget = &written[&cell.pattern][&cell.model];
            let lines = budget["lines"].as_table().unwrap().values();
            let sum: f64 = lines.map(|line| line.as_float().unwrap()).sum();
            assert!((sum - cell.total_ru()).abs() < 0.0101, "{budget}: {cell:?}");
        }
    }
}

/// Cells without anything that depends on time.
fn charges(results: &Results) -> Vec<Value> {
    let timeless = |cell: &Value| {
        let mut cell = cell.clone();
        for name in ["p50_ms", "p95_ms", "p99_ms", "propagation_ms"] {
            cell.as_object_mut().unwrap().shift_remove(name);
        }
        cell
    };
    results.to_json()["cells"].as_array().unwrap().iter().map(timeless).collect()
}

/// Loading takes more than a second of the throughput there is, and so do the patterns: requests
/// and parts of bulk requests are refused, and repeated.
#[test]
fn what_is_refused_for_lack_of_throughput_is_repeated() {
    let key = "name = \"books\"\npartition_key";
    let text = edited("publisher", &[(key, &format!("throughput = 400\n{key}"))]);
    let text = text.replace("points = [1, 5, 20, 100, 500]", "points = [1, 5]");
    let enforced = run_with(&["--enforce-throughput", "true"], &text, 0.05);
    let free = run(&text, 0.05);
    assert_eq!(charges(&enforced), charges(&free), "refusals cost nothing");
    assert!(enforced.findings().is_empty());
    for (enforced, free) in enforced.models.iter().zip(&free.models) {
        assert!(enforced.load_seconds > 0.5, "it had to wait: {}", enforced.load_seconds);
        assert!(
            (enforced.load_ru - free.load_ru).abs() < 0.01 * free.load_ru,
            "{}",
            enforced.load_ru
        );
    }
    for (enforced, free) in enforced.cells.iter().zip(&free.cells) {
        let (slow, fast) = (enforced.p50_ms, free.p50_ms);
        assert!(slow < 200.0 + 5.0 * fast, "waiting is no time: {slow} ms, not {fast}");
    }
}

#[test]
fn another_price_list_is_noticed() {
    let check = |server: &str, workload: &str, expect: &[&str]| {
        let text = edited("person", &[("seed = 1", workload)]);
        let results = run_with(&["--ru-profile", server], &text, 0.01);
        assert_eq!(results.warnings, expect, "{server} {workload}");
        let table = lab::table::table(&results);
        assert_eq!(table.contains("\nwarning: The server has the price list "), !expect.is_empty());
    };
    let differs =
        "The server has the price list modern; the figures of this workload are for 2019.";
    check("modern", "ru_profile = '2019'", &[differs]);
    check("2019", "ru_profile = '2019'", &[]);
    check("modern", "ru_profile = 'modern'", &[]);
    check("modern", "seed = 1", &[]);
}

/// What the small workloads are there to show: which model is the cheapest depends on what is asked
/// of it, and the cheapest under the mix need not win a single pattern.
#[test]
fn small_workloads_show_when_each_model_wins() {
    /// A workload, the cheapest model of some patterns, and the cheapest under the mix.
    type Shown = (&'static str, &'static [(&'static str, &'static str)], &'static str);
    let expect: [Shown; 6] = [
        ("person", &[("read", "embedded"), ("move", "referenced")], "embedded"),
        (
            "comments",
            &[("view", "hybrid"), ("all", "embedded"), ("comment", "referenced")],
            "hybrid",
        ),
        ("portfolio", &[("value", "embedded"), ("price", "referenced")], "hybrid"),
        ("publisher", &[("add", "referenced"), ("count", "hybrid")], "hybrid"),
        ("authors", &[("book", "embedded"), ("rename", "joined")], "embedded"),
        (
            "hybrid",
            &[("list", "hybrid"), ("page", "embedded"), ("picture", "referenced")],
            "hybrid",
        ),
    ];
    for (name, winners, cheapest) in expect {
        let text = lab::shelf::find(name).unwrap().text;
        let scale = lab::shelf::find(name).unwrap().read().unwrap().scale;
        let results = run(&text, scale);
        for (pattern, winner) in winners {
            let cells = results.cells.iter().filter(|cell| cell.pattern == *pattern);
            let least = cells.min_by(|a, b| a.total_ru().total_cmp(&b.total_ru())).unwrap();
            assert_eq!(least.model, *winner, "{name}: {pattern}");
        }
        let json = results.to_json();
        let mix = |model: &&Value| model["mix_ru"].as_f64().unwrap();
        let models = json["models"].as_array().unwrap();
        let least = models.iter().min_by(|a, b| mix(a).total_cmp(&mix(b))).unwrap();
        assert_eq!(least["model"], *cheapest, "{name} under its mix");
    }
}
