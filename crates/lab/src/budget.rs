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
