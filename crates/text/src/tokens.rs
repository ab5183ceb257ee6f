//! From text to tokens.

use unicode_segmentation::UnicodeSegmentation;

use crate::Language;

/// Longest token. A longer word is cut, in the index and in queries alike.
pub const TOKEN_BYTES_MAX: usize = 128;

/// A word of a text, reduced to what is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The stem of the word, in lower case.
    pub stem: String,
    /// Which word of the text it is, from 0, stop words counted.
    pub position: usize,
}

/// The tokens of a text, in order. Words are those of Unicode; stop words are left out.
///
/// ```
/// let tokens = text::tokens(text::Language::English, "The Barns");
/// assert_eq!((tokens[0].stem.as_str(), tokens[0].position), ("barn", 1));
/// ```
pub fn tokens(language: Language, text: &str) -> Vec<Token> {
    let stemmer = language.stemmer();
    let words = text.unicode_words().map(normalized).enumerate();
    words
        .filter(|(_, word)| !language.is_stop_word(word))
        .map(|(position, word)| Token { stem: cut(stemmer.stem(&word).into_owned()), position })
        .collect()
}

/// Lower case, with one kind of apostrophe.
fn normalized(word: &str) -> String {
    word.to_lowercase().replace('\u{2019}', "'")
}

fn cut(mut word: String) -> String {
    let mut ends = (0..=word.len().min(TOKEN_BYTES_MAX)).rev();
    let end = ends.find(|&end| word.is_char_boundary(end)).unwrap_or(0);
    word.truncate(end);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: Language, text: &str, expect: &str) {
        let tokens = tokens(language, text);
        let shown: Vec<_> =
            tokens.iter().map(|token| format!("{}@{}", token.stem, token.position)).collect();
        assert_eq!(shown.join(" "), expect, "{text}");
    }

    #[test]
    fn english() {
        check(Language::English, "Red bicycles, parked!", "red@0 bicycl@1 park@2");
        check(Language::English, "The barn AND the tractor", "barn@1 tractor@4");
        check(Language::English, "Bob\u{2019}s barn", "bob@0 barn@1");
        check(Language::English, "", "");
        check(Language::English, " -- ", "");
        check(Language::English, "the", "");
        check(Language::English, "version 3.14 of 2024", "version@0 3.14@1 2024@3");
    }

    #[test]
    fn other_languages_keep_all_words() {
        check(Language::German, "Die H\u{e4}user", "die@0 haus@1");
        check(Language::Spanish, "los caballos", "los@0 caball@1");
        check(Language::French, "les chevaux", "le@0 cheval@1");
        check(Language::Italian, "cavalli", "cavall@0");
        check(Language::Portuguese, "meninos", "menin@0");
    }

    #[test]
    fn long_words_are_cut_at_a_character() {
        let word = "\u{e4}".repeat(TOKEN_BYTES_MAX);
        let cut = &tokens(Language::German, &word)[0].stem;
        assert!(cut.len() <= TOKEN_BYTES_MAX && cut.len() > TOKEN_BYTES_MAX - 4);
        let word = "x".repeat(TOKEN_BYTES_MAX + 1);
        assert_eq!(tokens(Language::English, &word)[0].stem.len(), TOKEN_BYTES_MAX);
        assert_eq!(tokens(Language::English, &word[1..])[0].stem.len(), TOKEN_BYTES_MAX);
    }
}
