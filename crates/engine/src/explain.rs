//! How a query would be run, without running it.

use base::{Ctx, MeterReading};
use query::Parameters;

use crate::ops::{QueryText, Scope};
use crate::source::{ContainerSource, key_of};
use crate::{Container, Engine, Result};

/// The plan of a query.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The plan as people read it: an operator on each line, the last one first.
    pub plan: String,
    /// The work it took to choose it.
    pub meter: MeterReading,
}

impl Engine {
    /// Plans a query for the data as it is now.
    pub fn explain(
        &self,
        ctx: &Ctx,
        container: &Container,
        scope: &Scope,
        query: &QueryText,
    ) -> Result<Explanation> {
        let parsed = sql::parse(&query.text).map_err(query::Error::from)?;
        let parameters: Parameters = query.parameters.iter().cloned().collect();
        let bound = query::bind(&parsed, &parameters)?;
        let key_definition = &container.layout.key_definition;
        let key_paths: Vec<Vec<String>> =
            key_definition.paths.iter().map(|path| path.segments().to_vec()).collect();
        // A filter that pins the whole partition key runs as if the key had been given.
        let pinned = match &query::routing(&bound, &key_paths).pins[..] {
            [pin] => Some(key_of(&pin.key)).filter(|key| key_definition.is_complete(key)),
            _ => None,
        };
        let selection = match (scope, pinned) {
            (Scope::Container, Some(key)) => container.select(&Scope::PartitionKey(key))?,
            _ => container.select(scope)?,
        };
        let now = ctx.now().as_secs() as u32;
        let source = ContainerSource::new(&self.core, container, selection, now);
        let plan = query::plan(bound, &key_paths, &source)?.to_string();
        Ok(Explanation { plan, meter: ctx.meter().read() })
    }
}
