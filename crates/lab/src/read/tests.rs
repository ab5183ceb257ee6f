//! Mistakes in workload files are shown with their lines.

use super::*;
use crate::workload::Published;

const GOOD: &str = r#"
name = "small"
seed = 7
drivers = { reads = 10 }

[[entities]]
name = "user"
count = 10
fields.id = { kind = "guid" }
fields.name = { kind = "word", length = 8 }

[[entities]]
name = "post"
per = "user"
count = { min = 1, max = 5 }
refs.editor = { entity = "user" }
fields.id = { kind = "guid" }
fields.label = { value = "${post.user.name}/${post.editor.name}" }

[[samples]]
name = "writer"
entity = "user"
counts = { post = 3 }

[[models]]
id = "m"

[[models.containers]]
name = "users"
partition_key = "/id"
procedures = [{ name = "touch", file = "touch.js" }]

[[models.items]]
entity = "user"
container = "users"
item = { id = "${user.id}", posts = { each = "p in user.post", item = "${p.label}" } }

[[models.pipelines]]
name = "p"
source = "users"
when = "change.id != ''"
[[models.pipelines.steps]]
read = "users"
id = "${change.id}"
key = "${change.id}"

[[models.checks]]
name = "names"
copies = { container = "users", sql = "SELECT c.id AS k, c.name AS v FROM c" }
sources = { container = "users", sql = "SELECT s.id AS k FROM s", tally = true }

[[patterns]]
id = "Q"
weight = "reads * 2"
published = { m = { ru = 1 } }
[[patterns.models.m]]
query = "users"
sql = "SELECT * FROM c WHERE c.id = @id"
parameters = { "@id" = "${writer.id}" }
as = "rows"
[[patterns.models.m]]
execute = "users"
for = "row in rows"
procedure = "touch"
key = "${row.id}"
arguments = ["${row.id}"]

[[sweeps]]
id = "posts"
sample = "writer"
child = "post"
points = [1, 2]

[[sweeps]]
id = "reading"
driver = "reads"
from = 1
to = 9
"#;

