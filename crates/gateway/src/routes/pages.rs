//! Pages of resources. There are few of them, so a page is cut from the whole list.
//!
//! Lists continue behind a resource id, so what is created or deleted between two pages shifts
//! nothing. Rows of a query have no id; those continue at a number.

use bytes::Bytes;
use engine::ops::Resource;
use hyper::HeaderMap;
use model::Rid;
use model::limits::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX};

use crate::decode;
use crate::error::{Result, invalid};

/// A page and where the next one starts.
pub struct Page<T> {
    /// What is on it.
    pub rows: Vec<T>,
    /// Where to go on, if anything remains.
    pub continuation: Option<String>,
}

/// The page of a list that a request asks for, in the order of resource ids.
pub fn of_resources(mut all: Vec<Resource>, headers: &HeaderMap) -> Result<Page<Resource>> {
    all.sort_by_key(|resource| resource.rid);
    if let Some(text) = decode::continuation(headers) {
        let last = Rid::parse(text).ok_or_else(bad_continuation)?;
        all.retain(|resource| resource.rid > last);
    }
    let is_cut = cut(&mut all, headers)?;
    let continuation = all.last().filter(|_| is_cut).map(|last| last.rid.to_string());
    Ok(Page { rows: all, continuation })
}

/// The page of a query's rows that a request asks for.
pub fn of_rows(mut all: Vec<Bytes>, headers: &HeaderMap) -> Result<Page<Bytes>> {
    let start = match decode::continuation(headers) {
        None => 0,
        Some(text) => text.parse().ok().filter(|&at| at > 0).ok_or_else(bad_continuation)?,
    };
    all.drain(..all.len().min(start));
    let is_cut = cut(&mut all, headers)?;
    let continuation = is_cut.then(|| (start + all.len()).to_string());
    Ok(Page { rows: all, continuation })
}

/// Leaves one page of the rest; whether that cut anything off.
fn cut<T>(rows: &mut Vec<T>, headers: &HeaderMap) -> Result<bool> {
    let count = decode::items_max(headers)?.unwrap_or(PAGE_ITEMS_DEFAULT).min(PAGE_ITEMS_MAX);
    let is_cut = rows.len() > count;
    rows.truncate(count);
    Ok(is_cut)
}

fn bad_continuation() -> crate::error::Failure {
    invalid("The continuation is not one that this list has given.")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(count: &str, continuation: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut set = |name, text: &str| {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(text).unwrap())
        };
        set("x-ms-max-item-count", count);
        if let Some(text) = continuation {
            set("x-ms-continuation", text);
        }
        headers
    }

    fn resource(number: u32) -> Resource {
        let body = Arc::new(serde_json::Value::Null);
        Resource { rid: Rid::Database(number), etag: String::new(), body }
    }

    #[test]
    fn a_list_in_pages() {
        let all = || [3, 1, 2].map(resource).to_vec();
        let first = of_resources(all(), &headers("2", None)).unwrap();
        assert_eq!(first.rows.len(), 2);
        let next = first.continuation.unwrap();
        let second = of_resources(all(), &headers("2", Some(&next))).unwrap();
        assert_eq!(second.rows[0].rid, Rid::Database(3));
        assert_eq!(second.continuation, None);
        assert_eq!(of_resources(all(), &headers("-1", None)).unwrap().rows.len(), 3);
        assert!(of_resources(all(), &headers("2", Some("?"))).is_err());
    }

    #[test]
    fn rows_in_pages() {
        let all = || ["1", "2", "3"].map(Bytes::from).to_vec();
        let first = of_rows(all(), &headers("2", None)).unwrap();
        let next = first.continuation.unwrap();
        let second = of_rows(all(), &headers("2", Some(&next))).unwrap();
        assert_eq!((second.rows, second.continuation), (vec![Bytes::from("3")], None));
        assert!(of_rows(all(), &headers("2", Some("x"))).is_err());
        assert!(of_rows(all(), &headers("2", Some("9"))).unwrap().rows.is_empty());
    }
}
