//! The data: posts of about a kilobyte that count their comments, each a logical partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Result, ensure};
use client::{Client, Container, Operation, Request};
use serde_json::Value;

use crate::items::{Data, container, key, prose};
use crate::process::{Server, fill};
use crate::script::texts::{CREATE_COMMENT, REHEARSE};

/// How many posts there are.
pub const POSTS: u64 = 1000;
const POST_BYTES: usize = 800;
const COMMENT_BYTES: usize = 200;

/// The posts, without comments.
#[derive(Clone, Copy, Debug)]
struct Posts;

impl Posts {
    fn body_with(&self, post: u64, comments: u64) -> String {
        let id = self.id(post);
        format!(
            "{{\"id\":\"{id}\",\"postId\":\"{id}\",\"type\":\"post\",\"userId\":\"user-{:04}\",\
             \"title\":\"{}\",\"content\":\"{}\",\"likeCount\":0,\"commentCount\":{comments}}}",
            post % 100,
            prose(post, 40),
            prose(!post, POST_BYTES),
        )
    }
}

impl Data for Posts {
    fn count(&self) -> u64 {
        POSTS
    }

    fn id(&self, number: u64) -> String {
        format!("post-{number:08}")
    }

    fn key_text(&self, number: u64) -> String {
        self.id(number)
    }

    fn body(&self, number: u64) -> String {
        self.body_with(number, 0)
    }
}

/// Ever new comments, to each post in turn.
#[derive(Clone, Debug)]
pub struct Comments {
    container: Container,
    next: Arc<AtomicU64>,
}

impl Comments {
    /// Creates a container of posts that have no comments.
    pub async fn create(server: &Server, name: &'static str) -> Result<Comments> {
        let (client, container) = (server.client()?, container(name));
        client.send(&container.create_keyed_by("/postId", None)).await?;
        fill(server, name, Posts).await?;
        CREATE_COMMENT.create_procedure(&client, &container).await?;
        Ok(Comments { container, next: Arc::default() })
    }

    /// The container.
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// The next comment by the procedure.
    pub fn by_procedure(&self) -> Request {
        let number = self.next.fetch_add(1, Relaxed);
        let id = Posts.id(number % POSTS);
        let arguments = format!("[\"{id}\",{{{}}}]", comment(number));
        self.container.execute(CREATE_COMMENT.id, &key(&id), arguments)
    }

    /// The rehearsal of the next comment: nothing is stored.
    pub fn rehearsal(&self, number: u64) -> Request {
        let id = Posts.id(number % POSTS);
        self.container.execute(REHEARSE.id, &key(&id), format!("[\"{id}\"]"))
    }

    /// The next comment by a batch. Like the procedure it is answered without items.
    pub fn by_batch(&self) -> Request {
        let number = self.next.fetch_add(1, Relaxed);
        let (post, id) = (number % POSTS, Posts.id(number % POSTS));
        let replaced = Posts.body_with(post, number / POSTS + 1);
        let created = format!("{{{},\"postId\":\"{id}\"}}", comment(number));
        let operations = [Operation::Replace(&id, &replaced), Operation::Create(&created)];
        self.container.batch(&key(&id), &operations).minimal()
    }

    /// Checks that all comments are there, and counted.
    pub async fn check(&self, client: &Client) -> Result<()> {
        let made = self.next.load(Relaxed) as f64;
        let counted = "SELECT VALUE SUM(c.commentCount) FROM c";
        let there = "SELECT VALUE COUNT(1) FROM c WHERE c.type = 'comment'";
        for text in [counted, there] {
            let found = number(client, &self.container, text).await?;
            ensure!(found == made, "{text}: {found} of {made} comments");
        }
        Ok(())
    }
}

/// The members of a comment but its post.
fn comment(number: u64) -> String {
    let user = number % 997;
    format!(
        "\"id\":\"comment-{number:012}\",\"type\":\"comment\",\"userId\":\"user-{user:04}\",\
         \"userUsername\":\"name-{user:04}\",\"content\":\"{}\",\
         \"creationDate\":\"2024-01-01T00:00:00.000Z\"",
        prose(number, COMMENT_BYTES),
    )
}

/// The number that a query comes to, over all its pages.
pub async fn number(client: &Client, container: &Container, text: &str) -> Result<f64> {
    let mut sum = 0.0;
    let mut continuation: Option<String> = None;
    loop {
        let mut request = container.query(text, &[], -1);
        if let Some(token) = continuation {
            request = request.with(client::headers::CONTINUATION, token);
        }
        let reply = client.send(&request).await?;
        sum += reply.rows()?.iter().filter_map(Value::as_f64).sum::<f64>();
        continuation = reply.continuation().map(str::to_owned);
        if continuation.is_none() {
            return Ok(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_and_comments_are_json() {
        let post: Value = serde_json::from_str(&Posts.body_with(7, 3)).unwrap();
        assert_eq!(post["postId"], "post-00000007");
        assert_eq!(post["commentCount"], 3);
        let body = Posts.body(7);
        assert!((900..1100).contains(&body.len()), "{}", body.len());
        let comment: Value = serde_json::from_str(&format!("{{{}}}", comment(12))).unwrap();
        assert_eq!(comment["id"], "comment-000000000012");
    }

    #[test]
    fn comments_go_around_the_posts() {
        let comments = Comments { container: container("c"), next: Arc::new(POSTS.into()) };
        let bytes = |request: Request| {
            let key = client::Key::development();
            String::from_utf8(request.to_bytes(&key, "localhost", "now")).unwrap()
        };
        let batch = bytes(comments.by_batch());
        assert!(batch.contains("\"commentCount\":2}"), "{batch}");
        assert!(batch.contains(": [\"post-00000000\"]\r\n"), "{batch}");
        let procedure = bytes(comments.by_procedure());
        assert!(procedure.contains(": [\"post-00000001\"]\r\n"), "{procedure}");
        assert!(procedure.contains("\r\n\r\n[\"post-00000001\",{\"id\":\"comment-"), "{procedure}");
    }
}
