//! Offers: the provisioned throughput of a database or container.

use base::Ctx;
use model::{Rid, limits};
use serde_json::{Map, Value, json};
use store::Write;

use super::record::{Kind, Stamp};
use super::{Catalog, Tables, new_etag, put};
use crate::ops::{Resource, Throughput};
use crate::{Container, Error, Result};

/// A change between manual and autoscale throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferMigration {
    /// From manual to autoscale.
    ToAutoscale,
    /// From autoscale to manual.
    ToManual,
}

/// Whether a throughput is one the service sells.
pub(super) fn check(throughput: Throughput) -> Result<()> {
    let (value, min, step) = match throughput {
        Throughput::Manual(value) => (value, limits::THROUGHPUT_MIN, limits::THROUGHPUT_STEP),
        Throughput::Autoscale(max) => (max, limits::AUTOSCALE_MIN, limits::AUTOSCALE_MIN),
    };
    if value < min || value > limits::THROUGHPUT_MAX || !value.is_multiple_of(step) {
        return Err(Error::Invalid(format!(
            "The throughput of {value} RU/s is not valid: it must be between {min} and {} in \
             increments of {step}.",
            limits::THROUGHPUT_MAX
        )));
    }
    Ok(())
}

/// Physical partitions that a throughput needs.
pub(super) fn partitions(throughput: Option<Throughput>) -> u16 {
    let value = match throughput {
        Some(Throughput::Manual(value) | Throughput::Autoscale(value)) => value,
        None => 0,
    };
    value.div_ceil(limits::PARTITION_THROUGHPUT_MAX).max(1) as u16
}

/// A new offer for a resource.
pub(super) fn new(ctx: &Ctx, number: u32, target: &Resource, throughput: Throughput) -> Resource {
    let highest = highest(throughput);
    stamped(ctx, number, body(target, throughput, highest))
}

fn highest(throughput: Throughput) -> u32 {
    match throughput {
        Throughput::Manual(value) | Throughput::Autoscale(value) => value,
    }
}

