//! Continuations: opaque to clients, sealed, valid across restarts.
//!
//! ```text
//! base64url( payload ‖ first 12 bytes of HMAC-SHA256(account secret, purpose ‖ container ‖ payload) )
//! ```
//!
//! A token of another container, of another purpose, or forged does not open. It holds no more than
//! where to resume, so it is short.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::{Container, Core, Error, Result};

const SEAL_BYTES: usize = 12;

/// What a token resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A read feed.
    Feed = 1,
    /// A query.
    Query = 2,
}

impl Core {
    fn mac(&self, purpose: Purpose, container: &Container, payload: &[u8]) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(&self.seal_key)
            .expect("HMAC takes keys of any length");
        mac.update(&[purpose as u8]);
        mac.update(&container.rid().to_bytes());
        mac.update(payload);
        mac
    }

    /// A token that resumes at `payload`.
    pub fn seal(&self, purpose: Purpose, container: &Container, payload: &[u8]) -> String {
        let seal = self.mac(purpose, container, payload).finalize().into_bytes();
        URL_SAFE_NO_PAD.encode([payload, &seal[..SEAL_BYTES]].concat())
    }

    /// The payload of a token of ours.
    pub fn unseal(&self, purpose: Purpose, container: &Container, token: &str) -> Result<Vec<u8>> {
        let invalid = || {
            Error::Invalid(
                "The continuation token is malformed, or belongs to another request. Send back \
                 the token of the previous page of the same request as it was."
                    .into(),
            )
        };
        let mut bytes = URL_SAFE_NO_PAD.decode(token.trim()).map_err(|_| invalid())?;
        let length = bytes.len().checked_sub(SEAL_BYTES).ok_or_else(invalid)?;
        let seal = bytes.split_off(length);
        let mac = self.mac(purpose, container, &bytes);
        mac.verify_truncated_left(&seal).map_err(|_| invalid())?;
        Ok(bytes)
    }
}
