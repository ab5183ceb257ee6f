//! How a query would be run, without running it.

use base::{Ctx, MeterReading};

use crate::ops::{QueryText, Scope};
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
        let bound = self.core.bind(container, query)?;
        let (source, routing) = self.core.query_source(ctx, container, scope, &bound)?;
        let strategy = crate::query::strategy(self.core.profile);
        let plan = query::plan_by(bound, &routing, &source, None, strategy)?.to_string();
        Ok(Explanation { plan, meter: ctx.meter().read() })
    }
}
