//! The requests: of every kind that clients send, each made from a random number.

use base::Random;
use client::{Changes, Client, Container, Operation, Request, Scope, Trigger, headers};
use model::partition_key::PartitionKey;
use serde_json::{Value, json};

use super::shop::{Numbers, Shop};
use crate::items::{Data, container, key};

/// What clients that merge by themselves say they can do.
const FEATURES: &str = "NonValueAggregate, Aggregate, Distinct, MultipleOrderBy, OffsetAndLimit, \
                        OrderBy, Top, CompositeAggregate, GroupBy, MultipleAggregates, DCount";

/// The shop and its containers.
#[derive(Debug)]
pub struct Mix {
    /// What is sold to whom.
    pub shop: Shop,
    /// With composite indexes.
    pub sorted: Container,
    /// As containers are made without a thought.
    pub plain: Container,
    /// Orders that were added to `sorted`, and of those it had at first, how many were removed.
    created: Numbers,
    deleted: Numbers,
}

/// Requests of one kind.
#[derive(Clone, Copy)]
pub struct Kind {
    /// What they do.
    pub name: &'static str,
    /// The status of their answers.
    pub status: u16,
    /// The next one.
    pub make: fn(&Mix, &Random) -> Request,
}

/// A query: its text, its parameters, and within which partition.
struct Query {
    name: &'static str,
    scope: Within,
    text: &'static str,
    values: fn(&Shop, &Random) -> Vec<(&'static str, Value)>,
}

/// Where a query looks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// In the items of a customer, whom `@customer` may name.
    Customer,
    /// Everywhere.
    All,
    /// In one physical partition, as clients ask that merge by themselves.
    Range,
}

fn none(_: &Shop, _: &Random) -> Vec<(&'static str, Value)> {
    Vec::new()
}

