//! What the numbers say, in sentences.
//!
//! Every sentence is made from cells; what is not in them is not said. There are always more
//! sentences than anybody reads: the first is who is cheapest, and then those are said that tell
//! most. Where the better model changes tells more than anything else; what is said of one pattern
//! tells as much as the bill moves by it.

use crate::results::{Cell, ModelResult, PatternResult, Results, SweepResult};
use crate::table::{ru, short};

/// A factor below which two charges count as alike.
const ALIKE: f64 = 1.05;
/// Sentences, at most.
const SAID: usize = 6;

/// A sentence, and how much it tells: as a share of the least bill.
struct Lesson {
    tells: f64,
    sentence: String,
}

/// The sentences, the most telling first.
pub fn lessons(results: &Results) -> Vec<String> {
    let mut lessons: Vec<Lesson> = Vec::new();
    lessons.extend(results.sweeps.iter().filter_map(|sweep| break_even(results, sweep)));
    lessons.extend(agreement(results));
    lessons.extend(dearest_patterns(results));
    for pattern in &results.patterns {
        // Who asks many partitions often makes many requests too: one of the two will do.
        lessons.extend(fan_out(results, pattern).or_else(|| chatter(results, pattern)));
        lessons.extend(dearer_write(results, pattern));
    }
    lessons.extend(propagation(results));
    lessons.sort_by(|a, b| b.tells.total_cmp(&a.tells));
    let others = lessons.into_iter().map(|lesson| lesson.sentence);
    cheapest(results).into_iter().chain(others).take(SAID).collect()
}

/// How much a difference in one pattern moves the bill.
fn moved(results: &Results, pattern: &PatternResult, difference: f64) -> f64 {
    let totals = results.models.iter().map(|model| results.total(&model.id));
    let least = totals.filter(|total| *total > 0.0).fold(f64::INFINITY, f64::min);
    pattern.weight * difference.abs() / least
}

fn title(results: &Results, pattern: &str) -> String {
    let found = results.patterns.iter().find(|known| known.id == pattern);
    match found {
        Some(found) if !found.title.is_empty() => format!("{pattern} ({})", found.title),
        Some(_) | None => pattern.to_owned(),
    }
}

fn cheapest(results: &Results) -> Option<String> {
    let mut totals: Vec<(&str, f64)> =
        results.models.iter().map(|model| (&model.id[..], results.total(&model.id))).collect();
    totals.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (best, rest) = totals.split_first()?;
    let others: Vec<String> = rest
        .iter()
        .map(|(id, total)| format!("{id} {} ({})", short(*total), times(total / best.1)))
        .collect();
    match others.is_empty() {
        true => None,
        false => Some(format!(
            "Under the mix, {} is the cheapest model: {} RU per {}, against {}.",
            best.0,
            short(best.1),
            results.per,
            others.join(" and ")
        )),
    }
}

/// The pattern that decides each model's bill.
fn dearest_patterns(results: &Results) -> Option<Lesson> {
    let of_model = |model: &ModelResult| {
        let total = results.total(&model.id);
        let costs = results.patterns.iter().filter_map(|pattern| {
            let cell = results.cell(&pattern.id, &model.id)?;
            Some((pattern, pattern.weight * cell.total_ru()))
        });
        let (pattern, cost) = costs.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let share = cost / total * 100.0;
        (total > 0.0)
            .then(|| format!("{} spends {share:.0} % of its RU on {}", model.id, pattern.id))
    };
    let parts: Vec<String> = results.models.iter().filter_map(of_model).collect();
    let sentence = format!("{}.", parts.join("; "));
    (!parts.is_empty()).then_some(Lesson { tells: 0.5, sentence })
}

/// A pattern that asks many physical partitions in one model and few in another.
fn fan_out(results: &Results, pattern: &PatternResult) -> Option<Lesson> {
    let cells = cells(results, &pattern.id);
    let wide = cells.iter().max_by_key(|cell| cell.partitions)?;
    let narrow = cells.iter().filter(|cell| cell.partitions < wide.partitions);
    let narrow = narrow.min_by(|a, b| a.ru.total_cmp(&b.ru))?;
    let before = cells.iter().rfind(|cell| cell.partitions == wide.partitions)?;
    let sentence = format!(
        "{} asks {} physical partitions in {} and {} in {}: {} RU become {} ({} cheaper).",
        title(results, &pattern.id),
        before.partitions,
        before.model,
        narrow.partitions,
        narrow.model,
        ru(before.ru),
        ru(narrow.ru),
        times(before.ru / narrow.ru)
    );
    Some(Lesson { tells: moved(results, pattern, before.ru - narrow.ru), sentence })
}

