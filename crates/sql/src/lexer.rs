//! Text → tokens.
//!
//! The whole text becomes a list of tokens that ends with [`TokenKind::End`]. A character sequence
//! that is no token ends the list early with [`TokenKind::Bad`], so that an error further left is
//! reported first.

use std::ops::Range;

use crate::keywords::{Keyword, Word, keyword, word};
use crate::{Error, Span};

/// A token and its place.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub span: Span,
    /// The same place in bytes, to quote the text in errors.
    pub bytes: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    Name(String),
    Keyword(Keyword),
    Word(Word),
    Number(f64),
    String(String),
    Parameter(String),
    Symbol(Symbol),
    Bad(Error),
    End,
}

/// Everything made of punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    Star,
    Comma,
    Dot,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    Colon,
    Question,
    Coalesce,
    Plus,
    Minus,
    Slash,
    Percent,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
    And,
    Or,
    Xor,
    Tilde,
    Concat,
}

/// Longest first, so that the first match is the token.
const SYMBOLS: &[(&str, Symbol)] = &[
    (">>>", Symbol::ShiftRightUnsigned),
    ("??", Symbol::Coalesce),
    ("||", Symbol::Concat),
    ("!=", Symbol::NotEqual),
    ("<>", Symbol::NotEqual),
    ("<=", Symbol::LessOrEqual),
    (">=", Symbol::GreaterOrEqual),
    ("<<", Symbol::ShiftLeft),
    (">>", Symbol::ShiftRight),
    ("*", Symbol::Star),
    (",", Symbol::Comma),
    (".", Symbol::Dot),
    ("(", Symbol::OpenParen),
    (")", Symbol::CloseParen),
    ("[", Symbol::OpenBracket),
    ("]", Symbol::CloseBracket),
    ("{", Symbol::OpenBrace),
    ("}", Symbol::CloseBrace),
    (":", Symbol::Colon),
    ("?", Symbol::Question),
    ("+", Symbol::Plus),
    ("-", Symbol::Minus),
    ("/", Symbol::Slash),
    ("%", Symbol::Percent),
    ("=", Symbol::Equal),
    ("<", Symbol::Less),
    (">", Symbol::Greater),
    ("&", Symbol::And),
    ("|", Symbol::Or),
    ("^", Symbol::Xor),
    ("~", Symbol::Tilde),
];

/// The tokens of a text.
pub(crate) fn lex(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0, units: 0 };
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    loop {
        let token = lexer.token();
        let is_last = matches!(token.kind, TokenKind::End | TokenKind::Bad(_));
        tokens.push(token);
        if is_last {
            return tokens;
        }
    }
}

/// A character sequence that is no token: where it ends.
struct NoToken(usize);

struct Lexer<'a> {
    text: &'a str,
    /// Byte offset of the next character.
    at: usize,
    /// The same offset in UTF-16 code units.
    units: u32,
}

