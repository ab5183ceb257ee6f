//! Binding scalar expressions.

use std::sync::Arc;

use item::Value;
use sql::{
    BinaryOp, Code, Literal, Property, Query, Scalar, ScalarKind, Span, SubqueryKind, UnaryOp,
};

use super::blocks::unresolved;
use super::{Binder, is_aggregate};
use crate::Error;
use crate::aggregate::AggregateKind;
use crate::eval::like::Pattern;
use crate::expr::{Expr, LikePattern};
use crate::functions::{self, Body, Function, MANY};

impl Binder<'_> {
    pub(super) fn scalar(&mut self, scalar: &Scalar) -> Result<Expr, Error> {
        if let Some(key) = self.group_key_of(scalar) {
            return Ok(key);
        }
        // Every arm is a call, so that the frame of this function, which recursion repeats, is
        // small.
        let expr = match &scalar.kind {
            ScalarKind::Literal(literal) => Ok(Expr::Constant(literal_value(literal))),
            ScalarKind::Parameter(name) => self.parameter_value(name, scalar.span),
            ScalarKind::Identifier(name) => self.identifier(name, scalar),
            ScalarKind::Property { object, name } => self.property(scalar, object, name),
            ScalarKind::Index { object, index } => self.index(object, index, scalar.span),
            ScalarKind::Array(items) => self.scalars(items).map(Expr::Array),
            ScalarKind::Object(properties) => self.object(properties),
            ScalarKind::Unary { op, operand } => self.unary(*op, operand),
            ScalarKind::Binary { op, left, right } => self.binary(*op, left, right),
            ScalarKind::And(operands) => self.chain(operands).map(Expr::And),
            ScalarKind::Or(operands) => self.chain(operands).map(Expr::Or),
            ScalarKind::In { negated, needle, items } => self.in_list(*negated, needle, items),
            ScalarKind::Between { negated, value, low, high } => {
                self.between(*negated, value, low, high)
            }
            ScalarKind::Like { negated, value, pattern, escape } => {
                self.like(*negated, value, pattern, *escape)
            }
            ScalarKind::Conditional { condition, yes, no } => self.conditional(condition, yes, no),
            ScalarKind::Call { udf: false, name, arguments } => {
                self.call(name, arguments, scalar.span)
            }
            ScalarKind::Call { udf: true, name, arguments } => {
                self.udf(name, arguments, scalar.span)
            }
            ScalarKind::Subquery { kind, query } => self.subquery(*kind, query, scalar.span),
        };
        expr.map(|expr| self.fold(expr))
    }

    fn parameter_value(&self, name: &str, span: Span) -> Result<Expr, Error> {
        Ok(Expr::Constant(self.parameter(name, span)?.clone()))
    }

    fn property(&mut self, scalar: &Scalar, object: &Scalar, name: &str) -> Result<Expr, Error> {
        self.not_grouped(scalar)?;
        let object = self.scalar(object)?;
        self.member(object, name)
    }

    fn unary(&mut self, op: UnaryOp, operand: &Scalar) -> Result<Expr, Error> {
        Ok(Expr::Unary(op, Box::new(self.scalar(operand)?)))
    }

    fn binary(&mut self, op: BinaryOp, left: &Scalar, right: &Scalar) -> Result<Expr, Error> {
        let left = Box::new(self.scalar(left)?);
        Ok(Expr::Binary(op, left, Box::new(self.scalar(right)?)))
    }

    fn in_list(&mut self, negated: bool, needle: &Scalar, items: &[Scalar]) -> Result<Expr, Error> {
        let needle = Box::new(self.scalar(needle)?);
        Ok(Expr::In { negated, needle, items: self.scalars(items)? })
    }

    fn between(
        &mut self,
        negated: bool,
        value: &Scalar,
        low: &Scalar,
        high: &Scalar,
    ) -> Result<Expr, Error> {
        let value = Box::new(self.scalar(value)?);
        let low = Box::new(self.scalar(low)?);
        Ok(Expr::Between { negated, value, low, high: Box::new(self.scalar(high)?) })
    }

    fn like(
        &mut self,
        negated: bool,
        value: &Scalar,
        pattern: &Scalar,
        escape: Option<char>,
    ) -> Result<Expr, Error> {
        let value = Box::new(self.scalar(value)?);
        Ok(Expr::Like { negated, value, pattern: self.pattern(pattern, escape)? })
    }

    fn conditional(
        &mut self,
        condition: &Scalar,
        yes: &Scalar,
        no: &Scalar,
    ) -> Result<Expr, Error> {
        let parts = [self.scalar(condition)?, self.scalar(yes)?, self.scalar(no)?];
        Ok(Expr::Conditional(Box::new(parts)))
    }

    fn subquery(&mut self, kind: SubqueryKind, query: &Query, span: Span) -> Result<Expr, Error> {
        if self.group.is_some() {
            let what = "a subquery in a select list with aggregates or GROUP BY";
            return Err(Error::unsupported(what, span));
        }
        self.scalar_subquery(kind, query)
    }

    pub(super) fn scalars(&mut self, scalars: &[Scalar]) -> Result<Vec<Expr>, Error> {
        scalars.iter().map(|scalar| self.scalar(scalar)).collect()
    }

    /// In the select list of a grouped block, an expression that is a key stands for it.
    fn group_key_of(&self, scalar: &Scalar) -> Option<Expr> {
        let keys = &self.group.as_ref()?.keys;
        keys.iter().position(|key| key == scalar).map(Expr::GroupKey)
    }

    /// In the select list of a grouped block, a property of a row has no single value.
    fn not_grouped(&self, scalar: &Scalar) -> Result<(), Error> {
        let Some(group) = &self.group else { return Ok(()) };
        let Some(root) = root_name(scalar) else { return Ok(()) };
        let is_of_row = self.find(root).is_some_and(|alias| alias.slot >= group.base);
        // A longer path may still lead to a key: `c.a.b` when grouping by `c.a`.
        if !is_of_row || has_key_prefix(scalar, &group.keys) {
            return Ok(());
        }
        let message = format!(
            "Property reference '{scalar}' is invalid in the select list because it is not \
             contained in either an aggregate function or the GROUP BY clause."
        );
        Err(sql::Error::at(Code::NotGrouped, scalar.span, message).into())
    }

    fn identifier(&self, name: &str, scalar: &Scalar) -> Result<Expr, Error> {
        if let Some(alias) = self.find(name) {
            self.not_grouped(scalar)?;
            return Ok(Expr::Slot(alias.slot));
        }
        match name {
            "NaN" => Ok(Expr::Constant(Value::Number(f64::NAN))),
            "Infinity" => Ok(Expr::Constant(Value::Number(f64::INFINITY))),
            _ => Err(unresolved(name, scalar.span)),
        }
    }

    /// An index is a constant: a name, or a position. Anything else indexes nothing.
    fn index(&mut self, object: &Scalar, index: &Scalar, span: Span) -> Result<Expr, Error> {
        let object = self.scalar(object)?;
        match self.scalar(index)? {
            Expr::Constant(Value::String(name)) => self.member(object, &name),
            Expr::Constant(Value::Number(n)) if n >= 0.0 && n.fract() == 0.0 => {
                Ok(Expr::Element(Box::new(object), n as usize))
            }
            Expr::Constant(_) => Ok(Expr::Constant(Value::Undefined)),
            _ => {
                let message = "The specified query includes 'member indexer' which is currently \
                               not supported.";
                Err(sql::Error::at(Code::MemberIndexer, span, message).into())
            }
        }
    }

    /// Of a repeated name the last value counts that is defined.
    fn object(&mut self, properties: &[Property]) -> Result<Expr, Error> {
        let mut bound: Vec<(Arc<str>, Expr)> = Vec::with_capacity(properties.len());
        for Property { name, value } in properties {
            let value = self.scalar(value)?;
            match bound.iter_mut().find(|(own, _)| **own == **name) {
                Some(property) => {
                    let earlier =
                        std::mem::replace(&mut property.1, Expr::Constant(Value::Undefined));
                    let pair = (Box::new(value), Box::new(earlier));
                    property.1 = Expr::Binary(BinaryOp::Coalesce, pair.0, pair.1);
                }
                None => bound.push((Arc::from(name.as_str()), value)),
            }
        }
        Ok(Expr::Object(bound))
    }

    fn pattern(&mut self, pattern: &Scalar, escape: Option<char>) -> Result<LikePattern, Error> {
        let pattern = self.scalar(pattern)?;
        Ok(match pattern.as_constant().and_then(Value::as_str) {
            Some(text) => LikePattern::Constant(Pattern::new(text, escape)),
            None => LikePattern::Dynamic { pattern: Box::new(pattern), escape },
        })
    }

    /// The operands of AND or OR, those that cannot fail first. The value is the same in any order;
    /// but what the index leaves out is never asked whether it fails, and so a query fails for the
    /// same items with the index and without. Functions are called as rarely as can be, too.
    fn chain(&mut self, operands: &[Scalar]) -> Result<Vec<Expr>, Error> {
        let mut sure = Vec::with_capacity(operands.len());
        let mut unsure = Vec::new();
        for operand in operands {
            let list = if may_fail(operand) { &mut unsure } else { &mut sure };
            list.push(self.scalar(operand)?);
        }
        sure.append(&mut unsure);
        Ok(sure)
    }

    fn udf(&mut self, name: &str, arguments: &[Scalar], span: Span) -> Result<Expr, Error> {
        if !self.schema.functions.iter().any(|own| own == name) {
            let message = format!("The user-defined function '{name}' is not found.");
            return Err(sql::Error::at(Code::UnknownFunction, span, message).into());
        }
        let known = self.functions.iter().position(|own| own == name);
        let at = known.unwrap_or(self.functions.len());
        if known.is_none() {
            self.functions.push(name.to_owned());
        }
        Ok(Expr::Udf(at, self.scalars(arguments)?))
    }

    fn call(&mut self, name: &str, arguments: &[Scalar], span: Span) -> Result<Expr, Error> {
        if is_aggregate(name) {
            return self.aggregate(name, arguments, span);
        }
        let Some(function) = functions::find(name) else {
            let message = format!("'{name}' is not a recognized built-in function name.");
            let end = span.start + name.encode_utf16().count() as u32;
            return Err(sql::Error::at(Code::UnknownFunction, Span { end, ..span }, message).into());
        };
        check_arguments(function.name, function.least, function.most, arguments.len(), span)?;
        if matches!(function.body, Body::Bound) {
            return self.search_call(function, arguments, span);
        }
        let arguments = self.scalars(arguments)?;
        check_function(function, &arguments, span)?;
        Ok(Expr::Call(function, arguments))
    }

    fn aggregate(&mut self, name: &str, arguments: &[Scalar], span: Span) -> Result<Expr, Error> {
        check_arguments(&name.to_ascii_uppercase(), 1, 1, arguments.len(), span)?;
        let kind = AggregateKind::from_name(name)
            .ok_or_else(|| Error::unsupported(format!("the aggregate {name}"), span))?;
        let Some(mut group) = self.group.take() else {
            let message = format!("The aggregate function '{name}' is not allowed here.");
            return Err(sql::Error::at(Code::Other, span, message).into());
        };
        if has_aggregate_or_subquery(&arguments[0]) {
            let message = "Cannot perform an aggregate function on an expression containing an \
                           aggregate or a subquery.";
            return Err(sql::Error::at(Code::NestedAggregate, span, message).into());
        }
        // Inside the aggregate the row is there again.
        let argument = self.scalar(&arguments[0]);
        group.aggregates.push((kind, argument?));
        let at = group.aggregates.len() - 1;
        self.group = Some(group);
        Ok(Expr::Aggregate(at))
    }
}

