//! Scalar expressions.
//!
//! From the loosest to the tightest:
//!
//! ```text
//! scalar     ? :                  right
//! coalesce   ??                   left
//! or, and                         one node per chain
//! predicate  IN BETWEEN LIKE      none
//! infix      || | ^ & = < << + *  left, by binding power
//! unary      - + ~ NOT
//! postfix    .name [index]
//! primary
//! ```

use super::{Parser, Result, check_limit};
use crate::keywords::{Keyword, Word};
use crate::lexer::{Symbol, TokenKind};
use crate::limits::{HEIGHT_MAX, IN_ITEMS_MAX};
use crate::{BinaryOp, Literal, Property, Scalar, ScalarKind, Span, SubqueryKind, UnaryOp};

impl Parser<'_> {
    // Nested expressions repeat the frames of all functions down to `primary`; what is rarely
    // needed is in functions of its own, to keep those frames small.
    pub(super) fn scalar(&mut self) -> Result<Scalar> {
        let condition = self.coalesce();
        if condition.is_ok() && self.is_symbol(Symbol::Question) {
            return self.conditional(condition?);
        }
        condition
    }

    fn conditional(&mut self, condition: Scalar) -> Result<Scalar> {
        self.expect(Symbol::Question)?;
        let yes = Box::new(self.nested(Self::scalar)?);
        self.expect(Symbol::Colon)?;
        let no = Box::new(self.nested(Self::scalar)?);
        let span = condition.span;
        self.node(span, ScalarKind::Conditional { condition: Box::new(condition), yes, no })
    }

    /// A node from `start` to the last token read, unless the tree gets too high (S2).
    fn node(&self, start: Span, kind: ScalarKind) -> Result<Scalar> {
        let scalar = Scalar::new(kind, self.span_from(start));
        if scalar.is_too_high() {
            let count = scalar.height() as usize;
            check_limit(count, HEIGHT_MAX as usize, "chained operators", scalar.span)?;
        }
        Ok(scalar)
    }

    fn coalesce(&mut self) -> Result<Scalar> {
        let mut left = self.or()?;
        while self.accept(Symbol::Coalesce) {
            let right = self.or()?;
            left = self.binary(BinaryOp::Coalesce, left, right)?;
        }
        Ok(left)
    }

    fn binary(&self, op: BinaryOp, left: Scalar, right: Scalar) -> Result<Scalar> {
        let span = left.span;
        self.node(span, ScalarKind::Binary { op, left: Box::new(left), right: Box::new(right) })
    }

    fn or(&mut self) -> Result<Scalar> {
        let first = self.and()?;
        if !self.is_keyword(Keyword::Or) {
            return Ok(first);
        }
        let span = first.span;
        let mut operands = vec![first];
        while self.accept_keyword(Keyword::Or) {
            self.count_or()?;
            operands.push(self.and()?);
        }
        self.node(span, ScalarKind::Or(operands))
    }

    fn and(&mut self) -> Result<Scalar> {
        let first = self.predicate()?;
        if !self.is_keyword(Keyword::And) {
            return Ok(first);
        }
        let span = first.span;
        let mut operands = vec![first];
        while self.accept_keyword(Keyword::And) {
            self.count_and()?;
            operands.push(self.predicate()?);
        }
        self.node(span, ScalarKind::And(operands))
    }

    fn predicate(&mut self) -> Result<Scalar> {
        let left = self.infix(0)?;
        let negated = self.accept_keyword(Keyword::Not);
        if self.accept_keyword(Keyword::In) {
            self.in_list(left, negated)
        } else if self.accept_keyword(Keyword::Between) {
            self.between(left, negated)
        } else if self.accept_keyword(Keyword::Like) {
            self.like(left, negated)
        } else if negated {
            Err(self.unexpected())
        } else {
            Ok(left)
        }
    }

    fn in_list(&mut self, needle: Scalar, negated: bool) -> Result<Scalar> {
        self.expect(Symbol::OpenParen)?;
        let items = self.nested(|parser| parser.list(Self::scalar))?;
        check_limit(items.len(), IN_ITEMS_MAX, "values in an IN list", self.span())?;
        self.expect(Symbol::CloseParen)?;
        let span = needle.span;
        self.node(span, ScalarKind::In { negated, needle: Box::new(needle), items })
    }

    fn between(&mut self, value: Scalar, negated: bool) -> Result<Scalar> {
        let low = Box::new(self.infix(0)?);
        self.expect_keyword(Keyword::And)?;
        let high = Box::new(self.infix(0)?);
        let span = value.span;
        self.node(span, ScalarKind::Between { negated, value: Box::new(value), low, high })
    }

    fn like(&mut self, value: Scalar, negated: bool) -> Result<Scalar> {
        let pattern = Box::new(self.infix(0)?);
        let escape = match self.accept_keyword(Keyword::Escape) {
            true => Some(self.escape_character()?),
            false => None,
        };
        let span = value.span;
        self.node(span, ScalarKind::Like { negated, value: Box::new(value), pattern, escape })
    }

    fn escape_character(&mut self) -> Result<char> {
        let TokenKind::String(text) = self.kind() else { return Err(self.unexpected()) };
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(escape), None) => {
                self.bump();
                Ok(escape)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Infix operators that bind at least as tight as `power`.
    fn infix(&mut self, power: u8) -> Result<Scalar> {
        let mut left = self.unary()?;
        while let Some((op, op_power)) = self.infix_operator().filter(|(_, p)| *p >= power) {
            self.bump();
            let right = self.infix(op_power + 1)?;
            left = self.binary(op, left, right)?;
        }
        Ok(left)
    }

    fn infix_operator(&self) -> Option<(BinaryOp, u8)> {
        let TokenKind::Symbol(symbol) = self.kind() else { return None };
        binding(*symbol)
    }

    fn unary(&mut self) -> Result<Scalar> {
        let start = self.span();
        let op = match self.kind() {
            TokenKind::Symbol(Symbol::Minus) => UnaryOp::Minus,
            TokenKind::Symbol(Symbol::Plus) => UnaryOp::Plus,
            TokenKind::Symbol(Symbol::Tilde) => UnaryOp::BitNot,
            TokenKind::Keyword(Keyword::Not) => UnaryOp::Not,
            _ => return self.postfix(),
        };
        self.bump();
        let operand = Box::new(self.nested(Self::unary)?);
        self.node(start, ScalarKind::Unary { op, operand })
    }

    fn postfix(&mut self) -> Result<Scalar> {
        let mut object = self.primary()?;
        let start = object.span;
        loop {
            let kind = if self.accept(Symbol::Dot) {
                ScalarKind::Property { object: Box::new(object), name: self.identifier()?.name }
            } else if self.accept(Symbol::OpenBracket) {
                self.bracket(object)?
            } else {
                return Ok(object);
            };
            object = self.node(start, kind)?;
        }
    }

    fn bracket(&mut self, object: Scalar) -> Result<ScalarKind> {
        let index = self.nested(Self::scalar)?;
        self.expect(Symbol::CloseBracket)?;
        let object = Box::new(object);
        Ok(match index.kind {
            ScalarKind::Literal(Literal::String(name)) => ScalarKind::Property { object, name },
            _ => ScalarKind::Index { object, index: Box::new(index) },
        })
    }

    fn primary(&mut self) -> Result<Scalar> {
        if self.is_symbol(Symbol::OpenParen) {
            return self.parenthesized();
        }
        let start = self.span();
        let kind = match self.kind() {
            TokenKind::Number(_) | TokenKind::String(_) | TokenKind::Parameter(_) => self.atom(),
            TokenKind::Word(word) => self.word(*word),
            TokenKind::Name(_) => self.name_or_call(),
            TokenKind::Symbol(Symbol::OpenBracket) => self.array(),
            TokenKind::Symbol(Symbol::OpenBrace) => self.object(),
            TokenKind::Keyword(Keyword::Exists) => self.subquery_call(SubqueryKind::Exists),
            TokenKind::Keyword(Keyword::Array) => self.subquery_call(SubqueryKind::Array),
            TokenKind::Keyword(Keyword::Left) => self.call("LEFT".to_owned(), false),
            TokenKind::Keyword(Keyword::Right) => self.call("RIGHT".to_owned(), false),
            TokenKind::Keyword(_) | TokenKind::Symbol(_) | TokenKind::Bad(_) | TokenKind::End => {
                Err(self.unexpected())
            }
        };
        kind.and_then(|kind| self.node(start, kind))
    }

    fn atom(&mut self) -> Result<ScalarKind> {
        let kind = match self.kind() {
            TokenKind::Number(n) => ScalarKind::Literal(Literal::Number(*n)),
            TokenKind::String(text) => ScalarKind::Literal(Literal::String(text.clone())),
            TokenKind::Parameter(name) => ScalarKind::Parameter(name.clone()),
            _ => return Err(self.unexpected()),
        };
        Ok(self.leaf(kind))
    }

    fn leaf(&mut self, kind: ScalarKind) -> ScalarKind {
        self.bump();
        kind
    }

    fn word(&mut self, word: Word) -> Result<ScalarKind> {
        let literal = match word {
            Word::True => Literal::Bool(true),
            Word::False => Literal::Bool(false),
            Word::Null => Literal::Null,
            Word::Undefined => Literal::Undefined,
            Word::Udf => return self.udf_call(),
        };
        Ok(self.leaf(ScalarKind::Literal(literal)))
    }

    fn udf_call(&mut self) -> Result<ScalarKind> {
        self.bump();
        self.expect(Symbol::Dot)?;
        self.count_udf_call()?;
        let TokenKind::Name(name) = self.kind().clone() else { return Err(self.unexpected()) };
        self.call(name, true)
    }

    /// Whether a call begins here.
    pub(super) fn is_call(&self) -> bool {
        let is_open = |n: usize| *self.peek(n) == TokenKind::Symbol(Symbol::OpenParen);
        match self.kind() {
            TokenKind::Name(_) => is_open(1),
            TokenKind::Word(Word::Udf) => is_open(3),
            _ => false,
        }
    }

    /// A call as the source of rows.
    pub(super) fn call_source(&mut self) -> Result<Scalar> {
        let start = self.at;
        let call = self.primary()?;
        if matches!(call.kind, ScalarKind::Call { .. }) {
            return Ok(call);
        }
        self.at = start;
        Err(self.unexpected())
    }

    fn name_or_call(&mut self) -> Result<ScalarKind> {
        let TokenKind::Name(name) = self.kind().clone() else { return Err(self.unexpected()) };
        if *self.peek(1) != TokenKind::Symbol(Symbol::OpenParen) {
            return Ok(self.leaf(ScalarKind::Identifier(name)));
        }
        if *self.peek(2) == TokenKind::Keyword(Keyword::Select) {
            for (word, kind) in [
                ("ALL", SubqueryKind::All),
                ("FIRST", SubqueryKind::First),
                ("LAST", SubqueryKind::Last),
            ] {
                if name.eq_ignore_ascii_case(word) {
                    return self.subquery_call(kind);
                }
            }
        }
        self.call(name, false)
    }

    /// A call, standing at its name.
    fn call(&mut self, name: String, udf: bool) -> Result<ScalarKind> {
        self.bump();
        self.expect(Symbol::OpenParen)?;
        let arguments = self.until(Symbol::CloseParen, Self::scalar)?;
        Ok(ScalarKind::Call { udf, name, arguments })
    }

    /// A possibly empty list and the bracket that ends it.
    fn until<T>(
        &mut self,
        close: Symbol,
        item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        if self.accept(close) {
            return Ok(Vec::new());
        }
        let items = self.nested(|parser| parser.list(item))?;
        self.expect(close)?;
        Ok(items)
    }

    fn array(&mut self) -> Result<ScalarKind> {
        self.bump();
        Ok(ScalarKind::Array(self.until(Symbol::CloseBracket, Self::scalar)?))
    }

    fn object(&mut self) -> Result<ScalarKind> {
        self.bump();
        Ok(ScalarKind::Object(self.until(Symbol::CloseBrace, Self::property)?))
    }

    fn property(&mut self) -> Result<Property> {
        let name = match self.kind() {
            TokenKind::String(name) | TokenKind::Name(name) => name.clone(),
            // Keywords are welcome as bare names: nothing else can stand here.
            TokenKind::Keyword(_) | TokenKind::Word(_) => {
                self.text[self.token().bytes.clone()].to_owned()
            }
            TokenKind::Number(_)
            | TokenKind::Parameter(_)
            | TokenKind::Symbol(_)
            | TokenKind::Bad(_)
            | TokenKind::End => return Err(self.unexpected()),
        };
        self.bump();
        self.expect(Symbol::Colon)?;
        Ok(Property { name, value: self.scalar()? })
    }

    /// `( scalar )` or `( query )`.
    fn parenthesized(&mut self) -> Result<Scalar> {
        let start = self.span();
        if *self.peek(1) == TokenKind::Keyword(Keyword::Select) {
            let kind = self.subquery(SubqueryKind::Scalar)?;
            return self.node(start, kind);
        }
        self.expect(Symbol::OpenParen)?;
        let mut inner = self.nested(Self::scalar)?;
        self.expect(Symbol::CloseParen)?;
        inner.span = self.span_from(start);
        Ok(inner)
    }

    /// `EXISTS ( query )` and its kin, standing at the word.
    fn subquery_call(&mut self, kind: SubqueryKind) -> Result<ScalarKind> {
        self.bump();
        self.subquery(kind)
    }

    fn subquery(&mut self, kind: SubqueryKind) -> Result<ScalarKind> {
        self.expect(Symbol::OpenParen)?;
        let query = Box::new(self.nested_query()?);
        self.expect(Symbol::CloseParen)?;
        Ok(ScalarKind::Subquery { kind, query })
    }
}

