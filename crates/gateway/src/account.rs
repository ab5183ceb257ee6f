//! The account document: what a client reads first, and where it learns to go next.
//!
//! Clients leave the address they were given for the ones in this document, so those are made of
//! the request: the host the client itself used, never the address we listen on.

use hyper::header::HOST;
use hyper::http::request::Parts;
use serde_json::{Value, json};

use crate::headers;
use crate::server::Origin;

/// A region that clients know, so that none wonders where it is.
const REGION: &str = "South Central US";

/// Limits of the query language, as a document inside a string; clients parse it.
const QUERY_ENGINE: &str = concat!(
    r#"{"maxSqlQueryInputLength":524288,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":2000,"#,
    r#""maxLogicalOrPerSqlQuery":2000,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,"#,
    r#""queryMaxInMemorySortDocumentCount":500,"maxQueryRequestTimeoutFraction":0.9,"#,
    r#""sqlAllowNonFiniteNumbers":false,"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,"#,
    r#""sqlAllowScalarSubQuery":true,"allowNewKeywords":true,"sqlAllowLike":true,"#,
    r#""sqlAllowGroupByClause":true,"maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,"#,
    r#""sqlDisableOptimizationFlags":0,"sqlAllowTop":true,"enableSpatialIndexing":true}"#,
);

/// The document of an account that is reached at `endpoint`.
pub fn document(id: &str, endpoint: &str) -> Value {
    let location = json!([{"name": REGION, "databaseAccountEndpoint": endpoint}]);
    json!({
        "_self": "",
        "id": id,
        "_rid": format!("{id}.documents"),
        "media": "//media/",
        "addresses": "//addresses/",
        "_dbs": "//dbs/",
        "writableLocations": location,
        "readableLocations": location,
        "enableMultipleWriteLocations": false,
        "continuousBackupEnabled": false,
        "enableNRegionSynchronousCommit": false,
        "enablePerPartitionFailoverBehavior": false,
        "userReplicationPolicy":
            {"asyncReplication": false, "minReplicaSetSize": 1, "maxReplicasetSize": 4},
        "userConsistencyPolicy": {"defaultConsistencyLevel": "Session"},
        "systemReplicationPolicy": {"minReplicaSetSize": 1, "maxReplicasetSize": 4},
        "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
        "queryEngineConfiguration": QUERY_ENGINE,
    })
}

/// The address at which the client reached us, with a slash at the end.
pub fn endpoint(request: &Parts, origin: Origin, trust_forwarded: bool) -> String {
    let forwarded = |name| headers::text(&request.headers, name).filter(|_| trust_forwarded);
    // A chain of proxies appends; the first entry is the client's own.
    let first = |list: &'_ str| list.split(',').next().unwrap_or_default().trim().to_owned();
    let scheme = match (forwarded(&headers::X_FORWARDED_PROTO).map(first), origin.is_tls) {
        (Some(scheme), _) if scheme == "https" || scheme == "http" => scheme,
        (_, true) => "https".to_owned(),
        (_, false) => "http".to_owned(),
    };
    let authority = request.uri.authority().map(|authority| authority.as_str().to_owned());
    let host = forwarded(&headers::X_FORWARDED_HOST)
        .map(first)
        .or(authority)
        .or_else(|| headers::text(&request.headers, &HOST).map(str::to_owned))
        .filter(|host| !host.is_empty())
        .unwrap_or_else(|| origin.local.to_string());
    format!("{scheme}://{host}/")
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    const ORIGIN: fn(bool) -> Origin =
        |is_tls| Origin { is_tls, local: "127.0.0.1:8081".parse().unwrap() };

    fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn trap_04_endpoints_are_those_the_client_used() {
        let host = [("host", "db.test:99")];
        let check = |uri: &str, headers: &[(&str, &str)], is_tls, trust, expect: &str| {
            assert_eq!(endpoint(&parts(uri, headers), ORIGIN(is_tls), trust), expect);
        };
        check("/", &host, false, false, "http://db.test:99/");
        check("/", &host, true, false, "https://db.test:99/");
        check("http://h2.test:5/", &[], false, false, "http://h2.test:5/");
        check("/", &[], false, false, "http://127.0.0.1:8081/");
        let proxied = [
            ("host", "inner:1"),
            ("x-forwarded-proto", "https, http"),
            ("x-forwarded-host", "outer.test"),
        ];
        check("/", &proxied, false, false, "http://inner:1/");
        check("/", &proxied, false, true, "https://outer.test/");
    }

    #[test]
    fn trap_09_fields_that_clients_need() {
        let document = document("cosmolabe", "http://x/");
        for field in ["_self", "_rid", "id", "writableLocations", "readableLocations"] {
            assert!(document.get(field).is_some(), "{field}");
        }
        assert_eq!(document["writableLocations"][0]["databaseAccountEndpoint"], "http://x/");
        let engine = document["queryEngineConfiguration"].as_str().unwrap();
        assert!(serde_json::from_str::<Value>(engine).unwrap().is_object());
    }

    #[test]
    fn trap_10_no_thin_client_locations() {
        let text = document("cosmolabe", "http://x/").to_string();
        assert!(!text.to_lowercase().contains("thinclient"));
    }
}
