//! What must hold of any text whatsoever.

use std::fmt::{Debug, Display};

use sql::{Code, Error, Span};

/// Takes the text for everything it could be. Bytes that are no text never get this far.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    check(text, sql::parse);
    check(text, sql::parse_condition);
}

/// A tree prints as text of the same tree, and the text is a fixed point (S1).
fn check<T: Display + Debug + PartialEq>(text: &str, parse: impl Fn(&str) -> Result<T, Error>) {
    let tree = match parse(text) {
        Ok(tree) => tree,
        Err(error) => return check_error(text, &error),
    };
    let printed = tree.to_string();
    match parse(&printed) {
        Ok(again) => {
            assert_eq!(again, tree, "{text:?} prints as {printed:?}");
            assert_eq!(again.to_string(), printed);
        }
        // Canonical text has more brackets and may be longer than a query may be.
        Err(error) => {
            let is_over_limit = matches!(error.code, Code::TooLong | Code::TooComplex);
            assert!(is_over_limit, "{text:?} prints as {printed:?}: {error}");
        }
    }
}

/// An error stands in the text and can be told (S3).
fn check_error(text: &str, error: &Error) {
    let length = text.encode_utf16().count();
    if let Some(Span { start, end }) = error.span {
        assert!(start <= end && end as usize <= length, "{text:?}: {error} at {start}..{end}");
    }
    assert!(!error.to_string().is_empty() && error.to_document().starts_with('{'));
}
