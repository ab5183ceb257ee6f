//! The data: customers of a shop with their orders, a logical partition for each.
//!
//! Nothing of it is in any other benchmark. What is optimized for these requests should be fast for
//! others too, and they are where it shows.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::Random;
use model::partition_key::PartitionKey;
use serde_json::{Value, json};

use crate::items::{Data, key, prose};

/// Orders of a customer, who is an item too.
const ORDERS: u64 = 20;
/// Items of a customer.
const EACH: u64 = ORDERS + 1;

const CITIES: [&str; 12] = [
    "Lima", "Accra", "Turku", "Nagoya", "Porto", "Cork", "Gdynia", "Adana", "Natal", "Hue", "Fes",
    "Pune",
];
const STATES: [&str; 4] = ["open", "paid", "sent", "returned"];
const TIERS: [&str; 3] = ["basic", "silver", "gold"];
/// How many things there are to buy.
const GOODS: u64 = 2000;
const NOTE_BYTES: usize = 240;

/// The shop.
#[derive(Clone, Copy, Debug)]
pub struct Shop {
    /// How many customers it has.
    pub customers: u64,
}

impl Shop {
    /// Any customer.
    pub fn any_customer(&self, random: &Random) -> u64 {
        random.next() % self.customers
    }

    /// The id of a customer, and the partition key of all that is his.
    pub fn customer(&self, customer: u64) -> String {
        format!("customer-{customer:06}")
    }

    /// The same as a key.
    pub fn key(&self, customer: u64) -> PartitionKey {
        key(&self.customer(customer))
    }

    /// The id of one of the orders that were there from the start.
    pub fn order(&self, customer: u64, order: u64) -> String {
        format!("order-{customer:06}-{:02}", order % ORDERS)
    }

    /// The mail address of a customer.
    pub fn mail(&self, customer: u64) -> String {
        format!("c{:06x}@shop.example", Random::from_seed(customer).next() >> 40)
    }

    /// Something to buy.
    pub fn article(&self, number: u64) -> String {
        format!("article-{:04}", number % GOODS)
    }

    /// A day of two years, as text that sorts.
    pub fn day(&self, number: u64) -> String {
        let (month, day) = (number / 28 % 24, number % 28);
        format!("{}-{:02}-{:02}T08:00:00Z", 2024 + month / 12, month % 12 + 1, day + 1)
    }

    /// Any city.
    pub fn city(&self, number: u64) -> &'static str {
        CITIES[(number % CITIES.len() as u64) as usize]
    }

    /// Any state of an order.
    pub fn state(&self, number: u64) -> &'static str {
        STATES[(number % STATES.len() as u64) as usize]
    }

    /// An order with this id.
    pub fn order_body(&self, customer: u64, id: &str, number: u64) -> String {
        let random = Random::from_seed(!number);
        let any = |below: u64| random.next() % below;
        let line = |_| {
            let (article, price) = (self.article(any(GOODS)), any(20_000) as f64 / 100.0);
            json!({"article": article, "count": 1 + any(3), "price": price})
        };
        let lines: Vec<Value> = (0..=any(4)).map(line).collect();
        let body = json!({
            "id": id, "customerId": self.customer(customer), "type": "order",
            "state": self.state(any(4)), "placed": self.day(any(672)),
            "total": any(100_000) as f64 / 100.0, "lines": lines,
            "to": {"city": self.city(any(12)), "zip": any(90_000)},
            "tags": [format!("tag-{}", any(40)), format!("tag-{}", any(40))],
            "note": prose(number, NOTE_BYTES),
        });
        body.to_string()
    }

    fn customer_body(&self, customer: u64) -> String {
        let random = Random::from_seed(customer);
        let any = |below: u64| random.next() % below;
        let id = self.customer(customer);
        let body = json!({
            "id": id, "customerId": id, "type": "customer", "mail": self.mail(customer),
            "name": format!("Name {:x}", any(1 << 30)), "tier": TIERS[any(3) as usize],
            "since": self.day(any(672)), "isActive": any(2) == 0, "orders": ORDERS,
            "at": {"type": "Point", "coordinates": [any(360) as f64 - 180.0, any(160) as f64 - 80.0]},
        });
        body.to_string()
    }
}

impl Data for Shop {
    fn count(&self) -> u64 {
        EACH * self.customers
    }

    fn id(&self, number: u64) -> String {
        match (number / EACH, number % EACH) {
            (customer, 0) => self.customer(customer),
            (customer, order) => self.order(customer, order - 1),
        }
    }

    fn key_text(&self, number: u64) -> String {
        self.customer(number / EACH)
    }

    fn body(&self, number: u64) -> String {
        match (number / EACH, number % EACH) {
            (customer, 0) => self.customer_body(customer),
            (customer, _) => self.order_body(customer, &self.id(number), number),
        }
    }
}

/// Numbers of new orders.
#[derive(Debug, Default)]
pub struct Numbers(AtomicU64);

impl Numbers {
    /// One that was not there.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_their_ids_and_keys() {
        let shop = Shop { customers: 3 };
        assert_eq!(shop.count(), 63);
        for number in 0..shop.count() {
            let value: Value = serde_json::from_str(&shop.body(number)).unwrap();
            assert_eq!(value["id"], shop.id(number));
            assert_eq!(value["customerId"], shop.key_text(number));
        }
        assert_eq!(shop.id(21), "customer-000001");
        assert_eq!(shop.id(23), shop.order(1, 1));
    }
}
