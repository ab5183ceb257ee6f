//! Where a resource is: its path as it goes over the wire, and what of it is signed.

use std::fmt::Write;

/// The place of a resource or of a feed of resources.
///
/// ```
/// let link = client::Link::item("d", "c", "x/1?");
/// assert_eq!(link.path(), "/dbs/d/colls/c/docs/x%2F1%3F");
/// assert_eq!(link.signed(), ("docs", "dbs/d/colls/c/docs/x/1?"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    path: String,
    kind: &'static str,
    name: String,
}

impl Link {
    /// All databases.
    pub fn databases() -> Link {
        Link::account().feed("dbs")
    }

    /// One database.
    pub fn database(name: &str) -> Link {
        Link::account().child("dbs", name)
    }

    /// All containers of a database.
    pub fn containers(database: &str) -> Link {
        Link::database(database).feed("colls")
    }

    /// One container.
    pub fn container(database: &str, name: &str) -> Link {
        Link::database(database).child("colls", name)
    }

    /// All items of a container.
    pub fn items(database: &str, container: &str) -> Link {
        Link::container(database, container).feed("docs")
    }

    /// One item.
    pub fn item(database: &str, container: &str, id: &str) -> Link {
        Link::container(database, container).child("docs", id)
    }

    /// The physical partitions of a container.
    pub fn ranges(database: &str, container: &str) -> Link {
        Link::container(database, container).feed("pkranges")
    }

    /// All stored procedures of a container.
    pub fn procedures(database: &str, container: &str) -> Link {
        Link::container(database, container).feed("sprocs")
    }

    /// One stored procedure.
    pub fn procedure(database: &str, container: &str, id: &str) -> Link {
        Link::container(database, container).child("sprocs", id)
    }

    /// All user-defined functions of a container.
    pub fn functions(database: &str, container: &str) -> Link {
        Link::container(database, container).feed("udfs")
    }

    /// All triggers of a container.
    pub fn triggers(database: &str, container: &str) -> Link {
        Link::container(database, container).feed("triggers")
    }

    /// The path of the request.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The resource type and the name that are signed.
    pub fn signed(&self) -> (&str, &str) {
        (self.kind, &self.name)
    }

    fn account() -> Link {
        Link { path: String::new(), kind: "", name: String::new() }
    }

    /// The signature of a feed covers its owner.
    fn feed(mut self, kind: &'static str) -> Link {
        self.path.push('/');
        self.path.push_str(kind);
        self.kind = kind;
        self
    }

    fn child(self, kind: &'static str, name: &str) -> Link {
        let mut link = self.feed(kind);
        link.path.push('/');
        link.path.push_str(&escape(name));
        if !link.name.is_empty() {
            link.name.push('/');
        }
        link.name.push_str(kind);
        link.name.push('/');
        link.name.push_str(name);
        link
    }
}

/// Escapes everything that could mean something in a path or a header value.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            true => out.push(byte as char),
            // Writing to memory cannot fail.
            false => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// Undoes [`escape`]. A `%` without two hex digits behind it stands for itself.
pub fn unescape(text: &[u8]) -> Vec<u8> {
    let digit = |at: usize| text.get(at).and_then(|&byte| (byte as char).to_digit(16));
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match (text[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high << 4 | low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed() {
        let check = |link: Link, path: &str, kind: &str, name: &str| {
            assert_eq!((link.path(), link.signed()), (path, (kind, name)));
        };
        check(Link::databases(), "/dbs", "dbs", "");
        check(Link::database("d"), "/dbs/d", "dbs", "dbs/d");
        check(Link::containers("d"), "/dbs/d/colls", "colls", "dbs/d");
        check(Link::container("d", "c"), "/dbs/d/colls/c", "colls", "dbs/d/colls/c");
        check(Link::items("d", "c"), "/dbs/d/colls/c/docs", "docs", "dbs/d/colls/c");
        check(Link::ranges("d", "c"), "/dbs/d/colls/c/pkranges", "pkranges", "dbs/d/colls/c");
        check(Link::functions("d", "c"), "/dbs/d/colls/c/udfs", "udfs", "dbs/d/colls/c");
        check(Link::procedures("d", "c"), "/dbs/d/colls/c/sprocs", "sprocs", "dbs/d/colls/c");
        let (path, name) = ("/dbs/d/colls/c/sprocs/a%20b", "dbs/d/colls/c/sprocs/a b");
        check(Link::procedure("d", "c", "a b"), path, "sprocs", name);
        check(Link::triggers("d", "c"), "/dbs/d/colls/c/triggers", "triggers", "dbs/d/colls/c");
        check(Link::database("é"), "/dbs/%C3%A9", "dbs", "dbs/é");
    }

    #[test]
    fn unescape_undoes_escape() {
        for text in ["", "plain", "a b%é+&=/?#", "100%", "%4", "%zz"] {
            assert_eq!(unescape(escape(text).as_bytes()), text.as_bytes(), "{text}");
        }
        assert_eq!(unescape(b"100% %zz %4"), b"100% %zz %4");
    }
}