impl Lexer<'_> {
    fn token(&mut self) -> Token {
        let kind = self.skip_blanks().and_then(|()| self.scan());
        let (kind, end) = match kind {
            Ok((kind, end)) => (Some(kind), end),
            Err(NoToken(end)) => (None, end),
        };
        let bytes = self.at..end;
        let span = self.advance(end);
        let kind =
            kind.unwrap_or_else(|| TokenKind::Bad(Error::syntax(span, &self.text[bytes.clone()])));
        Token { kind, span, bytes }
    }

    /// Moves to byte offset `end` and returns what lies between, in UTF-16 code units.
    fn advance(&mut self, end: usize) -> Span {
        let start = self.units;
        let passed = &self.text[self.at..end];
        let units = if passed.is_ascii() { passed.len() } else { passed.encode_utf16().count() };
        self.units += units as u32;
        self.at = end;
        Span::new(start, self.units)
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips white space and comments.
    fn skip_blanks(&mut self) -> Result<(), NoToken> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            let skip = if blank > 0 {
                blank
            } else if rest.starts_with("--") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map(|at| at + 2).ok_or(NoToken(self.text.len()))?
            } else {
                return Ok(());
            };
            self.advance(self.at + skip);
        }
    }

    fn scan(&self) -> Result<(TokenKind, usize), NoToken> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok((TokenKind::End, self.at)) };
        let second = rest.as_bytes().get(1).copied().unwrap_or(0);
        match first {
            c if starts_name(c) => Ok(self.name()),
            '0'..='9' => self.number(),
            '.' if second.is_ascii_digit() => self.number(),
            '\'' | '"' => self.string(first),
            '@' => self.parameter(),
            _ => self.symbol(),
        }
    }

    fn symbol(&self) -> Result<(TokenKind, usize), NoToken> {
        let rest = self.rest();
        let found = SYMBOLS.iter().find(|(text, _)| rest.starts_with(text));
        let (text, symbol) = found
            .ok_or_else(|| NoToken(self.at + rest.chars().next().map_or(0, char::len_utf8)))?;
        Ok((TokenKind::Symbol(*symbol), self.at + text.len()))
    }

    /// The end of the run of name characters from byte offset `from`.
    fn name_end(&self, from: usize) -> usize {
        let rest = &self.text[from..];
        from + rest.find(|c| !continues_name(c)).unwrap_or(rest.len())
    }

    fn name(&self) -> (TokenKind, usize) {
        let end = self.name_end(self.at);
        let name = &self.text[self.at..end];
        let kind = match (keyword(name), word(name)) {
            (Some(keyword), _) => TokenKind::Keyword(keyword),
            (None, Some(word)) => TokenKind::Word(word),
            (None, None) => TokenKind::Name(name.to_owned()),
        };
        (kind, end)
    }

    fn parameter(&self) -> Result<(TokenKind, usize), NoToken> {
        let end = self.name_end(self.at + 1);
        if end == self.at + 1 {
            return Err(NoToken(end));
        }
        Ok((TokenKind::Parameter(self.text[self.at..end].to_owned()), end))
    }

    fn number(&self) -> Result<(TokenKind, usize), NoToken> {
        let bytes = self.text.as_bytes();
        let (value, end) = if self.rest().starts_with("0x") || self.rest().starts_with("0X") {
            hexadecimal(bytes, self.at + 2)
        } else {
            let end = decimal_end(bytes, self.at);
            (self.text[self.at..end].parse().ok(), end)
        };
        // `12abc` is not a number followed by an alias.
        let word_end = self.name_end(end);
        match value.filter(|v: &f64| v.is_finite() && word_end == end) {
            Some(value) => Ok((TokenKind::Number(value), end)),
            None => Err(NoToken(word_end)),
        }
    }

    fn string(&self, quote: char) -> Result<(TokenKind, usize), NoToken> {
        let mut value = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => {
                    let (c, length) =
                        escape(&self.rest()[at + 1..]).ok_or(NoToken(self.at + at + 1))?;
                    value.push(c);
                    // An escape is ASCII, so characters are bytes.
                    chars.nth(length - 1);
                }
                c if c == quote => return Ok((TokenKind::String(value), self.at + at + 1)),
                c if c < ' ' => return Err(NoToken(self.at + at)),
                c => value.push(c),
            }
        }
        Err(NoToken(self.text.len()))
    }
}

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn hexadecimal(bytes: &[u8], from: usize) -> (Option<f64>, usize) {
    let digits = bytes[from..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let value = bytes[from..from + digits].iter().fold(0.0, |value, digit| {
        value * 16.0 + f64::from((*digit as char).to_digit(16).unwrap_or(0))
    });
    ((digits > 0).then_some(value), from + digits)
}

/// The end of `12`, `12.`, `.5`, `1.5e-3`.
fn decimal_end(bytes: &[u8], from: usize) -> usize {
    let digits = |at: usize| at + bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = digits(from);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent_end = digits(end + 1 + sign);
        if exponent_end > end + 1 + sign {
            end = exponent_end;
        }
    }
    end
}

/// The character an escape stands for, and the length of what follows the backslash. A surrogate
/// without its partner has no meaning in a string and is no escape.
fn escape(rest: &str) -> Option<(char, usize)> {
    let c = match rest.chars().next()? {
        c @ ('\'' | '"' | '\\' | '/') => c,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unicode_escape(rest),
        _ => return None,
    };
    Some((c, 1))
}

fn unicode_escape(rest: &str) -> Option<(char, usize)> {
    let unit = |at: usize| -> Option<u16> {
        let digits = rest.get(at..at + 4)?;
        let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
    };
    let first = unit(1)?;
    if let Some(c) = char::from_u32(u32::from(first)) {
        return Some((c, 5));
    }
    let second = rest[5..].starts_with("\\u").then(|| unit(7)).flatten()?;
    let pair = char::decode_utf16([first, second]).next()?.ok()?;
    Some((pair, 11))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        lex(text).into_iter().map(|token| token.kind).collect()
    }

    fn check(text: &str, expect: TokenKind) {
        assert_eq!(kinds(text), [expect, TokenKind::End], "{text}");
    }

    #[test]
    fn numbers() {
        let cases = [("12", 12.0), ("12.", 12.0), (".5", 0.5), ("1.5e-3", 0.0015), ("1E2", 100.0)];
        for (text, value) in cases {
            check(text, TokenKind::Number(value));
        }
        check("0x1F", TokenKind::Number(31.0));
        check("1e308", TokenKind::Number(1e308));
    }

    #[test]
    fn strings() {
        check(r#"'a"b'"#, TokenKind::String("a\"b".into()));
        check(r#""a\u00e9\n\/\\""#, TokenKind::String("aé\n/\\".into()));
        check(r"'\uD83D\uDE00'", TokenKind::String("😀".into()));
        check("'é😀'", TokenKind::String("é😀".into()));
    }

    #[test]
    fn no_tokens() {
        for text in ["12abc", "0x", "1e999", "'a", "'\\q'", "'\u{1}'", r"'\uD83D'", "@", "!", ";"] {
            assert!(matches!(kinds(text)[..], [TokenKind::Bad(_)]), "{text}");
        }
        assert!(matches!(kinds("/* never closed")[..], [TokenKind::Bad(_)]));
    }

    #[test]
    fn blanks_and_comments() {
        assert_eq!(kinds(" -- a\n /* b */ \t\r\n"), [TokenKind::End]);
        assert_eq!(kinds("a--b").len(), 2);
    }

    #[test]
    fn spans_count_utf16_units() {
        let spans: Vec<_> = lex("'😀' é x").iter().map(|t| (t.span.start, t.span.end)).collect();
        assert_eq!(spans, [(0, 4), (5, 6), (7, 8), (8, 8)]);
    }
}
