//! What queries answer, over one physical partition and over three, in pages of the server's choice,
//! of one row and of three. `stars` of the books has a value of every type and is missing twice.
//!
//! The client merges order, DISTINCT, TOP and OFFSET … LIMIT itself; it has no merge for aggregates
//! and groups, so those are asked of one partition or one key.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::options::{MaxItemCountHint, QueryOptions};
use azure_data_cosmos::{PartitionKey, Query};
use cosmolabe_conformance::{KEY, Lab, Outcome, Server, everywhere, failure, rows};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

use crate::case;

fn books() -> Vec<Value> {
    let books = json!([
        {"id": "hunger", "author": "Hamsun", "land": "no", "year": 1890, "price": 12, "stars": 5,
         "tags": ["classic", "short"], "printed": "1890-06-15T12:00:00.0000000Z",
         "editions": [{"lang": "no", "copies": 300}, {"lang": "en", "copies": 500}]},
        {"id": "pan", "author": "Hamsun", "land": "no", "year": 1894, "price": 9.5, "stars": 4,
         "tags": ["classic"], "printed": "1894-12-01T08:30:00.0000000Z",
         "editions": [{"lang": "no", "copies": 100}]},
        {"id": "peer", "author": "Ibsen", "land": "no", "year": 1867, "price": 15,
         "tags": ["play", "classic"], "editions": []},
        {"id": "ghosts", "author": "Ibsen", "land": "no", "year": 1881, "price": 8, "stars": null,
         "tags": ["play"]},
        {"id": "inferno", "author": "Strindberg", "land": "se", "year": 1897, "price": 11,
         "stars": 3, "tags": [],
         "editions": [{"lang": "fr", "copies": 40}, {"lang": "sv", "copies": 80}]},
        {"id": "father", "author": "Strindberg", "land": "se", "year": 1887, "price": 7,
         "stars": "three", "tags": ["play"]},
        {"id": "gösta", "author": "Lagerlöf", "land": "se", "year": 1891, "price": 14, "stars": 5,
         "tags": ["classic", "long"]},
        {"id": "nils", "author": "Lagerlöf", "land": "se", "year": 1906, "price": 20, "stars": [5],
         "tags": ["children"]},
        {"id": "winter", "author": "Blixen", "land": "dk", "year": 1942, "price": 13,
         "stars": {"of": 5}},
        {"id": "africa", "author": "Blixen", "land": "dk", "year": 1937, "price": 16,
         "tags": ["memoir", "long"]},
        {"id": "kalevala", "author": "Lönnrot", "land": "fi", "year": 1835, "price": 25,
         "stars": true, "tags": ["epic", "long", "classic"]},
        {"id": "egyptian", "author": "Waltari", "land": "fi", "year": 1945, "price": 18,
         "stars": false, "tags": ["long"]},
    ]);
    books.as_array().expect("is written as an array").clone()
}

/// A container keyed by `/author` and one on three physical partitions, both with these items.
/// `definition` holds what else the containers are defined by.
async fn shelves(
    lab: &Lab,
    items: &[Value],
    definition: Value,
) -> azure_data_cosmos::Result<[ContainerClient; 2]> {
    let make = async |id: &str, ru| {
        let key = json!({"paths": ["/author"], "kind": "Hash", "version": 2});
        let mut properties = json!({"id": id, "partitionKey": key});
        let more = definition.as_object().expect("a definition is an object").clone();
        properties.as_object_mut().expect("is an object").extend(more);
        let properties = serde_json::from_value(properties).expect("the SDK knows its properties");
        let container = lab.make(properties, ru).await;
        for item in items {
            let key = item["author"].as_str().expect("an author is text").to_owned();
            let id = item["id"].as_str().expect("an id is text");
            container.create_item(key, id, item, None).await?;
        }
        Ok::<_, azure_data_cosmos::CosmosError>(container)
    };
    Ok([make("one", None).await?, make("many", Some(30_000)).await?])
}

/// Whether rows must come in the order that is expected.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Given,
    Any,
}