/// The infix operator of a symbol, and how tight it binds.
fn binding(symbol: Symbol) -> Option<(BinaryOp, u8)> {
    Some(match symbol {
        Symbol::Concat => (BinaryOp::Concat, 1),
        Symbol::Or => (BinaryOp::BitOr, 2),
        Symbol::Xor => (BinaryOp::BitXor, 3),
        Symbol::And => (BinaryOp::BitAnd, 4),
        Symbol::Equal => (BinaryOp::Equal, 5),
        Symbol::NotEqual => (BinaryOp::NotEqual, 5),
        Symbol::Less => (BinaryOp::Less, 6),
        Symbol::LessOrEqual => (BinaryOp::LessOrEqual, 6),
        Symbol::Greater => (BinaryOp::Greater, 6),
        Symbol::GreaterOrEqual => (BinaryOp::GreaterOrEqual, 6),
        Symbol::ShiftLeft => (BinaryOp::ShiftLeft, 7),
        Symbol::ShiftRight => (BinaryOp::ShiftRight, 7),
        Symbol::ShiftRightUnsigned => (BinaryOp::ShiftRightUnsigned, 7),
        Symbol::Plus => (BinaryOp::Add, 8),
        Symbol::Minus => (BinaryOp::Subtract, 8),
        Symbol::Star => (BinaryOp::Multiply, 9),
        Symbol::Slash => (BinaryOp::Divide, 9),
        Symbol::Percent => (BinaryOp::Modulo, 9),
        Symbol::Comma
        | Symbol::Dot
        | Symbol::OpenParen
        | Symbol::CloseParen
        | Symbol::OpenBracket
        | Symbol::CloseBracket
        | Symbol::OpenBrace
        | Symbol::CloseBrace
        | Symbol::Colon
        | Symbol::Question
        | Symbol::Coalesce
        | Symbol::Tilde => return None,
    })
}
