//! Who sent a request: the holder of an account key, or of a resource token.
//!
//! ```text
//! authorization: type%3Dmaster%26ver%3D1.0%26sig%3D{base64 HMAC-SHA256}
//! text = verb \n resource type \n link \n x-ms-date \n date \n       lower case but for the link
//! ```
//!
//! The keyed state of each HMAC is prepared once; a request clones it. Every comparison of secrets
//! takes the same time wherever they differ.
//!
//! INVARIANTS
//! (A1) A signature is checked before anything it covers is believed, the date included.
//! (A2) A wrong signature is 401; a right one at the wrong time is 403.
//!
//! ELSEWHERE  What a resource token says: `token`. What its holder may do: `access`.

use std::borrow::Cow;
use std::time::UNIX_EPOCH;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, Mac};
use hyper::header::{AUTHORIZATION, DATE};
use hyper::{HeaderMap, Method};
use model::limits::CLOCK_SKEW_SECONDS_MAX;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::access::Access;
use crate::error::{Result, forbidden, unauthorized};
use crate::headers;
use crate::path::Signed;
use crate::percent;
use crate::token::Tokens;

/// Keyed HMAC-SHA256.
pub type HmacSha256 = Hmac<Sha256>;

/// Some clients drop the padding of a signature.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An account key, ready to check signatures. Its bytes are not kept.
#[derive(Clone)]
pub struct Key(HmacSha256);

/// A text that is no account key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an account key is base64 text, usually of 64 bytes")]
pub struct KeyError;

impl Key {
    /// Reads the base64 text of a key.
    pub fn parse(text: &str) -> std::result::Result<Key, KeyError> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| KeyError)?;
        if bytes.is_empty() {
            return Err(KeyError);
        }
        HmacSha256::new_from_slice(&bytes).map(Key).map_err(|_| KeyError)
    }

    /// The signature of a text given in pieces.
    fn sign(&self, pieces: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.0.clone();
        pieces.iter().for_each(|piece| mac.update(piece));
        mac.finalize().into_bytes().into()
    }

    fn has_signed(&self, pieces: &[&[u8]], signature: &[u8]) -> bool {
        self.sign(pieces).as_slice().ct_eq(signature).into()
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// The keys of an account. All four sign alike; the last two only read.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Reads and writes.
    pub primary: Key,
    /// Reads and writes, so that keys can be changed without a pause.
    pub secondary: Option<Key>,
    /// Reads only.
    pub primary_read_only: Option<Key>,
    /// Reads only.
    pub secondary_read_only: Option<Key>,
}

impl Keys {
    /// An account with one key.
    pub fn single(primary: Key) -> Keys {
        Keys { primary, secondary: None, primary_read_only: None, secondary_read_only: None }
    }

    fn with_access(&self) -> impl Iterator<Item = (&Key, Access)> {
        let full = std::iter::once(&self.primary).chain(&self.secondary);
        let read = self.primary_read_only.iter().chain(&self.secondary_read_only);
        full.map(|key| (key, Access::Full)).chain(read.map(|key| (key, Access::ReadOnly)))
    }
}

/// Checks the credentials of requests.
pub struct Authenticator {
    keys: Keys,
    tokens: Tokens,
    checks_skew: bool,
}

/// What of a request its signature covers, and the time it is checked at.
pub struct Claim<'a> {
    /// The verb.
    pub method: &'a Method,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The link, from the path.
    pub signed: Signed<'a>,
    /// Seconds since 1970.
    pub now_secs: u64,
}

impl Authenticator {
    /// Checks against these keys and tokens; `checks_skew` also refuses old and future dates.
    pub fn new(keys: Keys, tokens: Tokens, checks_skew: bool) -> Authenticator {
        Authenticator { keys, tokens, checks_skew }
    }

    /// The maker of resource tokens.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Finds out who sent a request and what that allows in general.
    pub fn authenticate(&self, claim: &Claim<'_>) -> Result<Access> {
        let header = claim.headers.get(AUTHORIZATION).ok_or_else(missing)?;
        let text = percent::decode(header.as_bytes());
        let credential = Credential::parse(&text).ok_or_else(malformed)?;
        match credential.kind {
            b"master" => self.check_signature(claim, credential.signature),
            b"resource" => self.check_token(claim, credential.signature),
            b"aad" => Err(unauthorized(
                "Microsoft Entra ID tokens are not supported. Use an account key or a resource \
                 token.",
            )),
            _ => Err(malformed()),
        }
    }

    fn check_signature(&self, claim: &Claim<'_>, signature: &[u8]) -> Result<Access> {
        let mut decoded = [0; 48];
        let length = LENIENT.decode_slice(signature, &mut decoded).map_err(|_| malformed())?;
        let signature = &decoded[..length];
        let dates = Dates::of(claim.headers);
        let by_link =
            |link: &str| dates.forms().find_map(|form| self.find_key(claim, link, form, signature));
        // A client signs the name, or the resource id of the same.
        let access = by_link(&claim.signed.link)
            .or_else(|| by_link(&claim.signed.rid()?))
            .ok_or_else(|| wrong_signature(claim, &dates))?;
        self.check_date(&dates, claim.now_secs)?;
        Ok(access)
    }

