//! The report: one HTML file with everything in it, to be opened anywhere and asked nothing.

use std::fmt::Write;

use crate::agreement::{Agreement, Finding};
use crate::chart::{Mark, Row, curves, escape, lollipops, stacked};
use crate::lessons::lessons;
use crate::receipt::{Receipt, Shown};
use crate::results::{Cell, PatternResult, Results};
use crate::table::{columns_of, grouped, ms, ru, short};

const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");

/// The report of a run.
pub fn html(results: &Results) -> String {
    let sections = [
        header(results),
        said(results),
        charges(results),
        times(results),
        mix(results),
        sweeps(results),
        agreement(results),
        numbers(results),
        receipts(results),
        copies(results),
        models(results),
    ];
    let title = escape(&results.title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <button type=\"button\">light / dark</button>\n<main>\n{}</main>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        sections.concat()
    )
}

fn ids(results: &Results) -> Vec<&str> {
    results.models.iter().map(|model| &model.id[..]).collect()
}

fn header(results: &Results) -> String {
    let items: Vec<String> = results
        .models
        .iter()
        .map(|model| format!("{} in {}", grouped(model.items), model.id))
        .collect();
    let warning = |text: &String| format!("<p class=\"warning\">{}</p>\n", escape(text));
    let warnings: String = results.warnings.iter().map(warning).collect();
    format!(
        "<header>\n<h1>{}</h1>\n<p class=\"lead\">{}</p>\n\
         <p class=\"meta\">workload {} · scale {} · seed {} · items: {}</p>\n{warnings}</header>\n",
        escape(&results.title),
        escape(&results.about),
        escape(&results.workload),
        results.scale,
        results.seed,
        escape(&items.join(", "))
    )
}

fn said(results: &Results) -> String {
    let sentences = lessons(results);
    let entries: String =
        sentences.iter().map(|text| format!("<li>{}</li>\n", escape(text))).collect();
    format!(
        "<section id=\"lessons\">\n<h2>What the numbers say</h2>\n<ul class=\"lessons\">\n{entries}</ul>\n</section>\n"
    )
}

/// How far the run is from what it is compared with.
fn agreement(results: &Results) -> String {
    let cells = |finding: &Finding| match finding.cells.is_empty() {
        true => String::new(),
        false => {
            let entry = |cell: &String| format!("<li>{}</li>\n", escape(cell));
            format!("<ul>\n{}</ul>\n", finding.cells.iter().map(entry).collect::<String>())
        }
    };
    let one =
        |finding: &Finding| format!("<p>{}</p>\n{}", escape(&finding.sentence), cells(finding));
    let all: String = Agreement::of(results).findings().iter().map(one).collect();
    match all.is_empty() {
        true => all,
        false => format!(
            "<section id=\"agreement\">\n<h2>Beside what was published</h2>\n{all}</section>\n"
        ),
    }
}

/// The models, and what marks mean that belong to none of them.
fn legend(results: &Results, others: &[(&str, &str)]) -> String {
    let mut out = String::from("<ul class=\"legend\">\n");
    for (at, model) in results.models.iter().enumerate() {
        // Writing to memory cannot fail.
        let _ = writeln!(
            out,
            "<li data-model=\"{at}\"><i style=\"--c:var(--m{})\"></i>{} – {}</li>",
            at % 6,
            escape(&model.id),
            escape(&model.title)
        );
    }
    for (class, meaning) in others {
        let _ = writeln!(out, "<li><i class=\"{class}\"></i>{meaning}</li>");
    }
    out + "</ul>\n"
}

fn rows(results: &Results, mark: impl Fn(&Cell) -> Mark) -> Vec<Row> {
    let row = |pattern: &PatternResult| {
        let of_model = |id: &&str| results.cell(&pattern.id, id).map(&mark).unwrap_or_default();
        Row {
            label: pattern.id.clone(),
            title: pattern.title.clone(),
            marks: ids(results).iter().map(of_model).collect(),
        }
    };
    results.patterns.iter().map(row).collect()
}

fn charges(results: &Results) -> String {
    let mut others = Vec::new();
    if results.cells.iter().any(|cell| cell.propagation_ru > 0.0) {
        others.push(("hollow", "with keeping copies"));
    }
    if results.cells.iter().any(|cell| cell.published_ru.is_some()) {
        others.push(("ring", "published"));
    }
    let rows = rows(results, |cell| Mark {
        value: cell.ru,
        more: cell.propagation_ru,
        published: cell.published_ru,
    });
    format!(
        "<section id=\"charges\">\n<h2>Request Units per pattern</h2>\n\
         <p class=\"note\">What the application is charged for one execution. The scale is logarithmic.</p>\n\
         {}<figure>{}</figure>\n</section>\n",
        legend(results, &others),
        lollipops(&rows, &ids(results), &ru, "RU")
    )
}