/// Asked of both containers.
static QUERIES: &[Query] = &[
    Query {
        name: "a customer's orders",
        scope: Within::Customer,
        text: "SELECT * FROM c WHERE c.customerId = @customer AND c.type = 'order'",
        values: none,
    },
    Query {
        name: "everything of a customer",
        scope: Within::Customer,
        text: "SELECT * FROM c",
        values: none,
    },
    Query {
        name: "a customer's latest orders",
        scope: Within::Customer,
        text: "SELECT TOP 10 * FROM c WHERE c.customerId = @customer AND c.placed >= @from \
               AND c.placed < @to ORDER BY c.placed DESC",
        values: |shop, random| {
            let from = random.next() % 300;
            vec![("@from", json!(shop.day(from))), ("@to", json!(shop.day(from + 300)))]
        },
    },
    Query {
        name: "columns, in order",
        scope: Within::Customer,
        text: "SELECT c.id, c.total, c['to'].city FROM c WHERE c.total > @total ORDER BY c.total",
        values: |_, random| vec![("@total", json!(random.next() % 1000))],
    },
    Query {
        name: "a customer's total",
        scope: Within::Customer,
        text: "SELECT VALUE SUM(c.total) FROM c WHERE c.state = @state",
        values: |shop, random| vec![("@state", json!(shop.state(random.next())))],
    },
    Query {
        name: "a customer's states",
        scope: Within::Customer,
        text: "SELECT c.state, COUNT(1) AS n, AVG(c.total) AS mean FROM c WHERE c.type = 'order' \
               GROUP BY c.state",
        values: none,
    },
    Query {
        name: "lines of a customer",
        scope: Within::Customer,
        text: "SELECT c.id, l.article, l.price * l[\"count\"] AS cost FROM c JOIN l IN c.lines \
               WHERE l[\"count\"] > 1",
        values: none,
    },
    Query {
        name: "by id",
        scope: Within::Customer,
        text: "SELECT * FROM c WHERE c.id = @customer",
        values: none,
    },
    Query {
        name: "by mail",
        scope: Within::All,
        text: "SELECT * FROM c WHERE c.mail = @mail",
        values: |shop, random| vec![("@mail", json!(shop.mail(shop.any_customer(random))))],
    },
    Query {
        name: "two conditions",
        scope: Within::All,
        text: "SELECT * FROM c WHERE c.state = @state AND c.placed = @day",
        values: |shop, random| {
            let state = shop.state(random.next());
            vec![("@state", json!(state)), ("@day", json!(shop.day(random.next())))]
        },
    },
    Query {
        name: "a list of values",
        scope: Within::All,
        text: "SELECT c.id, c.state FROM c WHERE c.placed IN (@one, @two) OR c.total < 1",
        values: |shop, random| {
            let day = || json!(shop.day(random.next()));
            vec![("@one", day()), ("@two", day())]
        },
    },
    Query {
        name: "counted",
        scope: Within::All,
        text: "SELECT VALUE COUNT(1) FROM c WHERE c['to'].city = @city AND c.state = @state",
        values: |shop, random| {
            let city = shop.city(random.next());
            vec![("@city", json!(city)), ("@state", json!(shop.state(random.next())))]
        },
    },
    Query {
        name: "grouped",
        scope: Within::All,
        text: "SELECT c['to'].city AS city, COUNT(1) AS n, MAX(c.total) AS most FROM c \
               WHERE c.placed = @day GROUP BY c['to'].city",
        values: |shop, random| vec![("@day", json!(shop.day(random.next())))],
    },
    Query {
        name: "distinct",
        scope: Within::All,
        text: "SELECT DISTINCT VALUE c.tier FROM c",
        values: none,
    },
    Query {
        name: "sold",
        scope: Within::All,
        text: "SELECT c.id, l.price FROM c JOIN l IN c.lines WHERE l.article = @article",
        values: |shop, random| vec![("@article", json!(shop.article(random.next())))],
    },
    Query {
        name: "tagged",
        scope: Within::All,
        text: "SELECT TOP 30 c.id, c.tags FROM c WHERE ARRAY_CONTAINS(c.tags, @tag)",
        values: |_, random| vec![("@tag", json!(format!("tag-{}", random.next() % 40)))],
    },
    Query {
        name: "beginning with",
        scope: Within::All,
        text: "SELECT c.id, UPPER(c.name) AS name FROM c WHERE STARTSWITH(c.mail, @start)",
        values: |_, random| vec![("@start", json!(format!("c{:02x}", random.next() % 256)))],
    },
    Query {
        name: "containing",
        scope: Within::All,
        text: "SELECT VALUE c.id FROM c WHERE c.type = 'customer' AND CONTAINS(c.name, @part)",
        values: |_, random| vec![("@part", json!(format!("{:03x}", random.next() % 4096)))],
    },
    Query {
        name: "a page of customers",
        scope: Within::All,
        text: "SELECT * FROM c WHERE IS_DEFINED(c.mail) ORDER BY c.mail OFFSET 20 LIMIT 10",
        values: none,
    },
    Query {
        name: "the dearest",
        scope: Within::All,
        text: "SELECT TOP 20 c.id, c.total FROM c ORDER BY c.total DESC",
        values: none,
    },
    Query {
        name: "the latest",
        scope: Within::All,
        text: "SELECT TOP 50 * FROM c WHERE c.placed < @day ORDER BY c.placed DESC",
        values: |shop, random| vec![("@day", json!(shop.day(300 + random.next() % 300)))],
    },
    Query {
        name: "an inner query",
        scope: Within::Customer,
        text: "SELECT c.id, ARRAY(SELECT VALUE l.article FROM l IN c.lines) AS articles FROM c \
               WHERE EXISTS(SELECT VALUE l FROM l IN c.lines WHERE l.price > 150)",
        values: none,
    },
    Query {
        name: "as clients merge orders",
        scope: Within::Range,
        text: "SELECT c._rid, [{\"item\": c.placed}] AS orderByItems, c AS payload FROM c \
               WHERE (c.total > 900) AND (true) ORDER BY c.placed DESC",
        values: none,
    },
    Query {
        name: "as clients merge sums",
        scope: Within::Range,
        text: "SELECT VALUE [{\"item\": SUM(c.total)}] FROM c WHERE c.placed = @day",
        values: |shop, random| vec![("@day", json!(shop.day(random.next())))],
    },
];

/// With composite indexes only.
static ORDERS: &[Query] = &[Query {
    name: "the latest orders",
    scope: Within::All,
    text: "SELECT TOP 40 * FROM c WHERE c.type = 'order' ORDER BY c.placed DESC",
    values: none,
}];

