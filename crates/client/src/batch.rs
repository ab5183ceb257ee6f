//! Several operations in one request, and what became of each.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{Error, Reply};

/// One operation of a batch or bulk request. Bodies are JSON texts.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// A new item.
    Create(&'a str),
    /// A new item, or a new version of the one that is there.
    Upsert(&'a str),
    /// A new version of an item.
    Replace(&'a str, &'a str),
    /// No item any more.
    Delete(&'a str),
}

impl Operation<'_> {
    /// Appends the operation; `key` is the JSON array of its partition key, where it needs one.
    pub(crate) fn write(&self, out: &mut String, key: Option<&str>) {
        let (word, id, body) = match self {
            Operation::Create(body) => ("Create", None, Some(body)),
            Operation::Upsert(body) => ("Upsert", None, Some(body)),
            Operation::Replace(id, body) => ("Replace", Some(id), Some(body)),
            Operation::Delete(id) => ("Delete", Some(id), None),
        };
        out.push_str("{\"operationType\":\"");
        out.push_str(word);
        out.push('"');
        if let Some(id) = id {
            out.push_str(&format!(",\"id\":{}", json!(id)));
        }
        if let Some(key) = key {
            out.push_str(&format!(",\"partitionKey\":{}", json!(key)));
        }
        if let Some(body) = body {
            out.push_str(",\"resourceBody\":");
            out.push_str(body);
        }
        out.push('}');
    }
}

/// What became of one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationResult {
    /// Its status; 424 if it was undone because of another.
    pub status: u16,
    /// The etag of the item, quotes included.
    pub etag: Option<String>,
    /// The item.
    pub body: Option<Value>,
    /// The price in RU.
    pub charge: f64,
    /// How long a client should wait before it asks again, if the server says so.
    pub retry_after: Option<Duration>,
}

impl Reply {
    /// The results of a batch or bulk request, one per operation and in their order.
    pub fn results(&self) -> Result<Vec<OperationResult>, Error> {
        let body = self.json()?;
        let rows = body.as_array().ok_or_else(|| Error::Malformed("no array".into()))?;
        rows.iter().map(result).collect()
    }
}

fn result(row: &Value) -> Result<OperationResult, Error> {
    let status = row["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok());
    Ok(OperationResult {
        status: status.ok_or_else(|| Error::Malformed("no statusCode".into()))?,
        etag: row["eTag"].as_str().map(str::to_owned),
        body: row.get("resourceBody").cloned(),
        charge: row["requestCharge"].as_f64().unwrap_or(0.0),
        retry_after: row["retryAfterMilliseconds"].as_u64().map(Duration::from_millis),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_on_the_wire() {
        let check = |operation: Operation<'_>, key, expect: Value| {
            let mut text = String::new();
            operation.write(&mut text, key);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expect);
        };
        let body = r#"{"id":"a"}"#;
        let create = json!({"operationType": "Create", "resourceBody": {"id": "a"}});
        check(Operation::Create(body), None, create);
        let delete = json!({"operationType": "Delete", "id": "\"", "partitionKey": "[1]"});
        check(Operation::Delete("\""), Some("[1]"), delete);
        let replace = json!({"operationType": "Replace", "id": "a", "resourceBody": {"id": "a"}});
        check(Operation::Replace("a", body), None, replace);
    }

    #[test]
    fn results_on_the_wire() {
        let refused =
            json!({"statusCode": 429, "requestCharge": 0.38, "retryAfterMilliseconds": 7});
        let result = result(&refused).unwrap();
        assert_eq!((result.status, result.charge), (429, 0.38));
        assert_eq!((result.retry_after, result.etag), (Some(Duration::from_millis(7)), None));
    }
}
