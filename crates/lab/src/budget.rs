//! Budgets: how many RU each pattern may cost in each model.
//!
//! ```toml
//! [Q3]
//! v2 = 205.0
//! v3 = 7.0
//! ```

use std::collections::BTreeMap;

use toml::Spanned;

use crate::read::{Mistake, line_of, mistake};
use crate::results::Results;
use crate::workload::Workload;

/// Limits by pattern and model.
#[derive(Debug, Default)]
pub struct Budget {
    limits: Vec<(String, String, f64)>,
}

impl Budget {
    /// Reads a budget file; patterns and models must be those of the workload.
    pub fn read(name: &str, text: &str, workload: &Workload) -> Result<Budget, Mistake> {
        type File = BTreeMap<String, BTreeMap<String, Spanned<f64>>>;
        let file: File = toml::from_str(text).map_err(|error| mistake(name, text, &error))?;
        let mut limits = Vec::new();
        for (pattern, models) in file {
            for (model, limit) in models {
                let fail = |message: String| Mistake {
                    file: name.to_owned(),
                    line: line_of(text, limit.span().start),
                    message,
                };
                if !workload.patterns.iter().any(|known| known.id == pattern) {
                    return Err(fail(format!("there is no pattern {pattern}")));
                }
                if !workload.models.iter().any(|known| known.id == model) {
                    return Err(fail(format!("there is no model {model}")));
                }
                limits.push((pattern.clone(), model, *limit.get_ref()));
            }
        }
        Ok(Budget { limits })
    }

    /// A sentence for each cell that costs more than it may. Models that did not run are left out.
    pub fn exceeded(&self, results: &Results) -> Vec<String> {
        let sentence = |(pattern, model, limit): &(String, String, f64)| {
            let ru = results.cell(pattern, model)?.total_ru();
            // Charges are printed with two decimals; half of the last one is no growth.
            let is_over = ru > limit + 0.005;
            let percent = (ru / limit - 1.0) * 100.0;
            is_over.then(|| {
                format!("{pattern} in {model} costs {ru:.2} RU, its budget is {limit:.2} (+{percent:.1} %)")
            })
        };
        self.limits.iter().filter_map(sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Cell;
    use crate::shelf;

    #[test]
    fn what_grew_is_named() {
        let name = shelf::names()[0];
        let workload = shelf::find(name).unwrap().read().unwrap();
        let (pattern, model) = (&workload.patterns[0].id, &workload.models[0].id);
        let text = format!("[{pattern}]\n{model} = 10.0\n");
        let budget = Budget::read("b.toml", &text, &workload).unwrap();
        let exceeded = |ru, propagation_ru| {
            let (pattern, model) = (pattern.clone(), model.clone());
            let cell = Cell { pattern, model, ru, propagation_ru, ..Cell::default() };
            budget.exceeded(&Results { cells: vec![cell], ..Results::default() })
        };
        assert!(exceeded(9.99, 0.0).is_empty());
        assert!(exceeded(10.004, 0.0).is_empty());
        let over = exceeded(11.0, 0.0);
        assert_eq!(
            over,
            [format!("{pattern} in {model} costs 11.00 RU, its budget is 10.00 (+10.0 %)")]
        );
        assert_eq!(exceeded(9.0, 3.0).len(), 1, "copies count");
        assert!(budget.exceeded(&Results::default()).is_empty());
    }

    #[test]
    fn names_must_be_known() {
        let workload = shelf::find(shelf::names()[0]).unwrap().read().unwrap();
        let said = |text: &str| Budget::read("b.toml", text, &workload).unwrap_err().to_string();
        assert_eq!(said("\n[XX]\nv = 1.0\n"), "b.toml:3: there is no pattern XX");
        let pattern = &workload.patterns[0].id;
        let text = format!("[{pattern}]\nnone = 1.0\n");
        assert_eq!(said(&text), "b.toml:2: there is no model none");
        assert!(said("[Q").starts_with("b.toml:1: "));
    }
}