fn body(target: &Resource, throughput: Throughput, highest: u32) -> Map<String, Value> {
    let mut content = json!({
        "offerThroughput": match throughput {
            Throughput::Manual(value) => value,
            Throughput::Autoscale(max) => max / 10,
        },
        "offerIsRUPerMinuteThroughputEnabled": false,
        "offerMinimumThroughputParameters": {
            "maxThroughputEverProvisioned": highest,
            "maxConsumedStorageEverInKB": 0,
        },
    });
    if let Throughput::Autoscale(max) = throughput {
        content["offerAutopilotSettings"] = json!({"maxThroughput": max, "tier": 0});
    }
    let parts = [
        ("offerVersion", json!("V2")),
        ("offerType", json!("Invalid")),
        ("resource", target.body["_self"].clone()),
        ("offerResourceId", json!(target.rid.to_string())),
        ("content", content),
    ];
    parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn stamped(ctx: &Ctx, number: u32, mut body: Map<String, Value>) -> Resource {
    let rid = Rid::Offer(number);
    body.insert("id".into(), rid.to_string().into());
    let stamp = Stamp {
        rid,
        self_link: format!("offers/{rid}/"),
        etag: new_etag(ctx),
        ts: ctx.now().as_secs(),
    };
    stamp.apply(body, &[])
}

pub(super) fn write(offer: &Resource) -> Write {
    let Rid::Offer(number) = offer.rid else { unreachable!("offers have offer rids") };
    put(Kind::Offer, number, &json!({"body": &*offer.body}))
}

fn throughput_of(body: &Value) -> Option<Throughput> {
    let content = body.get("content")?;
    let max = content.get("offerAutopilotSettings").and_then(|s| s.get("maxThroughput"));
    match max.and_then(Value::as_u64) {
        Some(max) => Some(Throughput::Autoscale(u32::try_from(max).ok()?)),
        None => {
            let value = content.get("offerThroughput")?.as_u64()?;
            Some(Throughput::Manual(u32::try_from(value).ok()?))
        }
    }
}

fn highest_ever(body: &Value) -> u32 {
    let parameters = &body["content"]["offerMinimumThroughputParameters"];
    parameters["maxThroughputEverProvisioned"].as_u64().unwrap_or(0) as u32
}

impl Catalog {
    /// Whose throughput a container has, its own or its database's, and how much; `None` if
    /// neither has any.
    pub fn throughput(&self, container: &Container) -> (Rid, Option<Throughput>) {
        let tables = self.tables.read();
        let (own, shared) = (container.rid(), container.database_rid());
        match (tables.throughput_of(own), tables.throughput_of(shared)) {
            (None, Some(throughput)) => (shared, Some(throughput)),
            (throughput, _) => (own, throughput),
        }
    }

    pub fn list_offers(&self) -> Vec<Resource> {
        self.tables.read().offers.values().cloned().collect()
    }

    pub fn read_offer(&self, rid: &str) -> Result<Resource> {
        let tables = self.tables.read();
        match Rid::parse(rid) {
            Some(Rid::Offer(number)) => tables.offers.get(&number).cloned(),
            _ => None,
        }
        .ok_or(Error::NotFound)
    }

    /// Replaces an offer. The layout of the physical partitions stays as it is.
    pub fn replace_offer(
        &self,
        ctx: &Ctx,
        rid: &str,
        new: &Value,
        migrate: Option<OfferMigration>,
    ) -> Result<Resource> {
        let numbers = self.writer.lock();
        let old = self.read_offer(rid)?;
        let Rid::Offer(number) = old.rid else { unreachable!("offers have offer rids") };
        let throughput = replacement(&old.body, new, migrate)?;
        check(throughput)?;
        let highest = highest_ever(&old.body);
        check_minimum(throughput, highest)?;
        let target = Resource {
            rid: old.body["offerResourceId"]
                .as_str()
                .and_then(Rid::parse)
                .ok_or(Error::NotFound)?,
            etag: String::new(),
            body: json!({"_self": old.body["resource"]}).into(),
        };
        let body = body(&target, throughput, highest.max(self::highest(throughput)));
        let offer = stamped(ctx, number, body);
        self.commit(*numbers, vec![write(&offer)])?;
        self.tables.write().offers.insert(number, offer.clone());
        Ok(offer)
    }
}

/// The throughput a client asks for, given what there is now.
fn replacement(old: &Value, new: &Value, migrate: Option<OfferMigration>) -> Result<Throughput> {
    let invalid = |message: &str| Error::Invalid(message.to_owned());
    let asked = throughput_of(new)
        .ok_or_else(|| invalid("The offer has neither offerThroughput nor maxThroughput."))?;
    let current = throughput_of(old).ok_or(Error::NotFound)?;
    match (current, asked, migrate) {
        (Throughput::Manual(value), _, Some(OfferMigration::ToAutoscale)) => {
            let rounded = value.next_multiple_of(limits::AUTOSCALE_MIN);
            Ok(Throughput::Autoscale(rounded.max(limits::AUTOSCALE_MIN)))
        }
        (Throughput::Autoscale(max), _, Some(OfferMigration::ToManual)) => {
            Ok(Throughput::Manual(max))
        }
        (Throughput::Manual(_), Throughput::Manual(_), None)
        | (Throughput::Autoscale(_), Throughput::Autoscale(_), None) => Ok(asked),
        (Throughput::Manual(_), Throughput::Autoscale(_), None) => Err(invalid(
            "The resource has manual throughput. To change to autoscale, send the header \
             x-ms-cosmos-migrate-offer-to-autopilot.",
        )),
        (Throughput::Autoscale(_), Throughput::Manual(_), None) => Err(invalid(
            "The resource has autoscale throughput. To change to manual, send the header \
             x-ms-cosmos-migrate-offer-to-manual-throughput.",
        )),
        (_, _, Some(_)) => Err(invalid("The resource already has this kind of throughput.")),
    }
}

/// The least that an offer can be lowered to.
pub fn minimum_throughput(offer: &Resource) -> u32 {
    let throughput = throughput_of(&offer.body).unwrap_or(Throughput::Manual(0));
    minimum(throughput, highest_ever(&offer.body))
}

fn minimum(throughput: Throughput, highest: u32) -> u32 {
    match throughput {
        Throughput::Manual(_) => (highest / 100).max(limits::THROUGHPUT_MIN),
        Throughput::Autoscale(_) => (highest / 10).max(limits::AUTOSCALE_MIN),
    }
}

fn check_minimum(throughput: Throughput, highest: u32) -> Result<()> {
    let (value, min) = (self::highest(throughput), minimum(throughput, highest));
    match value < min {
        true => Err(Error::Invalid(format!(
            "The throughput of {value} RU/s is below the minimum of {min} for this resource."
        ))),
        false => Ok(()),
    }
}

impl Tables {
    pub(super) fn offer_of(&self, target: Rid) -> Option<u32> {
        let rid = target.to_string();
        let offer = self.offers.iter().find(|(_, offer)| offer.body["offerResourceId"] == rid);
        offer.map(|(number, _)| *number)
    }

    pub(super) fn throughput_of(&self, target: Rid) -> Option<Throughput> {
        throughput_of(&self.offers[&self.offer_of(target)?].body)
    }

    pub(super) fn add_offer(&mut self, offer: Option<Resource>) {
        if let Some(offer) = offer
            && let Rid::Offer(number) = offer.rid
        {
            self.offers.insert(number, offer);
        }
    }

    pub(super) fn remove_offer_of(&mut self, target: Rid) {
        if let Some(number) = self.offer_of(target) {
            self.offers.remove(&number);
        }
    }
}