/// A pattern that takes many requests in one model and fewer in another.
fn chatter(results: &Results, pattern: &PatternResult) -> Option<Lesson> {
    let cells = cells(results, &pattern.id);
    let many = cells.iter().max_by(|a, b| a.requests.total_cmp(&b.requests))?;
    let few = cells.iter().min_by(|a, b| a.requests.total_cmp(&b.requests))?;
    (many.requests >= 2.0 * few.requests && many.ru > few.ru * ALIKE).then(|| {
        let sentence = format!(
            "{} takes {:.0} requests in {} and {:.0} in {}: {} RU against {}.",
            title(results, &pattern.id),
            many.requests,
            many.model,
            few.requests,
            few.model,
            ru(many.ru),
            ru(few.ru)
        );
        Lesson { tells: moved(results, pattern, many.ru - few.ru), sentence }
    })
}

/// What the better reads of the cheapest model cost in a pattern that writes.
fn dearer_write(results: &Results, pattern: &PatternResult) -> Option<Lesson> {
    let total = |id: &str| results.total(id);
    let best = results.models.iter().min_by(|a, b| total(&a.id).total_cmp(&total(&b.id)))?;
    let cells = cells(results, &pattern.id);
    let mine = cells.iter().find(|cell| cell.model == best.id)?;
    let least = cells.iter().min_by(|a, b| a.total_ru().total_cmp(&b.total_ru()))?;
    let (dear, cheap) = (mine.total_ru(), least.total_ru());
    (!pattern.only_reads && dear > cheap * ALIKE).then(|| {
        let sentence = format!(
            "{} is dearer in {} than in {}: {} RU against {} ({}), the price of its cheaper reads.",
            title(results, &pattern.id),
            mine.model,
            least.model,
            ru(dear),
            ru(cheap),
            times(dear / cheap)
        );
        Lesson { tells: moved(results, pattern, dear - cheap), sentence }
    })
}

/// What keeping copies costs most.
fn propagation(results: &Results) -> Option<Lesson> {
    let costs = |cell: &&Cell| cell.propagation_ru > 0.0;
    let cell = results.cells.iter().filter(costs);
    let cell = cell.max_by(|a, b| a.propagation_ru.total_cmp(&b.propagation_ru))?;
    let pattern = results.patterns.iter().find(|pattern| pattern.id == cell.pattern)?;
    let lag = cell.lag_ms.map(|lag| format!(", which took {lag:.0} ms")).unwrap_or_default();
    let sentence = format!(
        "Keeping copies costs most after {} in {}: one execution causes {} RU behind it{lag}.",
        title(results, &cell.pattern),
        cell.model,
        ru(cell.propagation_ru)
    );
    Some(Lesson { tells: moved(results, pattern, cell.propagation_ru), sentence })
}

/// Where the cheapest model changes along a sweep, or that it does not.
fn break_even(results: &Results, sweep: &SweepResult) -> Option<Lesson> {
    let id = |at: usize| &results.models[at].id[..];
    let last = sweep.curves.iter().map(|curve| curve.last().copied().unwrap_or(0.0));
    let last: Vec<f64> = last.collect();
    let title = &sweep.title;
    if sweep.crossings.is_empty() {
        let best = (0..last.len()).min_by(|a, b| last[*a].total_cmp(&last[*b]))?;
        let (from, to) = (sweep.xs.first()?, sweep.xs.last()?);
        let sentence = format!(
            "{title}: {} is the cheapest all the way from {} to {}.",
            id(best),
            short(*from),
            short(*to)
        );
        return (results.models.len() > 1).then_some(Lesson { tells: 0.2, sentence });
    }
    let part = |crossing: &crate::results::Crossing| {
        format!("{} up to {}", id(crossing.below), short(crossing.x))
    };
    let parts: Vec<String> = sweep.crossings.iter().map(part).collect();
    let above = id(sweep.crossings.last()?.above);
    let sentence =
        format!("{title}: the cheapest model is {}, beyond that {above}.", parts.join(", then "));
    Some(Lesson { tells: f64::INFINITY, sentence })
}

/// How well the run agrees with the published figures.
fn agreement(results: &Results) -> Option<Lesson> {
    let pair = |cell: &Cell| Some((cell.ru / cell.published_ru? - 1.0).abs() * 100.0);
    let mut errors: Vec<(f64, &Cell)> =
        results.cells.iter().filter_map(|cell| Some((pair(cell)?, cell))).collect();
    errors.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (worst, cell) = errors.first()?;
    let mean = errors.iter().map(|(error, _)| error).sum::<f64>() / errors.len() as f64;
    let close = errors.iter().filter(|(error, _)| *error <= 5.0).count();
    let sentence = format!(
        "{close} of {} charges lie within 5 % of the published figures, {mean:.1} % on average; the \
         farthest is {} in {} with {worst:.1} %.",
        errors.len(),
        cell.pattern,
        cell.model
    );
    Some(Lesson { tells: 1.0, sentence })
}

fn cells<'r>(results: &'r Results, pattern: &str) -> Vec<&'r Cell> {
    results.cells.iter().filter(|cell| cell.pattern == pattern).collect()
}

