//! The queries: what they ask of us, what they ask of PostgreSQL, and what they must come to.
//!
//! Both texts mean the same rows. PostgreSQL's is what somebody who knows it would write, for the
//! indexes that somebody who knows it would make ([`Set::indexes`]).

use base::Random;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::blog::{Activity, Blog, PERIOD_MS, date};
use crate::items::Data;

/// What items a query is over: a container of ours, a table of PostgreSQL's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Posts with their comments and likes.
    Blog,
    /// What users did, with the default indexes.
    Activity,
    /// The same, with an index for the order of their dates.
    Sorted,
}

impl Set {
    /// The name of container and table.
    pub fn name(self) -> &'static str {
        match self {
            Set::Blog => "blog",
            Set::Activity => "activity",
            Set::Sorted => "sorted",
        }
    }

    /// The container.
    pub fn definition(self) -> Value {
        let (path, composites): (_, &[[&str; 2]]) = match self {
            Set::Blog => (
                "/postId",
                &[["/type", "/creationDate"], ["/userId", "/type"], ["/language", "/category"]],
            ),
            Set::Activity => ("/userId", &[]),
            Set::Sorted => ("/userId", &[["/userId", "/creationDate"]]),
        };
        let key = json!({"paths": [path], "kind": "Hash", "version": 2});
        let mut definition = json!({"id": self.name(), "partitionKey": key});
        if !composites.is_empty() {
            let index = |paths: &[&str; 2]| {
                json!(paths.map(|path| json!({"path": path, "order": "ascending"})))
            };
            let indexes: Vec<Value> = composites.iter().map(index).collect();
            definition["indexingPolicy"] = json!({
                "indexingMode": "consistent", "automatic": true,
                "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/\"_etag\"/?"}],
                "compositeIndexes": indexes,
            });
        }
        definition
    }

    /// PostgreSQL's indexes beside the primary key `(pk, id)`.
    pub fn indexes(self) -> &'static [&'static str] {
        match self {
            Set::Blog => &[
                "gin (doc jsonb_path_ops)",
                "btree (pk, (doc->>'type'))",
                "btree ((doc->>'userId'), (doc->>'type'))",
                "btree ((doc->>'type'), (doc->>'creationDate'))",
                "btree ((doc->>'language'), (doc->>'category'))",
            ],
            Set::Activity => &["btree ((doc->>'creationDate'))"],
            Set::Sorted => &["btree (pk, (doc->>'creationDate'))"],
        }
    }
}

/// How large the sets are.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Of the blog.
    pub blog: Blog,
    /// Of the other two.
    pub activity: Activity,
}

impl Sizes {
    /// The items of a set.
    pub fn data(&self, set: Set) -> Box<dyn Data> {
        match set {
            Set::Blog => Box::new(self.blog),
            Set::Activity | Set::Sorted => Box::new(self.activity),
        }
    }

    /// What is in a set, in words.
    pub fn describe(&self, set: Set) -> String {
        match set {
            Set::Blog => format!("{:?}", self.blog),
            Set::Activity | Set::Sorted => format!("{:?}", self.activity),
        }
    }
}

/// What one execution asks for.
#[derive(Clone, Debug)]
pub struct Draw {
    /// The partition key, if the query is within one.
    pub key: Option<String>,
    /// The parameters, in order.
    pub values: Vec<String>,
}

/// A query.
#[derive(Debug)]
pub struct Query {
    /// Its name in the report.
    pub name: &'static str,
    /// What it does.
    pub title: &'static str,
    /// What it is over.
    pub set: Set,
    /// The text for us.
    pub text: &'static str,
    /// The text for PostgreSQL, with `$1` for the first parameter.
    pub statement: &'static str,
    /// The names of the parameters in our text, in PostgreSQL's order.
    pub parameters: &'static [&'static str],
    /// The properties that tell rows apart, in the order of PostgreSQL's columns; none if a row is
    /// a plain value.
    pub columns: &'static [&'static str],
    /// The parameters of one execution, uniform over the data.
    pub draw: fn(&Sizes, &Random) -> Draw,
    /// Our rate, as a multiple of PostgreSQL's.
    pub bar: f64,
}

/// The queries by the names that `--only` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// Equality within a partition: 25 rows
    Comments,
    /// Equality across partitions: 28 rows
    PostsOfUser,
    /// Filter, ORDER BY, TOP 100 across partitions
    FrontPage,
    /// The same from some date on
    OlderPosts,
    /// COUNT of some 700 items
    CountLikes,
    /// COUNT of some 3,000 items
    CountComments,
    /// JOIN into an array: some 50 rows
    Tags,
    /// GROUP BY over 10,000 items
    Groups,
    /// Key, range, ORDER BY, TOP 100 in a partition of 20,000
    Recent,
    /// The same with a composite index
    RecentSorted,
}