fn times(results: &Results) -> String {
    let (mut others, mut elsewhere) = (Vec::new(), "");
    if results.cells.iter().any(|cell| cell.published_ms.is_some()) {
        others.push(("ring", "published"));
        elsewhere = " Published times were measured elsewhere, over a network.";
    }
    let rows =
        rows(results, |cell| Mark { value: cell.p50_ms, more: 0.0, published: cell.published_ms });
    format!(
        "<section id=\"times\">\n<h2>Latency per pattern</h2>\n\
         <p class=\"note\">Milliseconds until an execution is complete, half of them sooner; requests of one execution follow each other.{elsewhere}</p>\n\
         {}<figure>{}</figure>\n</section>\n",
        legend(results, &others),
        lollipops(&rows, &ids(results), &ms, "ms")
    )
}

fn mix(results: &Results) -> String {
    let parts = |model: &crate::results::ModelResult| {
        let part = |pattern: &PatternResult| {
            let cell = results.cell(&pattern.id, &model.id)?;
            Some((pattern.id.clone(), pattern.weight * cell.total_ru()))
        };
        let mut parts: Vec<(String, f64)> = results.patterns.iter().filter_map(part).collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        parts
    };
    let all: Vec<Vec<(String, f64)>> = results.models.iter().map(parts).collect();
    let weights: Vec<String> = results
        .patterns
        .iter()
        .map(|pattern| format!("{} {}", pattern.id, short(pattern.weight)))
        .collect();
    format!(
        "<section id=\"mix\">\n<h2>Under the mix</h2>\n\
         <p class=\"note\">RU per {}, with what keeping copies costs. Executions per {}: {}.</p>\n\
         <figure>{}</figure>\n</section>\n",
        escape(&results.per),
        escape(&results.per),
        escape(&weights.join(", ")),
        stacked(&ids(results), &all, "RU")
    )
}

fn sweeps(results: &Results) -> String {
    if results.sweeps.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "<section id=\"sweeps\">\n<h2>Where the better model changes</h2>\n\
         <p class=\"note\">Total RU per {} along one quantity, everything else as it is. A ring marks where another model becomes the cheapest.</p>\n{}",
        escape(&results.per),
        legend(results, &[])
    );
    for sweep in &results.sweeps {
        let _ = write!(
            out,
            "<h3>{}</h3>\n<figure>{}</figure>\n",
            escape(&sweep.title),
            curves(sweep, &ids(results), &format!("RU per {}", results.per))
        );
    }
    out + "</section>\n"
}

fn numbers(results: &Results) -> String {
    let columns = columns_of(results);
    let heads: String = columns.iter().map(|column| format!("<th>{}</th>", column.head)).collect();
    let mut out = format!(
        "<section id=\"numbers\">\n<h2>All numbers</h2>\n<div class=\"scroll\"><table>\n\
         <tr><th></th><th class=\"left\">model</th>{heads}</tr>\n"
    );
    let mut last = "";
    for (row, cell) in results.cells.iter().enumerate() {
        let at = results.models.iter().position(|model| model.id == cell.model).unwrap_or(0);
        let is_first = cell.pattern != last;
        last = &cell.pattern;
        let text = |column: &crate::table::Column| match column.head.is_empty() {
            true => format!("<td class=\"off\">{}</td>", column.texts[row]),
            false => format!("<td>{}</td>", column.texts[row]),
        };
        let _ = writeln!(
            out,
            "<tr{}><td>{}</td><td class=\"left\"><i style=\"--c:var(--m{})\"></i>{}</td>{}</tr>",
            if is_first { " class=\"first\"" } else { "" },
            if is_first { escape(&cell.pattern) } else { String::new() },
            at % 6,
            escape(&cell.model),
            columns.iter().map(text).collect::<String>(),
        );
    }
    out + "</table></div>\n</section>\n"
}

