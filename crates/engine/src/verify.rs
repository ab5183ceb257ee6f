//! Proves that everything derived from items is what the items say.

use storage::verify::verify;

use crate::{Engine, Result};

/// What was looked at, and everything that is wrong.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Items looked at.
    pub items: u64,
    /// Index keys looked up.
    pub terms: u64,
    /// One sentence for each difference.
    pub findings: Vec<String>,
}

impl Engine {
    /// Verifies every container. `progress` is told the number of items done so far.
    pub fn verify(&self, mut progress: impl FnMut(u64)) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let view = self.core.store.view();
        for container in self.containers() {
            let name = format!("{}/{}", container.database_name(), container.name());
            let shape = container.shape.read();
            for partition in &container.layout.partitions {
                let done = report.items;
                let part =
                    verify(&view, &container.layout, &shape, partition, |n| progress(done + n))?;
                report.items += part.items;
                report.terms += part.terms;
                let findings = part.findings.into_iter();
                report.findings.extend(
                    findings.map(|f| format!("{name}, partition {}: {f}", partition.number)),
                );
            }
        }
        Ok(report)
    }
}
