//! Resource tokens: what a permission allows, sealed so that only this account can have made it.
//!
//! ```text
//! type=resource&ver=1&sig={mac};{grant};        both base64 without padding
//! ```
//!
//! A token is self-contained: the server keeps no list of them, and one stays valid until it
//! expires whatever becomes of its permission.
//!
//! INVARIANTS
//! (T1) A grant is read only after its seal has been compared.
//! (T2) Containers are named by resource id, so a token never reaches a re-created one.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::auth::HmacSha256;

/// What a token allows, to whom it was given, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The resource id of the permission.
    #[serde(rename = "p")]
    pub permission: String,
    /// The resource id of the container.
    #[serde(rename = "c")]
    pub container: String,
    /// The keyword and id of one child of it, if not all of it.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub child: Option<(String, String)>,
    /// Whether writes are allowed.
    #[serde(rename = "w")]
    pub is_writable: bool,
    /// The one partition key it is limited to, as the JSON array clients send.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<String>,
    /// Seconds since 1970.
    #[serde(rename = "e")]
    pub expires_secs: u64,
}

/// Makes and opens tokens.
pub struct Tokens(HmacSha256);

impl Tokens {
    /// Seals with a key derived from the account's secret, which has other uses too.
    pub fn new(secret: &[u8; 32]) -> Tokens {
        let derived = keyed(secret).chain_update(b"resource token 1").finalize().into_bytes();
        Tokens(keyed(&derived))
    }

    /// The token of a grant.
    pub fn seal(&self, grant: &Grant) -> String {
        let grant = serde_json::to_vec(grant).expect("a grant has only string keys");
        let seal = URL_SAFE_NO_PAD.encode(self.mac(&grant));
        format!("type=resource&ver=1&sig={seal};{};", URL_SAFE_NO_PAD.encode(grant))
    }

    /// The grant in the `sig` field of a token; `None` if it is not one of ours (T1).
    pub fn open(&self, signature: &[u8]) -> Option<Grant> {
        let mut fields = signature.split(|&byte| byte == b';');
        let seal = URL_SAFE_NO_PAD.decode(fields.next()?).ok()?;
        let grant = URL_SAFE_NO_PAD.decode(fields.next()?).ok()?;
        let is_ours: bool = self.mac(&grant).as_slice().ct_eq(&seal).into();
        if is_ours { serde_json::from_slice(&grant).ok() } else { None }
    }

    fn mac(&self, grant: &[u8]) -> [u8; 32] {
        self.0.clone().chain_update(grant).finalize().into_bytes().into()
    }
}

fn keyed(key: &[u8]) -> HmacSha256 {
    HmacSha256::new_from_slice(key).expect("HMAC takes keys of any length")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant() -> Grant {
        Grant {
            permission: "p".to_owned(),
            container: "c".to_owned(),
            child: Some(("docs".to_owned(), "a;b".to_owned())),
            is_writable: true,
            partition_key: Some(r#"["é"]"#.to_owned()),
            expires_secs: 9,
        }
    }

    fn signature(token: &str) -> &[u8] {
        token.strip_prefix("type=resource&ver=1&sig=").unwrap().as_bytes()
    }

    #[test]
    fn sealed_and_opened() {
        let tokens = Tokens::new(&[1; 32]);
        let token = tokens.seal(&grant());
        assert_eq!(tokens.open(signature(&token)), Some(grant()));
        assert_eq!(Tokens::new(&[2; 32]).open(signature(&token)), None);
    }

    #[test]
    fn any_changed_byte_breaks_the_seal() {
        let tokens = Tokens::new(&[1; 32]);
        let token = tokens.seal(&grant());
        let signature = signature(&token);
        for at in 0..signature.len() - 1 {
            let mut changed = signature.to_vec();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_ne!(tokens.open(&changed), Some(grant()), "byte {at}");
        }
        assert_eq!(tokens.open(b""), None);
        assert_eq!(tokens.open(b";;"), None);
    }
}
