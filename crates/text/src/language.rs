//! The languages of full-text policies.

use rust_stemmers::{Algorithm, Stemmer};

/// A language whose words we can reduce to stems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// `en-US`, and wherever no language is named.
    #[default]
    English,
    /// `de-DE`
    German,
    /// `es-ES`
    Spanish,
    /// `fr-FR`
    French,
    /// `it-IT`
    Italian,
    /// `pt-BR`, `pt-PT`
    Portuguese,
}

impl Language {
    /// The language of a tag such as `en-US`; `None` if it is none of ours.
    ///
    /// Only the part before the hyphen counts, in any case.
    pub fn from_tag(tag: &str) -> Option<Language> {
        let primary = tag.split('-').next().unwrap_or_default();
        Some(match primary.to_ascii_lowercase().as_str() {
            "en" => Language::English,
            "de" => Language::German,
            "es" => Language::Spanish,
            "fr" => Language::French,
            "it" => Language::Italian,
            "pt" => Language::Portuguese,
            _ => return None,
        })
    }

    pub(crate) fn stemmer(self) -> Stemmer {
        Stemmer::create(match self {
            Language::English => Algorithm::English,
            Language::German => Algorithm::German,
            Language::Spanish => Algorithm::Spanish,
            Language::French => Algorithm::French,
            Language::Italian => Algorithm::Italian,
            Language::Portuguese => Algorithm::Portuguese,
        })
    }

    /// Whether a word, in lower case, says nothing. Only English has such words, as in the service.
    pub(crate) fn is_stop_word(self, word: &str) -> bool {
        self == Language::English && ENGLISH_STOP_WORDS.binary_search(&word).is_ok()
    }
}

/// In order, so that they can be searched.
const ENGLISH_STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_in_order() {
        assert!(ENGLISH_STOP_WORDS.is_sorted());
    }

    #[test]
    fn tags() {
        assert_eq!(Language::from_tag("en-US"), Some(Language::English));
        assert_eq!(Language::from_tag("PT-br"), Some(Language::Portuguese));
        assert_eq!(Language::from_tag("pt-PT"), Some(Language::Portuguese));
        assert_eq!(Language::from_tag("xx"), None);
        assert_eq!(Language::from_tag(""), None);
    }
}
