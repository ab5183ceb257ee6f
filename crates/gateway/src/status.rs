//! The only place where outcomes become HTTP. No wildcard arm: a new variant must choose.

use hyper::StatusCode;

use crate::error::Error;

/// A status and its sub-status; a sub-status means nothing without its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// The sub-status; 0 is none.
    pub sub: u32,
}

impl Status {
    const fn new(code: u16, sub: u32) -> Status {
        Status { code, sub }
    }

    /// The status line's number.
    pub fn http(self) -> StatusCode {
        StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The word in the `code` field of an error body.
    pub fn word(self) -> &'static str {
        match self.code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            405 => "MethodNotAllowed",
            408 => "RequestTimeout",
            409 => "Conflict",
            410 => "Gone",
            412 => "PreconditionFailed",
            413 => "RequestEntityTooLarge",
            423 => "Locked",
            424 => "FailedDependency",
            429 => "TooManyRequests",
            449 => "RetryWith",
            503 => "ServiceUnavailable",
            _ => "InternalServerError",
        }
    }
}

/// The status of any outcome that is not a success.
pub fn status_of(error: &Error) -> Status {
    match error {
        Error::Engine(error) => status_of_engine(error),
        Error::Unauthorized(_) => Status::new(401, 0),
        Error::MethodNotAllowed => Status::new(405, 0),
    }
}

/// The engine's part of the table; members of a batch need it alone.
pub fn status_of_engine(error: &engine::Error) -> Status {
    use engine::Error as E;
    match error {
        E::Invalid(_) | E::InvalidQuery(_) | E::NotSupported(_) => Status::new(400, 0),
        E::PartitionKeyMissing => Status::new(400, 0),
        E::PartitionKeyMismatch => Status::new(400, 1001),
        E::ContainerRecreated { .. } => Status::new(400, 1024),
        E::Forbidden(_) => Status::new(403, 0),
        E::LogicalPartitionFull => Status::new(403, 1014),
        E::NotFound => Status::new(404, 0),
        E::SessionNotAvailable { .. } => Status::new(404, 1002),
        E::OwnerNotFound => Status::new(404, 1003),
        E::Timeout => Status::new(408, 0),
        E::Script(error) => Status::new(400, error.number),
        E::AfterTriggers(refused) => status_of_engine(&refused.error),
        E::Conflict | E::UniqueKeyConflict => Status::new(409, 0),
        E::RangeGone { .. } => Status::new(410, 1002),
        E::PreconditionFailed => Status::new(412, 0),
        E::PatchConditionFailed => Status::new(412, 1110),
        E::TooLarge(_) => Status::new(413, 0),
        E::Locked(_) => Status::new(423, 0),
        E::Throttled { .. } => Status::new(429, 3200),
        E::RetryWith => Status::new(449, 0),
        E::Unavailable => Status::new(503, 0),
        E::Fault(_) => Status::new(500, 0),
    }
}

/// The status of batch members that were undone because another one failed.
pub const FAILED_DEPENDENCY: Status = Status::new(424, 0);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use engine::Error as E;
    use model::Lsn;

    use super::*;

    fn script_error(number: u32) -> engine::ScriptError {
        let (message, log) = (String::new(), String::new());
        engine::ScriptError { number, message, log, charge: engine::charge::MISS, receipt: None }
    }

    fn every_outcome() -> Vec<(E, u16, u32)> {
        let text = String::new;
        vec![
            (E::Invalid(text()), 400, 0),
            (E::InvalidQuery(text()), 400, 0),
            (E::NotSupported(text()), 400, 0),
            (E::PartitionKeyMismatch, 400, 1001),
            (E::PartitionKeyMissing, 400, 0),
            (E::ContainerRecreated { sent: text() }, 400, 1024),
            (E::Forbidden(text()), 403, 0),
            (E::LogicalPartitionFull, 403, 1014),
            (E::NotFound, 404, 0),
            (E::OwnerNotFound, 404, 1003),
            (E::SessionNotAvailable { seen: Lsn(2), at: Lsn(1) }, 404, 1002),
            (E::Timeout, 408, 0),
            (E::Script(Box::new(script_error(404))), 400, 404),
            (E::Conflict, 409, 0),
            (E::UniqueKeyConflict, 409, 0),
            (E::RangeGone { id: text() }, 410, 1002),
            (E::PreconditionFailed, 412, 0),
            (E::PatchConditionFailed, 412, 1110),
            (E::TooLarge(text()), 413, 0),
            (E::Locked(text()), 423, 0),
            (E::Throttled { retry_after: Duration::ZERO }, 429, 3200),
            (E::RetryWith, 449, 0),
            (E::Unavailable, 503, 0),
            (E::Fault(text()), 500, 0),
        ]
    }

    #[test]
    fn the_table() {
        for (error, code, sub) in every_outcome() {
            let status = status_of(&Error::Engine(error));
            assert_eq!(status, Status::new(code, sub));
            assert_eq!(status.http().as_u16(), code);
            assert_eq!(status.word() == "InternalServerError", code == 500);
        }
        assert_eq!(status_of(&Error::Unauthorized(String::new())).code, 401);
        assert_eq!(status_of(&Error::MethodNotAllowed).code, 405);
    }

    /// Clients answer 403/3 and 403/1008 with two minutes of retries.
    #[test]
    fn trap_03_never_a_region_sub_status() {
        for (error, _, _) in every_outcome() {
            let status = status_of_engine(&error);
            assert!(status != Status::new(403, 3) && status != Status::new(403, 1008));
        }
    }
}
