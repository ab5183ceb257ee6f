//! Sending requests over connections that stay open.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::request::Request;
use crate::sign::{Key, date_now};
use crate::{Error, Reply, headers};

/// How long a request may take, unless somebody says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Sends requests to one server under one key. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    endpoint: String,
    key: Key,
    timeout: Duration,
    http: legacy::Client<HttpConnector, Full<Bytes>>,
}

impl Client {
    /// A client of the server at an endpoint like `http://127.0.0.1:8081`.
    pub fn new(endpoint: &str, key: Key) -> Result<Client, Error> {
        let endpoint = endpoint.trim_end_matches('/');
        let authority = endpoint.strip_prefix("http://");
        if authority.is_none_or(|rest| rest.is_empty() || rest.contains('/')) {
            return Err(Error::BadEndpoint(endpoint.to_owned()));
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let http = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Client { endpoint: endpoint.to_owned(), key, timeout: TIMEOUT, http })
    }

    /// The client with another limit to how long a request may take.
    pub fn with_timeout(self, timeout: Duration) -> Client {
        Client { timeout, ..self }
    }

    /// Sends a request. Statuses of 400 and more are [`Error::Refused`]; 207 and 304 are replies.
    pub async fn send(&self, request: &Request) -> Result<Reply, Error> {
        let exchange = tokio::time::timeout(self.timeout, self.exchange(request));
        let reply = exchange.await.map_err(|_| Error::Timeout(self.timeout))??;
        match reply.status {
            ..400 => Ok(reply),
            _ => Err(Error::Refused(Box::new(reply))),
        }
    }

    async fn exchange(&self, request: &Request) -> Result<Reply, Error> {
        let response = self.http.request(self.sign(request)?).await.map_err(no_answer)?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(no_answer)?.to_bytes();
        Ok(Reply { status: head.status.as_u16(), headers: head.headers, body })
    }

    fn sign(&self, request: &Request) -> Result<hyper::Request<Full<Bytes>>, Error> {
        let date = date_now();
        let authorization = self.key.sign(request.verb, &request.link, &date);
        let mut signed = hyper::Request::builder()
            .method(request.verb.as_str())
            .uri(format!("{}{}", self.endpoint, request.link.path()))
            .header(AUTHORIZATION, authorization)
            .header(headers::DATE, date)
            .body(Full::new(request.body.clone()))
            .map_err(|error| Error::Malformed(error.to_string()))?;
        for (name, value) in &request.headers {
            let value = HeaderValue::from_str(value)
                .map_err(|error| Error::Malformed(format!("{name}: {error}")))?;
            signed.headers_mut().insert(HeaderName::from_static(name), value);
        }
        Ok(signed)
    }
}

fn no_answer(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::NoAnswer(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        let check = |endpoint: &str, is_good: bool| {
            assert_eq!(Client::new(endpoint, Key::development()).is_ok(), is_good, "{endpoint}");
        };
        check("http://127.0.0.1:8081", true);
        check("http://localhost:8081/", true);
        check("https://localhost:8081", false);
        check("http://", false);
        check("http://localhost/path", false);
        check("localhost:8081", false);
    }
}
