//! Sweeps, over drivers and over counts.

use std::collections::BTreeMap;

use toml::Spanned;

use super::{Checked, Reader};
use crate::file;
use crate::workload::{Over, Sample, Sweep};

impl Reader<'_> {
    pub(super) fn sweep(
        &mut self,
        sweep: &file::Sweep,
        drivers: &BTreeMap<String, f64>,
    ) -> Checked<Sweep> {
        let id = sweep.id.get_ref().clone();
        let over = match (&sweep.driver, &sweep.sample) {
            (Some(driver), None) => self.over_driver(sweep, driver, drivers)?,
            (None, Some(sample)) => self.over_count(sweep, sample)?,
            (Some(_), Some(_)) | (None, None) => {
                return self.fail(sweep.id.span(), "a sweep has a `driver`, or a `sample`");
            }
        };
        let title = sweep.title.clone().unwrap_or_else(|| id.clone());
        Ok(Sweep { id, title, is_log: sweep.log, over })
    }

    fn over_driver(
        &self,
        sweep: &file::Sweep,
        driver: &Spanned<String>,
        drivers: &BTreeMap<String, f64>,
    ) -> Checked<Over> {
        let name = driver.get_ref().clone();
        if !drivers.contains_key(&name) {
            return self.fail(driver.span(), format!("there is no driver `{name}`"));
        }
        match (sweep.from, sweep.to) {
            (Some(from), Some(to)) if from < to && (!sweep.log || from > 0.0) => {
                Ok(Over::Driver { name, from, to })
            }
            _ => self.fail(driver.span(), "it needs `from` below `to`, above 0 if `log`"),
        }
    }

    /// Adds a sample for each point; it belongs to no other sample, so that those keep their counts.
    fn over_count(&mut self, sweep: &file::Sweep, sample: &Spanned<String>) -> Checked<Over> {
        let found = self.samples.iter().position(|known| known.name == *sample.get_ref());
        let Some(at) = found else {
            return self.fail(sample.span(), format!("there is no sample `{}`", sample.get_ref()));
        };
        let (Some(child), Some(points)) = (&sweep.child, &sweep.points) else {
            return self.fail(sample.span(), "a sweep over a sample needs `child` and `points`");
        };
        let child_at = self.entity_named(child)?;
        let base = self.samples[at].clone();
        if self.entities[child_at].parent != Some(base.entity) {
            return self.fail(child.span(), format!("`{}` is not counted per it", child.get_ref()));
        }
        let is_rising = points.get_ref().is_sorted_by(|a, b| a < b);
        if points.get_ref().len() < 2 || !is_rising {
            return self.fail(points.span(), "`points` are at least two rising numbers");
        }
        let mut samples = Vec::new();
        for &count in points.get_ref() {
            let mut counts = base.counts.clone();
            counts.retain(|(entity, _)| *entity != child_at);
            counts.push((child_at, count));
            let name = format!("{}@{}={count}", base.name, child.get_ref());
            samples.push((count, self.samples.len()));
            self.samples.push(Sample { name, entity: base.entity, of: None, counts });
        }
        Ok(Over::Count { sample: at, points: samples })
    }
}