/// What is not a query.
static OTHERS: &[Kind] = &[
    Kind { name: "read", status: 200, make: |mix, random| mix.read(random) },
    Kind {
        name: "read what is not there",
        status: 404,
        make: |mix, random| mix.sorted.read(&mix.shop.key(mix.shop.any_customer(random)), "none"),
    },
    Kind {
        name: "create",
        status: 201,
        make: |mix, _| {
            let number = mix.created.next();
            let (customer, id) = (number % mix.shop.customers, format!("new-{number:08}"));
            mix.sorted.create(&mix.shop.key(customer), mix.shop.order_body(customer, &id, number))
        },
    },
    Kind {
        name: "delete",
        status: 204,
        make: |mix, _| {
            let (number, customers) = (mix.deleted.next(), mix.shop.customers);
            let (customer, order) = (number % customers, number / customers);
            mix.sorted.delete(&mix.shop.key(customer), &mix.shop.order(customer, order))
        },
    },
    Kind { name: "upsert", status: 200, make: |mix, random| mix.write(random, Container::upsert) },
    Kind {
        name: "replace",
        status: 200,
        make: |mix, random| {
            let (customer, id, body) = mix.changed(random);
            mix.plain.replace(&mix.shop.key(customer), &id, body)
        },
    },
    Kind {
        name: "patch",
        status: 200,
        make: |mix, random| {
            let shop = &mix.shop;
            let customer = shop.any_customer(random);
            let id = shop.order(customer, random.next());
            let changes = json!({"operations": [
                {"op": "set", "path": "/state", "value": shop.state(random.next())},
                {"op": "incr", "path": "/changes", "value": 1},
            ]});
            mix.plain.patch(&shop.key(customer), &id, changes.to_string())
        },
    },
    Kind { name: "batch", status: 200, make: |mix, random| mix.batch(random) },
    Kind {
        name: "procedure",
        status: 200,
        make: |mix, random| {
            let customer = mix.shop.any_customer(random);
            let arguments = json!([mix.shop.customer(customer), 1]).to_string();
            mix.plain.execute(PROCEDURE, &mix.shop.key(customer), arguments)
        },
    },
    Kind {
        name: "trigger",
        status: 200,
        make: |mix, random| mix.write(random, Container::upsert).with_pre_trigger(TRIGGER),
    },
    Kind {
        name: "function",
        status: 200,
        make: |mix, random| {
            let text = "SELECT c.id, udf.taxed(c.total) AS due FROM c WHERE c.type = 'order'";
            let key = mix.shop.key(mix.shop.any_customer(random));
            mix.plain.query(text, &[], -1).with_key(&key)
        },
    },
    Kind {
        name: "changes",
        status: 200,
        make: |mix, random| {
            let key = mix.shop.key(mix.shop.any_customer(random));
            mix.plain.changes(&Scope::Key(&key), Changes::FromBeginning, 100)
        },
    },
    Kind {
        name: "all changes",
        status: 200,
        make: |mix, _| mix.plain.changes(&Scope::Range("0"), Changes::FromBeginning, 100),
    },
    Kind { name: "list", status: 200, make: |mix, _| mix.plain.list(None, 100) },
    Kind {
        name: "plan",
        status: 200,
        make: |mix, random| {
            // Those that clients have rewritten come from a plan already.
            let queries = QUERIES.iter().filter(|query| query.scope != Within::Range);
            let at = random.next() as usize % queries.clone().count();
            let query = queries.clone().nth(at).expect("it is below their number");
            let request = mix.query(&mix.plain, query, random);
            request.with(headers::IS_QUERY_PLAN, "True").with(headers::QUERY_FEATURES, FEATURES)
        },
    },
    Kind {
        name: "a mistake",
        status: 400,
        make: |mix, _| mix.plain.query("SELECT * FORM c WHERE c.total > 1", &[], -1),
    },
];

const PROCEDURE: &str = "addToOrders";
const PROCEDURE_TEXT: &str = r#"function addToOrders(id, count) {
  var shop = getContext().getCollection();
  shop.readDocument(shop.getAltLink() + "/docs/" + id, function (error, customer) {
    if (error) throw error;
    customer.orders += count;
    shop.replaceDocument(customer._self, customer, function (error) {
      if (error) throw error;
      getContext().getResponse().setBody(customer.orders);
    });
  });
}"#;

const TRIGGER: &str = "markChange";
const TRIGGER_TEXT: &str = r#"function markChange() {
  var request = getContext().getRequest(), order = request.getBody();
  order.isMarked = true;
  request.setBody(order);
}"#;

