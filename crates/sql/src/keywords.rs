//! The reserved words.
//!
//! Keywords are recognised in any case; the five words of [`Word`] only in lower case. `ALL`,
//! `FIRST`, `LAST` and `RANK` have a role in the grammar but stay usable as names, so the parser
//! recognises them by their surroundings.

/// A word that cannot be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    And,
    Array,
    As,
    Asc,
    Between,
    By,
    Desc,
    Distinct,
    Escape,
    Exists,
    From,
    Group,
    In,
    Join,
    Left,
    Like,
    Limit,
    Not,
    Offset,
    Or,
    Order,
    Right,
    Select,
    Top,
    Value,
    Where,
}

/// A lower-case word with a meaning of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    True,
    False,
    Null,
    Undefined,
    Udf,
}

const KEYWORDS: &[(&str, Keyword)] = &[
    ("AND", Keyword::And),
    ("ARRAY", Keyword::Array),
    ("AS", Keyword::As),
    ("ASC", Keyword::Asc),
    ("BETWEEN", Keyword::Between),
    ("BY", Keyword::By),
    ("DESC", Keyword::Desc),
    ("DISTINCT", Keyword::Distinct),
    ("ESCAPE", Keyword::Escape),
    ("EXISTS", Keyword::Exists),
    ("FROM", Keyword::From),
    ("GROUP", Keyword::Group),
    ("IN", Keyword::In),
    ("JOIN", Keyword::Join),
    ("LEFT", Keyword::Left),
    ("LIKE", Keyword::Like),
    ("LIMIT", Keyword::Limit),
    ("NOT", Keyword::Not),
    ("OFFSET", Keyword::Offset),
    ("OR", Keyword::Or),
    ("ORDER", Keyword::Order),
    ("RIGHT", Keyword::Right),
    ("SELECT", Keyword::Select),
    ("TOP", Keyword::Top),
    ("VALUE", Keyword::Value),
    ("WHERE", Keyword::Where),
];

/// The keyword this word is, if any. The table is sorted, so a lookup is a few comparisons.
pub(crate) fn keyword(word: &str) -> Option<Keyword> {
    let upper = word.to_ascii_uppercase();
    let at = KEYWORDS.binary_search_by_key(&upper.as_str(), |(name, _)| name).ok()?;
    Some(KEYWORDS[at].1)
}

/// The lower-case word this is, if any.
pub(crate) fn word(text: &str) -> Option<Word> {
    match text {
        "true" => Some(Word::True),
        "false" => Some(Word::False),
        "null" => Some(Word::Null),
        "undefined" => Some(Word::Undefined),
        "udf" => Some(Word::Udf),
        _ => None,
    }
}

/// Whether a property of this name can be written after a dot.
pub fn is_plain_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && keyword(name).is_none()
        && word(name).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(KEYWORDS.is_sorted_by_key(|(name, _)| name));
    }

    #[test]
    fn case_matters_only_for_the_five_words() {
        assert_eq!(keyword("SeLeCt"), Some(Keyword::Select));
        assert_eq!(word("null"), Some(Word::Null));
        assert_eq!(word("NULL"), None);
        assert!(is_plain_name("NULL") && is_plain_name("first") && !is_plain_name("order"));
    }
}
