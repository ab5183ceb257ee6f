//! Stored procedures, triggers, UDFs and conflicts: none exist yet, so every list is empty.

use crate::call::Call;
use crate::encode::{self, Reply};
use crate::error::{Result, not_supported};
use crate::routes::Action;

/// Serves `…/sprocs`, `…/triggers` and `…/udfs`.
pub fn serve(call: &Call<'_>) -> Result<Reply> {
    let (array, what) = match call.path.segment(4) {
        "sprocs" => ("StoredProcedures", "Stored procedures"),
        "triggers" => ("Triggers", "Triggers"),
        _ => ("UserDefinedFunctions", "User-defined functions"),
    };
    match matches!(call.action, Action::List | Action::Query) {
        true => nothing(call, array),
        false => Err(not_supported(format!("{what} are not supported yet."))),
    }
}

/// Serves `…/conflicts`: one region has none.
pub fn conflicts(call: &Call<'_>) -> Result<Reply> {
    match matches!(call.action, Action::List | Action::Query) {
        true => nothing(call, "Conflicts"),
        false => call.container().and(Err(engine::Error::NotFound.into())),
    }
}

fn nothing(call: &Call<'_>, array: &str) -> Result<Reply> {
    let container = call.container()?;
    let reply = encode::resources(container.rid(), array, &[], None);
    Ok(reply.in_container(&container).at(0, container.session(0)))
}