impl Name {
    /// The query.
    pub fn query(self) -> &'static Query {
        match self {
            Name::Comments => &COMMENTS,
            Name::PostsOfUser => &POSTS_OF_USER,
            Name::FrontPage => &FRONT_PAGE,
            Name::OlderPosts => &OLDER_POSTS,
            Name::CountLikes => &COUNT_LIKES,
            Name::CountComments => &COUNT_COMMENTS,
            Name::Tags => &TAGS,
            Name::Groups => &GROUPS,
            Name::Recent => &RECENT,
            Name::RecentSorted => &RECENT_SORTED,
        }
    }
}

static COMMENTS: Query = Query {
    name: "comments",
    title: "equality in a partition, 25 rows",
    set: Set::Blog,
    text: "SELECT * FROM c WHERE c.postId = @post AND c.type = 'comment'",
    statement: "SELECT doc FROM blog WHERE pk = $1 AND doc->>'type' = 'comment'",
    parameters: &["@post"],
    columns: &["id"],
    draw: |sizes, random| {
        let post = sizes.blog.post(random.next() % sizes.blog.posts);
        Draw { key: Some(post.clone()), values: vec![post] }
    },
    bar: 2.0,
};

static POSTS_OF_USER: Query = Query {
    name: "posts_of_user",
    title: "equality across partitions, 28 rows",
    set: Set::Blog,
    text: "SELECT * FROM c WHERE c.type = 'post' AND c.userId = @user",
    statement: "SELECT doc FROM blog WHERE doc->>'type' = 'post' AND doc->>'userId' = $1",
    parameters: &["@user"],
    columns: &["id"],
    draw: draw_user,
    bar: 1.0,
};

static FRONT_PAGE: Query = Query {
    name: "front_page",
    title: "filter, ORDER BY, TOP 100 across partitions",
    set: Set::Blog,
    text: "SELECT TOP 100 * FROM c WHERE c.type = 'post' ORDER BY c.creationDate DESC",
    statement: "SELECT doc FROM blog WHERE doc->>'type' = 'post' \
                ORDER BY doc->>'creationDate' DESC LIMIT 100",
    parameters: &[],
    columns: &["id"],
    draw: |_, _| Draw { key: None, values: Vec::new() },
    bar: 1.0,
};

static OLDER_POSTS: Query = Query {
    name: "older_posts",
    title: "filter, range, ORDER BY, TOP 100 across partitions",
    set: Set::Blog,
    text: "SELECT TOP 100 * FROM c WHERE c.type = 'post' AND c.creationDate < @before \
           ORDER BY c.creationDate DESC",
    statement: "SELECT doc FROM blog WHERE doc->>'type' = 'post' AND doc->>'creationDate' < $1 \
                ORDER BY doc->>'creationDate' DESC LIMIT 100",
    parameters: &["@before"],
    columns: &["id"],
    draw: |_, random| Draw { key: None, values: vec![date(random.next() % PERIOD_MS)] },
    bar: 1.0,
};

static COUNT_LIKES: Query = Query {
    name: "count_likes",
    title: "COUNT of some 700 items",
    set: Set::Blog,
    text: "SELECT VALUE COUNT(1) FROM c WHERE c.type = 'like' AND c.userId = @user",
    statement: "SELECT count(*) FROM blog WHERE doc->>'type' = 'like' AND doc->>'userId' = $1",
    parameters: &["@user"],
    columns: &[],
    draw: draw_user,
    bar: 1.0,
};

/// What the larger count counts.
const COUNTED: u64 = 3000;

static COUNT_COMMENTS: Query = Query {
    name: "count_comments",
    title: "COUNT of some 3000 items",
    set: Set::Blog,
    text: "SELECT VALUE COUNT(1) FROM c WHERE c.type = 'comment' \
           AND c.creationDate >= @from AND c.creationDate < @to",
    statement: "SELECT count(*) FROM blog WHERE doc->>'type' = 'comment' \
                AND doc->>'creationDate' >= $1 AND doc->>'creationDate' < $2",
    parameters: &["@from", "@to"],
    columns: &[],
    draw: |sizes, random| Draw {
        key: None,
        values: draw_stretch(random, sizes.blog.stretch_ms(COUNTED)),
    },
    bar: 1.0,
};

