//! Conditions that the keys of an index can answer one by one: `CONTAINS`, `!=` and the like.
//!
//! They name no range of keys, but are about the value at one path and nothing else. So the keys of
//! that path are looked at instead of the items, and only items whose keys pass are loaded.

// An expression of any form not named here is none; naming them would not say more.
#![allow(clippy::wildcard_enum_match_arm)]

use item::{Kind, Value};
use sql::{BinaryOp, UnaryOp};

use super::{Access, Planner, bounds_of};
use crate::expr::{Expr, LikePattern};
use crate::{Bound, Bounds, Path, Segment, Span};

/// What keys are asked.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    /// All must hold, with the value of the key in slot 0.
    pub conditions: Vec<Expr>,
    pub price: Price,
}

/// Which entries are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Price {
    /// One for each key, whether it passes or not: all of them have to be asked. Only strings pass.
    Keys,
    /// Those that pass: they lie beside a few that do not.
    Matches,
}

impl PartialEq for Test {
    fn eq(&self, other: &Test) -> bool {
        // Expressions have no equality of their own; what they print says everything.
        format!("{self:?}") == format!("{other:?}")
    }
}

/// A condition on the value at one path.
struct Condition<'e> {
    path: Path,
    of: &'e Expr,
    price: Price,
}

impl Planner<'_> {
    /// The keys of the first path that is asked something only keys can answer, with all that is
    /// asked of it.
    pub(super) fn tested(&self) -> Option<Access> {
        let conditions = self.conditions();
        let first = conditions.iter().find(|condition| self.source.is_indexed(&condition.path))?;
        let own: Vec<_> = conditions.iter().filter(|other| other.path == first.path).collect();
        let strings = Bounds { lower: Bound::Included(Value::from("")), upper: Bound::Unbounded };
        let is_of_strings = own.iter().any(|condition| condition.price == Price::Keys);
        let (all, price) = match is_of_strings {
            true => (strings, Price::Keys),
            false => (Bounds::ALL, Price::Matches),
        };
        let bounds = bounds_of(&first.path, self.candidates()).unwrap_or(all);
        let conditions = own.iter().map(|condition| condition.of_keys(self)).collect();
        let test = Test { conditions, price };
        Some(Access::Tested { span: Span::Path { path: first.path.clone(), bounds }, test })
    }

    fn conditions(&self) -> Vec<Condition<'_>> {
        let block = &self.query.block;
        // A single aggregate looks at items, whatever their keys say.
        let is_aggregate = block.grouping.as_ref().is_some_and(|group| group.keys.is_empty());
        let unsaid = self.query.conditions().filter(|(_, said)| said.is_none());
        let found = unsaid.filter_map(|(conjunct, _)| self.condition(conjunct));
        found.filter(|found| !is_aggregate || found.price == Price::Matches).collect()
    }

    fn condition<'e>(&self, conjunct: &'e Expr) -> Option<Condition<'e>> {
        let (path, price) = asked_of(conjunct, &self.query.slot_paths)?;
        path.is_short().then_some(Condition { path, of: conjunct, price })
    }
}

/// The path whose keys can answer a conjunct of which no range of them is known.
pub(super) fn asked_of(conjunct: &Expr, slot_paths: &[Option<Path>]) -> Option<(Path, Price)> {
    let (of, price) = asked(conjunct)?;
    let path = of.path(slot_paths)?;
    let is_one = !path.segments().is_empty() && !path.segments().contains(&Segment::Elements);
    is_one.then_some((path, price))
}

impl Condition<'_> {
    /// The same about slot 0.
    fn of_keys(&self, planner: &Planner<'_>) -> Expr {
        let mut expr = self.of.clone();
        replace(&mut expr, &self.path, &planner.query.slot_paths);
        expr
    }
}

/// Whose value a condition is about, if the keys of an index can answer it.
fn asked(expr: &Expr) -> Option<(&Expr, Price)> {
    match expr {
        Expr::Unary(UnaryOp::Not, operand) => asked(operand),
        Expr::Call(function, arguments) => {
            const OF_KEYS: [&str; 5] =
                ["CONTAINS", "ENDSWITH", "STARTSWITH", "StringEquals", "RegexMatch"];
            let (value, rest) = arguments.split_first()?;
            let are_constant = rest.iter().all(|argument| argument.as_constant().is_some());
            (OF_KEYS.contains(&function.name) && are_constant).then_some((value, Price::Keys))
        }
        Expr::Like { value, pattern: LikePattern::Constant(_), .. } => Some((value, Price::Keys)),
        Expr::Binary(BinaryOp::NotEqual, left, right) => match (&**left, &**right) {
            (value, Expr::Constant(other)) | (Expr::Constant(other), value) => {
                is_primitive(other).then_some((value, Price::Matches))
            }
            _ => None,
        },
        Expr::In { negated: true, needle, items } => {
            let are_constant =
                items.iter().all(|item| item.as_constant().is_some_and(is_primitive));
            are_constant.then_some((needle, Price::Matches))
        }
        Expr::Between { negated: true, value, low, high } => {
            let are_constant = low.as_constant().is_some() && high.as_constant().is_some();
            are_constant.then_some((value, Price::Matches))
        }
        _ => None,
    }
}

fn is_primitive(value: &Value) -> bool {
    match value.kind() {
        Some(Kind::Null | Kind::Bool | Kind::Number | Kind::String) => true,
        Some(Kind::Array | Kind::Object) | None => false,
    }
}

/// Puts slot 0 in the place of a path, in an expression of the forms that are [`asked`].
fn replace(expr: &mut Expr, path: &Path, slot_paths: &[Option<Path>]) {
    if expr.path(slot_paths).as_ref() == Some(path) {
        *expr = Expr::Slot(0);
        return;
    }
    match expr {
        Expr::Unary(_, operand) => replace(operand, path, slot_paths),
        Expr::Binary(_, left, right) => {
            replace(left, path, slot_paths);
            replace(right, path, slot_paths);
        }
        Expr::Call(_, arguments) => {
            arguments.iter_mut().for_each(|argument| replace(argument, path, slot_paths));
        }
        Expr::In { needle: value, .. } | Expr::Between { value, .. } | Expr::Like { value, .. } => {
            replace(value, path, slot_paths)
        }
        _ => {}
    }
}
