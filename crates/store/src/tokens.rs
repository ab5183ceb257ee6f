//! The tokens of the newest commits, so that `resolve` can say what became of one.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;

use crate::{Outcome, Token};

/// How many tokens are remembered: several seconds of commits, 2 MB.
const TOKENS_MAX: usize = 1 << 16;

/// A bounded set of committed tokens. A token that is not in it counts as not committed.
#[derive(Default)]
pub struct RecentTokens(Mutex<Recent>);

#[derive(Default)]
struct Recent {
    known: HashSet<Token>,
    by_age: VecDeque<Token>,
}

impl RecentTokens {
    /// Remembers that the commit of this name happened. The zero token is no name.
    pub fn remember(&self, token: Token) {
        if token == Token::default() {
            return;
        }
        let mut recent = self.0.lock();
        if !recent.known.insert(token) {
            return;
        }
        recent.by_age.push_back(token);
        if recent.by_age.len() > TOKENS_MAX
            && let Some(oldest) = recent.by_age.pop_front()
        {
            recent.known.remove(&oldest);
        }
    }

    /// What became of the commit of this name.
    pub fn outcome(&self, token: Token) -> Outcome {
        match self.0.lock().known.contains(&token) {
            true => Outcome::Committed,
            false => Outcome::NotCommitted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_token_is_forgotten_first() {
        let tokens = RecentTokens::default();
        for number in 1..=TOKENS_MAX as u128 {
            tokens.remember(Token(number));
        }
        assert_eq!(tokens.outcome(Token(1)), Outcome::Committed);
        tokens.remember(Token(u128::MAX));
        assert_eq!(tokens.outcome(Token(1)), Outcome::NotCommitted);
        assert_eq!(tokens.outcome(Token(2)), Outcome::Committed);
    }

    #[test]
    fn zero_is_no_name() {
        let tokens = RecentTokens::default();
        tokens.remember(Token(0));
        assert_eq!(tokens.outcome(Token(0)), Outcome::NotCommitted);
    }
}
