//! Computed properties: a reference to one is replaced by the expression that defines it.
//!
//! They win over stored properties of the same name. Their definitions see stored properties only.

use std::sync::Arc;

use sql::{Scalar, ScalarKind};

use super::Binder;
use crate::expr::{Expr, Projection};
use crate::{Computed, Error, Schema};

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
        let block = Binder::new(self.parameters, &schema).main_block(&query)?;
        match block.projection {
            Projection::Value(expr) if block.sources.is_empty() => Ok(expr),
            _ => {
                let what = format!("the definition of the computed property '{}'", computed.name);
                Err(Error::Unsupported { what, span: None })
            }
        }
    }
}