fn receipts(results: &Results) -> String {
    let of_pattern = |pattern: &PatternResult| {
        let is_itemised = |cell: &&Cell| cell.pattern == pattern.id && !cell.receipt.is_empty();
        let tables: String =
            results.cells.iter().filter(is_itemised).map(|cell| receipt(results, cell)).collect();
        match tables.is_empty() {
            true => String::new(),
            false => format!(
                "<details>\n<summary><b>{}</b> {}</summary>\n<div class=\"receipts\">\n{tables}</div>\n</details>\n",
                escape(&pattern.id),
                escape(&pattern.title)
            ),
        }
    };
    let all: String = results.patterns.iter().map(of_pattern).collect();
    match all.is_empty() {
        true => all,
        false => format!(
            "<section id=\"receipts\">\n<h2>What the charges are made of</h2>\n\
             <p class=\"note\">What one execution was charged for, on average, as the server itemised it: the requests of the execution are put together.</p>\n\
             {all}</section>\n"
        ),
    }
}

/// The receipt of one cell, with bars as long as their share of it.
fn receipt(results: &Results, cell: &Cell) -> String {
    let at = results.models.iter().position(|model| model.id == cell.model).unwrap_or(0);
    let whole = cell.total_ru().max(f64::MIN_POSITIVE);
    let part = |receipt: &Receipt, total: &str| match receipt.is_empty() {
        true => String::new(),
        false => receipt_rows(&receipt.shown(cell.executions), total, whole),
    };
    let own = part(&cell.receipt, "RU");
    let copies = match part(&cell.copies_receipt, "copies RU") {
        rows if rows.is_empty() => rows,
        rows => format!("<tr><th colspan=\"3\">keeping copies</th></tr>\n{rows}"),
    };
    format!(
        "<table class=\"receipt\" style=\"--c:var(--m{})\">\n<tr><th><i></i>{}</th><th>count</th><th>RU</th></tr>\n\
         {own}{copies}</table>\n",
        at % 6,
        escape(&cell.model),
    )
}

/// Lines, and under them what they add up to.
fn receipt_rows(lines: &[Shown], total: &str, whole: f64) -> String {
    let row = |line: &Shown| {
        let share = line.ru / whole * 100.0;
        format!(
            "<tr><td style=\"--share:{share:.1}%\">{}</td><td>{}</td><td>{:.2}</td></tr>\n",
            escape(&line.what),
            count(line.count),
            line.ru
        )
    };
    let rows: String = lines.iter().map(row).collect();
    let sum: f64 = lines.iter().map(|line| line.ru).sum();
    format!("{rows}<tr class=\"total\"><td>{total}</td><td></td><td>{sum:.2}</td></tr>\n")
}

/// How many of something, on average.
fn count(value: f64) -> String {
    match value {
        v if v >= 100.0 || v.fract() == 0.0 => grouped(v.round() as u64),
        v => format!("{v:.1}"),
    }
}

fn copies(results: &Results) -> String {
    let mut lines = String::new();
    for model in &results.models {
        if model.build_changes > 0 {
            let _ = writeln!(
                lines,
                "<p class=\"note\">{}: building all copies from the beginning of the feeds took {} changes and {} RU.</p>",
                escape(&model.id),
                grouped(model.build_changes),
                short(model.build_ru)
            );
        }
        for verdict in &model.verdicts {
            let what = match verdict.findings.len() {
                0 => "all as their sources say".to_owned(),
                count => format!("{count} differ"),
            };
            let _ = writeln!(
                lines,
                "<p class=\"note\">{}: {}: {} compared, {what}.</p>",
                escape(&model.id),
                escape(&verdict.name),
                grouped(verdict.copies as u64)
            );
        }
    }
    match lines.is_empty() {
        true => String::new(),
        false => format!("<section id=\"copies\">\n<h2>Copies</h2>\n{lines}</section>\n"),
    }
}

