//! Folding constants: an expression without a row in it is evaluated once, when it is bound.

use super::Binder;
use crate::eval::{Env, eval};
use crate::expr::{Expr, LikePattern};

impl Binder<'_> {
    /// The constant an expression is, or the expression.
    pub(super) fn fold(&self, expr: Expr) -> Expr {
        if matches!(expr, Expr::Constant(_)) || !has_constant_operands(&expr) {
            return expr;
        }
        let value = eval(&expr, &mut Env::new(&self.ctx)).map(|value| value.to_value());
        value.map_or(expr, Expr::Constant)
    }
}

fn has_constant_operands(expr: &Expr) -> bool {
    let all = |operands: &[Expr]| operands.iter().all(is_constant);
    match expr {
        Expr::Constant(_) => true,
        Expr::Property(operand, _) | Expr::Element(operand, _) | Expr::Unary(_, operand) => {
            is_constant(operand)
        }
        Expr::Array(operands) | Expr::And(operands) | Expr::Or(operands) => all(operands),
        Expr::Object(properties) => properties.iter().all(|(_, value)| is_constant(value)),
        Expr::Binary(_, left, right) => is_constant(left) && is_constant(right),
        Expr::In { needle, items, .. } => is_constant(needle) && all(items),
        Expr::Between { value, low, high, .. } => {
            is_constant(value) && is_constant(low) && is_constant(high)
        }
        Expr::Like { value, pattern, .. } => {
            is_constant(value) && matches!(pattern, LikePattern::Constant(_))
        }
        Expr::Conditional(parts) => all(&parts[..]),
        Expr::Call(function, arguments) => function.body.is_pure() && all(arguments),
        Expr::Udf(..)
        | Expr::Distance(_)
        | Expr::TextMatch(_)
        | Expr::Prose(_)
        | Expr::Slot(_)
        | Expr::Aggregate(_)
        | Expr::GroupKey(_)
        | Expr::Subquery(..) => false,
    }
}

fn is_constant(expr: &Expr) -> bool {
    expr.as_constant().is_some()
}
