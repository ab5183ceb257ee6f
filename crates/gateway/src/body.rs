//! Reading request bodies: bounded in bytes and in time.
//!
//! A body over the limit is refused as soon as that is known and never kept. What is still on its
//! way of a refused body is read and thrown away for a moment, because a client that is still
//! sending would see a reset connection instead of the answer.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::Body;
use hyper::header::{CONTENT_LENGTH, EXPECT};
use tokio::time::{Instant, timeout, timeout_at};

use crate::config::Limits;
use crate::error::{Result, invalid};

/// What is thrown away of a refused body before the connection is.
const DRAIN_BYTES_MAX: usize = 16 * 1024 * 1024;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Reads all of a body. One that arrived in one piece is not copied.
pub async fn read<B>(headers: &HeaderMap, mut body: B, limits: &Limits) -> Result<Bytes>
where
    B: Body<Data = Bytes> + Unpin,
{
    if announced(headers).is_some_and(|length| length > limits.body_bytes_max) {
        return Err(too_large(limits));
    }
    let deadline = Instant::now() + limits.body_timeout;
    let Some(first) = next(&mut body, deadline, limits).await? else { return Ok(Bytes::new()) };
    let mut total = first.len();
    let mut joined: Option<BytesMut> = None;
    while let Some(chunk) = next(&mut body, deadline, limits).await? {
        total += chunk.len();
        if total > limits.body_bytes_max {
            return Err(too_large(limits));
        }
        joined.get_or_insert_with(|| start(&first, headers, limits)).extend_from_slice(&chunk);
    }
    match total > limits.body_bytes_max {
        true => Err(too_large(limits)),
        false => Ok(joined.map_or(first, BytesMut::freeze)),
    }
}

/// A buffer for the rest of a body, as large as the client says within the limit.
fn start(first: &[u8], headers: &HeaderMap, limits: &Limits) -> BytesMut {
    let expected = announced(headers).unwrap_or(2 * first.len()).min(limits.body_bytes_max);
    let mut joined = BytesMut::with_capacity(expected.max(first.len()));
    joined.extend_from_slice(first);
    joined
}

fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn next<B>(body: &mut B, deadline: Instant, limits: &Limits) -> Result<Option<Bytes>>
where
    B: Body<Data = Bytes> + Unpin,
{
    let until = deadline.min(Instant::now() + limits.body_pause_timeout);
    loop {
        match timeout_at(until, body.frame()).await {
            Err(_) => return Err(engine::Error::Timeout.into()),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(invalid("The request body ended before its length.")),
            // Trailers carry nothing for us.
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Throws away what is left of a refused body, within bounds. A client that waits to be asked for
/// its body has not sent any.
pub async fn drain<B>(headers: &HeaderMap, body: &mut B)
where
    B: Body<Data = Bytes> + Unpin,
{
    if body.is_end_stream() || headers.contains_key(EXPECT) {
        return;
    }
    let mut left = DRAIN_BYTES_MAX;
    let _ = timeout(DRAIN_TIMEOUT, async {
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(length) else { return };
            left = rest;
        }
    })
    .await;
}

fn too_large(limits: &Limits) -> crate::error::Failure {
    let limit = limits.body_bytes_max.min(model::limits::BODY_BYTES_MAX);
    engine::Error::TooLarge(format!("Request size is too large: the limit is {limit} bytes."))
        .into()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;
    use hyper::header::HeaderValue;

    use super::*;
    use crate::error::Error;

    /// A body of chunks; `None` never arrives.
    struct Chunks(VecDeque<Option<Bytes>>);

    impl Body for Chunks {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
            match self.0.pop_front() {
                None => Poll::Ready(None),
                Some(None) => {
                    self.0.push_front(None);
                    Poll::Pending
                }
                Some(Some(chunk)) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
            }
        }
    }

    fn limits() -> Limits {
        Limits {
            body_bytes_max: 10,
            body_pause_timeout: Duration::from_millis(20),
            ..Limits::default()
        }
    }

    async fn read_chunks(chunks: &[Option<&'static str>]) -> Result<Bytes> {
        let chunks =
            chunks.iter().map(|chunk| chunk.map(|text| Bytes::from_static(text.as_bytes())));
        read(&HeaderMap::new(), Chunks(chunks.collect()), &limits()).await
    }

    #[tokio::test]
    async fn bodies_at_the_limit() {
        assert_eq!(read_chunks(&[]).await.unwrap(), "");
        assert_eq!(read_chunks(&[Some("12345")]).await.unwrap(), "12345");
        assert_eq!(read_chunks(&[Some("123456789")]).await.unwrap(), "123456789");
        assert_eq!(read_chunks(&[Some("12345"), Some("67890")]).await.unwrap(), "1234567890");
        for chunks in [&[Some("12345"), Some("67890"), Some("1")][..], &[Some("12345678901")]] {
            let error = read_chunks(chunks).await.unwrap_err().error;
            assert!(matches!(error, Error::Engine(engine::Error::TooLarge(_))), "{error}");
        }
    }

    #[tokio::test]
    async fn a_body_that_stops_arriving() {
        let error = read_chunks(&[Some("1"), None]).await.unwrap_err().error;
        assert!(matches!(error, Error::Engine(engine::Error::Timeout)), "{error}");
    }

    #[tokio::test]
    async fn an_announced_body_over_the_limit_is_not_read() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("11"));
        let result = read(&headers, Chunks(VecDeque::from([None])), &limits()).await;
        assert!(result.is_err());
    }
}
