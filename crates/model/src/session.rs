//! Log sequence numbers and the session tokens made of them.
//!
//! ```text
//! token := part *("," part)
//! part  := range-id ":" body
//! body  := version "#" lsn *("#" region "=" lsn)   |   lsn
//! ```
//!
//! A token is a floor, not a version: newer data is fine. We write `{range}:-1#{lsn}`, with no
//! region segments, for the life of the account; clients fail on a changing number of them.

use std::fmt;

/// Position of a commit in the log of its physical partition. Only grows; never used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a client has seen of each physical partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionToken(Vec<(u32, Lsn)>);

/// The token a client sent does not have the form of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The session token '{0}' is malformed. Send back the token of an earlier response as it was."
)]
pub struct SessionTokenError(String);

impl SessionToken {
    /// The token of one partition.
    pub fn of(partition: u32, lsn: Lsn) -> SessionToken {
        SessionToken(vec![(partition, lsn)])
    }

    /// Whether it tells no more than where one partition is.
    pub fn is_of(&self, partition: u32, lsn: Lsn) -> bool {
        matches!(self.0[..], [] | [_]) && self.0.iter().all(|own| *own == (partition, lsn))
    }

    /// Reads a token. Parts of range ids that are no numbers of ours are refused.
    pub fn parse(text: &str) -> Result<SessionToken, SessionTokenError> {
        let malformed = || SessionTokenError(text.to_owned());
        text.split(',')
            .map(|part| parse_part(part.trim()).ok_or_else(malformed))
            .collect::<Result<Vec<_>, _>>()
            .map(SessionToken)
    }

    /// The floor for a partition, if the client has seen anything of it.
    pub fn floor(&self, partition: u32) -> Option<Lsn> {
        self.0.iter().filter(|(p, _)| *p == partition).map(|(_, lsn)| *lsn).max()
    }
}

fn parse_part(part: &str) -> Option<(u32, Lsn)> {
    let (range, body) = part.split_once(':')?;
    let range = range.parse().ok()?;
    let Some((version, rest)) = body.split_once('#') else {
        return Some((range, Lsn(body.parse().ok()?)));
    };
    version.parse::<i64>().ok()?;
    let mut segments = rest.split('#');
    let lsn = segments.next()?.parse().ok()?;
    for region in segments {
        let (id, local) = region.split_once('=')?;
        id.parse::<u32>().ok()?;
        local.parse::<i64>().ok()?;
    }
    Some((range, Lsn(lsn)))
}

impl FromIterator<(u32, Lsn)> for SessionToken {
    fn from_iter<I: IntoIterator<Item = (u32, Lsn)>>(parts: I) -> SessionToken {
        SessionToken(parts.into_iter().collect())
    }
}

impl fmt::Display for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (partition, lsn)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{partition}:-1#{lsn}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_that_clients_send() {
        let token = SessionToken::parse("0:-1#113,1:5#20#0=7#1=-1, 2:9").unwrap();
        assert_eq!(token.floor(0), Some(Lsn(113)));
        assert_eq!(token.floor(1), Some(Lsn(20)));
        assert_eq!(token.floor(2), Some(Lsn(9)));
        assert_eq!(token.floor(3), None);
        assert_eq!(SessionToken::of(4, Lsn(8)).to_string(), "4:-1#8");
    }

    #[test]
    fn malformed_tokens_are_refused() {
        for text in ["", "0", "x:1", "0:", "0:a#b", "0:-1#", "0:-1#5#1", "0:-1#-5"] {
            assert!(SessionToken::parse(text).is_err(), "{text:?}");
        }
    }
}
