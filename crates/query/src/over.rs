//! A query over a handful of JSON values that are no items: databases, containers, offers.

use base::Ctx;
use bytes::Bytes;
use item::Node;

use crate::datum::Datum;
use crate::eval::{Env, Flow, write_projection};
use crate::{BoundQuery, Error};

/// The rows of a query over these values, in their order. Filter, projection, TOP, OFFSET and LIMIT
/// are understood; sorting and grouping such a list is left to its reader.
pub fn rows_over<'a>(
    ctx: &Ctx,
    query: &BoundQuery,
    roots: impl IntoIterator<Item = Node<'a>>,
) -> Result<Vec<Bytes>, Error> {
    let block = &query.block;
    let is_sorted = !query.order.is_empty() || query.ranking.is_some();
    if is_sorted || block.is_blocking() {
        let what = "ORDER BY, GROUP BY, DISTINCT or aggregates over resources that are no items";
        return Err(Error::Unsupported { what: what.into(), span: None });
    }
    let mut rows = Vec::new();
    for root in roots {
        let mut env = Env::with_root(ctx, ctx.now(), Datum::Node(root));
        block.for_each_row(&mut env, &mut |env| {
            let mut row = Vec::new();
            if write_projection(&block.projection, env, &mut row)? {
                rows.push(Bytes::from(row));
            }
            Ok(Flow::Continue)
        })?;
    }
    let end = query.window.end.map_or(rows.len(), |end| rows.len().min(end as usize));
    rows.truncate(end);
    rows.drain(..rows.len().min(query.window.offset as usize));
    Ok(rows)
}