fn read(text: &str) -> Result<Workload, Mistake> {
    let beside = |name: &str| match name {
        "touch.js" => Ok("function touch() {}".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    Source { name: "w.toml".into(), text: text.to_owned(), beside: Box::new(beside) }.read()
}

#[test]
fn a_whole_file() {
    let workload = read(GOOD).unwrap();
    assert_eq!(workload.entities[1].parent, Some(0));
    assert_eq!(workload.models[0].containers[0].procedures[0].body, "function touch() {}");
    let published = workload.patterns[0].published[0].as_ref();
    assert_eq!(published.and_then(|published| published.ru), Some(1.0));
    assert!(!workload.patterns[0].only_reads());
    assert!(workload.patterns[0].models[0][0].mentions("writer"));
    assert!(!workload.patterns[0].models[0][1].mentions("writer"));
    let names: Vec<&str> = workload.samples.iter().map(|sample| &sample.name[..]).collect();
    assert_eq!(names, ["writer", "writer@post=1", "writer@post=2"]);
}

#[test]
fn bars_are_shares_of_published_times() {
    let published = |usual: &str, figures: &str| {
        let text = GOOD.replacen("seed = 7", &format!("seed = 7\n{usual}"), 1);
        let text = text.replacen("m = { ru = 1 }", &format!("m = {{ {figures} }}"), 1);
        read(&text).unwrap().patterns[0].published[0].clone().unwrap()
    };
    let check = |usual: &str, figures: &str, expect: Option<f64>| {
        assert_eq!(published(usual, figures).bar_ms, expect, "{usual} {figures}");
    };
    check("", "ms = 30", None);
    check("bar = 0.1", "ms = 30", Some(3.0));
    check("bar = 0.1", "ms = 30, bar = 0.5", Some(15.0));
    check("", "ms = 30, bar = 0.5", Some(15.0));
    check("bar = 0.1", "ru = 1", None);
    let expect = Published {
        ru: Some(5.71),
        expected_ru: Some(6.67),
        because: Some("it repeats another".into()),
        ..Published::default()
    };
    let figures = "ru = 5.71, expected = 6.67, because = 'it repeats another'";
    assert_eq!(published("", figures), expect);
}

/// Replaces a piece of the good file; the mistake must be on the line of the replacement.
fn check(old: &str, new: &str, expect: &str) {
    assert!(GOOD.contains(old), "{old}");
    let text = GOOD.replacen(old, new, 1);
    let mistake = read(&text).unwrap_err();
    let said = mistake.to_string();
    assert!(said.contains(expect), "{new}: {said}");
    let begin = line_of(GOOD, GOOD.find(old).unwrap());
    let lines = begin..=begin + new.lines().count().max(1) - 1;
    assert!(lines.contains(&mistake.line), "{new}: {said}, expected line {lines:?}"); // W2
}

#[test]
fn mistakes_are_shown_with_their_lines() {
    check("name = \"small\"", "name = \"small\"\ncolour = 1", "unknown field `colour`");
    check("seed = 7", "seed = ", "");
    check("seed = 7", "seed = 7\nscale = 0.0", "the scale is a number above 0");
    check("seed = 7", "seed = 7\nrepeat = 0", "at least 1");
    check("seed = 7", "seed = 7\nbar = 0.0", "the bar is a number above 0");
    check("{ ru = 1 }", "{ ru = 1, rue = 1 }", "unknown field `rue`");
    check("{ ru = 1 }", "{ ru = 1, expected = 0 }", "figures are numbers above 0");
    check("{ ru = 1 }", "{ ru = -1 }", "figures are numbers above 0");
    check("{ ru = 1 }", "{ ms = 1, because = 'x' }", "`because` says why `ru` is not met");
    check("{ ru = 1 }", "{ ru = 1, bar = 0.1 }", "`bar` is a share of `ms`");
    check("{ kind = \"word\", length = 8 }", "{ kind = \"words\" }", "there is no kind `words`");
    check("{ kind = \"word\", length = 8 }", "{ kind = \"word\" }", "needs a `length`");
    check("per = \"user\"", "per = \"usr\"", "there is no entity `usr` above; there are user");
    check("{ min = 1, max = 5 }", "{ min = 6, max = 5 }", "min 6 is above max 5");
    check("{ entity = \"user\" }", "{ entity = \"user\", skew = 1.0 }", "skew is from 0");
    check("${post.user.name}/", "${post.user.nam}/", "`user` has no field `nam`");
    check("counts = { post = 3 }", "counts = { user = 3 }", "`user` is not counted per `user`");
    check("partition_key = \"/id\"", "partition_key = \"id\"", "a path such as /id");
    check("file = \"touch.js\"", "file = \"none.js\"", "none.js: no such file");
    check("\"${user.id}\"", "\"${usr.id}\"", "`usr` means nothing here; there are user");
    check("\"${user.id}\"", "\"${user.id +}\"", "lacks a value");
    check("p in user.post\"", "p in user.id\"", "`id` is not an entity counted per `user`");
    check("source = \"users\"", "source = \"user\"", "there is no container `user` in this model");
    check("\"change.id != ''\"", "\"chang.id != ''\"", "`chang` means nothing here");
    check("\"reads * 2\"", "\"writes * 2\"", "`writes` means nothing here; there are reads");
    check("{ m = { ru = 1 } }", "{ n = { ru = 1 } }", "there is no model `n`");
    check("SELECT * FROM c WHERE", "SELECT * FORM c WHERE", "the query is wrong: ");
    check("\"@id\" = ", "\"id\" = ", "a parameter is called `@id`");
    check("row in rows", "row in row", "`row` means nothing here");
    check("procedure = \"touch\"", "procedure = \"tuch\"", "has no procedure `tuch`");
    check("arguments = [\"${row.id}\"]", "arguments = 1", "`arguments` is an array");
    check("points = [1, 2]", "points = [2, 1]", "rising");
    check("sample = \"writer\"", "sample = \"riter\"", "there is no sample `riter`");
}

#[test]
fn numbers_that_cannot_be() {
    check("\"reads * 2\"", "-1", "a weight is a number from 0, not -1");
    check("\"reads * 2\"", "\"reads - 11\"", "a weight is a number from 0, not -1");
    check("\"reads * 2\"", "\"reads / 0\"", "");
    check("\"reads * 2\"", "\"reads == 1\"", "a weight is a number, not false");
    let mistake = read(&GOOD.replace("reads * 2", "reads - 5")).unwrap_err();
    let at_end = "at reads = 1, Q: a weight is a number from 0, not -4";
    assert!(mistake.message.contains(at_end), "{mistake}");
    assert_eq!(mistake.line, line_of(GOOD, GOOD.find("id = \"reading\"").unwrap()));
    check(
        "seed = 7",
        "seed = 7\nru_profile = '2018'",
        "no price list `2018`; there are 2019, modern",
    );
    let key = "partition_key = \"/id\"";
    for ru in [0, 399, 450, 1_000_100] {
        let allowed = "throughput is from 400 to 1000000 RU/s in steps of 100";
        check(key, &format!("{key}\nthroughput = {ru}"), allowed);
    }
    check(key, &format!("{key}\nthroughput = -400"), "");
    for ru in [400, 1_000_000] {
        read(&GOOD.replacen(key, &format!("{key}\nthroughput = {ru}"), 1)).unwrap();
    }
}

#[test]
fn policies_that_cannot_be() {
    let key = "partition_key = \"/id\"";
    let with = |line: &str| format!("{key}\n{line}");
    let policy = |policy: &str, expect: &str| check(key, &with(policy), expect);
    policy(
        "indexing = { includePaths = [] }",
        "there is no `includePaths`; there are indexingMode, ",
    );
    policy(
        "indexing = { excludedPaths = [{ paht = '/*' }] }",
        "there is no `paht`; there are path",
    );
    policy(
        "indexing = { compositeIndexes = [[{ path = '/a', ordr = 'descending' }, { path = '/b' }]] }",
        "there is no `ordr`; there are path, order",
    );
    policy("indexing = { indexingMode = 'consistant' }", "indexingMode");
    policy("indexing = { indexingMode = 'lazy' }", "use 'consistent' or 'none'");
    policy("indexing = { includedPaths = [{ path = '/a/?' }] }", "the path '/*' must be in either");
    policy("indexing = 1", "must be an object");
    policy("unique_keys = { keys = [] }", "there is no `keys`; there are uniqueKeys");
    policy(
        "unique_keys = { uniqueKeys = [{ path = '/a' }] }",
        "there is no `path`; there are paths",
    );
    policy("unique_keys = { uniqueKeys = [{ paths = ['a'] }] }", "the path 'a'");
    check(key, "partition_key = '/_etag'", "is a system property");
    let right = "indexing = { includedPaths = [{ path = '/a/?' }], excludedPaths = [{ path = '/*' }] }\n\
                 unique_keys = { uniqueKeys = [{ paths = ['/a', '/b/c'] }] }";
    read(&GOOD.replacen(key, &with(right), 1)).unwrap();
}

#[test]
fn queries_whose_names_mean_nothing() {
    let sql = "SELECT * FROM c WHERE c.id = @id";
    let query = |new: &str, expect: &str| check(sql, new, expect);
    query("SELECT * FROM c WHERE d.id = @id", "`d` means nothing here; there are c");
    query("SELECT * FROM c t WHERE c.id = @id", "`c` means nothing here; there are t");
    query("SELECT c.id WHERE @id = 1", "`c` means nothing without FROM");
    query(
        "SELECT VALUE (SELECT VALUE t FROM t IN x.tags) FROM c WHERE c.id = @id",
        "`x` means nothing",
    );
    query("SELECT VALUE udf.f(c) FROM c WHERE c.id = @id", "no user-defined functions");
    query("SELECT * FROM c WHERE c.id = @id AND c.x = @other", "`parameters` lacks `@other`");
    query("SELECT TOP @n * FROM c WHERE c.id = @id", "`parameters` lacks `@n`");
    query(
        "SELECT * FROM c WHERE c.id = @id AND EXISTS(SELECT VALUE 1 FROM t IN c.t OFFSET @o LIMIT 1)",
        "`@o`",
    );
    let parameters = "{ \"@id\" = \"${writer.id}\" }";
    check(parameters, "{ \"@id\" = 1, \"@more\" = 2 }", "the query has no parameter `@more`");
    let right = [
        "SELECT VALUE c.a FROM c JOIN t IN c.tags JOIN (SELECT VALUE u FROM u IN t.us) AS v WHERE t = @id AND v = 1",
        "SELECT children FROM f.children WHERE ARRAY_LENGTH(children) = @id",
        "SELECT VALUE g.n FROM (SELECT d.n, COUNT(1) AS m FROM d GROUP BY d.n) AS g WHERE g.m > @id",
        "SELECT c.id, (SELECT VALUE COUNT(1) FROM t IN c.tags WHERE t.a = c.a) AS n FROM c ORDER BY c.n OFFSET 1 LIMIT @id",
    ];
    for text in right {
        read(&GOOD.replacen(sql, text, 1)).unwrap_or_else(|mistake| panic!("{text}: {mistake}"));
    }
}

#[test]
fn checks_that_compare_nothing() {
    let copies = "SELECT c.id AS k, c.name AS v FROM c";
    let rows = |new: &str, expect: &str| check(copies, new, expect);
    rows("SELECT c.id, c.name AS v FROM c", "rows lack `k`: SELECT … AS k, … AS v");
    rows("SELECT c.id AS k, c.name FROM c", "rows lack `v`");
    rows("SELECT VALUE {k: c.id} FROM c", "rows lack `v`");
    rows("SELECT VALUE 1 FROM c", "rows lack `k`");
    rows("SELECT c.id AS k, @v AS v FROM c", "a check has no parameters: `@v`");
    check("SELECT s.id AS k FROM s", "SELECT s.id FROM s", "rows lack `k`");
    for right in
        ["SELECT c.k, c.v FROM c", "SELECT VALUE {k: c.id, v: c.n} FROM c", "SELECT * FROM c"]
    {
        read(&GOOD.replacen(copies, right, 1)).unwrap();
    }
}

#[test]
fn items_without_their_keys() {
    let item = "{ id = \"${user.id}\", posts";
    check(item, "{ ident = \"${user.id}\", posts", "an item needs an `id`");
    let keyed = |paths: &str| {
        GOOD.replacen("partition_key = \"/id\"", &format!("partition_key = {paths}"), 1)
    };
    let mistake = read(&keyed("\"/tenant\"")).unwrap_err();
    assert!(
        mistake.message.contains("an item of `users` needs /tenant, its partition key"),
        "{mistake}"
    );
    assert_eq!(mistake.line, line_of(GOOD, GOOD.find(item).unwrap()));
    assert!(read(&keyed("[\"/id\", \"/a/b\"]")).unwrap_err().message.contains("needs /a/b"));
    let nested = keyed("[\"/id\", \"/a/b\"]").replacen(
        item,
        "{ a = { b = 1 }, id = \"${user.id}\", posts",
        1,
    );
    read(&nested).unwrap();
    let step = "[[patterns.models.m]]\nexecute";
    let write = "[[patterns.models.m]]\nupsert = 'users'\nitem = { name = 'x' }\n";
    check(step, &format!("{write}{step}"), "an item needs an `id`");
    let write = "[[patterns.models.m]]\nupsert = 'users'\nitem = { id = '${writer.id}' }\n";
    read(&GOOD.replacen(step, &format!("{write}{step}"), 1)).unwrap();
}

#[test]
fn the_same_as_what() {
    let id = "id = \"Q\"";
    check(id, "id = \"Q\"\nsame = { m = 'n' }", "there is no model `n`; there are m");
    check(id, "id = \"Q\"\nsame = { m = 'm' }", "model `m` has steps of its own");
    check(id, "id = \"Q\"\nsame = { n = 'm' }", "there is no model `n`; there are m");
}

#[test]
fn steps_that_are_no_steps() {
    let step = "[[patterns.models.m]]\nquery = \"users\"";
    check(step, "[[patterns.models.m]]\nquery = \"users\"\nread = \"users\"", "a step is one of");
    check(step, "[[patterns.models.m]]\nquery = \"users\"\nid = \"1\"", "a query step has no `id`");
    let text = GOOD.replace("\nas = \"rows\"", "");
    assert!(read(&text).unwrap_err().message.contains("`rows` means nothing here"));
    let text =
        GOOD.replace("[[models]]\nid = \"m\"", "[[models]]\nid = \"m\"\n[[models]]\nid = \"o\"");
    assert!(read(&text).is_err());
    assert!(read("name = \"empty\"").unwrap_err().message.contains("at least one model"));
}

#[test]
fn shares_of_throughput() {
    let shared = |ru: u32, share: f64| {
        let key = "partition_key = \"/id\"";
        let text = GOOD.replacen(key, &format!("{key}\nthroughput = {ru}"), 1);
        let mut workload = read(&text).unwrap();
        workload.share_throughput(share);
        workload.models[0].containers[0].throughput.unwrap()
    };
    assert_eq!(shared(750_000, 1.0), 750_000);
    assert_eq!(shared(750_000, 0.1), 75_000);
    assert_eq!(shared(1_000, 0.55), 600, "whole hundreds");
    assert_eq!(shared(750_000, 0.00001 / 0.00003), 250_000);
    assert_eq!([shared(5_000, 0.1), shared(4_000, 0.1), shared(3_000, 0.1)], [500, 400, 400]);
    let mut without = read(GOOD).unwrap();
    without.share_throughput(0.1);
    assert_eq!(without.models[0].containers[0].throughput, None);
}

/// Where `docs/lab.md` says what the keys of a table are.
fn section_of(table: &str) -> &'static str {
    let title = match table {
        "File" => "The file",
        "Entity" | "Amount" | "Reference" | "Generator" => "Entities",
        "Sample" => "Samples",
        "Model" | "Container" | "PartitionKey" | "Script" | "Mapping" => "Models",
        "Pipeline" => "Pipelines",
        "Check" | "Side" => "Checks",
        "Pattern" | "Published" | "Step" => "Patterns",
        "Sweep" => "Sweeps",
        _ => panic!("no section is about {table}"),
    };
    let book = include_str!("../../../../docs/lab.md");
    let mut sections = book.split("\n### ");
    sections.find(|section| section.starts_with(&format!("{title}\n"))).expect(title)
}

#[test]
fn every_key_is_documented() {
    let source = include_str!("../file.rs");
    let mut renamed = None;
    let mut section = "";
    let mut keys = 0;
    for line in source.lines().map(str::trim) {
        if let Some(rest) = line.split_once("rename = \"") {
            renamed = rest.1.split('"').next();
        }
        if let Some(table) =
            line.strip_prefix("pub struct ").and_then(|rest| rest.split(' ').next())
        {
            section = section_of(table);
        }
        let Some((name, _)) = line.strip_prefix("pub ").and_then(|rest| rest.split_once(':'))
        else {
            continue;
        };
        let name = renamed.take().unwrap_or(name);
        let forms = [format!("`{name}`"), format!("{name} = "), format!("[[{name}]]")];
        let nested =
            [format!("[[models.{name}]]"), format!("[[patterns.{name}"), format!(".{name}]]")];
        let is_there = forms.iter().chain(&nested).any(|form| section.contains(form));
        assert!(is_there, "docs/lab.md says nothing of `{name}` in {section}");
        keys += 1;
    }
    assert!(keys > 60, "{keys}");
}
