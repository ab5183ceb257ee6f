//! Queries: scope and routing in, pages out.

use base::Ctx;
use bytes::Bytes;
use item::Node;

use crate::ops::{FeedPage, PageRequest, QueryText, Resource, Scope};
use crate::{Container, Engine, Error, Result};

pub(crate) struct Condition;

pub(crate) fn parse_condition(_text: &str) -> Result<Condition> {
    Err(Error::NotSupported("Patch conditions are not supported.".into()))
}

pub(crate) fn matches(_ctx: &Ctx, _condition: &Condition, _root: Node<'_>) -> Result<bool> {
    Ok(false)
}

impl Engine {
    /// Runs one page of a query.
    pub fn query_items(
        &self,
        _ctx: &Ctx,
        _container: &Container,
        _scope: &Scope,
        _query: &QueryText,
        _page: &PageRequest,
    ) -> Result<FeedPage> {
        Err(Error::NotSupported("Queries are not supported.".into()))
    }

    /// The plan of a query, as clients that fan out themselves want it.
    pub fn query_plan(&self, _container: &Container, _query: &QueryText) -> Result<String> {
        Err(Error::NotSupported("Queries are not supported.".into()))
    }

    /// Runs a query over the bodies of resources.
    pub fn query_resources(
        &self,
        _ctx: &Ctx,
        _resources: &[Resource],
        _query: &QueryText,
    ) -> Result<Vec<Bytes>> {
        Err(Error::NotSupported("Queries are not supported.".into()))
    }
}
