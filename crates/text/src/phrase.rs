//! What a search looks for: one word, or several next to each other.

use crate::{Language, Token, tokens};

/// Most edits between a word and what it may match.
pub const DISTANCE_MAX: usize = 2;

/// A word or several neighbors, and how far from the written form they may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase {
    words: Vec<Token>,
    distance: usize,
}

impl Phrase {
    /// The phrase of a text. Of stop words only their places count.
    pub fn new(language: Language, text: &str) -> Phrase {
        Phrase::within(language, text, 0)
    }

    /// The same where each stem may be this many edits away, at most [`DISTANCE_MAX`].
    pub fn within(language: Language, text: &str, distance: usize) -> Phrase {
        let mut words = tokens(language, text);
        let first = words.first().map_or(0, |word| word.position);
        words.iter_mut().for_each(|word| word.position -= first);
        Phrase { words, distance: distance.min(DISTANCE_MAX) }
    }

    /// Whether nothing is left to look for.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The stems a text must have to match, if they must be exactly these.
    pub fn exact_stems(&self) -> Option<impl Iterator<Item = &str>> {
        (self.distance == 0).then(|| self.words.iter().map(|word| word.stem.as_str()))
    }

    /// Whether the phrase is somewhere in these tokens, which are in order.
    pub fn is_in(&self, tokens: &[Token]) -> bool {
        (0..tokens.len()).any(|at| self.is_at(tokens, at))
    }

    /// How often the phrase is in these tokens, which are in order.
    pub fn count(&self, tokens: &[Token]) -> usize {
        (0..tokens.len()).filter(|&at| self.is_at(tokens, at)).count()
    }

    fn is_at(&self, tokens: &[Token], at: usize) -> bool {
        let Some((first, others)) = self.words.split_first() else { return false };
        let (start, rest) = (tokens[at].position, &tokens[at + 1..]);
        self.fits(first, &tokens[at])
            && others.iter().all(|word| {
                let position = start + word.position;
                let found = rest.binary_search_by_key(&position, |token| token.position);
                found.is_ok_and(|at| self.fits(word, &rest[at]))
            })
    }

    fn fits(&self, word: &Token, token: &Token) -> bool {
        match self.distance {
            0 => word.stem == token.stem,
            most => is_within(&word.stem, &token.stem, most),
        }
    }
}

/// Whether so few insertions, deletions and replacements of characters make `b` of `a`.
fn is_within(a: &str, b: &str, most: usize) -> bool {
    let b: Vec<char> = b.chars().collect();
    if a.chars().count().abs_diff(b.len()) > most {
        return false;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()] <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, phrase: &str, expect: usize) {
        let tokens = tokens(Language::English, text);
        let phrase = Phrase::new(Language::English, phrase);
        assert_eq!(phrase.count(&tokens), expect, "{text}");
        assert_eq!(phrase.is_in(&tokens), expect > 0, "{text}");
    }

    #[test]
    fn words_are_neighbors_in_order() {
        let text = "red bicycle parked near red barn, red";
        check(text, "red", 3);
        check(text, "Red BICYCLES", 1);
        check(text, "bicycle red", 0);
        check(text, "red parked", 0);
        check(text, "red barn red", 1);
        check(text, "red barn red bicycle", 0);
        check(text, "", 0);
        check(text, "the", 0);
    }

    #[test]
    fn stop_words_hold_their_places() {
        check("blue bicycle and red scooter", "bicycle and red", 1);
        check("blue bicycle and red scooter", "bicycle or red", 1);
        check("blue bicycle and red scooter", "bicycle red", 0);
        check("blue bicycle and red scooter", "the blue bicycle", 1);
    }

    #[test]
    fn distances() {
        let tokens = tokens(Language::English, "a mountain bicycle");
        let is_in =
            |text, distance| Phrase::within(Language::English, text, distance).is_in(&tokens);
        assert!(!is_in("montain", 0) && is_in("montain", 1));
        assert!(!is_in("muontain", 1) && is_in("muontain", 2));
        assert!(is_in("mountain bicicle", 1));
        assert!(is_within("", "ab", 2) && !is_within("", "abc", 2));
        assert!(is_within("abc", "abc", 0) && !is_within("abc", "abd", 0));
    }

    #[test]
    fn stems_to_look_up() {
        let stems = |phrase: Phrase| phrase.exact_stems().map(|stems| stems.count());
        assert_eq!(stems(Phrase::new(Language::English, "the red bicycles")), Some(2));
        assert_eq!(stems(Phrase::within(Language::English, "red", 1)), None);
    }
}
