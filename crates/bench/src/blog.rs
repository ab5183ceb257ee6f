//! The data of the query benchmarks: a blog in the shape that copies what reads need.
//!
//! ```text
//! Blog       key /postId   20 000 posts, each with 25 comments and 24 likes: a million items
//! Activity   key /userId   100 users with 20 000 small items each: what they did, and when
//! ```
//!
//! Every item follows from its number. Numbers are the order in which items arrive, and that goes
//! around the logical partitions: the items of a post come over years, not one behind the other.
//! Dates have no regularity in the number, and no two items of a set share one, so the newest
//! hundred are the same hundred everywhere.

use std::fmt::Write;

use base::Random;

use crate::items::{Data, prose};

/// Comments and likes of a post.
const COMMENTS: u64 = 25;
const LIKES: u64 = 24;
/// A post and what belongs to it.
pub const ITEMS_PER_POST: u64 = 1 + COMMENTS + LIKES;
/// Posts of a user.
const POSTS_PER_USER: u64 = 28;
/// Posts with a tag, on average, and tags of a post.
const POSTS_PER_TAG: u64 = 50;
const TAGS: u64 = 3;
const CATEGORIES: u64 = 20;
const LANGUAGES: [&str; 2] = ["en", "de"];
/// Lengths of texts.
const TITLE_BYTES: usize = 40;
const POST_BYTES: usize = 560;
const COMMENT_BYTES: usize = 200;
/// Things of one user with one post.
const ITEMS_PER_TARGET: u64 = 25;

/// All dates lie in two years of months of 28 days, which takes no calendar.
pub const PERIOD_MS: u64 = 2 * 12 * 28 * 86_400_000;
const FIRST_YEAR: u64 = 2023;

/// Spreads numbers over a range that it does not divide.
const STRIDE: u64 = 7919;

/// Posts, comments and likes.
#[derive(Clone, Copy, Debug)]
pub struct Blog {
    /// How many posts there are.
    pub posts: u64,
}

/// What users did.
#[derive(Clone, Copy, Debug)]
pub struct Activity {
    /// How many users, each a logical partition.
    pub users: u64,
    /// Items of each.
    pub each: u64,
}

impl Blog {
    /// The id of a post, which is also its key.
    pub fn post(&self, post: u64) -> String {
        guid("post", post)
    }

    /// The id of a user.
    pub fn user(&self, user: u64) -> String {
        guid("user", user)
    }

    /// How many users have all their posts.
    pub fn users(&self) -> u64 {
        (self.posts / POSTS_PER_USER).max(1)
    }

    /// How many tags there are.
    pub fn tags(&self) -> u64 {
        (self.posts * TAGS / POSTS_PER_TAG).max(TAGS)
    }

    /// A tag.
    pub fn tag(&self, tag: u64) -> String {
        format!("tag-{tag:05}")
    }

    /// A language half of the posts are in.
    pub fn language(&self, number: u64) -> &'static str {
        LANGUAGES[(number % 2) as usize]
    }

    /// A stretch of time with this many comments, on average.
    pub fn stretch_ms(&self, comments: u64) -> u64 {
        PERIOD_MS * comments / (self.posts * COMMENTS).max(comments)
    }

    fn date(&self, number: u64) -> String {
        date(slot(number, self.count()))
    }

    fn write_post(&self, out: &mut String, post: u64) {
        let any = random("body", post);
        // Whose posts lie together in this order, so that they do not in the other.
        let user = (post * STRIDE % self.posts) / POSTS_PER_USER;
        let group = self.tags() / TAGS;
        let tag = |at: u64| self.tag(at * group + any.next() % group);
        let _ = write!(
            out,
            "{{\"id\":\"{id}\",\"type\":\"post\",\"postId\":\"{id}\",\"userId\":\"{}\",\
             \"userUsername\":\"{}\",\"title\":\"{}\",\"content\":\"{}\",\"category\":\"{}\",\
             \"language\":\"{}\",\"tags\":[\"{}\",\"{}\",\"{}\"],\"commentCount\":{COMMENTS},\
             \"likeCount\":{LIKES},\"creationDate\":\"{}\"}}",
            self.user(user),
            username(user),
            prose(any.next(), TITLE_BYTES),
            prose(any.next(), POST_BYTES),
            format_args!("category-{:02}", any.next() % CATEGORIES),
            self.language(post),
            tag(0),
            tag(1),
            tag(2),
            self.date(post),
            id = self.post(post),
        );
    }

    fn write_reaction(&self, out: &mut String, number: u64) {
        let any = random("body", number);
        let user = any.next() % self.users();
        let is_comment = number / self.posts <= COMMENTS;
        let _ = write!(
            out,
            "{{\"id\":\"{}\",\"type\":\"{}\",\"postId\":\"{}\",\"userId\":\"{}\",\
             \"userUsername\":\"{}\",",
            self.id(number),
            if is_comment { "comment" } else { "like" },
            self.key_text(number),
            self.user(user),
            username(user),
        );
        if is_comment {
            let _ = write!(out, "\"content\":\"{}\",", prose(any.next(), COMMENT_BYTES));
        }
        let _ = write!(out, "\"creationDate\":\"{}\"}}", self.date(number));
    }
}

impl Data for Blog {
    fn count(&self) -> u64 {
        self.posts * ITEMS_PER_POST
    }

