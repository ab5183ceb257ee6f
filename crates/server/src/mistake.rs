//! A mistake in a query, shown where it is.
//!
//! ```text
//! SC1001 Syntax error, incorrect syntax near 'FORM'.
//!   SELECT * FORM c
//!            ^^^^
//! ```

use serde_json::Value;

/// The sentences for people of an error document about a query, with the line of the query that
/// they are about. A text that is no such document is returned as it is.
pub fn describe(query: &str, document: &str) -> String {
    // A server says so in front of it.
    let document = document.strip_prefix("Message: ").unwrap_or(document);
    let Ok(parsed) = serde_json::from_str::<Value>(document) else { return document.to_owned() };
    let error = &parsed["errors"][0];
    if let Some(message) = error["message"].as_str() {
        let code = error["code"].as_str().unwrap_or_default();
        let offset = |name: &str| error["location"][name].as_u64().map(|offset| offset as usize);
        return match (offset("start"), offset("end")) {
            (Some(start), Some(end)) => {
                format!("{code} {message}\n{}", marked(query, start, end))
            }
            _ => format!("{code} {message}"),
        };
    }
    parsed["Errors"][0].as_str().unwrap_or(document).to_owned()
}

/// The line of a text around a place, and carets under the place. Offsets are in UTF-16 code units.
fn marked(text: &str, start: usize, end: usize) -> String {
    let (start, end) = (byte_offset(text, start), byte_offset(text, end));
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let blank = |c: char| if c == '\t' { '\t' } else { ' ' };
    let indent: String = text[line_start..start].chars().map(blank).collect();
    let width = text[start..end.clamp(start, line_end)].chars().count().max(1);
    let line = text[line_start..line_end].trim_end();
    format!("  {line}\n  {indent}{}", "^".repeat(width))
}

fn byte_offset(text: &str, units: usize) -> usize {
    let mut passed = 0;
    let at = text.char_indices().find(|(_, c)| {
        let is_there = passed >= units;
        passed += c.len_utf16();
        is_there
    });
    at.map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, start: usize, end: usize, expect: &str) {
        assert_eq!(marked(query, start, end), expect, "{query}");
    }

    #[test]
    fn places() {
        check("SELECT * FORM c", 9, 13, "  SELECT * FORM c\n           ^^^^");
        check("SELECT", 6, 6, "  SELECT\n        ^");
        check("SELECT *\n\tFORM c\n", 10, 14, "  \tFORM c\n  \t^^^^");
        check("a\r\nb", 0, 4, "  a\n  ^^");
        check("'😀é' x", 6, 7, "  '😀é' x\n       ^");
        check("", 0, 0, "  \n  ^");
        check("ab", 9, 12, "  ab\n    ^");
    }

    #[test]
    fn documents() {
        let place = r#""location":{"start":0,"end":1},"#;
        let error = |place| format!(r#"{{"errors":[{{{place}"code":"SC1","message":"No."}}]}}"#);
        assert_eq!(describe("x", &error(place)), "SC1 No.\n  x\n  ^");
        assert_eq!(describe("x", &error("")), "SC1 No.");
        assert_eq!(describe("x", &format!("Message: {}", error(""))), "SC1 No.");
        assert_eq!(describe("x", r#"{"Errors":["No."]}"#), "No.");
        for other in ["No.", "{}", "[1]", r#"{"errors":[]}"#] {
            assert_eq!(describe("x", other), other);
        }
    }
}