    fn find_key(
        &self,
        claim: &Claim<'_>,
        link: &str,
        (date1, date2): (&[u8], &[u8]),
        signature: &[u8],
    ) -> Option<Access> {
        let mut verb = [0; 16];
        let verb = lower(claim.method.as_str().as_bytes(), &mut verb)?;
        let kind = claim.signed.resource_type.as_bytes();
        let text: [&[u8]; 10] =
            [verb, b"\n", kind, b"\n", link.as_bytes(), b"\n", date1, b"\n", date2, b"\n"];
        self.keys
            .with_access()
            .find_map(|(key, access)| key.has_signed(&text, signature).then_some(access))
    }

    fn check_date(&self, dates: &Dates, now_secs: u64) -> Result<()> {
        if !self.checks_skew {
            return Ok(());
        }
        let at_secs = dates.parse().ok_or_else(|| {
            unauthorized("The x-ms-date header is missing or is not an RFC 1123 date.")
        })?;
        match at_secs.abs_diff(now_secs) <= CLOCK_SKEW_SECONDS_MAX {
            true => Ok(()),
            false => Err(forbidden(format!(
                "The authorization token is not valid at the current time: it was signed at \
                 {at_secs}, the server's clock says {now_secs} (seconds since 1970). Set the \
                 clock of the client, or sign each request anew."
            ))),
        }
    }

    fn check_token(&self, claim: &Claim<'_>, signature: &[u8]) -> Result<Access> {
        let grant = self.tokens.open(signature).ok_or_else(|| {
            unauthorized("The resource token was not issued by this account, or is damaged.")
        })?;
        match grant.expires_secs > claim.now_secs {
            true => Ok(Access::Granted(Box::new(grant))),
            false => Err(forbidden(
                "The resource token has expired. Read its permission again to get a new one.",
            )),
        }
    }
}

/// The three fields of the authorization header.
struct Credential<'a> {
    kind: &'a [u8],
    signature: &'a [u8],
}

impl Credential<'_> {
    fn parse(text: &[u8]) -> Option<Credential<'_>> {
        let rest = text.strip_prefix(b"type=")?;
        let (kind, rest) = rest.split_at(rest.iter().position(|&byte| byte == b'&')?);
        let rest = rest.strip_prefix(b"&ver=1")?;
        let rest = rest.strip_prefix(b".0").unwrap_or(rest);
        Some(Credential { kind, signature: rest.strip_prefix(b"&sig=")? })
    }
}

/// The dates of a request, lower-cased.
struct Dates {
    ours: Date,
    standard: Date,
}

/// The text of a date header in lower case; one too long to be a date counts as absent.
struct Date {
    bytes: [u8; 40],
    length: usize,
}

impl Date {
    fn of(headers: &HeaderMap, name: &hyper::header::HeaderName) -> Date {
        let mut date = Date { bytes: [0; 40], length: 0 };
        if let Some(value) = headers.get(name) {
            date.length = lower(value.as_bytes(), &mut date.bytes).map_or(0, <[u8]>::len);
        }
        date
    }

    fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Seconds since 1970, if this is an RFC 1123 date. Some clients send it lower-cased; the
    /// parser wants the letters of the standard.
    fn parse(&self) -> Option<u64> {
        let mut bytes = self.bytes;
        for at in [0, 8, 26, 27, 28] {
            bytes[at].make_ascii_uppercase();
        }
        let text = std::str::from_utf8(&bytes[..self.length]).ok()?;
        let time = httpdate::parse_http_date(text).ok()?;
        Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
    }
}

impl Dates {
    fn of(headers: &HeaderMap) -> Dates {
        Dates { ours: Date::of(headers, &headers::X_MS_DATE), standard: Date::of(headers, &DATE) }
    }

    /// The forms in which clients sign them. Proxies add `date`, so it counts only if it must.
    fn forms(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let both = (self.ours.text(), self.standard.text());
        let first = if self.ours.length > 0 { (both.0, &b""[..]) } else { both };
        let second = (self.ours.length > 0 && self.standard.length > 0).then_some(both);
        std::iter::once(first).chain(second)
    }

    fn parse(&self) -> Option<u64> {
        if self.ours.length > 0 { self.ours.parse() } else { self.standard.parse() }
    }
}

/// Lower-cases ASCII into a buffer; `None` if it does not fit.
fn lower<'b>(text: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let buffer = buffer.get_mut(..text.len())?;
    buffer.copy_from_slice(text);
    buffer.make_ascii_lowercase();
    Some(buffer)
}

fn missing() -> crate::error::Failure {
    unauthorized(
        "Required Header authorization is missing. Ensure a valid Authorization token is passed.",
    )
}

fn malformed() -> crate::error::Failure {
    unauthorized(
        "The authorization header is malformed. It is the percent-encoding of \
         type=master&ver=1.0&sig={signature}, or a resource token.",
    )
}

/// Says what was signed here: that is no secret, and the first thing one needs to find the mistake.
fn wrong_signature(claim: &Claim<'_>, dates: &Dates) -> crate::error::Failure {
    let (date1, date2) = dates.forms().next().unwrap_or_default();
    let text = |bytes| -> Cow<'_, str> { String::from_utf8_lossy(bytes) };
    unauthorized(format!(
        "The input authorization token can't serve the request. The wrong key is being used or \
         the expected payload is not built as per the protocol. Server used the following payload \
         to sign: '{}\n{}\n{}\n{}\n{}\n'",
        claim.method.as_str().to_ascii_lowercase(),
        claim.signed.resource_type,
        claim.signed.link,
        text(date1),
        text(date2),
    ))
}

#[cfg(test)]
mod tests;