    fn id(&self, number: u64) -> String {
        if number < self.posts { self.post(number) } else { guid("item", number) }
    }

    fn key_text(&self, number: u64) -> String {
        self.post(number % self.posts)
    }

    fn body(&self, number: u64) -> String {
        let mut body = String::with_capacity(1100);
        match number < self.posts {
            true => self.write_post(&mut body, number),
            false => self.write_reaction(&mut body, number),
        }
        body
    }
}

impl Activity {
    /// The id of a user, which is the key.
    pub fn user(&self, user: u64) -> String {
        guid("user", user)
    }

    /// How many posts a user had to do with.
    pub fn targets(&self) -> u64 {
        (self.each / ITEMS_PER_TARGET).max(1)
    }

    /// The id of one of them.
    pub fn target(&self, user: u64, target: u64) -> String {
        guid("target", user * self.targets() + target)
    }
}

impl Data for Activity {
    fn count(&self) -> u64 {
        self.users * self.each
    }

    fn id(&self, number: u64) -> String {
        guid("item", number)
    }

    fn key_text(&self, number: u64) -> String {
        self.user(number % self.users)
    }

    fn body(&self, number: u64) -> String {
        let any = random("body", number);
        let (user, at) = (number % self.users, number / self.users);
        let action = ["view", "like", "comment", "share"][(any.next() % 4) as usize];
        format!(
            "{{\"id\":\"{}\",\"type\":\"{action}\",\"userId\":\"{}\",\"postId\":\"{}\",\
             \"device\":\"device-{}\",\"seconds\":{},\"creationDate\":\"{}\"}}",
            self.id(number),
            self.user(user),
            self.target(user, at * STRIDE % self.targets()),
            any.next() % 8,
            any.next() % 600,
            date(slot(number, self.count())),
        )
    }
}

/// A moment as items have it.
pub fn date(ms: u64) -> String {
    let (seconds, days) = (ms / 1000, ms / 86_400_000);
    format!(
        "{}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        FIRST_YEAR + days / (12 * 28),
        days / 28 % 12 + 1,
        days % 28 + 1,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
        ms % 1000
    )
}

/// The time of an item among `count`: no two have the same.
fn slot(number: u64, count: u64) -> u64 {
    let step = PERIOD_MS / count;
    number * STRIDE % count * step + random("date", number).next() % step
}

fn username(user: u64) -> String {
    format!("user-{:08x}", random("name", user).next() >> 32)
}

fn guid(kind: &str, number: u64) -> String {
    random(kind, number).guid()
}

/// Numbers for one purpose and item.
fn random(kind: &str, number: u64) -> Random {
    let kind = kind.bytes().fold(0, |sum, byte| sum << 8 | u64::from(byte));
    Random::from_seed(Random::from_seed(kind ^ number << 40).next() ^ number)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::*;

    fn items(data: &dyn Data) -> Vec<Value> {
        let numbers = 0..data.count();
        numbers.map(|number| serde_json::from_str(&data.body(number)).unwrap()).collect()
    }

    fn distinct(items: &[Value], name: &str) -> usize {
        items.iter().map(|item| item[name].as_str().unwrap()).collect::<HashSet<_>>().len()
    }

    #[test]
    fn a_blog() {
        let blog = Blog { posts: 200 };
        let items = items(&blog);
        let count = |test: &dyn Fn(&Value) -> bool| items.iter().filter(|item| test(item)).count();
        assert_eq!(items.len(), 10_000);
        assert_eq!((distinct(&items, "id"), distinct(&items, "creationDate")), (10_000, 10_000));
        let post = blog.post(17);
        assert_eq!(count(&|item| item["postId"] == post && item["type"] == "comment"), 25);
        let user = blog.user(3);
        assert_eq!(count(&|item| item["userId"] == user && item["type"] == "post"), 28);
        let tag = blog.tag(5);
        let with_tag = count(&|item| {
            item["tags"].as_array().is_some_and(|tags| tags.iter().any(|other| *other == tag))
        });
        assert!((25..100).contains(&with_tag), "{with_tag}");
        assert_eq!(count(&|item| item["language"] == "de"), 100);
        for (number, item) in (0..).zip(&items) {
            assert_eq!(item["id"], blog.id(number));
            assert_eq!(item["postId"], blog.key_text(number));
        }
    }

    #[test]
    fn activity() {
        let activity = Activity { users: 10, each: 500 };
        let items = items(&activity);
        assert_eq!((items.len(), distinct(&items, "creationDate")), (5000, 5000));
        let user = activity.user(3);
        let own: Vec<Value> = items.iter().filter(|item| item["userId"] == user).cloned().collect();
        assert_eq!((own.len(), distinct(&own, "creationDate")), (500, 500));
        let target = activity.target(3, 7);
        assert_eq!(own.iter().filter(|item| item["postId"] == target).count(), 25);
    }

    #[test]
    fn dates_sort_as_text() {
        assert_eq!(date(0), "2023-01-01T00:00:00.000Z");
        assert_eq!(date(PERIOD_MS - 1), "2024-12-28T23:59:59.999Z");
        let texts: Vec<String> = (0..1000).map(|at| date(at * (PERIOD_MS / 1000))).collect();
        assert!(texts.is_sorted());
    }
}