fn literal_value(literal: &Literal) -> Value {
    match literal {
        Literal::Undefined => Value::Undefined,
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Number(number) => Value::Number(*number),
        Literal::String(text) => Value::from(text.as_str()),
    }
}

/// The name at the root of a path.
pub(super) fn root_name(scalar: &Scalar) -> Option<&str> {
    match &scalar.kind {
        ScalarKind::Identifier(name) => Some(name),
        ScalarKind::Property { object, .. } | ScalarKind::Index { object, .. } => root_name(object),
        _ => None,
    }
}

fn has_key_prefix(scalar: &Scalar, keys: &[Scalar]) -> bool {
    keys.contains(scalar)
        || match &scalar.kind {
            ScalarKind::Property { object, .. } | ScalarKind::Index { object, .. } => {
                has_key_prefix(object, keys)
            }
            _ => false,
        }
}

fn has_aggregate_or_subquery(scalar: &Scalar) -> bool {
    match &scalar.kind {
        ScalarKind::Subquery { .. } => true,
        ScalarKind::Call { udf: false, name, .. } if is_aggregate(name) => true,
        kind => {
            let mut found = false;
            kind.for_each_child(&mut |child| found = found || has_aggregate_or_subquery(child));
            found
        }
    }
}

/// Whether evaluating an expression can fail: a function or a subquery in it may.
fn may_fail(scalar: &Scalar) -> bool {
    match &scalar.kind {
        ScalarKind::Subquery { .. } | ScalarKind::Call { udf: true, .. } => true,
        kind => {
            let mut found = false;
            kind.for_each_child(&mut |child| found = found || may_fail(child));
            found
        }
    }
}

pub(super) fn check_arguments(
    name: &str,
    least: usize,
    most: usize,
    count: usize,
    span: Span,
) -> Result<(), Error> {
    if (least..=most).contains(&count) {
        return Ok(());
    }
    let wanted = match most {
        _ if least == most => least.to_string(),
        MANY => format!("at least {least}"),
        _ => format!("{least} to {most}"),
    };
    let message = format!("The {name} function requires {wanted} argument(s).");
    Err(sql::Error::at(Code::ArgumentCount, span, message).into())
}

/// What a function demands of its arguments beyond their number.
fn check_function(function: &Function, arguments: &[Expr], span: Span) -> Result<(), Error> {
    match function.name {
        "DOCUMENTID" if !matches!(arguments[0], Expr::Slot(0)) => {
            let message = "The DOCUMENTID function requires the alias of the container.";
            Err(sql::Error::at(Code::Other, span, message).into())
        }
        _ => Ok(()),
    }
}