fn models(results: &Results) -> String {
    let mut out = String::from("<section id=\"models\">\n<h2>The models</h2>\n");
    for model in &results.models {
        let _ = writeln!(
            out,
            "<h3>{} – {}</h3>\n<p>{}</p>\n<p class=\"note\">{} items, loaded for {} RU in {:.1} s.</p>",
            escape(&model.id),
            escape(&model.title),
            escape(&model.about),
            grouped(model.items),
            short(model.load_ru),
            model.load_seconds
        );
    }
    out + "</section>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::{Line, Receipt};
    use crate::results::{Crossing, ModelResult, SweepResult};

    fn results() -> Results {
        let model =
            |id: &str| ModelResult { id: id.into(), title: "<T>".into(), ..ModelResult::default() };
        let cell = |model: &str, ru| Cell {
            pattern: "Q1".into(),
            model: model.into(),
            ru,
            p50_ms: 1.0,
            requests: 1.0,
            ..Cell::default()
        };
        Results {
            workload: "w".into(),
            title: "A & B".into(),
            per: "day".into(),
            models: vec![model("a"), model("b")],
            patterns: vec![PatternResult {
                id: "Q1".into(),
                title: "read".into(),
                weight: 2.0,
                only_reads: true,
            }],
            cells: vec![cell("a", 2.0), cell("b", 300.0)],
            sweeps: vec![SweepResult {
                title: "Renames".into(),
                xs: vec![1.0, 10.0, 100.0],
                is_log: true,
                curves: vec![vec![5.0, 5.0, 5.0], vec![1.0, 4.0, 9.0]],
                crossings: vec![Crossing { x: 20.0, cost: 5.0, below: 1, above: 0 }],
                ..SweepResult::default()
            }],
            ..Results::default()
        }
    }

    /// Opening and closing tags of a page in order; attributes left out.
    fn outline(html: &str) -> Vec<String> {
        let wanted = ["section", "h1", "h2", "h3", "figure", "svg", "table", "main"];
        let mut out = Vec::new();
        for piece in html.split('<').skip(1) {
            let tag: String =
                piece.chars().take_while(|c| c.is_alphanumeric() || *c == '/').collect();
            let name = tag.trim_matches('/');
            if !wanted.contains(&name) {
                continue;
            }
            let id = piece.split_once("id=\"").filter(|(before, _)| !before.contains('>'));
            let id = id.and_then(|(_, rest)| rest.split('"').next());
            out.push(id.map_or(tag.clone(), |id| format!("{tag}#{id}")));
        }
        out
    }

    #[test]
    fn the_structure_of_a_report() {
        let html = html(&results());
        let figure = "figure svg /svg /figure";
        let expect = format!(
            "main h1 /h1 section#lessons h2 /h2 /section section#charges h2 /h2 {figure} /section \
             section#times h2 /h2 {figure} /section section#mix h2 /h2 {figure} /section \
             section#sweeps h2 /h2 h3 /h3 {figure} /section section#numbers h2 /h2 table /table /section \
             section#models h2 /h2 h3 /h3 h3 /h3 /section /main"
        );
        assert_eq!(outline(&html).join(" "), expect);
        assert!(html.contains("<h1>A &amp; B</h1>") && html.contains("&lt;T&gt;"));
        assert_eq!(html.matches("class=\"turn\"").count(), 1);
        assert_eq!(html.matches("class=\"curve\"").count(), 2);
    }

    #[test]
    fn what_differs_from_published_figures_has_its_reason() {
        let mut results = results();
        assert!(!html(&results).contains("id=\"agreement\""), "nothing was published");
        results.cells[0].published_ru = Some(2.0);
        results.cells[1].published_ru = Some(200.0);
        results.cells[1].because = Some("a < b".into());
        (results.cells[1].bar_ms, results.cells[1].p50_ms) = (Some(0.5), 0.6);
        let html = html(&results);
        assert!(html.contains("<p>1 of 2 charges are within 5 % of the published ones; not:</p>"));
        let line = "<li>Q1 in b: 300.0 RU, published 200.0 (+50.0 %): a &lt; b</li>";
        assert!(html.contains(line), "{html}");
        assert!(html.contains("<td>0.50 missed</td></tr>"), "{html}");
    }

    #[test]
    fn receipts_are_itemised() {
        let mut results = results();
        assert!(!html(&results).contains("id=\"receipts\""), "nothing was itemised");
        let line = |what: &str, raw| Line {
            what: what.into(),
            count: 1_300,
            charge: model::RequestCharge::from_raw(raw),
        };
        (results.cells[0].ru, results.cells[0].propagation_ru) = (1.0, 3.0);
        results.cells[0].receipt.lines = vec![line("bytes <loaded>", 2_100_000)];
        results.cells[0].copies_receipt = Receipt { lines: vec![line("script steps", 6_300_000)] };
        let html = html(&results);
        assert_eq!(html.matches("<details>").count(), 1);
        assert_eq!(html.matches("<table class=\"receipt\"").count(), 1);
        assert!(html.contains(
            "<td style=\"--share:25.0%\">bytes &lt;loaded&gt;</td><td>1,300</td><td>1.00</td>"
        ));
        assert!(html.contains("<td style=\"--share:75.0%\">script steps</td>"));
        assert!(html.contains("<td>RU</td><td></td><td>1.00</td>"), "{html}");
        assert!(html.contains("<td>copies RU</td><td></td><td>3.00</td>"), "{html}");
    }

    #[test]
    fn a_report_asks_for_nothing() {
        let html = html(&results());
        for word in ["http:", "https:", "src=", "@import", "url("] {
            assert!(!html.contains(word), "{word}");
        }
    }
}
