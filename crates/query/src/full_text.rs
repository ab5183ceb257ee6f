//! Searching prose: whether a text contains terms, and how much it is about them.

use item::Value;
use text::{DISTANCE_MAX, Language, Phrase, Token, tokens};

use crate::Error;
use crate::datum::Datum;
use crate::eval::{Env, eval};
use crate::expr::Expr;

/// How fast repetitions of a term stop counting (the usual constant of BM25).
const SATURATION: f64 = 1.2;

/// How much a long text is held against it (the usual constant of BM25).
const LENGTH_WEIGHT: f64 = 0.75;

/// FullTextContains, FullTextContainsAll and FullTextContainsAny, bound.
#[derive(Clone, Debug)]
pub(crate) struct TextMatch {
    pub text: Expr,
    pub language: Language,
    pub terms: Terms,
    /// Every term must be there, not just one.
    pub wants_all: bool,
}

/// What is looked for: read once if it is constant.
#[derive(Clone, Debug)]
pub(crate) enum Terms {
    Constant(Vec<Phrase>),
    Dynamic(Vec<Expr>),
}

impl TextMatch {
    pub fn value<'a>(&'a self, env: &mut Env<'a>) -> Result<Datum<'a>, Error> {
        let text = eval(&self.text, env)?;
        let Some(text) = text.as_str() else { return Ok(Datum::UNDEFINED) };
        let tokens = tokens(self.language, &text);
        Ok(match &self.terms {
            Terms::Constant(phrases) => Datum::bool(self.holds(phrases, &tokens)),
            Terms::Dynamic(terms) => match self.phrases(terms, env)? {
                Some(phrases) => Datum::bool(self.holds(&phrases, &tokens)),
                None => Datum::UNDEFINED,
            },
        })
    }

    fn phrases<'a>(
        &self,
        terms: &'a [Expr],
        env: &mut Env<'a>,
    ) -> Result<Option<Vec<Phrase>>, Error> {
        let mut values = Vec::with_capacity(terms.len());
        for term in terms {
            values.push(eval(term, env)?.to_value());
        }
        Ok(phrases(self.language, &values))
    }

    /// A term of nothing but stop words is nowhere; among others that must all be there it does
    /// not count.
    fn holds(&self, phrases: &[Phrase], tokens: &[Token]) -> bool {
        let mut real = phrases.iter().filter(|phrase| !phrase.is_empty()).peekable();
        match self.wants_all {
            true => real.peek().is_some() && real.all(|phrase| phrase.is_in(tokens)),
            false => real.any(|phrase| phrase.is_in(tokens)),
        }
    }
}

/// The phrases of terms: strings, `{"term": …, "distance": …}`, or arrays of these. `None` if
/// anything else is among them.
pub(crate) fn phrases(language: Language, terms: &[Value]) -> Option<Vec<Phrase>> {
    flat(terms).iter().map(|term| phrase(language, term)).collect()
}

/// Terms that may be in arrays, one by one.
pub(crate) fn flat(terms: &[Value]) -> Vec<Value> {
    let inner = |term: &Value| match term.as_array() {
        Some(inner) => flat(inner),
        None => vec![term.clone()],
    };
    terms.iter().flat_map(inner).collect()
}

fn phrase(language: Language, term: &Value) -> Option<Phrase> {
    if let Some(text) = term.as_str() {
        return Some(Phrase::new(language, text));
    }
    let text = term.get("term").as_str()?;
    let distance = term.get("distance");
    let distance = if distance.is_undefined() { 0.0 } else { distance.as_f64()? };
    let is_allowed = distance.fract() == 0.0 && (0.0..=DISTANCE_MAX as f64).contains(&distance);
    is_allowed.then(|| Phrase::within(language, text, distance as usize))
}

/// FullTextScore, bound.
#[derive(Clone, Debug)]
pub(crate) struct TextScore {
    pub text: Expr,
    pub language: Language,
    pub terms: Vec<Phrase>,
    /// The terms as they were written, one for each phrase.
    pub written: Vec<Value>,
}

/// What clients ask of a text that rank rows themselves.
#[derive(Clone, Debug)]
pub(crate) enum Prose {
    /// How many words it has: `_FullTextWordCount`.
    Words { text: Expr, language: Language },
    /// How relevant it is by what they found out about all texts: `_FullTextScore`.
    Score { score: TextScore, statistics: Statistics },
}

impl Prose {
    pub fn value<'a>(&'a self, env: &mut Env<'a>) -> Result<Datum<'a>, Error> {
        let number = match self {
            Prose::Words { text, language } => {
                let text = eval(text, env)?;
                text.as_str().map(|text| tokens(*language, &text).len() as f64)
            }
            Prose::Score { score, statistics } => score.score(statistics, env)?,
        };
        Ok(number.map_or(Datum::UNDEFINED, Datum::number))
    }
}

