//! Paths as container definitions write them.
//!
//! ```text
//! /a/b            a property path: partition keys, unique keys, composite indexes
//! /"a b"/'c'/d    segments with unusual characters are quoted
//! /a/b/?          an index path: the scalar at /a/b
//! /a/b/*          an index path: everything at or under /a/b
//! /a/[]/b/?       b of each element of the array a
//! /a/[]/{b, c}/?  a tuple: b and c of the same element
//! ```
//!
//! INVARIANTS
//! (P1) Two paths are equal if their segments are, however they were quoted.
//! (P2) The text is kept as it was written, because it is echoed.

use std::fmt;

/// Why a path could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Every path is anchored at the root of the item.
    #[error("a path starts with '/'")]
    NotRooted,
    /// Nothing between two slashes, or nothing after the last one.
    #[error("a path segment is empty")]
    EmptySegment,
    /// A quote, bracket or brace is not closed, or something follows it.
    #[error("a quoted segment or a tuple is not closed properly")]
    Unclosed,
    /// `*`, `?`, `[]` or `{…}` where only property names are allowed.
    #[error("wildcards and array elements are not allowed here")]
    NotAProperty,
    /// A wildcard inside a name; quoting would make it a name.
    #[error("the segment '{0}' mixes a name with a wildcard or bracket; quote it")]
    Mixed(String),
    /// Index paths end in `/?` or `/*`.
    #[error("an index path ends in '/?' or '/*'")]
    NoEnd,
    /// A tuple needs one `[]` before it, two or more names, and `/?` after it.
    #[error("a tuple path has one '[]', then '{{name, …}}', then '/?'")]
    BadTuple,
}

/// A path of property names, such as `/address/"zip code"`.
#[derive(Debug, Clone)]
pub struct PropertyPath {
    text: String,
    segments: Vec<String>,
}

impl PropertyPath {
    /// Reads a path that has property names only, at least one.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let segments = tokens(text)?.into_iter().map(Token::into_name).collect::<Result<_, _>>()?;
        Ok(PropertyPath { text: text.to_owned(), segments })
    }

    /// The property names from the root down.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// The path as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether this is the path of one top-level property.
    pub fn is_property(&self, name: &str) -> bool {
        matches!(&self.segments[..], [only] if only == name)
    }
}

impl PartialEq for PropertyPath {
    fn eq(&self, other: &Self) -> bool {
        self.segments == other.segments // P1
    }
}

impl Eq for PropertyPath {}

impl fmt::Display for PropertyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One step of an index path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// The property of this name.
    Property(String),
    /// Any element of an array.
    Elements,
}

/// What an index path selects once its segments are walked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathEnd {
    /// `/?`: the scalar there.
    Scalar,
    /// `/*`: everything there and below.
    Subtree,
    /// `/{a, b/c}/?`: a combination of properties of one array element.
    Tuple(Vec<Vec<String>>),
}

/// An included or excluded path of an indexing policy.
#[derive(Debug, Clone)]
pub struct IndexPath {
    text: String,
    segments: Vec<Segment>,
    end: PathEnd,
}

impl IndexPath {
    /// Reads an index path. `/` is an old spelling of `/*`.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text == "/" {
            return Ok(IndexPath::new(text, Vec::new(), PathEnd::Subtree));
        }
        let mut tokens = tokens(text)?;
        let end = match tokens.pop() {
            Some(Token::Subtree) => PathEnd::Subtree,
            Some(Token::Scalar) => pop_tuple(&mut tokens)?.unwrap_or(PathEnd::Scalar),
            _ => return Err(PathError::NoEnd),
        };
        let segments = tokens.into_iter().map(Token::into_segment).collect::<Result<_, _>>()?;
        Ok(IndexPath::new(text, segments, end))
    }

    /// The steps from the root down, without the end.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// What is selected at the end of the steps.
    pub fn end(&self) -> &PathEnd {
        &self.end
    }

    /// The path as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether this is `/*`, the path that every policy lists once.
    pub fn is_root(&self) -> bool {
        self.segments.is_empty() && self.end == PathEnd::Subtree
    }

    fn new(text: &str, segments: Vec<Segment>, end: PathEnd) -> Self {
        IndexPath { text: text.to_owned(), segments, end }
    }
}

