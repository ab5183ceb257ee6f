//! Regular expressions with look-around and backreferences, as in PCRE.
//!
//! A pattern is compiled once per thread and query, whether it is constant or not: a small cache
//! remembers the last ones, and those that do not compile.
//!
//! INVARIANTS
//! (R1) No pattern takes more than about a second on one text. A plain pattern takes linear time.
//!      Others end at a number of steps, and are not tried on long texts. What does not end gives
//!      undefined, and does so every time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use fancy_regex::{Captures, Expr, Regex, RegexBuilder};
use item::Value;

use super::{boolean, integer, optional, string};
use crate::datum::Datum;

/// Longest pattern.
const PATTERN_BYTES_MAX: usize = 4096;

/// Longest text that a pattern with look-around or backreferences is tried on.
const BACKTRACKED_BYTES_MAX: usize = 32 << 10;

/// Steps back before a search is given up.
const BACKTRACKS_MAX: usize = 1_000_000;

/// Largest compiled form, and largest table of states.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// Bytes that all searches of one text may read together. A search reads to the end of the text at
/// worst, so this bounds the number of matches in a long one.
const SEARCHED_BYTES_MAX: usize = 1 << 30;

/// Patterns a thread remembers.
const CACHED_MAX: usize = 32;

pub(super) fn is_match(arguments: &[Datum<'_>]) -> Value {
    let found = || {
        let text = arguments[0].as_str()?;
        pattern(arguments)?.on(&text)?.is_match(&*text).ok()
    };
    boolean(found())
}

/// The first match, or one group of it.
pub(super) fn extract(arguments: &[Datum<'_>]) -> Value {
    let first = || {
        let text = arguments[0].as_str()?;
        let pattern = pattern(arguments)?;
        let group = group(arguments, &pattern)?;
        let captures = pattern.on(&text)?.captures(&*text).ok()??;
        part(&captures, group).map(str::to_owned)
    };
    string(first())
}

/// All matches, or one group of each. A match in which the group took no part is left out.
pub(super) fn extract_all(arguments: &[Datum<'_>]) -> Value {
    let all = || {
        let text = arguments[0].as_str()?;
        let pattern = pattern(arguments)?;
        let group = group(arguments, &pattern)?;
        let mut parts = Vec::new();
        let mut searched = 0;
        for captures in pattern.on(&text)?.captures_iter(&*text) {
            let captures = captures.ok()?;
            searched += text.len() - captures.get(0)?.start();
            if searched > SEARCHED_BYTES_MAX {
                return None;
            }
            parts.extend(part(&captures, group).map(Value::from));
        }
        Some(Value::array(parts))
    };
    all().unwrap_or_default()
}

/// The text of a group, if it took part in the match.
fn part<'t>(captures: &Captures<'t, str>, group: usize) -> Option<&'t str> {
    captures.get(group).map(|found| found.as_str())
}

/// The group that the fourth argument names; 0 is the whole match.
fn group(arguments: &[Datum<'_>], pattern: &Pattern) -> Option<usize> {
    let group = usize::try_from(optional(arguments, 3, integer)?.unwrap_or(0)).ok()?;
    (group < pattern.regex.captures_len()).then_some(group)
}

/// The pattern of the second argument with the modifiers of the third.
fn pattern(arguments: &[Datum<'_>]) -> Option<Rc<Pattern>> {
    let text = arguments[1].as_str()?;
    let modifiers = optional(arguments, 2, Datum::as_str)?.unwrap_or_default();
    CACHE.with_borrow_mut(|cache| cache.get(&text, &modifiers))
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

/// Compiled patterns by modifiers and text. `None` is one that does not compile.
#[derive(Default)]
struct Cache {
    patterns: HashMap<String, Option<Rc<Pattern>>>,
}

impl Cache {
    fn get(&mut self, text: &str, modifiers: &str) -> Option<Rc<Pattern>> {
        if text.len() > PATTERN_BYTES_MAX || !modifiers.chars().all(|c| "imsx".contains(c)) {
            return None;
        }
        let key = format!("{modifiers}/{text}");
        if let Some(known) = self.patterns.get(&key) {
            return known.clone();
        }
        if self.patterns.len() == CACHED_MAX {
            self.patterns.clear();
        }
        let pattern = Pattern::new(text, modifiers).map(Rc::new);
        self.patterns.insert(key, pattern.clone());
        pattern
    }
}

/// A compiled pattern.
struct Pattern {
    regex: Regex,
    /// Whether a search may go back, so that its time is not linear.
    backtracks: bool,
}

impl Pattern {
    fn new(text: &str, modifiers: &str) -> Option<Pattern> {
        let regex = RegexBuilder::new(text)
            .case_insensitive(modifiers.contains('i'))
            .multi_line(modifiers.contains('m'))
            .dot_matches_new_line(modifiers.contains('s'))
            .ignore_whitespace(modifiers.contains('x'))
            .backtrack_limit(BACKTRACKS_MAX)
            .delegate_size_limit(COMPILED_BYTES_MAX)
            .delegate_dfa_size_limit(COMPILED_BYTES_MAX)
            .max_prog_size(COMPILED_BYTES_MAX)
            .build();
        let tree = Expr::parse_tree(text).ok();
        let backtracks = tree.is_none_or(|tree| {
            !is_plain(&tree.expr) || tree.expr.has_descendant(|part| !is_plain(part))
        });
        Some(Pattern { regex: regex.ok()?, backtracks })
    }

    /// The expression, if it may be tried on a text (R1).
    fn on(&self, text: &str) -> Option<&Regex> {
        (!self.backtracks || text.len() <= BACKTRACKED_BYTES_MAX).then_some(&self.regex)
    }
}

/// Whether a part of a pattern is of the kind that is searched for in linear time.
fn is_plain(part: &Expr) -> bool {
    matches!(
        part,
        Expr::Empty
            | Expr::Any { .. }
            | Expr::Assertion(_)
            | Expr::Literal { .. }
            | Expr::Concat(_)
            | Expr::Alt(_)
            | Expr::Group(_)
            | Expr::Repeat { .. }
            | Expr::Delegate { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls a function with arguments written as a JSON array.
    fn call(function: fn(&[Datum<'_>]) -> Value, arguments: &str) -> Value {
        let arguments = Value::parse(arguments.as_bytes()).expect("JSON");
        let arguments: Vec<_> =
            arguments.as_array().expect("an array").iter().map(Datum::borrowed).collect();
        function(&arguments)
    }

    fn check(function: fn(&[Datum<'_>]) -> Value, arguments: &str, expect: &str) {
        let actual = call(function, arguments);
        let actual = if actual.is_undefined() { "undefined".to_owned() } else { actual.to_json() };
        assert_eq!(actual, expect, "{arguments}");
    }

    #[test]
    fn matches() {
        check(is_match, r#"["abcd", "ABC"]"#, "false");
        check(is_match, r#"["abcd", "ABC", "i"]"#, "true");
        check(is_match, r#"["abcd", "ab.", ""]"#, "true");
        check(is_match, r#"["abcd", "ab c", "x"]"#, "true");
        check(is_match, r#"["abcd", "aB c", "ix"]"#, "true");
        check(is_match, r#"["abcd", "ab c # one", "xx"]"#, "true");
        check(is_match, r#"["03a", "[0-9]"]"#, "true");
        check(is_match, r#"["salt3824908", "salt{1}"]"#, "true");
        check(is_match, r#"["shame", "s....", "i"]"#, "true");
        check(is_match, r#"["", ""]"#, "true");
        check(is_match, r#"["", "a"]"#, "false");
        check(is_match, r#"["a\nb", "^b$"]"#, "false");
        check(is_match, r#"["a\nb", "^b$", "m"]"#, "true");
        check(is_match, r#"["a\nb", "a.b"]"#, "false");
        check(is_match, r#"["a\nb", "a.b", "s"]"#, "true");
        check(is_match, r#"["a\nb\nc", "^B.C$", "smi"]"#, "true");
        check(is_match, r#"["größe", "GRÖSSE|GRÖßE", "i"]"#, "true");
    }

    #[test]
    fn perl_has_more_than_regular_expressions() {
        check(is_match, r#"["abab", "^(ab)\\1$"]"#, "true");
        check(is_match, r#"["abba", "^(ab)\\1$"]"#, "false");
        check(is_match, r#"["Passw0rd", "^(?=.*[0-9])(?=.*[A-Z]).{8,}$"]"#, "true");
        check(is_match, r#"["password", "^(?=.*[0-9])(?=.*[A-Z]).{8,}$"]"#, "false");
        check(is_match, r#"["price: $30", "(?<=\\$)30"]"#, "true");
        check(is_match, r#"["foobar", "foo(?!bar)"]"#, "false");
        check(is_match, r#"["aaab", "a++b"]"#, "true");
        check(is_match, r#"["ABC", "(?i)abc"]"#, "true");
        check(is_match, r#"["aa", "(?<twice>a)\\k<twice>"]"#, "true");
        check(is_match, r#"["x1", "^[[:alpha:]]\\d$"]"#, "true");
    }

    #[test]
    fn wrong_patterns_modifiers_and_types() {
        for arguments in [
            r#"["a", "("]"#,
            r#"["a", "[a"]"#,
            r#"["a", "*"]"#,
            r#"["a", "\\"]"#,
            r#"["a", "a", "q"]"#,
            r#"["a", "a", "I"]"#,
            r#"["a", "a", null]"#,
            r#"["a", "a", 1]"#,
            r#"[5, "5"]"#,
            r#"[null, "a"]"#,
            r#"["a", null]"#,
            r#"["a", ["a"]]"#,
        ] {
            check(is_match, arguments, "undefined");
            check(extract, arguments, "undefined");
            check(extract_all, arguments, "undefined");
        }
    }

    #[test]
    fn extracts() {
        check(extract, r#"["SKU-93821-BLUE", "[A-Z]+"]"#, r#""SKU""#);
        check(extract, r#"["SKU-93821-BLUE", "[0-9]+"]"#, r#""93821""#);
        check(extract, r#"["sku-1 SKU-22", "SKU-([0-9]+)", "i", 1]"#, r#""1""#);
        check(extract, r#"["sku-1 SKU-22", "SKU-([0-9]+)", "", 1]"#, r#""22""#);
        check(extract, r#"["sku-1", "sku-([0-9]+)", "", 0]"#, r#""sku-1""#);
        check(extract, r#"["abc", "x"]"#, "undefined");
        check(extract, r#"["abc", "x*"]"#, r#""""#);
        check(extract, r#"["abc", "(x)?a", "", 1]"#, "undefined");
        for group in ["1", "-1", "0.5", "\"0\"", "null"] {
            check(extract, &format!(r#"["abc", "a", "", {group}]"#), "undefined");
            check(extract_all, &format!(r#"["abc", "a", "", {group}]"#), "undefined");
        }
    }

    #[test]
    fn extracts_all() {
        check(extract_all, r#"["A12-B34-C56", "[0-9]+"]"#, r#"["12","34","56"]"#);
        check(extract_all, r#"["north-east-west", "[a-z]+"]"#, r#"["north","east","west"]"#);
        check(extract_all, r#"["A12-b34", "[A-Z]([0-9]+)", "i", 1]"#, r#"["12","34"]"#);
        check(extract_all, r#"["abc", "x"]"#, "[]");
        check(extract_all, r#"["ab", "x*"]"#, r#"["","",""]"#);
        check(extract_all, r#"["aåb", ""]"#, r#"["","","",""]"#);
        check(extract_all, r#"["ab", "(a)|b", "", 1]"#, r#"["a"]"#);
        check(extract_all, r#"["aaaa", "(?=aa)a"]"#, r#"["a","a","a"]"#);
    }

    #[test]
    fn hostile_patterns_end() {
        // R1
        let long = "a".repeat(100_000);
        let check_hostile = |text: &str, pattern: &str, expect: &str| {
            check(is_match, &format!(r#"["{text}", "{pattern}"]"#), expect);
        };
        check_hostile(&long, "(a+)+$", "true");
        check_hostile(&long, "(a+)+b", "false");
        check_hostile(&long, "(?=.*z)a", "undefined");
        check_hostile(&long[..2000], r"^(?:(a|aa)+)\\1c", "undefined");
        check_hostile("a", "((a{1,1000}){1,1000}){1,1000}", "undefined");
        check_hostile("a", &"(".repeat(3000), "undefined");
        check_hostile("a", &"a".repeat(PATTERN_BYTES_MAX), "false");
        check_hostile("a", &"a".repeat(PATTERN_BYTES_MAX + 1), "undefined");
        let text = &long[..SEARCHED_BYTES_MAX.isqrt() * 2];
        check(extract_all, &format!(r#"["{text}", "a"]"#), "undefined");
    }
}