use Order::{Any, Given};

/// Expects the same rows from each container in each page size.
async fn answers(
    containers: &[ContainerClient],
    query: impl Into<Query>,
    expected: Value,
    order: Order,
) -> Outcome {
    answers_within(containers, query, FeedScope::full_container(), expected, order).await
}

async fn answers_within(
    containers: &[ContainerClient],
    query: impl Into<Query>,
    scope: FeedScope,
    expected: Value,
    order: Order,
) -> Outcome {
    let query = query.into();
    let expected = arranged(expected.as_array().expect("rows are an array").clone(), order);
    for container in containers {
        for size in [None, Some(1), Some(3)] {
            let mut options = QueryOptions::default();
            if let Some(size) = size {
                let size: u32 = size;
                options = options.with_max_item_count(MaxItemCountHint::Limit(size.try_into()?));
            }
            let pager = container.query_items::<Value>(query.clone(), scope.clone(), Some(options));
            let found: Vec<Value> = pager.await?.try_collect().await?;
            assert_eq!(arranged(found, order), expected, "{query:?} in pages of {size:?}");
        }
    }
    Ok(())
}

fn arranged(mut rows: Vec<Value>, order: Order) -> Vec<Value> {
    if order == Any {
        rows.sort_by_key(Value::to_string);
    }
    rows
}

case!(aggregates_of_one_partition, async {
    let lab = Lab::start().await;
    let [one, _] = shelves(&lab, &books(), json!({})).await?;
    let one = [one];
    answers(&one, "SELECT VALUE COUNT(c.stars) FROM c", json!([10]), Given).await?;
    answers(&one, "SELECT VALUE SUM(c.price) FROM c", json!([168.5]), Given).await?;
    let mean = "SELECT VALUE AVG(c.year) FROM c WHERE c.land = 'dk'";
    answers(&one, mean, json!([1939.5]), Given).await?;
    answers(&one, "SELECT VALUE MIN(c.year) FROM c", json!([1835]), Given).await?;
    answers(&one, "SELECT VALUE MAX(c.id) FROM c", json!(["winter"]), Given).await?;
    let named = "SELECT COUNT(1) AS n, SUM(c.price) AS sum FROM c WHERE c.land = 'se'";
    answers(&one, named, json!([{"n": 4, "sum": 52}]), Given).await
});

case!(groups_of_one_partition, async {
    let lab = Lab::start().await;
    let [one, _] = shelves(&lab, &books(), json!({})).await?;
    let groups = "SELECT c.land, COUNT(1) AS n, SUM(c.price) AS sum FROM c GROUP BY c.land";
    let expected = json!([
        {"land": "no", "n": 4, "sum": 44.5},
        {"land": "se", "n": 4, "sum": 52},
        {"land": "dk", "n": 2, "sum": 29},
        {"land": "fi", "n": 2, "sum": 43},
    ]);
    answers(&[one], groups, expected, Any).await
});

case!(aggregates_and_groups_within_a_key, async {
    let lab = Lab::start().await;
    let both = shelves(&lab, &books(), json!({})).await?;
    let ibsen = || FeedScope::partition("Ibsen");
    answers_within(&both, "SELECT VALUE SUM(c.price) FROM c", ibsen(), json!([23]), Given).await?;
    let groups = "SELECT c.land, MAX(c.year) AS last FROM c GROUP BY c.land";
    let expected = json!([{"land": "no", "last": 1881}]);
    answers_within(&both, groups, ibsen(), expected, Given).await
});

case!(what_the_client_cannot_merge_is_refused, async {
    let lab = Lab::start().await;
    let [_, many] = shelves(&lab, &books(), json!({})).await?;
    for text in ["SELECT VALUE SUM(c.price) FROM c", "SELECT c.land FROM c GROUP BY c.land"] {
        let found: Result<Vec<Value>, _> = everywhere(&many, text).await;
        assert!(found.is_err(), "{text}: {found:?}");
    }
    Ok(())
});

