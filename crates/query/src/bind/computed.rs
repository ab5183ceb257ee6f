//! Computed properties: a reference to one is replaced by the expression that defines it.
//!
//! They win over stored properties of the same name. Their definitions see stored properties only.

use std::sync::Arc;

use sql::{Scalar, ScalarKind, Selection};

use super::Binder;
use crate::expr::{Expr, LikePattern, Projection};
use crate::{Computed, Error, Parameters, Schema};

impl Binder<'_> {
    /// The property of a value, computed or stored.
    pub(super) fn member(&mut self, object: Expr, name: &str) -> Result<Expr, Error> {
        match self.computed(&object, name) {
            Some(computed) => self.definition(computed),
            None => Ok(Expr::Property(Box::new(object), Arc::from(name))),
        }
    }

    /// The computed property of this name, if the value is the item.
    pub(super) fn computed(&self, object: &Expr, name: &str) -> Option<&Computed> {
        // Behind a stage, slot 0 is no item.
        let is_item = matches!(object, Expr::Slot(0)) && self.stages.is_empty();
        self.schema.computed.iter().find(|computed| is_item && computed.name == name)
    }

    /// Whether an expression is nothing but a computed property.
    pub(super) fn is_computed(&self, scalar: &Scalar) -> bool {
        let ScalarKind::Property { object, name } = &scalar.kind else { return false };
        let ScalarKind::Identifier(root) = &object.kind else { return false };
        let alias = self.find(root);
        alias.is_some_and(|alias| self.computed(&Expr::Slot(alias.slot), name).is_some())
    }

    fn definition(&self, computed: &Computed) -> Result<Expr, Error> {
        let query = sql::parse(&computed.query)?;
        let mut schema = Schema::clone(self.schema);
        schema.computed.clear();
        expression(&query, &schema, &[])
    }
}

/// Checks the query of a computed property: `SELECT VALUE` of an expression over the item, which
/// must give the same for the same item always and be made of none of these properties, which are
/// computed themselves.
pub fn check_computed(text: &str, others: &[&str]) -> Result<(), Error> {
    expression(&sql::parse(text)?, Schema::EMPTY, others).map(drop)
}

fn expression(query: &sql::Query, schema: &Schema, others: &[&str]) -> Result<Expr, Error> {
    let is_plain = |expr: &Expr| is_plain(expr, others);
    let is_bare = matches!(query.select.selection, Selection::Value { .. })
        && query.filter.is_none()
        && query.group_by.is_empty()
        && query.order_by.is_none()
        && query.offset_limit.is_none()
        && query.select.top.is_none()
        && !query.select.distinct
        && query.from.is_some();
    let block = Binder::new(&Parameters::new(), schema).main_block(query)?;
    let is_plain_block = block.sources.is_empty() && block.grouping.is_none();
    match block.projection {
        Projection::Value(expr) if is_bare && is_plain_block && is_plain(&expr) => Ok(expr),
        Projection::Value(_) | Projection::Object(_) => Err(Error::Refused(
            "The query of a computed property must be SELECT VALUE of one expression FROM the \
             item, without other clauses, subqueries, aggregates, spatial functions, user-defined \
             functions, functions whose results change, and other computed properties.",
        )),
    }
}

/// Whether an expression is made of what computed properties may use.
fn is_plain(expr: &Expr, others: &[&str]) -> bool {
    let is_plain = |expr: &Expr| is_plain(expr, others);
    match expr {
        Expr::Constant(_) | Expr::Slot(_) => true,
        Expr::Property(inner, name) => match **inner {
            Expr::Slot(0) => !others.contains(&&**name),
            _ => is_plain(inner),
        },
        Expr::Element(inner, _) | Expr::Unary(_, inner) => is_plain(inner),
        Expr::Array(items) | Expr::And(items) | Expr::Or(items) => items.iter().all(is_plain),
        Expr::Object(properties) => properties.iter().all(|(_, value)| is_plain(value)),
        Expr::Binary(_, left, right) => is_plain(left) && is_plain(right),
        Expr::In { needle, items, .. } => is_plain(needle) && items.iter().all(is_plain),
        Expr::Between { value, low, high, .. } => {
            [value, low, high].into_iter().all(|e| is_plain(e))
        }
        Expr::Like { value, pattern, .. } => match pattern {
            LikePattern::Constant(_) => is_plain(value),
            LikePattern::Dynamic { pattern, .. } => is_plain(value) && is_plain(pattern),
        },
        Expr::Conditional(parts) => parts.iter().all(is_plain),
        Expr::Call(function, arguments) => {
            let is_allowed = function.body.is_pure() && !function.name.starts_with("ST_");
            is_allowed && arguments.iter().all(is_plain)
        }
        Expr::Udf(..) | Expr::Distance(_) | Expr::TextMatch(_) | Expr::Prose(_) => false,
        Expr::Aggregate(_) | Expr::GroupKey(_) | Expr::Subquery(..) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions() {
        for fine in [
            "SELECT VALUE LOWER(c.name) FROM c",
            "SELECT VALUE c.price * 2 + 1 FROM c",
            "SELECT VALUE {\"a\": c.a ?? 1, \"b\": [c.b LIKE 'x%']} FROM c",
        ] {
            check_computed(fine, &["other"]).unwrap();
        }
        for wrong in [
            "SELECT VALUE COUNT(1) FROM c",
            "SELECT c.a FROM c",
            "SELECT * FROM c",
            "SELECT VALUE t FROM c JOIN t IN c.tags",
            "SELECT VALUE c.a FROM c WHERE c.a > 1",
            "SELECT VALUE c.a FROM c ORDER BY c.a",
            "SELECT TOP 1 VALUE c.a FROM c",
            "SELECT DISTINCT VALUE c.a FROM c",
            "SELECT VALUE c.a FROM c OFFSET 0 LIMIT 1",
            "SELECT VALUE c.a FROM c GROUP BY c.a",
            "SELECT VALUE (SELECT VALUE 1) FROM c",
            "SELECT VALUE RAND() FROM c",
            "SELECT VALUE GetCurrentTimestamp() + c.a FROM c",
            "SELECT VALUE ST_AREA(c.a) FROM c",
            "SELECT VALUE udf.f(c.a) FROM c",
            "SELECT VALUE nope(c.a) FROM c",
            "SELECT VALUE x.a FROM c",
            "SELECT VALUE 1",
            "SELECT VALUE",
        ] {
            assert!(check_computed(wrong, &[]).is_err(), "{wrong}");
        }
        let refers = "SELECT VALUE UPPER(c.lower) || c.name FROM c";
        check_computed(refers, &["upper"]).unwrap();
        assert!(check_computed(refers, &["upper", "lower"]).is_err());
    }
}
