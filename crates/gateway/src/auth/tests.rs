//! Signatures recomputed by hand: what clients sign, and what must not pass.

use hyper::header::{HeaderName, HeaderValue};

use super::*;
use crate::error::Error;
use crate::path::Path;
use crate::token::Grant;

const KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const READ_KEY: &str = "cmVhZA==";
const DATE_TEXT: &str = "Sun, 15 Nov 2026 17:57:23 GMT";
const DATE_SECS: u64 = 1_794_765_443;

fn authenticator() -> Authenticator {
    let mut keys = Keys::single(Key::parse(KEY).unwrap());
    keys.secondary_read_only = Some(Key::parse(READ_KEY).unwrap());
    Authenticator::new(keys, Tokens::new(&[7; 32]), true)
}

fn signature(key: &str, text: &str) -> String {
    let signature = STANDARD.encode(Key::parse(key).unwrap().sign(&[text.as_bytes()]));
    percent::Component(&format!("type=master&ver=1.0&sig={signature}")).to_string()
}

fn header(name: &'static str, text: &str) -> (HeaderName, HeaderValue) {
    (HeaderName::from_static(name), HeaderValue::from_str(text).unwrap())
}

fn authenticate_at(
    now_secs: u64,
    path: &str,
    headers: &[(HeaderName, HeaderValue)],
) -> Result<Access> {
    let uri = path.parse().unwrap();
    let path = Path::parse(&uri).unwrap();
    let headers = headers.iter().cloned().collect();
    let signed = path.signed();
    let claim = Claim { method: &Method::GET, headers: &headers, signed, now_secs };
    authenticator().authenticate(&claim)
}

fn authenticate(path: &str, headers: &[(HeaderName, HeaderValue)]) -> Result<Access> {
    authenticate_at(DATE_SECS, path, headers)
}

fn is_unauthorized(result: Result<Access>) -> bool {
    matches!(result.unwrap_err().error, Error::Unauthorized(_))
}

fn is_forbidden(result: Result<Access>) -> bool {
    matches!(result.unwrap_err().error, Error::Engine(engine::Error::Forbidden(_)))
}

#[test]
fn a_signed_request() {
    let text = "get\ndocs\ndbs/d1/colls/C1/docs/é\nsun, 15 nov 2026 17:57:23 gmt\n\n";
    let path = "/dbs/d1/colls/C1/docs/%C3%A9/";
    let date = header("x-ms-date", DATE_TEXT);
    let signed = header("authorization", &signature(KEY, text));
    assert!(matches!(authenticate(path, &[date.clone(), signed.clone()]), Ok(Access::Full)));
    assert!(is_unauthorized(authenticate("/dbs/d1/colls/c1/docs/%C3%A9", &[date.clone(), signed])));
    let lower = signature(KEY, text).replace("%3D", "%3d").replace("%2F", "%2f");
    let lower = header("authorization", &lower);
    assert!(matches!(authenticate(path, &[date.clone(), lower]), Ok(Access::Full)));
    let read_only = header("authorization", &signature(READ_KEY, text));
    assert!(matches!(authenticate(path, &[date, read_only]), Ok(Access::ReadOnly)));
}

#[test]
fn dates_in_either_header() {
    let low = DATE_TEXT.to_lowercase();
    let ours = header("x-ms-date", DATE_TEXT);
    let standard = header("date", DATE_TEXT);
    let forms = [
        (format!("get\ndbs\n\n{low}\n\n"), vec![ours.clone()]),
        (format!("get\ndbs\n\n{low}\n\n"), vec![ours.clone(), standard.clone()]),
        (format!("get\ndbs\n\n{low}\n{low}\n"), vec![ours, standard.clone()]),
        (format!("get\ndbs\n\n\n{low}\n"), vec![standard]),
    ];
    for (text, mut headers) in forms {
        headers.push(header("authorization", &signature(KEY, &text)));
        assert!(authenticate("/dbs", &headers).is_ok(), "{text:?}");
    }
}

#[test]
fn clock_skew_at_its_limit() {
    let text = format!("get\ndbs\n\n{}\n\n", DATE_TEXT.to_lowercase());
    let headers = [header("x-ms-date", DATE_TEXT), header("authorization", &signature(KEY, &text))];
    for (now, is_ok) in [
        (DATE_SECS + CLOCK_SKEW_SECONDS_MAX, true),
        (DATE_SECS - CLOCK_SKEW_SECONDS_MAX, true),
        (DATE_SECS + CLOCK_SKEW_SECONDS_MAX + 1, false),
        (DATE_SECS - CLOCK_SKEW_SECONDS_MAX - 1, false),
    ] {
        let result = authenticate_at(now, "/dbs", &headers);
        assert_eq!(result.is_ok(), is_ok, "{now}");
        assert!(is_ok || is_forbidden(result));
    }
}

#[test]
fn rid_links_are_signed_alone_and_lower_cased() {
    let path = "/dbs/a80SAA==/colls/a80SAIAAAAM=/pkranges";
    let text = format!("get\npkranges\na80saiaaaam=\n{}\n\n", DATE_TEXT.to_lowercase());
    let headers = [header("x-ms-date", DATE_TEXT), header("authorization", &signature(KEY, &text))];
    assert!(authenticate(path, &headers).is_ok());
}

#[test]
fn refused_credentials() {
    assert!(is_unauthorized(authenticate("/dbs", &[])));
    for text in [
        "",
        "type=master",
        "type=master&ver=1.0&sig=!!",
        "type=master&ver=1.0&sig=",
        "type=master&ver=2.0&sig=AAAA",
        "type=aad&ver=1.0&sig=x.y.z",
        "type=sas&ver=1.0&sig=x",
        "type=resource&ver=1&sig=AAAA;AAAA;",
        &format!("type=master&ver=1.0&sig={}", "A".repeat(2000)),
    ] {
        let headers = [header("authorization", text), header("x-ms-date", DATE_TEXT)];
        assert!(is_unauthorized(authenticate("/dbs", &headers)), "{text}");
    }
}

#[test]
fn a_signature_without_any_date() {
    let headers = [header("authorization", &signature(KEY, "get\ndbs\n\n\n\n"))];
    assert!(is_unauthorized(authenticate("/dbs", &headers)));
}

#[test]
fn tokens_until_they_expire() {
    let grant = Grant {
        permission: String::new(),
        container: "c".to_owned(),
        child: None,
        is_writable: false,
        partition_key: None,
        expires_secs: DATE_SECS + 10,
    };
    let token = Tokens::new(&[7; 32]).seal(&grant);
    let token = header("authorization", &percent::Component(&token).to_string());
    let headers = [token];
    assert!(matches!(authenticate_at(DATE_SECS + 9, "/", &headers), Ok(Access::Granted(_))));
    assert!(is_forbidden(authenticate_at(DATE_SECS + 10, "/", &headers)));
}