case!(order_by_one_key, async {
    let lab = Lab::start().await;
    let both = shelves(&lab, &books(), json!({})).await?;
    let mut years = [1890, 1894, 1867, 1881, 1897, 1887, 1891, 1906, 1942, 1937, 1835, 1945];
    years.sort_unstable();
    answers(&both, "SELECT VALUE c.year FROM c ORDER BY c.year", json!(years), Given).await?;
    years.reverse();
    answers(&both, "SELECT VALUE c.year FROM c ORDER BY c.year DESC", json!(years), Given).await?;
    let filtered = "SELECT VALUE c.id FROM c WHERE c.land = 'se' ORDER BY c.price";
    answers(&both, filtered, json!(["father", "inferno", "gösta", "nils"]), Given).await
});

case!(order_by_a_key_that_is_missing_or_of_another_type, async {
    let lab = Lab::start().await;
    let both = shelves(&lab, &books(), json!({})).await?;
    let scalars = "NOT (IS_ARRAY(c.stars) OR IS_OBJECT(c.stars))";
    let up = format!("SELECT VALUE c.stars ?? 'none' FROM c WHERE {scalars} ORDER BY c.stars");
    let stars = json!(["none", "none", null, false, true, 3, 4, 5, 5, "three"]);
    answers(&both, up.as_str(), stars.clone(), Given).await?;
    let down = stars.as_array().unwrap().iter().rev().cloned().collect();
    answers(&both, format!("{up} DESC").as_str(), Value::Array(down), Given).await
});

case!(order_by_two_keys, async {
    let lab = Lab::start().await;
    let index = json!([
        {"path": "/land", "order": "ascending"},
        {"path": "/price", "order": "descending"},
    ]);
    let policy = json!({"includedPaths": [{"path": "/*"}], "compositeIndexes": [index]});
    let both = shelves(&lab, &books(), json!({"indexingPolicy": policy})).await?;
    let ordered = "SELECT VALUE c.id FROM c ORDER BY c.land, c.price DESC";
    let mut ids = [
        "africa", "winter", "kalevala", "egyptian", "peer", "hunger", "pan", "ghosts", "nils",
        "gösta", "inferno", "father",
    ];
    answers(&both, ordered, json!(ids), Given).await?;
    ids.reverse();
    let opposite = "SELECT VALUE c.id FROM c ORDER BY c.land DESC, c.price ASC";
    answers(&both, opposite, json!(ids), Given).await?;
    for container in &both {
        let text = "SELECT VALUE c.id FROM c ORDER BY c.land, c.price";
        assert_eq!(failure(everywhere::<Value>(container, text).await), 400);
    }
    Ok(())
});

// Without an order the client only merges distinct rows whose number is bounded.
case!(distinct_rows, async {
    let lab = Lab::start().await;
    let both = shelves(&lab, &books(), json!({})).await?;
    let lands = json!(["dk", "fi", "no", "se"]);
    answers(&both, "SELECT DISTINCT TOP 99 VALUE c.land FROM c", lands.clone(), Any).await?;
    let ordered = "SELECT DISTINCT VALUE c.land FROM c ORDER BY c.land";
    answers(&both, ordered, lands, Given).await?;
    let stars = json!([5, 4, null, 3, "three", [5], {"of": 5}, true, false]);
    answers(&both, "SELECT DISTINCT TOP 99 VALUE c.stars FROM c", stars, Any).await
});

case!(top_offset_and_limit, async {
    let lab = Lab::start().await;
    let both = shelves(&lab, &books(), json!({})).await?;
    let top = "SELECT TOP 3 VALUE c.year FROM c ORDER BY c.year DESC";
    answers(&both, top, json!([1945, 1942, 1937]), Given).await?;
    let some = "SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 4 LIMIT 3";
    answers(&both, some, json!([1890, 1891, 1894]), Given).await?;
    let rest = "SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 10 LIMIT 99";
    answers(&both, rest, json!([1942, 1945]), Given).await
});