impl PartialEq for IndexPath {
    fn eq(&self, other: &Self) -> bool {
        self.segments == other.segments && self.end == other.end // P1
    }
}

impl Eq for IndexPath {}

/// Takes a tuple off the end of an index path, if there is one, and checks what precedes it.
fn pop_tuple(tokens: &mut Vec<Token>) -> Result<Option<PathEnd>, PathError> {
    let Some(Token::Tuple(_)) = tokens.last() else { return Ok(None) };
    let Some(Token::Tuple(names)) = tokens.pop() else { return Ok(None) };
    let elements = tokens.iter().filter(|token| **token == Token::Elements).count();
    let after_elements = tokens.last() == Some(&Token::Elements);
    match elements == 1 && after_elements && names.len() >= 2 {
        true => Ok(Some(PathEnd::Tuple(names))),
        false => Err(PathError::BadTuple),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    Elements,
    Subtree,
    Scalar,
    Tuple(Vec<Vec<String>>),
}

impl Token {
    fn into_name(self) -> Result<String, PathError> {
        match self {
            Token::Name(name) => Ok(name),
            Token::Elements | Token::Subtree | Token::Scalar | Token::Tuple(_) => {
                Err(PathError::NotAProperty)
            }
        }
    }

    fn into_segment(self) -> Result<Segment, PathError> {
        match self {
            Token::Elements => Ok(Segment::Elements),
            Token::Tuple(_) => Err(PathError::BadTuple),
            Token::Name(_) | Token::Subtree | Token::Scalar => {
                self.into_name().map(Segment::Property)
            }
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, PathError> {
    let mut rest = text;
    let mut tokens = Vec::new();
    while !rest.is_empty() {
        rest = rest.strip_prefix('/').ok_or(match tokens.is_empty() {
            true => PathError::NotRooted,
            false => PathError::Unclosed,
        })?;
        let (token, after) = token(rest)?;
        tokens.push(token);
        rest = after;
    }
    match tokens.is_empty() {
        true => Err(PathError::NotRooted),
        false => Ok(tokens),
    }
}

fn token(text: &str) -> Result<(Token, &str), PathError> {
    match text.chars().next() {
        None | Some('/') => Err(PathError::EmptySegment),
        Some(quote @ ('"' | '\'')) => quoted(&text[1..], quote),
        Some('{') => tuple(&text[1..]),
        Some(_) => plain(text),
    }
}

fn plain(text: &str) -> Result<(Token, &str), PathError> {
    let end = text.find('/').unwrap_or(text.len());
    let (segment, rest) = text.split_at(end);
    let token = match segment {
        "*" => Token::Subtree,
        "?" => Token::Scalar,
        "[]" => Token::Elements,
        _ if segment.contains(['*', '?', '[', ']', '{', '}', '"']) => {
            return Err(PathError::Mixed(segment.to_owned()));
        }
        _ => Token::Name(segment.to_owned()),
    };
    Ok((token, rest))
}

/// Reads up to the closing quote. A backslash makes the next character ordinary.
fn quoted(text: &str, quote: char) -> Result<(Token, &str), PathError> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next().ok_or(PathError::Unclosed)?.1),
            _ if c == quote => return Ok((Token::Name(name), &text[at + 1..])),
            _ => name.push(c),
        }
    }
    Err(PathError::Unclosed)
}