fn times(factor: f64) -> String {
    match factor {
        f if f >= 10.0 => format!("{f:.0} times"),
        f => format!("{f:.1} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Crossing, ModelResult, PatternResult};

    fn results() -> Results {
        let model = |id: &str| ModelResult { id: id.into(), ..ModelResult::default() };
        let pattern = |id: &str, weight, only_reads| PatternResult {
            id: id.into(),
            weight,
            only_reads,
            ..PatternResult::default()
        };
        let cell = |pattern: &str, model: &str, ru, requests, partitions| Cell {
            pattern: pattern.into(),
            model: model.into(),
            ru,
            requests,
            partitions,
            ..Cell::default()
        };
        Results {
            per: "day".into(),
            models: vec![model("a"), model("b")],
            patterns: vec![pattern("read", 100.0, true), pattern("write", 1.0, false)],
            cells: vec![
                cell("read", "a", 200.0, 12.0, 75),
                cell("read", "b", 5.0, 1.0, 1),
                cell("write", "a", 5.0, 1.0, 1),
                Cell {
                    propagation_ru: 20.0,
                    lag_ms: Some(3.0),
                    ..cell("write", "b", 10.0, 1.0, 1)
                },
            ],
            ..Results::default()
        }
    }

    #[test]
    fn sentences_follow_from_cells() {
        let said = lessons(&results()).join("\n");
        let has = |text: &str| assert!(said.contains(text), "{text}\nnot in\n{said}");
        has("b is the cheapest model: 530 RU per day, against a 20,005 (38 times)");
        has("a spends 100 % of its RU on read");
        has(
            "read asks 75 physical partitions in a and 1 in b: 200.0 RU become 5.00 (40 times cheaper)",
        );
        assert!(!said.contains("requests"), "partitions say it already: {said}");
        has("write is dearer in b than in a: 30.00 RU against 5.00 (6.0 times)");
        has("one execution causes 20.00 RU behind it, which took 3 ms");
        assert!(!said.contains("published"), "{said}");
    }

    #[test]
    fn requests_are_told_where_partitions_are_alike() {
        let mut results = results();
        results.cells.iter_mut().for_each(|cell| cell.partitions = 1);
        let said = lessons(&results).join("\n");
        assert!(said.contains("read takes 12 requests in a and 1 in b: 200.0 RU against 5.00."));
    }

    #[test]
    fn few_sentences_the_most_telling_first() {
        let mut results = results();
        for at in 0..9 {
            let (id, weight) = (format!("p{at}"), f64::from(at));
            let cells = results.cells.iter().filter(|cell| cell.pattern == "read").cloned();
            let cells: Vec<Cell> = cells.map(|cell| Cell { pattern: id.clone(), ..cell }).collect();
            results.cells.extend(cells);
            let only_reads = true;
            let pattern = PatternResult { id, weight, only_reads, ..PatternResult::default() };
            results.patterns.push(pattern);
        }
        let crossing = Crossing { x: 30.0, cost: 1.0, below: 1, above: 0 };
        let sweep = SweepResult { title: "Renames".into(), ..SweepResult::default() };
        results.sweeps = vec![SweepResult { crossings: vec![crossing], ..sweep }];
        let said = lessons(&results);
        let begins = |at: usize, text: &str| assert!(said[at].starts_with(text), "{said:?}");
        assert_eq!(said.len(), SAID);
        begins(0, "Under the mix, b is the cheapest");
        begins(1, "Renames: the cheapest model is b up to 30");
        begins(2, "read asks 75 physical partitions");
        begins(3, "p8 asks 75 physical partitions");
    }

    #[test]
    fn only_writes_are_the_price_of_cheaper_reads() {
        let mut results = results();
        let rare =
            PatternResult { id: "rare".into(), only_reads: true, ..PatternResult::default() };
        results.patterns.push(rare);
        let cell = |model: &str, ru| Cell {
            pattern: "rare".into(),
            model: model.into(),
            ru,
            ..Cell::default()
        };
        results.cells.extend([cell("a", 1.0), cell("b", 7.0)]);
        let said = lessons(&results).join("\n");
        assert!(!said.contains("rare is dearer"), "{said}");
        assert!(said.contains("write is dearer in b than in a"), "{said}");
    }

    #[test]
    fn break_evens_are_told() {
        let mut results = results();
        let crossing = Crossing { x: 30.0, cost: 1.0, below: 1, above: 0 };
        let sweep = SweepResult {
            title: "Renames".into(),
            xs: vec![1.0, 100.0],
            curves: vec![vec![2.0, 2.0], vec![1.0, 3.0]],
            ..SweepResult::default()
        };
        results.sweeps = vec![SweepResult { crossings: vec![crossing], ..sweep.clone() }, sweep];
        let said = lessons(&results).join("\n");
        assert!(
            said.contains("Renames: the cheapest model is b up to 30, beyond that a."),
            "{said}"
        );
        assert!(said.contains("Renames: a is the cheapest all the way from 1 to 100."), "{said}");
    }
}
