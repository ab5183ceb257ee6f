//! Whether an item satisfies the condition of a conditional patch.

use base::Ctx;
use item::Node;

use crate::bind::bind_condition;
use crate::datum::Datum;
use crate::eval::{Env, Flow};
use crate::{Error, Parameters};

/// Whether `FROM … WHERE …` yields a row over one item.
///
/// ```
/// let item = item::Json::parse(br#"{"id":"1","v":2}"#).unwrap();
/// let condition = sql::parse_condition("from c where c.v > 1").unwrap();
/// let ctx = base::Ctx::background();
/// assert!(query::matches(&ctx, &condition, item.root(), &Default::default()).unwrap());
/// ```
pub fn matches(
    ctx: &Ctx,
    condition: &sql::Condition,
    item: Node<'_>,
    parameters: &Parameters,
) -> Result<bool, Error> {
    let block = bind_condition(condition, parameters)?;
    let mut env = Env::with_root(ctx, ctx.now(), Datum::Node(item));
    let flow = block.for_each_row(&mut env, &mut |_| Ok(Flow::Stop))?;
    Ok(flow == Flow::Stop)
}
