//! Words, numbers, strings and signs of a function's source.

/// The longest source that is looked at; a longer function is opaque.
const TOKENS_MAX: usize = 1000;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(String),
    Number(f64),
    Text(String),
    Sign(&'static str),
}

/// Longest first, so that `===` is not read as `==`.
const SIGNS: [&str; 29] = [
    "===", "!==", "**", "=>", "==", "!=", "<=", ">=", "&&", "||", "?.", "++", "--", "(", ")", "{",
    "}", "[", "]", ".", ",", ";", "<", ">", "!", "=", "+", "-", "*",
];

/// All tokens, or none if there is anything else in the source.
pub(super) fn tokens(source: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = skip_space(source)?;
    while let Some(first) = rest.chars().next() {
        if tokens.len() == TOKENS_MAX {
            return None;
        }
        let (token, after) = match first {
            '\'' | '"' => text(rest)?,
            '0'..='9' => number(rest)?,
            'a'..='z' | 'A'..='Z' | '_' | '$' => word(rest),
            _ => sign(rest)?,
        };
        tokens.push(token);
        rest = skip_space(after)?;
    }
    Some(tokens)
}

/// Past space and comments; none if a comment does not end.
fn skip_space(mut source: &str) -> Option<&str> {
    loop {
        source = source.trim_start();
        if let Some(comment) = source.strip_prefix("//") {
            source = &comment[comment.find('\n').unwrap_or(comment.len())..];
        } else if let Some(comment) = source.strip_prefix("/*") {
            source = &comment[comment.find("*/")? + 2..];
        } else {
            return Some(source);
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

fn word(source: &str) -> (Token, &str) {
    let end = source.find(|c| !is_word(c)).unwrap_or(source.len());
    (Token::Word(source[..end].to_owned()), &source[end..])
}

fn number(source: &str) -> Option<(Token, &str)> {
    let mut end = 0;
    let bytes = source.as_bytes();
    while let Some(&byte) = bytes.get(end) {
        let is_exponent_sign = matches!(byte, b'+' | b'-') && matches!(bytes[end - 1], b'e' | b'E');
        if !(byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E') || is_exponent_sign) {
            break;
        }
        end += 1;
    }
    let (digits, rest) = source.split_at(end);
    // Old octals, hexadecimals, big integers and separators are for the engine.
    let is_plain = !(digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0."));
    if !is_plain || rest.starts_with(is_word) {
        return None;
    }
    Some((Token::Number(digits.parse().ok()?), rest))
}

fn text(source: &str) -> Option<(Token, &str)> {
    let quote = source.chars().next()?;
    let mut text = String::new();
    let mut rest = &source[1..];
    loop {
        let c = rest.chars().next()?;
        rest = &rest[c.len_utf8()..];
        match c {
            _ if c == quote => return Some((Token::Text(text), rest)),
            '\n' | '\r' => return None,
            '\\' => {
                let (c, after) = escape(rest)?;
                text.push(c);
                rest = after;
            }
            _ => text.push(c),
        }
    }
}

fn escape(source: &str) -> Option<(char, &str)> {
    let c = source.chars().next()?;
    let rest = &source[c.len_utf8()..];
    Some(match c {
        'n' => ('\n', rest),
        't' => ('\t', rest),
        'r' => ('\r', rest),
        'b' => ('\u{8}', rest),
        'f' => ('\u{c}', rest),
        'v' => ('\u{b}', rest),
        'x' => (hex(rest.get(..2)?)?, &rest[2..]),
        'u' => match rest.strip_prefix('{') {
            Some(inside) => {
                let (digits, rest) = inside.split_once('}')?;
                (hex(digits)?, rest)
            }
            None => (hex(rest.get(..4)?)?, &rest[4..]),
        },
        '\'' | '"' | '\\' | '/' => (c, rest),
        _ => return None,
    })
}

fn hex(digits: &str) -> Option<char> {
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex { char::from_u32(u32::from_str_radix(digits, 16).ok()?) } else { None }
}

fn sign(source: &str) -> Option<(Token, &str)> {
    // Division and remainder are one character each; a pattern would begin like a division.
    for sign in SIGNS.into_iter().chain(["/", "%"]) {
        if let Some(rest) = source.strip_prefix(sign) {
            return Some((Token::Sign(sign), rest));
        }
    }
    None
}
