//! What a server answered.

use std::fmt::{Display, Formatter};
use std::time::Duration;

use bytes::Bytes;
use hyper::HeaderMap;
use serde_json::Value;

use crate::{Error, headers};

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Reply {
    /// The text of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The etag of the item, or where a change feed goes on; quotes included.
    pub fn etag(&self) -> Option<&str> {
        self.header("etag")
    }

    /// The position of the physical partition: behind a write, that of the write.
    pub fn lsn(&self) -> Option<u64> {
        self.header(headers::LSN)?.parse().ok()
    }

    /// The id of the physical partition that answered.
    pub fn partition(&self) -> Option<u32> {
        self.header(headers::RANGE_ID)?.parse().ok()
    }

    /// What a client that got this answer has seen.
    pub fn session(&self) -> Option<&str> {
        self.header(headers::SESSION_TOKEN)
    }

    /// How many physical partitions have answered: a session token has a piece for each.
    pub fn partitions(&self) -> usize {
        self.session().map_or(0, |token| token.split(',').filter(|piece| !piece.is_empty()).count())
    }

    /// Where a feed goes on, if it does.
    pub fn continuation(&self) -> Option<&str> {
        self.header(headers::CONTINUATION)
    }

    /// The price in RU.
    pub fn charge(&self) -> f64 {
        self.header(headers::REQUEST_CHARGE).and_then(|text| text.parse().ok()).unwrap_or(0.0)
    }

    /// One number of what a query took, if it was asked for.
    pub fn query_metric(&self, name: &str) -> Option<f64> {
        let pieces = self.header(headers::QUERY_METRICS)?.split(';');
        let (_, number) = pieces.filter_map(|piece| piece.split_once('=')).find(|p| p.0 == name)?;
        number.parse().ok()
    }

    /// How long a client should wait before it asks again, if the server says so.
    pub fn retry_after(&self) -> Option<Duration> {
        self.header(headers::RETRY_AFTER)?.parse().ok().map(Duration::from_millis)
    }

    /// What the status means in particular; 0 if it says nothing.
    pub fn substatus(&self) -> u32 {
        self.header(headers::SUBSTATUS).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// The body.
    pub fn json(&self) -> Result<Value, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Malformed(error.to_string()))
    }

    /// The rows of a feed; none if nothing is new.
    pub fn rows(&self) -> Result<Vec<Value>, Error> {
        if self.status == 304 {
            return Ok(Vec::new());
        }
        let Value::Object(body) = self.json()? else {
            return Err(Error::Malformed("a feed is an object".into()));
        };
        let rows = body.into_iter().find_map(|(_, value)| match value {
            Value::Array(rows) => Some(rows),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
            Value::String(_) | Value::Object(_) => None,
        });
        rows.ok_or_else(|| Error::Malformed("a feed has an array".into()))
    }
}

impl Display for Reply {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.status)?;
        match self.substatus() {
            0 => {}
            sub => write!(f, "/{sub}")?,
        }
        let body = self.json().unwrap_or_default();
        match body["message"].as_str() {
            Some(message) => write!(f, " {}", message.lines().next().unwrap_or_default()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_query_took() {
        let mut reply = Reply { status: 200, headers: HeaderMap::new(), body: Bytes::new() };
        assert_eq!(reply.query_metric("b"), None);
        let metrics = "a=1;b=2.50".parse().unwrap();
        reply.headers.insert(headers::QUERY_METRICS, metrics);
        assert_eq!(reply.query_metric("b"), Some(2.5));
        assert_eq!(reply.query_metric("c"), None);
    }

    #[test]
    fn how_many_partitions_answered() {
        let mut reply = Reply { status: 200, headers: HeaderMap::new(), body: Bytes::new() };
        assert_eq!(reply.partitions(), 0);
        for (token, expect) in [("0:-1#5", 1), ("0:-1#5,1:-1#7,2:-1#1", 3), ("", 0)] {
            reply.headers.insert(headers::SESSION_TOKEN, token.parse().unwrap());
            assert_eq!(reply.partitions(), expect, "{token}");
        }
    }

    #[test]
    fn rows_of_a_feed() {
        let reply = |status, body: &'static str| Reply {
            status,
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        };
        let feed = r#"{"_rid":"r","Documents":[1,2],"_count":2}"#;
        assert_eq!(reply(200, feed).rows().unwrap(), [1, 2]);
        assert!(reply(304, "").rows().unwrap().is_empty());
        assert!(reply(200, "[]").rows().is_err());
        assert!(reply(200, "{}").rows().is_err());
        let error = r#"{"code":"NotFound","message":"no such item\r\nActivityId: 1"}"#;
        assert_eq!(reply(404, error).to_string(), "404 no such item");
    }
}