fn tuple(text: &str) -> Result<(Token, &str), PathError> {
    let (list, rest) = text.split_once('}').ok_or(PathError::Unclosed)?;
    let names = list.split(',').map(|name| {
        let path = PropertyPath::parse(&format!("/{}", name.trim()))?;
        Ok(path.segments)
    });
    Ok((Token::Tuple(names.collect::<Result<_, PathError>>()?), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_property(text: &str, expect: Result<&[&str], PathError>) {
        let path = PropertyPath::parse(text);
        let segments = path.as_ref().map(|p| p.segments().iter().map(String::as_str).collect());
        let expect: Result<Vec<&str>, _> = expect.map(<[_]>::to_vec);
        assert_eq!(segments.map_err(Clone::clone), expect, "{text}");
    }

    #[test]
    fn property_paths_are_names_from_the_root() {
        check_property("/a", Ok(&["a"]));
        check_property("/a/b", Ok(&["a", "b"]));
        check_property("/\"a b\"/c", Ok(&["a b", "c"]));
        check_property("/'x'", Ok(&["x"]));
        check_property("/\"a/b\"", Ok(&["a/b"]));
        check_property("/\"a\\\"b\"", Ok(&["a\"b"]));
        check_property("/\"*\"", Ok(&["*"]));
        check_property("/\"\"", Ok(&[""]));
        check_property("/na-me", Ok(&["na-me"]));
        check_property("/été", Ok(&["été"]));
        check_property("", Err(PathError::NotRooted));
        check_property("a", Err(PathError::NotRooted));
        check_property("/", Err(PathError::EmptySegment));
        check_property("/a/", Err(PathError::EmptySegment));
        check_property("/a//b", Err(PathError::EmptySegment));
        check_property("/\"a", Err(PathError::Unclosed));
        check_property("/\"a\"b", Err(PathError::Unclosed));
        check_property("/a/*", Err(PathError::NotAProperty));
        check_property("/a/?", Err(PathError::NotAProperty));
        check_property("/a/[]/b", Err(PathError::NotAProperty));
        check_property("/a[0]", Err(PathError::Mixed("a[0]".into())));
    }

    fn names(segments: &[&str]) -> Vec<Segment> {
        let segment = |name: &&str| match *name {
            "[]" => Segment::Elements,
            name => Segment::Property(name.to_owned()),
        };
        segments.iter().map(segment).collect()
    }

    fn check_index(text: &str, segments: &[&str], end: PathEnd) {
        let path = IndexPath::parse(text).unwrap();
        assert_eq!((path.segments(), path.end()), (&names(segments)[..], &end), "{text}");
        assert_eq!(path.text(), text);
    }

    #[test]
    fn index_paths_have_an_end() {
        check_index("/*", &[], PathEnd::Subtree);
        check_index("/", &[], PathEnd::Subtree);
        check_index("/a/?", &["a"], PathEnd::Scalar);
        check_index("/a/[]/b/*", &["a", "[]", "b"], PathEnd::Subtree);
        check_index("/\"_etag\"/?", &["_etag"], PathEnd::Scalar);
        let tuple = PathEnd::Tuple(vec![vec!["b".into()], vec!["c".into(), "d".into()]]);
        check_index("/a/[]/{b, c/d}/?", &["a", "[]"], tuple);
        assert_eq!(IndexPath::parse("/a"), Err(PathError::NoEnd));
        assert_eq!(IndexPath::parse("/a/[]/{b}/?"), Err(PathError::BadTuple));
        assert_eq!(IndexPath::parse("/a/{b,c}/?"), Err(PathError::BadTuple));
        assert_eq!(IndexPath::parse("/a/[]/{b,c}/*"), Err(PathError::BadTuple));
        assert_eq!(IndexPath::parse("/a/*/b/?"), Err(PathError::NotAProperty));
        assert_eq!(IndexPath::parse("/a*"), Err(PathError::Mixed("a*".into())));
    }

    #[test]
    fn quoting_does_not_change_a_path() {
        assert_eq!(IndexPath::parse("/\"a\"/?"), IndexPath::parse("/a/?")); // P1
        assert_eq!(PropertyPath::parse("/'a'"), PropertyPath::parse("/a"));
    }
}
