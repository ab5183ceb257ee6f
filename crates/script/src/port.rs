//! The way from a machine to whatever host its call has.

use item::Value;

use crate::operation::{HostError, Operation, Reply};

/// A host that may be taken away at any time.
pub(crate) trait Port {
    fn accepts(&self) -> Result<bool, PortError>;
    fn run(&self, operation: Operation) -> Result<Reply, PortError>;
    fn evaluate(
        &self,
        expression: &str,
        parameters: Vec<(String, Value)>,
    ) -> Result<Value, PortError>;
}

/// Why a host did not do what it was asked.
#[derive(Debug)]
pub(crate) enum PortError {
    Refused { number: u16, message: String },
    Fatal,
    Revoked,
}

impl From<HostError> for PortError {
    fn from(error: HostError) -> PortError {
        match error {
            HostError::Refused { number, message } => PortError::Refused { number, message },
            HostError::Fatal => PortError::Fatal,
        }
    }
}
