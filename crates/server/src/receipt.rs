//! Receipts as tables.
//!
//! ```text
//!                                 count        RU
//! physical partitions sought         75    193.50
//! items loaded                       28      2.38
//! bytes loaded                    50680      4.50
//! total                                    200.38
//! ```

use model::RequestCharge;
use serde_json::Value;

/// One row: what, how many, for how much.
struct Row {
    what: String,
    count: u64,
    charge: RequestCharge,
}

/// All receipts of a query, lines of the same kind put together. Each is the JSON of one page.
pub fn table(receipts: &[Value]) -> String {
    let mut rows: Vec<Row> = Vec::new();
    for receipt in receipts {
        add_lines(&receipt["lines"], 0, &mut rows);
    }
    let total = receipts.iter().map(units).sum::<RequestCharge>();
    let width =
        rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0).max("total".len());
    let mut out = format!("{:width$}  {:>12}  {:>10}\n", "", "count", "RU");
    for Row { what, count, charge } in rows {
        out += &format!("{what:width$}  {count:>12}  {:>10}\n", decimals(charge));
    }
    out + &format!("{:width$}  {:>12}  {:>10}\n", "total", "", decimals(total))
}

fn add_lines(lines: &Value, depth: usize, rows: &mut Vec<Row>) {
    for line in lines.as_array().into_iter().flatten() {
        let what = "  ".repeat(depth) + line["what"].as_str().unwrap_or_default();
        let (count, charge) = (line["count"].as_u64().unwrap_or(0), units(line));
        let known = rows.iter_mut().find(|row| row.what == what && depth == 0);
        match known {
            Some(row) => (row.count, row.charge) = (row.count + count, row.charge + charge),
            None => rows.push(Row { what, count, charge }),
        }
        add_lines(&line["lines"], depth + 1, rows);
    }
}

fn units(line: &Value) -> RequestCharge {
    RequestCharge::from_raw(line["units"].as_u64().unwrap_or(0))
}

/// Always two decimals, so that they stand below each other.
fn decimals(charge: RequestCharge) -> String {
    format!("{:.2}", charge.as_f64())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_are_put_together() {
        let line = |what: &str, count: u64, units: u64| json!({"what": what, "count": count, "ru": 0, "units": units});
        let first = json!({"units": 7_518_000, "lines": [
            line("physical partitions sought", 1, 5_418_000), line("items loaded", 10, 2_100_000),
        ]});
        let second = json!({"units": 2_641_800, "lines": [
            line("physical partitions resumed", 1, 541_800), line("items loaded", 10, 2_100_000),
        ]});
        let expect = [
            "                                    count          RU",
            "physical partitions sought              1        2.58",
            "items loaded                           20        2.00",
            "physical partitions resumed             1        0.26",
            "total                                            4.84",
        ];
        assert_eq!(table(&[first, second]).lines().collect::<Vec<_>>(), expect);
    }
}
