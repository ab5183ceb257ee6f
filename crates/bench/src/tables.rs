//! What is queried at PostgreSQL: a table per set, loaded by COPY, and who asks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use base::Random;
use bytes::Bytes;
use futures_util::SinkExt;
use serde_json::Value;
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Client, Row};

use crate::items::Data;
use crate::postgres::{Postgres, Session, Sessions};
use crate::queries::{Draw, Query, Set, Sizes};
use crate::report::Report;
use crate::slices::{Side, Slice};

/// For reading: storage without a penalty for random access, and no compiler between a short query
/// and its rows.
pub const SETTINGS: [(&str, &str); 6] = [
    ("shared_buffers", "4GB"),
    ("random_page_cost", "1.1"),
    ("effective_cache_size", "8GB"),
    ("work_mem", "64MB"),
    ("maintenance_work_mem", "512MB"),
    ("jit", "off"),
];

/// Bytes that are sent at once.
const COPY_BYTES: usize = 1 << 18;

/// Has PostgreSQL read a table and its indexes into its buffers.
pub async fn warm(postgres: &Postgres, set: Set) -> Result<()> {
    let client = postgres.connect().await?;
    let warm = format!(
        "CREATE EXTENSION IF NOT EXISTS pg_prewarm; SELECT pg_prewarm('{name}'); \
         SELECT pg_prewarm(indexrelid) FROM pg_index WHERE indrelid = '{name}'::regclass",
        name = set.name()
    );
    Ok(client.batch_execute(&warm).await?)
}

/// Makes the table of a set, unless it is there already.
pub async fn load(postgres: &Postgres, set: Set, sizes: &Sizes, report: &mut Report) -> Result<()> {
    let client = postgres.connect().await?;
    let loaded = "CREATE TABLE IF NOT EXISTS loaded (name text PRIMARY KEY, description text)";
    client.batch_execute(loaded).await?;
    let description = format!("{} {:?}", sizes.describe(set), set.indexes());
    let select = "SELECT description FROM loaded WHERE name = $1";
    let found = client.query_opt(select, &[&set.name()]).await?;
    if found.is_some_and(|row| row.get::<_, String>(0) == description) {
        return Ok(());
    }
    let started = Instant::now();
    create(&client, set, &*sizes.data(set)).await.context(set.name())?;
    let insert = "INSERT INTO loaded VALUES ($1, $2) \
                  ON CONFLICT (name) DO UPDATE SET description = excluded.description";
    client.execute(insert, &[&set.name(), &description]).await?;
    let seconds = started.elapsed().as_secs_f64();
    report.note(format!("{}: PostgreSQL loaded and indexed in {seconds:.0} s", set.name()));
    Ok(())
}

async fn create(client: &Client, set: Set, data: &dyn Data) -> Result<()> {
    let name = set.name();
    client
        .batch_execute(&format!(
            "DROP TABLE IF EXISTS {name}; DELETE FROM loaded WHERE name = '{name}'; \
             CREATE TABLE {name} (pk text, id text, doc jsonb NOT NULL)"
        ))
        .await?;
    copy(client, name, data).await?;
    client.batch_execute(&format!("ALTER TABLE {name} ADD PRIMARY KEY (pk, id)")).await?;
    for index in set.indexes() {
        client.batch_execute(&format!("CREATE INDEX ON {name} USING {index}")).await?;
    }
    client.batch_execute(&format!("VACUUM ANALYZE {name}")).await?;
    // What loading has left to write must not be written while somebody measures.
    client.batch_execute("CHECKPOINT").await?;
    Ok(())
}

/// Our data has neither tabs nor backslashes, so it needs no escapes.
async fn copy(client: &Client, name: &str, data: &dyn Data) -> Result<()> {
    let sink = client.copy_in::<_, Bytes>(&format!("COPY {name} (pk, id, doc) FROM STDIN")).await?;
    let mut sink = std::pin::pin!(sink);
    let mut lines = String::with_capacity(COPY_BYTES + 2048);
    for number in 0..data.count() {
        let (key, id, body) = (data.key_text(number), data.id(number), data.body(number));
        for part in [&key, "\t", &id, "\t", &body, "\n"] {
            lines.push_str(part);
        }
        if lines.len() >= COPY_BYTES {
            sink.send(Bytes::from(std::mem::take(&mut lines))).await?;
        }
    }
    sink.send(Bytes::from(lines)).await?;
    sink.finish().await?;
    Ok(())
}

/// Load: a query with ever new parameters.
pub struct Asking {
    sessions: Sessions,
    query: &'static Query,
    sizes: Sizes,
}

impl Asking {
    /// Connections that have prepared the query.
    pub async fn of(
        postgres: &Postgres,
        query: &'static Query,
        sizes: Sizes,
        connections: usize,
    ) -> Result<Asking> {
        let sessions = postgres.sessions(query.statement, connections).await?;
        Ok(Asking { sessions, query, sizes })
    }

    /// Rows of the query by what tells them apart, sorted.
    pub async fn rows(&self, draw: &Draw) -> Result<Vec<String>> {
        let rows = ask(self.sessions.first(), draw).await?;
        let mut rows = rows.iter().map(tell_apart).collect::<Result<Vec<String>>>()?;
        rows.sort_unstable();
        Ok(rows)
    }
}

impl Side for Asking {
    async fn slice(&self, time: Duration) -> Result<Slice> {
        let (query, sizes) = (self.query, self.sizes);
        let random = Arc::new(Random::from_entropy());
        let once = move |session: Arc<Session>| {
            let random = random.clone();
            async move {
                let draw = (query.draw)(&sizes, &random);
                let sent = Instant::now();
                ask(&session, &draw).await?;
                Ok(sent.elapsed())
            }
        };
        self.sessions.slice(time, once).await.context(query.name)
    }
}

async fn ask((client, statement): &Session, draw: &Draw) -> Result<Vec<Row>> {
    let values = draw.values.iter().map(|value| value as &(dyn ToSql + Sync));
    Ok(client.query(statement, &values.collect::<Vec<_>>()).await?)
}

fn tell_apart(row: &Row) -> Result<String> {
    let mut cells = Vec::new();
    for at in 0..row.len() {
        cells.push(match *row.columns()[at].type_() {
            Type::JSONB => row.try_get::<_, Json>(at)?.0["id"].as_str().unwrap_or("").to_owned(),
            Type::INT8 => row.try_get::<_, i64>(at)?.to_string(),
            _ => row.try_get::<_, String>(at)?,
        });
    }
    Ok(cells.join(" "))
}

/// JSON as it comes: a version, then text.
struct Json(Value);

impl<'a> FromSql<'a> for Json {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Json, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Json(serde_json::from_slice(raw.get(1..).unwrap_or_default())?))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::JSONB
    }
}