const FUNCTION: &str = "taxed";
const FUNCTION_TEXT: &str = "function taxed(total) { return total * 1.2; }";

impl Mix {
    /// A shop of so many customers.
    pub fn new(customers: u64) -> Mix {
        Mix {
            shop: Shop { customers },
            sorted: container("orders"),
            plain: container("shop"),
            created: Numbers::default(),
            deleted: Numbers::default(),
        }
    }

    /// Creates the containers and what scripts they have.
    pub async fn create(&self, client: &Client) -> anyhow::Result<()> {
        let composite = |one: &str, other: &str| json!([{"path": one, "order": "ascending"}, {"path": other, "order": "ascending"}]);
        let definition = json!({
            "id": self.sorted.name(),
            "partitionKey": {"paths": ["/customerId"], "kind": "Hash", "version": 2},
            "indexingPolicy": {
                "indexingMode": "consistent", "automatic": true,
                "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/note/?"}],
                "compositeIndexes": [
                    composite("/customerId", "/placed"), composite("/type", "/placed"),
                    composite("/state", "/placed"),
                ],
            },
        });
        client.send(&self.sorted.create_with(&definition, None)).await?;
        client.send(&self.plain.create_keyed_by("/customerId", None)).await?;
        client.send(&self.plain.create_procedure(PROCEDURE, PROCEDURE_TEXT)).await?;
        client.send(&self.plain.create_function(FUNCTION, FUNCTION_TEXT)).await?;
        let when = Trigger { is_before: true, operation: "All" };
        client.send(&self.plain.create_trigger(TRIGGER, TRIGGER_TEXT, when)).await?;
        Ok(())
    }

    /// How many kinds of requests there are.
    pub fn kinds() -> usize {
        OTHERS.len() + 2 * QUERIES.len() + ORDERS.len()
    }

    /// The name of a kind, the status of its answers, and a request of it.
    pub fn request(&self, kind: usize, random: &Random) -> (&'static str, u16, Request) {
        if let Some(kind) = OTHERS.get(kind) {
            return (kind.name, kind.status, (kind.make)(self, random));
        }
        let sorted = QUERIES.iter().chain(ORDERS).map(|query| (query, &self.sorted));
        let plain = QUERIES.iter().map(|query| (query, &self.plain));
        let (query, container) =
            sorted.chain(plain).nth(kind - OTHERS.len()).expect("a kind is below their number");
        (query.name, 200, self.query(container, query, random))
    }

    fn query(&self, container: &Container, query: &Query, random: &Random) -> Request {
        let customer = self.shop.any_customer(random);
        let mut values = (query.values)(&self.shop, random);
        if query.text.contains("@customer") {
            values.push(("@customer", json!(self.shop.customer(customer))));
        }
        let request = container.query(query.text, &values, -1);
        match query.scope {
            Within::Customer => request.with_key(&self.shop.key(customer)),
            Within::All => request,
            Within::Range => request.with(headers::RANGE_ID, "0"),
        }
    }

    fn read(&self, random: &Random) -> Request {
        let number = random.next() % self.shop.count();
        self.plain.read(&key(&self.shop.key_text(number)), &self.shop.id(number))
    }

    /// An order that was there from the start, with new contents.
    fn changed(&self, random: &Random) -> (u64, String, String) {
        let (customer, number) = (self.shop.any_customer(random), random.next());
        let id = self.shop.order(customer, number);
        let body = self.shop.order_body(customer, &id, number);
        (customer, id, body)
    }

    fn write(
        &self,
        random: &Random,
        how: fn(&Container, &PartitionKey, String) -> Request,
    ) -> Request {
        let (customer, _, body) = self.changed(random);
        how(&self.plain, &self.shop.key(customer), body)
    }

    /// A new order, a change of another, and the first is gone again.
    fn batch(&self, random: &Random) -> Request {
        let (customer, changed, body) = self.changed(random);
        let id = format!("draft-{:016x}", random.next());
        let draft = self.shop.order_body(customer, &id, random.next());
        let operations = [
            Operation::Create(&draft),
            Operation::Replace(&changed, &body),
            Operation::Delete(&id),
        ];
        self.plain.batch(&self.shop.key(customer), &operations)
    }
}
