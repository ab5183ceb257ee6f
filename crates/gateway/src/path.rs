//! The path of a request: its segments, and the link its signature covers.
//!
//! ```text
//! /dbs/d1/colls/c1/docs/a     keywords at even positions, names at odd ones
//! dbs│d1 │colls│c1 │docs│a
//!  0   1    2    3    4  5
//! ```
//!
//! Segments are split before they are decoded, so no escape can change the structure. Slashes at
//! either end mean nothing: some clients send one more than others. No operation has URL
//! parameters; behind a name, a `?` and what follows are part of that name.
//!
//! INVARIANTS
//! (P1) `text` is the segments, decoded and joined by `/`: the name link of the protocol.
//! (P2) A path without escapes is borrowed from the request.

use std::borrow::Cow;
use std::ops::Range;

use hyper::Uri;
use model::Rid;

use crate::error::{Result, invalid};
use crate::percent;

/// No resource is deeper: `dbs/d/colls/c/docs/i/attachments/a`.
const SEGMENTS_MAX: usize = 8;

/// A decoded path.
#[derive(Debug)]
pub struct Path<'a> {
    text: Cow<'a, str>,
    bounds: [(u32, u32); SEGMENTS_MAX],
    count: usize,
}

/// What a signature of a request on this path covers.
#[derive(Debug, PartialEq, Eq)]
pub struct Signed<'a> {
    /// The keyword of the resource type; empty for the account.
    pub resource_type: &'a str,
    /// The link to the resource, or to the owner of the feed.
    pub link: Cow<'a, str>,
    /// The last name in the link.
    name: &'a str,
}

impl Signed<'_> {
    /// The resource id of the same, lower-cased, if its name has the form of one.
    pub fn rid(&self) -> Option<String> {
        Rid::parse(self.name).map(|_| self.name.to_ascii_lowercase())
    }
}

impl<'a> Path<'a> {
    /// Takes a request target apart. Refused: text that is not UTF-8, more than eight segments.
    pub fn parse(uri: &'a Uri) -> Result<Path<'a>> {
        let bare = uri.path().trim_matches('/');
        let raw = match uri.query() {
            None => bare,
            Some(_) if bare.split('/').count() % 2 == 1 => bare,
            Some(_) => {
                let full = uri.path_and_query().map_or("", |both| both.as_str());
                full.trim_matches('/')
            }
        };
        if raw.as_bytes().contains(&b'%') { Path::decode(raw) } else { Path::split(raw) }
    }

    fn split(raw: &'a str) -> Result<Path<'a>> {
        let mut path = Path { text: Cow::Borrowed(raw), bounds: Default::default(), count: 0 };
        if raw.is_empty() {
            return Ok(path);
        }
        let mut start = 0;
        for (at, _) in raw.bytes().enumerate().filter(|&(_, byte)| byte == b'/') {
            path.push(start..at)?;
            start = at + 1;
        }
        path.push(start..raw.len())?;
        Ok(path)
    }

    fn decode(raw: &str) -> Result<Path<'a>> {
        let mut path = Path { text: Cow::Borrowed(""), bounds: Default::default(), count: 0 };
        let mut text = String::with_capacity(raw.len());
        for segment in raw.split('/') {
            if path.count > 0 {
                text.push('/');
            }
            let start = text.len();
            let decoded = percent::decode(segment.as_bytes());
            text.push_str(std::str::from_utf8(&decoded).map_err(|_| {
                invalid("The request path is not UTF-8. Percent-encode names as UTF-8.")
            })?);
            path.push(start..text.len())?;
        }
        path.text = Cow::Owned(text);
        Ok(path)
    }

    fn push(&mut self, bounds: Range<usize>) -> Result<()> {
        let slot = self.bounds.get_mut(self.count);
        let slot = slot.ok_or_else(|| invalid("The request path has too many segments."))?;
        *slot = (bounds.start as u32, bounds.end as u32);
        self.count += 1;
        Ok(())
    }

    /// How many segments there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// A segment, decoded; empty if there are fewer.
    pub fn segment(&self, at: usize) -> &str {
        let (start, end) = self.bounds[..self.count].get(at).copied().unwrap_or_default();
        &self.text[start as usize..end as usize]
    }

    /// The text up to and including a segment.
    fn up_to(&self, count: usize) -> &str {
        match count {
            0 => "",
            _ => &self.text[..self.bounds[count - 1].1 as usize],
        }
    }

    /// What the signature covers. An even path is a resource: its type is the last keyword, its
    /// link the whole path. An odd path is a feed of the resource before it.
    ///
    /// Two exceptions: offers sign only their resource id, and deleting a partition key signs as
    /// its container.
    pub fn signed(&self) -> Signed<'_> {
        if self.count == 2 && self.segment(0) == "offers" {
            let link = Cow::Owned(self.segment(1).to_ascii_lowercase());
            return Signed { resource_type: "offers", link, name: "" };
        }
        if self.count == 6 && self.segment(4) == "operations" {
            return self.signed_as("colls", 4);
        }
        match self.count {
            0 => Signed { resource_type: "", link: Cow::Borrowed(""), name: "" },
            n if n % 2 == 0 => self.signed_as(self.segment(n - 2), n),
            n => self.signed_as(self.segment(n - 1), n - 1),
        }
    }