case!(joins_and_subqueries, async {
    let lab = Lab::start().await;
    let both = shelves(&lab, &books(), json!({})).await?;
    let copies = "SELECT VALUE e.copies FROM c JOIN e IN c.editions WHERE e.lang != 'fr'";
    answers(&both, copies, json!([300, 500, 100, 80]), Any).await?;
    let exists = "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE e FROM e IN c.editions WHERE e.copies > 90)";
    answers(&both, exists, json!(["hunger", "pan"]), Any).await?;
    let arrays =
        "SELECT VALUE ARRAY(SELECT VALUE e.lang FROM e IN c.editions) FROM c WHERE c.land = 'no'";
    answers(&both, arrays, json!([["no", "en"], ["no"], [], []]), Any).await?;
    let sums = "SELECT c.id, (SELECT VALUE SUM(e.copies) FROM e IN c.editions) AS n FROM c WHERE c.id = 'pan'";
    answers(&both, sums, json!([{"id": "pan", "n": 100}]), Any).await
});

case!(parameters_of_every_type, async {
    let lab = Lab::start().await;
    let both = shelves(&lab, &books(), json!({})).await?;
    for (stars, expected) in [
        (json!(5), json!(["hunger", "gösta"])),
        (json!("three"), json!(["father"])),
        (json!(null), json!(["ghosts"])),
        (json!(true), json!(["kalevala"])),
        (json!([5]), json!(["nils"])),
        (json!({"of": 5}), json!(["winter"])),
    ] {
        let query = Query::from("SELECT VALUE c.id FROM c WHERE c.stars = @stars")
            .with_parameter("@stars", stars)?;
        answers(&both, query, expected, Any).await?;
    }
    let places =
        Query::from("SELECT VALUE c[@name] FROM c WHERE c.tags[@i] = @tag ORDER BY c.year")
            .with_parameter("@name", "id")?
            .with_parameter("@i", 1)?
            .with_parameter("@tag", "long")?;
    answers(&both, places, json!(["kalevala", "gösta", "africa"]), Given).await
});

case!(functions_in_filters, async {
    let lab = Lab::start().await;
    let both = shelves(&lab, &books(), json!({})).await?;
    for (filter, expected) in [
        ("c.id LIKE '_a%'", json!(["pan", "father", "kalevala"])),
        ("RegexMatch(c.id, '^[a-h].*n')", json!(["hunger", "egyptian"])),
        ("STARTSWITH(c.author, 'HAM', true)", json!(["hunger", "pan"])),
        ("DateTimePart('month', c.printed) = 12", json!(["pan"])),
        ("ARRAY_CONTAINS(c.editions, {lang: 'no'}, true)", json!(["hunger", "pan"])),
        ("ARRAY_LENGTH(c.tags) = 3", json!(["kalevala"])),
    ] {
        let text = format!("SELECT VALUE c.id FROM c WHERE {filter}");
        answers(&both, text.as_str(), expected, Any).await?;
    }
    Ok(())
});

case!(computed_properties, async {
    let lab = Lab::start().await;
    let properties = json!([{"name": "lower", "query": "SELECT VALUE LOWER(c.author) FROM c"}]);
    let policy = json!({"includedPaths": [{"path": "/*"}, {"path": "/lower/?"}]});
    let definition = json!({"computedProperties": properties, "indexingPolicy": policy});
    let both = shelves(&lab, &books(), definition).await?;
    let filtered = "SELECT VALUE c.id FROM c WHERE c.lower = 'ibsen'";
    answers(&both, filtered, json!(["peer", "ghosts"]), Any).await?;
    let ordered = "SELECT VALUE c.lower FROM c WHERE c.year < 1890 ORDER BY c.lower DESC";
    answers(&both, ordered, json!(["strindberg", "lönnrot", "ibsen", "ibsen"]), Given).await
});

