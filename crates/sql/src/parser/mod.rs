//! Tokens → tree, by recursive descent.
//!
//! This file has the entry points and the token helpers; clauses are in `clauses`, expressions in
//! `scalars`. Each function is named after the rule of the grammar it reads.

// A token that fits no rule is an error, whatever it is; naming the others would say nothing.
#![allow(clippy::wildcard_enum_match_arm)]

mod clauses;
mod scalars;
#[cfg(test)]
mod tests;

use crate::keywords::Keyword;
use crate::lexer::{Symbol, Token, TokenKind, lex};
use crate::limits::{
    ANDS_MAX, JOINS_MAX, NESTING_MAX, ORS_MAX, SUBQUERY_NESTING, TEXT_BYTES_MAX, UDF_CALLS_MAX,
};
use crate::{Code, Condition, Error, Ident, Query, Span};

type Result<T> = std::result::Result<T, Error>;

/// Reads a query.
pub fn parse(text: &str) -> Result<Query> {
    let mut parser = Parser::new(text)?;
    let query = parser.query()?;
    parser.end()?;
    Ok(query)
}

/// Reads `FROM … [WHERE …]`, the condition of a conditional patch.
pub fn parse_condition(text: &str) -> Result<Condition> {
    let mut parser = Parser::new(text)?;
    parser.expect_keyword(Keyword::From)?;
    let from = parser.sources()?;
    let filter = parser.where_clause()?;
    parser.end()?;
    Ok(Condition { from, filter })
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// The next token; never past the last one.
    at: usize,
    /// Open brackets, calls and subqueries.
    nesting: usize,
    ands: usize,
    ors: usize,
    joins: usize,
    udf_calls: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>> {
        if text.len() > TEXT_BYTES_MAX {
            let message =
                format!("The SQL query text exceeded the maximum limit of {TEXT_BYTES_MAX} bytes.");
            return Err(Error { code: Code::TooLong, message, span: None });
        }
        let tokens = lex(text);
        Ok(Parser { text, tokens, at: 0, nesting: 0, ands: 0, ors: 0, joins: 0, udf_calls: 0 })
    }

    fn token(&self) -> &Token {
        &self.tokens[self.at]
    }

    fn kind(&self) -> &TokenKind {
        &self.token().kind
    }

    /// The kind of the token `n` places ahead.
    fn peek(&self, n: usize) -> &TokenKind {
        let at = (self.at + n).min(self.tokens.len() - 1);
        &self.tokens[at].kind
    }

    fn span(&self) -> Span {
        self.token().span
    }

    /// From `start` to the end of the last token read.
    fn span_from(&self, start: Span) -> Span {
        let last = self.tokens[self.at.saturating_sub(1)].span;
        Span::new(start.start, last.end.max(start.start))
    }

    fn bump(&mut self) {
        // The last token is the end of the text or not a token: nothing accepts either.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn is_symbol(&self, symbol: Symbol) -> bool {
        *self.kind() == TokenKind::Symbol(symbol)
    }

    fn is_keyword(&self, keyword: Keyword) -> bool {
        *self.kind() == TokenKind::Keyword(keyword)
    }

    fn accept(&mut self, symbol: Symbol) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.bump();
        }
        found
    }

    fn accept_keyword(&mut self, keyword: Keyword) -> bool {
        let found = self.is_keyword(keyword);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, symbol: Symbol) -> Result<()> {
        if self.accept(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_keyword(&mut self, keyword: Keyword) -> Result<()> {
        if self.accept_keyword(keyword) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn end(&self) -> Result<()> {
        if *self.kind() == TokenKind::End { Ok(()) } else { Err(self.unexpected()) }
    }

    fn identifier(&mut self) -> Result<Ident> {
        match self.accept_identifier() {
            Some(ident) => Ok(ident),
            None => Err(self.unexpected()),
        }
    }

    fn accept_identifier(&mut self) -> Option<Ident> {
        let TokenKind::Name(name) = self.kind() else { return None };
        let ident = Ident::new(name.clone(), self.span());
        self.bump();
        Some(ident)
    }

    /// The error for a token that fits no rule here.
    fn unexpected(&self) -> Error {
        let token = self.token();
        if let TokenKind::Bad(error) = &token.kind {
            return error.clone();
        }
        if token.kind == TokenKind::End {
            let message = "Syntax error, unexpected end-of-file.";
            return Error::at(Code::EndOfText, token.span, message);
        }
        Error::syntax(token.span, &self.text[token.bytes.clone()])
    }

    /// Items separated by commas, at least one.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.accept(Symbol::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.deeper(1, inner)
    }

    /// A query inside brackets. It takes more stack than an expression, so it counts for more.
    fn nested_query(&mut self) -> Result<Query> {
        self.deeper(SUBQUERY_NESTING, Self::query)
    }

    fn deeper<T>(
        &mut self,
        levels: usize,
        inner: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.nesting += levels;
        check_limit(self.nesting, NESTING_MAX, "nested expressions", self.span())?;
        let result = inner(self);
        self.nesting -= levels;
        result
    }

    fn count_and(&mut self) -> Result<()> {
        self.ands += 1;
        check_limit(self.ands, ANDS_MAX, "AND operators", self.span())
    }

    fn count_or(&mut self) -> Result<()> {
        self.ors += 1;
        check_limit(self.ors, ORS_MAX, "OR operators", self.span())
    }

    fn count_join(&mut self) -> Result<()> {
        self.joins += 1;
        check_limit(self.joins, JOINS_MAX, "JOINs", self.span())
    }

    fn count_udf_call(&mut self) -> Result<()> {
        self.udf_calls += 1;
        check_limit(self.udf_calls, UDF_CALLS_MAX, "user-defined function calls", self.span())
    }
}

/// An error if there are more than `max` of something.
fn check_limit(count: usize, max: usize, what: &str, span: Span) -> Result<()> {
    if count <= max {
        return Ok(());
    }
    let message = format!("The query exceeds the maximum of {max} {what}.");
    Err(Error::at(Code::TooComplex, span, message))
}