impl TextScore {
    /// BM25 over these statistics; `None` without a text.
    pub fn score<'a>(
        &'a self,
        statistics: &Statistics,
        env: &mut Env<'a>,
    ) -> Result<Option<f64>, Error> {
        Ok(self.tokens(env)?.map(|tokens| statistics.score(&self.terms, &tokens)))
    }

    /// The tokens of the current row, if it has a text.
    pub fn tokens<'a>(&'a self, env: &mut Env<'a>) -> Result<Option<Vec<Token>>, Error> {
        let text = eval(&self.text, env)?;
        Ok(text.as_str().map(|text| tokens(self.language, &text)))
    }
}

/// What BM25 knows about all texts in the scope of a query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statistics {
    /// Rows, with or without a text.
    rows: u64,
    words: u64,
    /// For each term the texts that have it.
    hits: Vec<u64>,
}

impl Statistics {
    /// What somebody else has counted; `None` if that are no counts.
    pub fn of(rows: &Value, words: &Value, hits: &Value) -> Option<Statistics> {
        let count = |value: &Value| {
            let number = value.as_f64()?;
            (number >= 0.0 && number.fract() == 0.0).then_some(number as u64)
        };
        let hits = hits.as_array()?.iter().map(count).collect::<Option<Vec<u64>>>()?;
        Some(Statistics { rows: count(rows)?, words: count(words)?, hits })
    }

    /// Whether it tells of so many terms.
    pub fn is_of(&self, terms: &[Phrase]) -> bool {
        self.hits.len() == terms.len()
    }

    /// Counts one more row.
    pub fn add(&mut self, terms: &[Phrase], tokens: &[Token]) {
        self.hits.resize(terms.len(), 0);
        self.rows += 1;
        self.words += tokens.len() as u64;
        for (hits, term) in self.hits.iter_mut().zip(terms) {
            *hits += u64::from(term.is_in(tokens));
        }
    }

    fn score(&self, terms: &[Phrase], tokens: &[Token]) -> f64 {
        let average = self.words as f64 / self.rows.max(1) as f64;
        let length = tokens.len() as f64 / average.max(f64::MIN_POSITIVE);
        let damping = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
        let score = |(term, hits): (&Phrase, &u64)| {
            let count = term.count(tokens) as f64;
            self.rarity(*hits) * count * (SATURATION + 1.0) / (count + damping)
        };
        terms.iter().zip(&self.hits).map(score).sum()
    }

    /// How much a term says, by how few texts have it. Never negative.
    fn rarity(&self, hits: u64) -> f64 {
        let (rows, hits) = (self.rows as f64, hits as f64);
        (1.0 + (rows - hits + 0.5) / (hits + 0.5)).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn english(text: &str) -> Vec<Token> {
        tokens(Language::English, text)
    }

    fn terms(text: &[&str]) -> Vec<Phrase> {
        text.iter().map(|text| Phrase::new(Language::English, text)).collect()
    }

    #[test]
    fn scores_follow_the_formula() {
        let terms = terms(&["red"]);
        let mut statistics = Statistics::default();
        for text in ["red red barn", "red scooter stand", "green tractor", ""] {
            statistics.add(&terms, &english(text));
        }
        // 4 rows, 8 words, 2 of them with the term: ln(1 + 2.5 / 2.5), average length 2.
        let damping = 1.2 * (0.25 + 0.75 * 1.5);
        let expect = 2f64.ln() * 2.0 * 2.2 / (2.0 + damping);
        assert!((statistics.score(&terms, &english("red red barn")) - expect).abs() < 1e-12);
        assert_eq!(statistics.score(&terms, &english("green tractor")), 0.0);
    }

    #[test]
    fn rare_terms_and_short_texts_score_higher() {
        let terms = terms(&["red", "barn"]);
        let mut statistics = Statistics::default();
        let texts = ["red barn", "red scooter", "red tractor", "red scooter near some tractor"];
        texts.iter().for_each(|text| statistics.add(&terms, &english(text)));
        let score = |text: &str| statistics.score(&terms, &english(text));
        assert!(score("barn scooter") > score("red scooter"));
        assert!(score("red scooter") > score("red scooter near some tractor"));
        assert!(score("red scooter") > 0.0);
    }

    #[test]
    fn terms_of_all_forms() {
        let read = |json: &str| {
            let value = Value::parse(json.as_bytes()).unwrap();
            phrases(Language::English, &[value]).map(|phrases| phrases.len())
        };
        assert_eq!(read(r#""red barn""#), Some(1));
        assert_eq!(read(r#"["red", "barn"]"#), Some(2));
        assert_eq!(read(r#"{"term": "red", "distance": 2}"#), Some(1));
        assert_eq!(read(r#"{"term": "red"}"#), Some(1));
        assert_eq!(read(r#"{"term": "red", "distance": 3}"#), None);
        assert_eq!(read(r#"{"term": "red", "distance": 0.5}"#), None);
        assert_eq!(read("1"), None);
        assert_eq!(read("[1]"), None);
    }
}
