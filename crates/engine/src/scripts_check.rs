//! What a script must be before it is stored.

use crate::ops::ResourceKind;
use crate::scripts::compile;
use crate::{Error, Result};

/// Checks the text of a script.
pub(crate) fn check_script(kind: ResourceKind, id: &str, body: &str) -> Result<()> {
    if body.trim().is_empty() {
        let what = what(kind);
        return Err(Error::Invalid(format!("The body of the {what} '{id}' is empty.")));
    }
    compile(id, body).map(drop)
}

fn what(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::StoredProcedure => "stored procedure",
        ResourceKind::Trigger => "trigger",
        ResourceKind::Udf => "user-defined function",
        ResourceKind::User | ResourceKind::Permission => "resource",
        ResourceKind::ClientEncryptionKey => "resource",
    }
}
