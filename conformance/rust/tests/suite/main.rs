//! Microsoft's Rust client against the server: HTTP/2 with prior knowledge, binary JSON bodies,
//! queries planned by the client.

mod changes;
mod items;
mod queries;
mod query_rows;
mod readme;
mod resources;

/// Declares a case: a test of its own that skips.toml can turn off.
macro_rules! case {
    ($name:ident, $body:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() -> cosmolabe_conformance::Outcome {
            let path = concat!(module_path!(), "::", stringify!($name));
            if cosmolabe_conformance::skipped(path.trim_start_matches("suite::")) {
                return Ok(());
            }
            let run: fn() -> futures::future::BoxFuture<'static, cosmolabe_conformance::Outcome> =
                || Box::pin($body);
            run().await
        }
    };
}
pub(crate) use case;
