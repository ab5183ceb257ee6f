//! The clauses of a query.

use super::{Parser, Result};
use crate::keywords::Keyword;
use crate::lexer::{Symbol, TokenKind};
use crate::limits::COUNT_MAX;
use crate::{
    Code, Collection, Count, CountKind, Error, From, Ident, OffsetLimit, OrderBy, OrderItem, Query,
    Scalar, ScalarKind, Select, SelectItem, Selection, SortDirection, Source, SourceKind, Step,
};

impl Parser<'_> {
    pub(super) fn query(&mut self) -> Result<Query> {
        let start = self.span();
        let select = self.select_clause()?;
        let from = match self.accept_keyword(Keyword::From) {
            true => Some(self.sources()?),
            false => None,
        };
        let filter = self.where_clause()?;
        let group_by = self.group_by_clause()?;
        let order_by = self.order_by_clause()?;
        let offset_limit = self.offset_limit_clause()?;
        let span = self.span_from(start);
        Ok(Query { select, from, filter, group_by, order_by, offset_limit, span })
    }

    fn select_clause(&mut self) -> Result<Select> {
        self.expect_keyword(Keyword::Select)?;
        let distinct = self.accept_keyword(Keyword::Distinct);
        let top = match self.accept_keyword(Keyword::Top) {
            true => Some(self.count(Code::TopCount)?),
            false => None,
        };
        Ok(Select { distinct, top, selection: self.selection()? })
    }

    fn selection(&mut self) -> Result<Selection> {
        if self.accept(Symbol::Star) {
            return Ok(Selection::Star);
        }
        if self.accept_keyword(Keyword::Value) {
            let expression = self.scalar()?;
            let alias = self.alias()?;
            return Ok(Selection::Value { expression, alias });
        }
        Ok(Selection::List(self.list(Self::select_item)?))
    }

    fn select_item(&mut self) -> Result<SelectItem> {
        let expression = self.scalar()?;
        let alias = self.alias()?;
        Ok(SelectItem { expression, alias })
    }

    /// `[ [ AS ] identifier ]`
    fn alias(&mut self) -> Result<Option<Ident>> {
        if self.accept_keyword(Keyword::As) {
            return self.identifier().map(Some);
        }
        Ok(self.accept_identifier())
    }

    /// The count of TOP, OFFSET or LIMIT; `code` is for one that is not an integer in range.
    fn count(&mut self, code: Code) -> Result<Count> {
        let span = self.span();
        let kind = match self.kind() {
            TokenKind::Number(n) if n.fract() == 0.0 && *n <= COUNT_MAX => {
                CountKind::Literal(*n as u32)
            }
            TokenKind::Number(_) => return Err(Error::at(code, span, count_message(code))),
            TokenKind::Parameter(name) => CountKind::Parameter(name.clone()),
            _ => return Err(self.unexpected()),
        };
        self.bump();
        Ok(Count { kind, span })
    }

    /// The FROM clause after its keyword.
    pub(super) fn sources(&mut self) -> Result<From> {
        let first = self.source()?;
        let mut joins = Vec::new();
        while self.accept_keyword(Keyword::Join) {
            self.count_join()?;
            joins.push(self.source()?);
        }
        Ok(From { first, joins })
    }

    fn source(&mut self) -> Result<Source> {
        let start = self.span();
        let kind = if *self.peek(1) == TokenKind::Keyword(Keyword::In) {
            let alias = self.identifier()?;
            self.expect_keyword(Keyword::In)?;
            let collection = match self.is_call() {
                true => Collection::Call(Box::new(self.call_source()?)),
                false => self.collection()?,
            };
            SourceKind::Iterate { alias, collection }
        } else {
            let collection = self.collection()?;
            SourceKind::Values { collection, alias: self.alias()? }
        };
        Ok(Source { kind, span: self.span_from(start) })
    }

    fn collection(&mut self) -> Result<Collection> {
        if self.accept(Symbol::OpenParen) {
            let query = self.nested_query()?;
            self.expect(Symbol::CloseParen)?;
            return Ok(Collection::Query(Box::new(query)));
        }
        let root = self.identifier()?;
        let mut steps = Vec::new();
        loop {
            if self.accept(Symbol::Dot) {
                steps.push(Step::Property(self.identifier()?.name));
            } else if self.accept(Symbol::OpenBracket) {
                steps.push(self.bracket_step()?);
            } else {
                return Ok(Collection::Path { root, steps });
            }
        }
    }

    fn bracket_step(&mut self) -> Result<Step> {
        let step = match self.kind() {
            TokenKind::String(name) => Step::Property(name.clone()),
            TokenKind::Number(n) if n.fract() == 0.0 && *n <= COUNT_MAX => Step::Index(*n as u32),
            _ => return Err(self.unexpected()),
        };
        self.bump();
        self.expect(Symbol::CloseBracket)?;
        Ok(step)
    }

    pub(super) fn where_clause(&mut self) -> Result<Option<Scalar>> {
        match self.accept_keyword(Keyword::Where) {
            true => self.scalar().map(Some),
            false => Ok(None),
        }
    }

    fn group_by_clause(&mut self) -> Result<Vec<Scalar>> {
        if !self.accept_keyword(Keyword::Group) {
            return Ok(Vec::new());
        }
        self.expect_keyword(Keyword::By)?;
        self.list(Self::scalar)
    }

    fn order_by_clause(&mut self) -> Result<Option<OrderBy>> {
        if !self.accept_keyword(Keyword::Order) {
            return Ok(None);
        }
        self.expect_keyword(Keyword::By)?;
        if self.is_rank() {
            self.bump();
            return Ok(Some(OrderBy::Rank(self.list(Self::rank_item)?)));
        }
        Ok(Some(OrderBy::Values(self.list(Self::order_item)?)))
    }

    /// `RANK` followed by the beginning of another word is the keyword, otherwise a name.
    fn is_rank(&self) -> bool {
        let follows = matches!(self.peek(1), TokenKind::Name(_) | TokenKind::Word(_));
        matches!(self.kind(), TokenKind::Name(name) if name.eq_ignore_ascii_case("rank")) && follows
    }

    fn rank_item(&mut self) -> Result<OrderItem> {
        let start = self.at;
        let item = self.order_item()?;
        if matches!(item.expression.kind, ScalarKind::Call { .. }) {
            return Ok(item);
        }
        self.at = start;
        Err(self.unexpected())
    }

    fn order_item(&mut self) -> Result<OrderItem> {
        let expression = self.scalar()?;
        let direction = if self.accept_keyword(Keyword::Asc) {
            Some(SortDirection::Ascending)
        } else if self.accept_keyword(Keyword::Desc) {
            Some(SortDirection::Descending)
        } else {
            None
        };
        Ok(OrderItem { expression, direction })
    }

    fn offset_limit_clause(&mut self) -> Result<Option<OffsetLimit>> {
        if !self.accept_keyword(Keyword::Offset) {
            return Ok(None);
        }
        let offset = self.count(Code::OffsetCount)?;
        self.expect_keyword(Keyword::Limit)?;
        let limit = self.count(Code::LimitCount)?;
        Ok(Some(OffsetLimit { offset, limit }))
    }
}

fn count_message(code: Code) -> &'static str {
    if code == Code::LimitCount {
        "The LIMIT count value exceeds the maximum allowed value."
    } else if code == Code::OffsetCount {
        "The OFFSET count value exceeds the maximum allowed value."
    } else {
        "The count value provided for a TOP clause must be an integer."
    }
}