case!(places_that_are_near, async {
    let lab = Lab::start().await;
    let point =
        |longitude, latitude| json!({"type": "Point", "coordinates": [longitude, latitude]});
    let places = [
        json!({"id": "oslo", "author": "a", "at": point(10.7522, 59.9139)}),
        json!({"id": "drammen", "author": "b", "at": point(10.2045, 59.744)}),
        json!({"id": "bergen", "author": "c", "at": point(5.3221, 60.3913)}),
        json!({"id": "nowhere", "author": "d"}),
    ];
    let spatial = json!([{"path": "/at/*", "types": ["Point"]}]);
    let policy = json!({"includedPaths": [{"path": "/*"}], "spatialIndexes": spatial});
    let both = shelves(&lab, &places, json!({"indexingPolicy": policy})).await?;
    for (metres, expected) in [
        (1_000, json!(["oslo"])),
        (50_000, json!(["oslo", "drammen"])),
        (500_000, json!(["oslo", "drammen", "bergen"])),
    ] {
        let query =
            Query::from("SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, @here) < @metres")
                .with_parameter("@here", point(10.75, 59.91))?
                .with_parameter("@metres", metres)?;
        answers(&both, query, expected, Any).await?;
    }
    Ok(())
});

case!(words_of_texts, async {
    let lab = Lab::start().await;
    let texts = [
        json!({"id": "a", "author": "a", "text": "The red bicycle is parked near the red barn"}),
        json!({"id": "b", "author": "b", "text": "A blue bicycle and a red scooter in the rain"}),
        json!({"id": "c", "author": "c", "text": "A green tractor in the barn"}),
    ];
    let paths = json!([{"path": "/text", "language": "en-US"}]);
    let definition = json!({
        "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": paths},
        "indexingPolicy": {"includedPaths": [{"path": "/*"}], "fullTextIndexes": [{"path": "/text"}]},
    });
    let both = shelves(&lab, &texts, definition).await?;
    for (filter, expected) in [
        ("FullTextContains(c.text, 'bicycle')", json!(["a", "b"])),
        ("FullTextContains(c.text, 'red bicycle')", json!(["a"])),
        ("FullTextContainsAny(c.text, 'scooter', 'tractor')", json!(["b", "c"])),
    ] {
        let text = format!("SELECT VALUE c.id FROM c WHERE {filter}");
        answers(&both, text.as_str(), expected, Any).await?;
    }
    Ok(())
});

case!(vectors_that_are_near, async {
    let lab = Lab::start().await;
    let vectors = [
        json!({"id": "east", "author": "a", "v": [1, 0, 0]}),
        json!({"id": "north", "author": "b", "v": [0, 1, 0]}),
        json!({"id": "northeast", "author": "c", "v": [1, 1, 0]}),
        json!({"id": "far", "author": "d", "v": [9, 9, 9]}),
    ];
    let embedding = json!({"path": "/v", "dataType": "float32", "dimensions": 3, "distanceFunction": "euclidean"});
    let definition = json!({
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [embedding]},
        "indexingPolicy": {
            "includedPaths": [{"path": "/*"}],
            "vectorIndexes": [{"path": "/v", "type": "flat"}],
        },
    });
    let both = shelves(&lab, &vectors, definition).await?;
    let nearest = "SELECT TOP 3 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0.2, 0])";
    answers(&both, nearest, json!(["east", "northeast", "north"]), Given).await
});

case!(prefixes_of_a_hierarchical_key_in_order, async {
    let lab = Lab::start().await;
    let container = lab.hierarchical(("/land", "/author", "/id")).await;
    for book in books() {
        let text = |name: &str| book[name].as_str().expect("is text").to_owned();
        let key: PartitionKey = (text("land"), text("author"), text("id")).into();
        container.create_item(key, &text("id"), &book, None).await?;
    }
    let ordered = "SELECT VALUE c.year FROM c ORDER BY c.year DESC";
    let container = [container];
    let no = FeedScope::partition("no");
    answers_within(&container, ordered, no, json!([1894, 1890, 1881, 1867]), Given).await?;
    let hamsun = FeedScope::partition(PartitionKey::from(("no", "Hamsun")));
    answers_within(&container, ordered, hamsun, json!([1894, 1890]), Given).await
});