static TAGS: Query = Query {
    name: "tags",
    title: "JOIN into an array, some 50 rows",
    set: Set::Blog,
    text: "SELECT c.id, t FROM c JOIN t IN c.tags WHERE t = @tag",
    statement: "SELECT id, t FROM blog, jsonb_array_elements_text(doc->'tags') AS t \
                WHERE doc @> jsonb_build_object('tags', jsonb_build_array($1::text)) AND t = $1",
    parameters: &["@tag"],
    columns: &["id", "t"],
    draw: |sizes, random| Draw {
        key: None,
        values: vec![sizes.blog.tag(random.next() % sizes.blog.tags())],
    },
    bar: 1.0,
};

static GROUPS: Query = Query {
    name: "groups",
    title: "GROUP BY over 10 000 items",
    set: Set::Blog,
    text: "SELECT c.category, COUNT(1) AS n FROM c WHERE c.language = @language \
           GROUP BY c.category",
    statement: "SELECT doc->>'category', count(*) FROM blog WHERE doc->>'language' = $1 \
                GROUP BY doc->>'category'",
    parameters: &["@language"],
    columns: &["category", "n"],
    draw: |sizes, random| Draw {
        key: None,
        values: vec![sizes.blog.language(random.next()).to_owned()],
    },
    bar: 1.0,
};

const RECENT_TEXT: &str = "SELECT TOP 100 * FROM c WHERE c.userId = @user \
     AND c.creationDate >= @from AND c.creationDate < @to ORDER BY c.creationDate DESC";

static RECENT: Query = Query {
    name: "recent",
    title: "key, range, ORDER BY, TOP 100",
    set: Set::Activity,
    text: RECENT_TEXT,
    statement: "SELECT doc FROM activity WHERE pk = $1 AND doc->>'creationDate' >= $2 \
                AND doc->>'creationDate' < $3 ORDER BY doc->>'creationDate' DESC LIMIT 100",
    parameters: &["@user", "@from", "@to"],
    columns: &["id"],
    draw: draw_recent,
    bar: 2.0,
};

static RECENT_SORTED: Query = Query {
    name: "recent_sorted",
    title: "key, range, ORDER BY, TOP 100, composite index",
    set: Set::Sorted,
    text: RECENT_TEXT,
    statement: "SELECT doc FROM sorted WHERE pk = $1 AND doc->>'creationDate' >= $2 \
                AND doc->>'creationDate' < $3 ORDER BY doc->>'creationDate' DESC LIMIT 100",
    parameters: &["@user", "@from", "@to"],
    columns: &["id"],
    draw: draw_recent,
    bar: 2.0,
};

/// Equality within a partition of 20 000 items. It has no counterpart at PostgreSQL: it is asked of
/// containers of different sizes.
pub static WITH_TARGET: Query = Query {
    name: "with_target",
    title: "key and equality, 25 rows",
    set: Set::Activity,
    text: "SELECT * FROM c WHERE c.userId = @user AND c.postId = @post",
    statement: "",
    parameters: &["@user", "@post"],
    columns: &["id"],
    draw: |sizes, random| {
        let activity = &sizes.activity;
        let user = random.next() % activity.users;
        let target = activity.target(user, random.next() % activity.targets());
        let key = activity.user(user);
        Draw { key: Some(key.clone()), values: vec![key, target] }
    },
    bar: 0.0,
};

fn draw_user(sizes: &Sizes, random: &Random) -> Draw {
    Draw { key: None, values: vec![sizes.blog.user(random.next() % sizes.blog.users())] }
}

/// A user and a month.
fn draw_recent(sizes: &Sizes, random: &Random) -> Draw {
    let user = sizes.activity.user(random.next() % sizes.activity.users);
    let values = [vec![user.clone()], draw_stretch(random, PERIOD_MS / 24)].concat();
    Draw { key: Some(user), values }
}

/// The beginning and the end of some stretch of time.
fn draw_stretch(random: &Random, ms: u64) -> Vec<String> {
    let from = random.next() % (PERIOD_MS - ms).max(1);
    vec![date(from), date(from + ms)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_used_and_drawn() {
        let sizes = Sizes { blog: Blog { posts: 200 }, activity: Activity { users: 2, each: 100 } };
        let queries = Name::value_variants().iter().map(|name| name.query());
        for query in queries.chain([&WITH_TARGET]) {
            let draw = (query.draw)(&sizes, &Random::from_seed(1));
            assert_eq!(draw.values.len(), query.parameters.len(), "{}", query.name);
            for (at, name) in query.parameters.iter().enumerate() {
                assert!(query.text.contains(name), "{}", query.name);
                let is_there = query.statement.contains(&format!("${}", at + 1));
                assert!(is_there || query.statement.is_empty(), "{}", query.name);
            }
        }
    }
}
