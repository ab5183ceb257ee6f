//! Addresses that need no key: for load balancers, orchestrators and Prometheus.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};

use crate::Gateway;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Is the process alive?
    Health,
    /// Should it get requests?
    Ready,
    /// What has it done?
    Metrics,
    /// Is this the account's endpoint? Some load balancers ask with `HEAD /`.
    Endpoint,
}

impl Probe {
    /// The probe a request is, if it is one.
    pub fn of(parts: &Parts) -> Option<Probe> {
        let is_head = parts.method == Method::HEAD;
        if parts.method != Method::GET && !is_head {
            return None;
        }
        match parts.uri.path() {
            "/_cosmolabe/health" => Some(Probe::Health),
            "/_cosmolabe/ready" => Some(Probe::Ready),
            "/_cosmolabe/metrics" => Some(Probe::Metrics),
            "/" if is_head => Some(Probe::Endpoint),
            _ => None,
        }
    }

    /// The answer.
    pub fn answer(self, gateway: &Gateway) -> Response<Full<Bytes>> {
        match self {
            Probe::Health => json(StatusCode::OK, r#"{"status":"ok"}"#),
            Probe::Endpoint => json(StatusCode::OK, ""),
            Probe::Ready if gateway.is_stopping() => {
                json(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"stopping"}"#)
            }
            Probe::Ready => json(StatusCode::OK, r#"{"status":"ready"}"#),
            Probe::Metrics => {
                let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                respond(StatusCode::OK, kind, gateway.metrics().text(&gateway.engine.usage()))
            }
        }
    }
}

fn json(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    respond(status, crate::headers::JSON.clone(), body)
}

fn respond(status: StatusCode, kind: HeaderValue, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    #[test]
    fn which_requests_are_probes() {
        let probe = |method: &str, path: &str| {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            Probe::of(&request.into_parts().0)
        };
        assert_eq!(probe("GET", "/_cosmolabe/health"), Some(Probe::Health));
        assert_eq!(probe("GET", "/_cosmolabe/metrics?x=1"), Some(Probe::Metrics));
        assert_eq!(probe("HEAD", "/"), Some(Probe::Endpoint));
        assert_eq!(probe("GET", "/"), None);
        assert_eq!(probe("POST", "/_cosmolabe/ready"), None);
    }
}
