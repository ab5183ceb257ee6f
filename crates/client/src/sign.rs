//! Signatures with an account key.
//!
//! ```text
//! text          = verb \n type \n name \n date \n \n         lower case but for the name
//! authorization = escape("type=master&ver=1.0&sig=" base64(HMAC-SHA256(key, text)))
//! ```

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::link::{Link, escape, unescape};
use crate::{Error, Verb};

/// What stands before the signature itself.
const PREFIX: &str = "type=master&ver=1.0&sig=";

/// The key of every development server.
const DEVELOPMENT: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// An account key, ready to sign. Its bytes are not kept.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl Key {
    /// Reads the base64 text of a key.
    pub fn parse(text: &str) -> Result<Key, Error> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| Error::BadKey)?;
        Hmac::new_from_slice(&bytes).map(Key).map_err(|_| Error::BadKey)
    }

    /// The well-known key of development servers.
    pub fn development() -> Key {
        Key::parse(DEVELOPMENT).expect("the development key is base64")
    }

    /// The authorization header of a request.
    pub fn sign(&self, verb: Verb, link: &Link, date: &str) -> String {
        let (kind, name) = link.signed();
        let mac = self.mac(verb.signed(), kind, name, date);
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        escape(&format!("{PREFIX}{signature}"))
    }

    /// Whether an authorization header is a signature of these with this key. What a server
    /// checks; here for those that stand in for one.
    pub fn has_signed(
        &self,
        (verb, kind, name): (&str, &str, &str),
        date: &str,
        authorization: &[u8],
    ) -> bool {
        let text = unescape(authorization);
        let Some(signature) = text.strip_prefix(PREFIX.as_bytes()) else { return false };
        let mut decoded = [0; 48];
        let Ok(length) = STANDARD.decode_slice(signature, &mut decoded) else { return false };
        self.mac(verb, kind, name, date).verify_slice(&decoded[..length]).is_ok()
    }

    fn mac(&self, verb: &str, kind: &str, name: &str, date: &str) -> Hmac<Sha256> {
        let date = date.to_ascii_lowercase();
        let mut mac = self.0.clone();
        for piece in [verb, "\n", kind, "\n", name, "\n", &date, "\n\n"] {
            mac.update(piece.as_bytes());
        }
        mac
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// The current time as requests carry it.
#[allow(clippy::disallowed_methods)] // A client has no context to ask; it signs with its own clock.
pub fn date_now() -> String {
    httpdate::fmt_http_date(std::time::SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Sun, 15 Nov 2026 17:57:23 GMT";

    #[test]
    fn a_signature_is_recognized() {
        let key = Key::development();
        let authorization = key.sign(Verb::Get, &Link::item("d", "c", "a b"), DATE);
        let check = |verb, kind, name, date: &str, expect| {
            let is_signed = key.has_signed((verb, kind, name), date, authorization.as_bytes());
            assert_eq!(is_signed, expect, "{verb} {kind} {name} {date}");
        };
        check("get", "docs", "dbs/d/colls/c/docs/a b", DATE, true);
        check("get", "docs", "dbs/d/colls/c/docs/a b", &DATE.to_lowercase(), true);
        check("put", "docs", "dbs/d/colls/c/docs/a b", DATE, false);
        check("get", "docs", "dbs/d/colls/c/docs/a", DATE, false);
        check("get", "docs", "dbs/d/colls/c/docs/a b", "", false);
        let other = Key::parse("b3RoZXI=").unwrap();
        let name = "dbs/d/colls/c/docs/a b";
        assert!(!other.has_signed(("get", "docs", name), DATE, authorization.as_bytes()));
    }

    #[test]
    fn what_is_no_signature() {
        let key = Key::development();
        for text in ["", "type%3Dmaster", "type%3Dmaster%26ver%3D1.0%26sig%3D", "%%%"] {
            assert!(!key.has_signed(("get", "dbs", ""), DATE, text.as_bytes()), "{text}");
        }
        assert!(matches!(Key::parse("no base64!"), Err(Error::BadKey)));
    }
}
