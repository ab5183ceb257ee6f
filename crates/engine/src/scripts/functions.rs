//! User-defined functions of a query: `query::Udf` over one JavaScript runtime.

use std::sync::Arc;
use std::time::Instant;

use base::Deadline;
use item::Value;
use query::{BoundQuery, Udf, UdfError};
use script::{Failure, Program};

use super::failed;
use crate::ops::ResourceKind;
use crate::{Container, Core, Error, Result};

/// The functions one query may call; without any there is no runtime.
pub(crate) struct Functions {
    runtime: Option<script::Functions>,
}

impl Functions {
    /// For a query that calls none.
    pub const NONE: Functions = Functions { runtime: None };

    pub fn new(runtime: script::Functions) -> Functions {
        Functions { runtime: Some(runtime) }
    }

    /// The functions of a query that a script asks.
    pub fn within(
        core: &Core,
        container: &Container,
        query: &BoundQuery,
        deadline: Deadline,
    ) -> Result<Functions> {
        let programs = core.functions_of(container, query)?;
        if programs.is_empty() {
            return Ok(Functions::NONE);
        }
        let limits = &core.scripts.limits;
        let until = deadline.instant().unwrap_or_else(|| Instant::now() + limits.run);
        let runtime = script::Functions::new(&programs, limits, until);
        Ok(Functions::new(runtime.map_err(|failure| failed(failure, None))?))
    }
}

impl Core {
    /// The programs of the functions a query calls, in the order in which it knows them.
    pub(crate) fn functions_of(
        &self,
        container: &Container,
        query: &BoundQuery,
    ) -> Result<Vec<Arc<Program>>> {
        let program = |name: &String| {
            let number = container.layout.container;
            let resource = self.catalog.script(ResourceKind::Udf, number, name);
            let resource = resource.ok_or_else(|| {
                Error::Invalid(format!("The user-defined function '{name}' does not exist."))
            })?;
            Ok(self.programs.get(&resource)?.program.clone())
        };
        query.functions().iter().map(program).collect()
    }
}

impl Udf for Functions {
    fn fuel(&self) -> u64 {
        self.runtime.as_ref().map_or(0, script::Functions::fuel)
    }

    fn call(
        &self,
        function: usize,
        arguments: &[query::Argument<'_>],
    ) -> std::result::Result<Value, UdfError> {
        let Some(runtime) = &self.runtime else {
            return Err(UdfError::Failed("The query has no such function.".into()));
        };
        let done = match arguments {
            // Most functions take one argument; theirs is worth saving an allocation.
            [only] => runtime.call(function, &[passed(only)]),
            several => {
                let several: Vec<script::Argument<'_>> = several.iter().map(passed).collect();
                runtime.call(function, &several)
            }
        };
        done.map_err(|failure| match failure {
            Failure::Timeout { .. } | Failure::Revoked => UdfError::Deadline,
            Failure::Exception { message, stack, .. } => {
                UdfError::Failed(super::exception_text(&message, &stack))
            }
            Failure::Fatal => UdfError::Failed("The function was stopped.".into()),
        })
    }
}

fn passed<'a>(argument: &query::Argument<'a>) -> script::Argument<'a> {
    match argument {
        query::Argument::Node(node) => script::Argument::Node(*node),
        query::Argument::Value(value) => script::Argument::Value(value),
    }
}