    fn signed_as<'s>(&'s self, resource_type: &'s str, count: usize) -> Signed<'s> {
        let name = if count == 0 { "" } else { self.segment(count - 1) };
        Signed { resource_type, link: Cow::Borrowed(self.up_to(count)), name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    fn segments(text: &str) -> Vec<String> {
        let uri = uri(text);
        let path = Path::parse(&uri).unwrap();
        (0..path.len()).map(|at| path.segment(at).to_owned()).collect()
    }

    fn signed(text: &str) -> (String, String, Option<String>) {
        let uri = uri(text);
        let path = Path::parse(&uri).unwrap();
        let signed = path.signed();
        let rid = signed.rid();
        (signed.resource_type.to_owned(), signed.link.into_owned(), rid)
    }

    #[test]
    fn trap_12_slashes_at_the_ends_mean_nothing() {
        for text in
            ["/dbs/d1/colls/c1", "/dbs/d1/colls/c1/", "//dbs/d1/colls/c1", "//dbs/d1/colls/c1//"]
        {
            assert_eq!(segments(text), ["dbs", "d1", "colls", "c1"], "{text}");
        }
        assert!(segments("/").is_empty());
        assert!(segments("//").is_empty());
    }

    #[test]
    fn names_may_look_like_keywords() {
        assert_eq!(segments("/dbs/colls/colls/dbs/docs/docs")[3], "dbs");
    }

    #[test]
    fn trap_29_an_id_spills_into_the_url_query() {
        assert_eq!(segments("/dbs/d/colls/c/docs/x%20y?%25%C3%A9")[5], "x y?%é");
        assert_eq!(segments("/dbs/d/colls/c/docs/x?")[5], "x?");
        assert_eq!(segments("/dbs/d/colls/c/docs?x=1")[4], "docs");
        assert!(segments("/?x=1").is_empty());
        let (_, link, _) = signed("/dbs/d/colls/c/docs/x%20y?%25%C3%A9");
        assert_eq!(link, "dbs/d/colls/c/docs/x y?%é");
    }

    #[test]
    fn escapes_do_not_change_the_structure() {
        let all = segments("/dbs/d%2Fcolls%2Fc/colls/x%20y%25%C3%A9%2B%26%3D/");
        assert_eq!(all, ["dbs", "d/colls/c", "colls", "x y%é+&="]);
    }

    #[test]
    fn refused_paths() {
        for text in ["/dbs/%ff", "/1/2/3/4/5/6/7/8/9", "/1/2/3/4/5/6/7/8/%39"] {
            assert!(Path::parse(&uri(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn links_that_signatures_cover() {
        let cases = [
            ("/", "", ""),
            ("/dbs", "dbs", ""),
            ("/dbs/d1", "dbs", "dbs/d1"),
            ("/dbs/D1/colls", "colls", "dbs/D1"),
            ("/dbs/d1/colls/c1", "colls", "dbs/d1/colls/c1"),
            ("/dbs/d1/colls/c1/docs", "docs", "dbs/d1/colls/c1"),
            ("/dbs/d1/colls/c1/docs/a", "docs", "dbs/d1/colls/c1/docs/a"),
            ("/dbs/d1/colls/c1/pkranges/", "pkranges", "dbs/d1/colls/c1"),
            ("/dbs/d1/colls/c1/sprocs/sp", "sprocs", "dbs/d1/colls/c1/sprocs/sp"),
            ("/dbs/d1/users/u/permissions", "permissions", "dbs/d1/users/u"),
            ("/offers", "offers", ""),
        ];
        for (path, kind, link) in cases {
            let (actual_kind, actual_link, _) = signed(path);
            assert_eq!((actual_kind.as_str(), actual_link.as_str()), (kind, link), "{path}");
        }
    }

    #[test]
    fn trap_28_the_two_exceptions() {
        assert_eq!(signed("/offers/Ab1x"), ("offers".to_owned(), "ab1x".to_owned(), None));
        let path = "/dbs/d1/colls/c1/operations/partitionkeydelete";
        assert_eq!(signed(path), ("colls".to_owned(), "dbs/d1/colls/c1".to_owned(), None));
    }

    #[test]
    fn rid_links_are_lower_cased() {
        let container = Rid::Container(0x6bcd_1234, 3).to_string();
        let database = Rid::Database(0x6bcd_1234).to_string();
        let (_, _, rid) = signed(&format!("/dbs/{database}/colls/{container}/pkranges"));
        assert_eq!(rid, Some(container.to_lowercase()));
    }
}
