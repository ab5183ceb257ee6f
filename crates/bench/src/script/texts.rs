//! The JavaScript of the benchmark.

use anyhow::{Context, Result};
use client::{Client, Container};

/// A stored procedure or a function.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// What it is called.
    pub id: &'static str,
    /// One JavaScript function.
    pub text: &'static str,
}

impl Script {
    /// Makes it a stored procedure of a container.
    pub async fn create_procedure(&self, client: &Client, container: &Container) -> Result<()> {
        let request = container.create_procedure(self.id, self.text);
        client.send(&request).await.with_context(|| format!("procedure {}", self.id))?;
        Ok(())
    }

    /// Makes it a function of a container.
    pub async fn create_function(&self, client: &Client, container: &Container) -> Result<()> {
        let request = container.create_function(self.id, self.text);
        client.send(&request).await.with_context(|| format!("function {}", self.id))?;
        Ok(())
    }
}

/// Nothing.
pub const EMPTY: Script = Script { id: "empty", text: "function empty() {}" };

/// Counts a comment in its post, and adds it.
pub const CREATE_COMMENT: Script = Script {
    id: "createComment",
    text: r#"function createComment(postId, comment) {
  var posts = getContext().getCollection();
  posts.readDocument(posts.getAltLink() + "/docs/" + postId, function (error, post) {
    if (error) throw error;
    post.commentCount += 1;
    posts.replaceDocument(post._self, post, function (error) {
      if (error) throw error;
      comment.postId = postId;
      posts.createDocument(posts.getSelfLink(), comment);
    });
  });
}"#,
};

/// Reads a post, asks for all items of its partition, changes and adds some, takes that back, and
/// returns what it saw: every kind of operation, and nothing to keep.
pub const REHEARSE: Script = Script {
    id: "rehearse",
    text: r#"function rehearse(postId) {
  var posts = getContext().getCollection();
  posts.readDocument(posts.getAltLink() + "/docs/" + postId, function (error, post) {
    if (error) throw error;
    posts.queryDocuments(posts.getSelfLink(), "SELECT * FROM c", function (error, items) {
      if (error) throw error;
      var draft = Object.assign({}, post, { id: postId + "-draft" });
      posts.createDocument(posts.getSelfLink(), draft, function (error, made) {
        if (error) throw error;
        posts.deleteDocument(made._self, function (error) {
          if (error) throw error;
          getContext().getResponse().setBody([post, items.length]);
        });
      });
    });
  });
}"#,
};

/// Adds one to a counter.
pub const INCREMENT: Script = Script {
    id: "increment",
    text: r#"function increment(id) {
  var counters = getContext().getCollection();
  counters.readDocument(counters.getAltLink() + "/docs/" + id, function (error, counter) {
    if (error) throw error;
    counter.value += 1;
    counters.replaceDocument(counter._self, counter, function (error) {
      if (error) throw error;
      getContext().getResponse().setBody(counter.value);
    });
  });
}"#,
};

/// Never ends.
pub const ENDLESS: &str = "function endless() { while (true) {} }";

/// Never ends either, inside one call of a built-in function.
pub const ENDLESS_BUILT_IN: &str =
    "function endless() { Array.prototype.indexOf.call({ length: 9007199254740991 }, 1); }";

/// What counts as large.
pub const LARGE: u64 = 50_000;

/// Whether a number is large.
pub const IS_LARGE: Script =
    Script { id: "isLarge", text: "function isLarge(score) { return score > 50000; }" };

/// Whether a number of an item is.
pub const IS_LARGE_ITEM: Script =
    Script { id: "isLargeItem", text: "function isLargeItem(item) { return item.score > 50000; }" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mean_the_same_number() {
        for script in [IS_LARGE, IS_LARGE_ITEM] {
            assert!(script.text.contains(&format!("> {LARGE};")), "{}", script.id);
        }
    }
}
