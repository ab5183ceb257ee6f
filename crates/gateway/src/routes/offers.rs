//! Provisioned throughput, as offers.

use bytes::Bytes;
use engine::ops::Resource;
use hyper::StatusCode;
use hyper::header::HeaderValue;

use crate::call::Call;
use crate::decode;
use crate::encode::{self, Reply};
use crate::error::{Result, not_allowed};
use crate::headers;
use crate::routes::{Action, databases};

/// Serves `/offers` and what is below.
pub async fn serve(call: &Call<'_>, body: Bytes) -> Result<Reply> {
    match call.action {
        Action::List => databases::list(call, "", "Offers", call.engine().list_offers()),
        Action::Query => {
            let all = call.engine().list_offers();
            databases::query(call, "", "Offers", all, &body).await
        }
        Action::Read => {
            let offer = call.engine().read_offer(call.path.segment(1))?;
            databases::unless_known(call, &offer).map(|reply| settled(reply, &offer))
        }
        Action::Replace => replace(call, &body).await,
        Action::Create | Action::Upsert | Action::Patch | Action::Delete => not_allowed(),
        Action::Plan | Action::ChangeFeed => not_allowed(),
        Action::Batch | Action::Bulk | Action::Execute => not_allowed(),
    }
}

async fn replace(call: &Call<'_>, body: &[u8]) -> Result<Reply> {
    let (body, migration) = (decode::object(body)?, decode::migration(call.headers)?);
    let rid = call.path.segment(1).to_owned();
    let made = call.blocking(move |engine, ctx| engine.replace_offer(ctx, &rid, &body, migration));
    let offer = made.await?;
    Ok(settled(encode::resource(StatusCode::OK, &offer), &offer))
}

/// A change is in force when it is answered; clients would poll while it were pending.
fn settled(reply: Reply, offer: &Resource) -> Reply {
    reply
        .with(&headers::OFFER_REPLACE_PENDING, HeaderValue::from_static("false"))
        .with(&headers::MIN_THROUGHPUT, HeaderValue::from(engine::minimum_throughput(offer)))
}