case!(metrics_of_pages, async {
    let lab = Lab::start().await;
    let [one, _] = shelves(&lab, &books(), json!({})).await?;
    let options =
        QueryOptions::default().with_populate_index_metrics(true).with_populate_query_metrics(true);
    let text = "SELECT VALUE c.id FROM c WHERE c.year = 1890";
    let scope = FeedScope::partition("Hamsun");
    let query = one.query_items::<String>(text, scope, Some(options)).await?;
    let page = query.into_pages().next().await.expect("there is a page")?;
    let metrics = page.query_metrics().expect("query metrics were asked for");
    assert!(metrics.split(';').all(|part| part.contains('=')), "{metrics}");
    assert!(metrics.contains("outputDocumentCount=1"), "{metrics}");
    let index = page.index_metrics().expect("index metrics were asked for");
    assert!(index.contains("/year/?"), "{index}");
    assert_eq!(page.into_items(), ["hunger"]);
    Ok(())
});

case!(continuations_go_on_after_the_server_was_killed, async {
    let directory = std::env::temp_dir().join(format!("cosmolabe-rows-{}", std::process::id()));
    let server = Server::stored(&directory);
    let client = server.connect(KEY).await?;
    client.create_database("d", None).await?;
    let database = client.database_client("d");
    let lab = Lab { server, client, database };
    let [_, many] = shelves(&lab, &books(), json!({})).await?;
    let limit = || MaxItemCountHint::Limit(5.try_into().expect("five is not zero"));
    let text = "SELECT VALUE c.year FROM c ORDER BY c.year";
    let options = QueryOptions::default().with_max_item_count(limit());
    let query = many.query_items::<u64>(text, FeedScope::full_container(), Some(options)).await?;
    let mut pages = query.into_pages();
    let mut seen = pages.next().await.expect("there is a page")?.into_items();
    let token = pages.to_continuation_token()?;
    drop((pages, many, lab));

    let server = Server::stored(&directory);
    let client = server.connect(KEY).await?;
    let many = client.database_client("d").container_client("many", None).await?;
    let options =
        QueryOptions::default().with_max_item_count(limit()).with_continuation_token(token);
    let query = many.query_items::<u64>(text, FeedScope::full_container(), Some(options)).await?;
    seen.extend(query.try_collect::<Vec<_>>().await?);
    assert_eq!(seen, [1835, 1867, 1881, 1887, 1890, 1891, 1894, 1897, 1906, 1937, 1942, 1945]);
    drop(server);
    std::fs::remove_dir_all(directory)?;
    Ok(())
});

case!(a_continuation_of_another_query_is_refused, async {
    let lab = Lab::start().await;
    let both = shelves(&lab, &books(), json!({})).await?;
    for container in &both {
        let limit = MaxItemCountHint::Limit(5.try_into()?);
        let options = QueryOptions::default().with_max_item_count(limit);
        let scope = FeedScope::full_container();
        let text = "SELECT VALUE c.year FROM c";
        let query = container.query_items::<u64>(text, scope.clone(), Some(options)).await?;
        let mut pages = query.into_pages();
        pages.next().await.expect("there is a page")?;
        let token = pages.to_continuation_token()?;
        let options = QueryOptions::default().with_continuation_token(token);
        let other = "SELECT VALUE c.year FROM c WHERE c.year > 1900";
        let found = match container.query_items::<u64>(other, scope, Some(options)).await {
            Ok(query) => query.try_collect::<Vec<_>>().await,
            Err(error) => Err(error),
        };
        assert_eq!(failure(found), 400);
    }
    Ok(())
});

case!(errors_say_where, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let text = "SELECT VALUE nope(c.id) FROM c";
    let found: Result<Vec<Value>, _> = rows(&container, text, FeedScope::partition("p")).await;
    let error = found.expect_err("there is no such function").to_string();
    assert!(error.contains("SC2005") && error.contains("nope"), "{error}");
    Ok(())
});
