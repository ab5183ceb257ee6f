//! How wide words are, and what to do with too many of them.
//!
//! Nobody knows the reader's font. Widths are those of a wide one, so that there is room in others.

/// The size of ordinary text in a chart.
pub const SIZE: f64 = 13.0;
/// The size of small text.
pub const SMALL: f64 = 12.0;
/// How much wider bold text is.
const BOLD: f64 = 1.14;

/// The width of a text of a size.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(share).sum::<f64>() * size
}

/// The width of a bold text.
pub fn bold_width(text: &str, size: f64) -> f64 {
    width(text, size) * BOLD
}

/// The width of a character as a share of the size.
fn share(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' | '|' => 0.30,
        ' ' | '.' | ',' | ':' | ';' | '!' | 'f' | 't' | 'r' | 'I' | 'J' => 0.42,
        '(' | ')' | '[' | ']' | '/' | '-' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '–' => 1.0,
        c if c.is_ascii_uppercase() => 0.78,
        c if c.is_ascii() => 0.64,
        c if c < '\u{1100}' => 0.80,
        _ => 1.05,
    }
}

/// The text, or as much of its beginning as fits, with an ellipsis.
pub fn shortened(text: &str, room: f64, width: &dyn Fn(&str) -> f64) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut words = String::new();
    for c in text.chars() {
        if width(&format!("{words}{c}…")) > room {
            break;
        }
        words.push(c);
    }
    format!("{}…", words.trim_end())
}

/// The text in lines that fit; what does not fit into so many is shortened.
pub fn wrapped(
    text: &str,
    room: f64,
    lines_max: usize,
    width: &dyn Fn(&str) -> f64,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match longer.filter(|line| width(line) <= room || lines.len() == lines_max) {
            Some(longer) => *lines.last_mut().expect("there is a line to lengthen") = longer,
            None => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| shortened(line, room, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_letter(text: &str) -> f64 {
        text.chars().count() as f64
    }

    #[test]
    fn what_is_too_long_is_shortened() {
        let check = |text, room, expect| assert_eq!(shortened(text, room, &by_letter), expect);
        check("embedded", 8.0, "embedded");
        check("embedded", 7.0, "embedd…");
        check("a bcd", 3.0, "a…");
        check("embedded", 0.0, "…");
    }

    #[test]
    fn lines() {
        let check = |text, lines_max, expect: &[&str]| {
            assert_eq!(wrapped(text, 10.0, lines_max, &by_letter), expect, "{text}");
        };
        check("", 2, &[]);
        check("Add a comment", 2, &["Add a", "comment"]);
        check("Post with its newest comments", 2, &["Post with", "its newes…"]);
        check("incomprehensible", 2, &["incompreh…"]);
    }

    #[test]
    fn widths() {
        assert!(width("iiii", 10.0) < width("mmm", 10.0));
        assert!(bold_width("abc", 10.0) > width("abc", 10.0));
        assert_eq!(width("", 10.0), 0.0);
    }
}
