//! Creates at PostgreSQL: a table of items with a GIN index over their JSON, and who inserts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use crate::creates::SPREAD;
use crate::items::Data;
use crate::postgres::{Postgres, Session, Sessions};
use crate::slices::{Side, Slice};

const TABLE: &str =
    "CREATE TABLE items (pk text, id text, body jsonb NOT NULL, PRIMARY KEY (pk, id))";
const INDEX: &str = "CREATE INDEX items_body ON items USING gin (body) WITH (fastupdate = off)";
const INSERT: &str = "INSERT INTO items (pk, id, body) VALUES ($1, $2, $3::text::jsonb)";

/// The table. Everybody who inserts takes the next number.
#[derive(Default)]
pub struct Table {
    next: Arc<AtomicU64>,
}

impl Table {
    /// Makes it.
    pub async fn create(postgres: &Postgres) -> Result<Table> {
        let client = postgres.connect().await?;
        for statement in [TABLE, INDEX] {
            client.batch_execute(statement).await?;
        }
        Ok(Table::default())
    }

    /// Connections that insert, one insert per transaction, by prepared statements.
    pub async fn inserts(&self, postgres: &Postgres, connections: usize) -> Result<Inserts> {
        let sessions = postgres.sessions(INSERT, connections).await?;
        Ok(Inserts { sessions, next: self.next.clone() })
    }
}

/// How PostgreSQL is set up, for the report.
pub fn settings(postgres: &Postgres) -> Value {
    json!({"server": postgres.settings(), "table": TABLE, "index": INDEX, "statement": INSERT})
}

/// Open connections and what they insert.
pub struct Inserts {
    sessions: Sessions,
    next: Arc<AtomicU64>,
}

impl Inserts {
    /// How many there are.
    pub fn connections(&self) -> usize {
        self.sessions.connections()
    }
}

impl Side for Inserts {
    async fn slice(&self, time: Duration) -> Result<Slice> {
        let next = self.next.clone();
        let insert = move |session: Arc<Session>| {
            let number = next.fetch_add(1, Relaxed);
            insert(session, number)
        };
        self.sessions.slice(time, insert).await
    }
}

async fn insert(session: Arc<Session>, number: u64) -> Result<Duration> {
    let (key, id, body) = (SPREAD.key_text(number), SPREAD.id(number), SPREAD.body(number));
    let sent = Instant::now();
    session.0.execute(&session.1, &[&key, &id, &body]).await?;
    Ok(sent.elapsed())
}
