package dev.cosmolabe;

import static dev.cosmolabe.Support.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.IndexingPolicy;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What queries answer, over one physical partition and over three; each is asked in three page
 * sizes.
 *
 * <p>The SDK asks for a plan first and merges orders, groups and aggregates itself, so these cases
 * are about plans and rewritten queries as much as about rows.
 */
@ExtendWith(Suite.class)
class QueriesTest {
    private static Shelves books;

    @BeforeAll
    static void makeBooks() {
        books = Shelves.of(Books.ALL, () -> definition("/author"));
    }

    @Test
    void theBooksLieOnThreePartitions() {
        List<String> found = new ArrayList<>();
        List<FeedRange> ranges = books.many().getFeedRanges();
        assertEquals(3, ranges.size());
        for (FeedRange range : ranges) {
            CosmosQueryRequestOptions within = options().setFeedRange(range);
            List<String> share = ids(query(books.many(), "SELECT * FROM c", within));
            assertFalse(share.isEmpty(), "a range without items");
            found.addAll(share);
        }
        assertEquals(ids(Books.ALL).stream().sorted().toList(), found.stream().sorted().toList());
    }

    @Test
    void wholeItemsComeAsTheyWereWritten() {
        for (CosmosContainer container : books.both()) {
            List<JsonNode> found = new ArrayList<>();
            query(container, "SELECT * FROM c").forEach(item -> found.add(user(item)));
            assertSameRows(Books.ALL, found, "SELECT *");
        }
    }

    @Test
    void aggregatesAsValues() {
        books.answer("SELECT VALUE COUNT(1) FROM c", "[12]");
        books.answer("SELECT VALUE COUNT(c.stars) FROM c", "[10]");
        books.answer("SELECT VALUE SUM(c.price) FROM c", "[168.5]");
        books.answer("SELECT VALUE AVG(c.year) FROM c WHERE c.land = 'dk'", "[1939.5]");
        books.answer("SELECT VALUE MIN(c.year) FROM c", "[1835]");
        books.answer("SELECT VALUE MAX(c.id) FROM c", "['winter']");
        books.answer("SELECT VALUE COUNT(1) FROM c WHERE false", "[0]");
    }

    @Test
    void aggregatesByName() {
        books.answer(
                "SELECT COUNT(1) AS n, SUM(c.price) AS sum, AVG(c.price) AS mean,"
                        + " MIN(c.price) AS least, MAX(c.price) AS most"
                        + " FROM c WHERE c.land = 'se'",
                "[{n: 4, sum: 52, mean: 13, least: 7, most: 20}]");
    }

    @Test
    void groupsWithSeveralAggregates() {
        books.answer(
                "SELECT c.land, COUNT(1) AS n, SUM(c.price) AS sum, MIN(c.year) AS first,"
                        + " AVG(c.price) AS mean FROM c GROUP BY c.land",
                """
                [{land: 'no', n: 4, sum: 44.5, first: 1867, mean: 11.125},
                 {land: 'se', n: 4, sum: 52, first: 1887, mean: 13},
                 {land: 'dk', n: 2, sum: 29, first: 1937, mean: 14.5},
                 {land: 'fi', n: 2, sum: 43, first: 1835, mean: 21.5}]""");
    }

    @Test
    void groupsByTwoKeys() {
        books.answer(
                "SELECT c.land, c.author, MAX(c.year) AS last FROM c"
                        + " WHERE c.land IN ('no', 'dk') GROUP BY c.land, c.author",
                """
                [{land: 'no', author: 'Hamsun', last: 1894},
                 {land: 'no', author: 'Ibsen', last: 1881},
                 {land: 'dk', author: 'Blixen', last: 1942}]""");
    }

    @Test
    void groupsOfItemsThatLackTheKey() {
        books.answer(
                "SELECT c.stars, COUNT(1) AS n FROM c"
                        + " WHERE IS_NUMBER(c.stars) OR NOT IS_DEFINED(c.stars) GROUP BY c.stars",
                "[{stars: 5, n: 2}, {stars: 4, n: 1}, {stars: 3, n: 1}, {n: 2}]");
    }

    @Test
    void orderByOneKeyInBothDirections() {
        books.answerInOrder("SELECT VALUE c.id FROM c ORDER BY c.price", """
                ['father', 'ghosts', 'pan', 'inferno', 'hunger', 'winter', 'gösta', 'peer',
                 'africa', 'egyptian', 'nils', 'kalevala']""");
        books.answerInOrder("SELECT VALUE c.id FROM c ORDER BY c.price DESC", """
                ['kalevala', 'nils', 'egyptian', 'africa', 'peer', 'gösta', 'winter', 'hunger',
                 'inferno', 'pan', 'ghosts', 'father']""");
        books.answerInOrder(
                "SELECT VALUE c.id FROM c WHERE c.land = 'se' ORDER BY c.year",
                "['father', 'gösta', 'inferno', 'nils']");
    }

    @Test
    void orderByAKeyOfEveryType() {
        List<JsonNode> order = rows(
                "['missing', 'missing', null, false, true, 3, 4, 5, 5, 'three', [5], {of: 5}]");
        for (CosmosContainer container : books.both()) {
            for (String direction : List.of("ASC", "DESC")) {
                String text = "SELECT c.id, c.stars FROM c ORDER BY c.stars " + direction;
                List<JsonNode> found = query(container, text);
                List<JsonNode> stars = new ArrayList<>();
                found.forEach(row -> stars.add(
                        row.has("stars") ? row.get("stars") : json("'missing'")));
                assertRows(order, stars, text);
                assertEquals(12, new HashSet<>(ids(found)).size());
                Collections.reverse(order);
            }
        }
    }

    @Test
    void orderByTwoKeysNeedsACompositeIndex() {
        // Over several partitions the SDK wraps the refusals of all into one of another type.
        fails(400, () -> query(books.one(), "SELECT * FROM c ORDER BY c.land, c.price DESC"));
    }

    @Test
    void orderByTwoKeysFollowsACompositeIndexAndItsReverse() {
        CompositePath land =
                new CompositePath().setPath("/land").setOrder(CompositePathSortOrder.ASCENDING);
        CompositePath price =
                new CompositePath().setPath("/price").setOrder(CompositePathSortOrder.DESCENDING);
        IndexingPolicy policy =
                new IndexingPolicy().setCompositeIndexes(List.of(List.of(land, price)));
        Shelves shelves =
                Shelves.of(Books.ALL, () -> definition("/author").setIndexingPolicy(policy));
        shelves.answerInOrder("SELECT VALUE c.id FROM c ORDER BY c.land, c.price DESC", """
                ['africa', 'winter', 'kalevala', 'egyptian', 'peer', 'hunger', 'pan', 'ghosts',
                 'nils', 'gösta', 'inferno', 'father']""");
        shelves.resumeInOrder("SELECT VALUE c.id FROM c ORDER BY c.land DESC, c.price ASC", """
                ['father', 'inferno', 'gösta', 'nils', 'ghosts', 'pan', 'hunger', 'peer',
                 'egyptian', 'kalevala', 'winter', 'africa']""");
    }

    @Test
    void distinctRows() {
        books.answer("SELECT DISTINCT c.land FROM c",
                "[{land: 'no'}, {land: 'se'}, {land: 'dk'}, {land: 'fi'}]");
        books.answer("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.author FROM c)", "[7]");
    }

    @Test
    void distinctRowsInOrder() {
        books.answerInOrder("SELECT DISTINCT VALUE c.land FROM c ORDER BY c.land",
                "['dk', 'fi', 'no', 'se']");
        books.answerInOrder("SELECT DISTINCT VALUE c.land FROM c ORDER BY c.land DESC",
                "['se', 'no', 'fi', 'dk']");
        books.answerInOrder(
                "SELECT DISTINCT VALUE c.land FROM c ORDER BY c.land OFFSET 1 LIMIT 2",
                "['fi', 'no']");
    }

    @Test
    void topOffsetAndLimitInOrder() {
        books.answerInOrder("SELECT TOP 5 VALUE c.year FROM c ORDER BY c.year",
                "[1835, 1867, 1881, 1887, 1890]");
        books.answerInOrder("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 4 LIMIT 5",
                "[1890, 1891, 1894, 1897, 1906]");
        books.answerInOrder("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 10 LIMIT 100",
                "[1942, 1945]");
        books.answerInOrder("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 99 LIMIT 1", "[]");
    }

    @Test
    void topOffsetAndLimitInAnyOrder() {
        for (CosmosContainer container : books.both()) {
            List<JsonNode> top = query(container, "SELECT TOP 7 VALUE c.id FROM c");
            assertEquals(7, new HashSet<>(top).size());
            List<JsonNode> rest = query(container, "SELECT VALUE c.id FROM c OFFSET 9 LIMIT 9");
            assertEquals(3, new HashSet<>(rest).size());
            assertEquals(List.of(), query(container, "SELECT TOP 0 VALUE c.id FROM c"));
        }
    }

    @Test
    void joins() {
        books.answer("SELECT VALUE e.copies FROM c JOIN e IN c.editions",
                "[300, 500, 100, 40, 80]");
        books.answer(
                "SELECT e.lang, tag FROM c JOIN e IN c.editions JOIN tag IN c.tags"
                        + " WHERE c.id = 'hunger'",
                """
                [{lang: 'no', tag: 'classic'}, {lang: 'no', tag: 'short'},
                 {lang: 'en', tag: 'classic'}, {lang: 'en', tag: 'short'}]""");
        books.answer(
                "SELECT tag, COUNT(1) AS n FROM c JOIN tag IN c.tags WHERE c.land = 'no'"
                        + " GROUP BY tag",
                "[{tag: 'classic', n: 3}, {tag: 'short', n: 1}, {tag: 'play', n: 2}]");
    }

    @Test
    void subqueries() {
        books.answer(
                "SELECT VALUE c.id FROM c"
                        + " WHERE EXISTS(SELECT VALUE e FROM e IN c.editions WHERE e.copies > 90)",
                "['hunger', 'pan']");
        books.answer(
                "SELECT c.id, ARRAY(SELECT VALUE e.lang FROM e IN c.editions) AS langs FROM c"
                        + " WHERE c.author = 'Hamsun'",
                "[{id: 'hunger', langs: ['no', 'en']}, {id: 'pan', langs: ['no']}]");
    }

    @Test
    void rowsThatAreArrays() {
        // One page only: the SDK takes a page of a single array for a page of its elements.
        String pairs = "SELECT VALUE [c.land, c.year] FROM c WHERE c.land = 'dk'";
        assertSameRows(rows("[['dk', 1942], ['dk', 1937]]"), query(books.one(), pairs), pairs);
        String tags = "SELECT DISTINCT VALUE c.tags FROM c WHERE c.author = 'Hamsun'";
        assertSameRows(rows("[['classic', 'short'], ['classic']]"), query(books.one(), tags), tags);
    }

    static Stream<Arguments> stars() {
        return Stream.of(
                Arguments.of(5, "['hunger', 'gösta']"),
                Arguments.of("three", "['father']"),
                Arguments.of(null, "['ghosts']"),
                Arguments.of(true, "['kalevala']"),
                Arguments.of(List.of(5), "['nils']"),
                Arguments.of(Map.of("of", 5), "['winter']"));
    }

    @ParameterizedTest
    @MethodSource("stars")
    void aParameterMayHaveAnyType(Object stars, String expected) {
        books.answer(ask("SELECT VALUE c.id FROM c WHERE c.stars = @stars", "@stars", stars),
                expected);
    }

    @Test
    void parametersMayStandInEveryPlace() {
        books.answerInOrder(ask("SELECT TOP @n VALUE c.year FROM c ORDER BY c.year", "@n", 2),
                "[1835, 1867]");
        books.answerInOrder(
                ask("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET @skip LIMIT @take",
                        "@skip", 1, "@take", 2),
                "[1867, 1881]");
        books.answer(
                ask("SELECT VALUE c[@name] FROM c WHERE c.tags[@i] = @tag",
                        "@name", "id", "@i", 1, "@tag", "long"),
                "['gösta', 'africa', 'kalevala']");
        books.answer(ask("SELECT VALUE c.id FROM c WHERE c.id = @id", "@id", "x' OR '1' = '1"),
                "[]");
    }

    @Test
    void aQueryWithinAKeySeesThatKeyOnly() {
        CosmosQueryRequestOptions within = options().setPartitionKey(key("Lagerlöf"));
        for (CosmosContainer container : books.both()) {
            assertEquals(List.of("gösta", "nils"),
                    ids(query(container, "SELECT * FROM c ORDER BY c.price", within)));
            assertRows(rows("[2]"), query(container, "SELECT VALUE COUNT(1) FROM c", within), "");
            assertEquals(2, all(container.readAllItems(key("Ibsen"), ObjectNode.class)).size());
        }
    }

    @Test
    void rangesCountWhatIsTheirs() {
        int sum = 0;
        for (FeedRange range : books.many().getFeedRanges()) {
            FeedRange again = FeedRange.fromString(range.toString());
            CosmosQueryRequestOptions within = options().setFeedRange(again);
            sum += query(books.many(), "SELECT VALUE COUNT(1) FROM c", within).get(0).asInt();
        }
        assertEquals(12, sum);
    }

    @Test
    void parallelQueriesAnswerTheSame() {
        CosmosQueryRequestOptions parallel = options()
                .setMaxDegreeOfParallelism(10)
                .setMaxBufferedItemCount(100);
        assertRows(rows("[1835, 1867, 1881]"),
                query(books.many(), "SELECT TOP 3 VALUE c.year FROM c ORDER BY c.year", parallel),
                "TOP 3");
    }

    @Test
    void readManyFindsWhatIsThereAndLeavesOutTheRest() {
        List<CosmosItemIdentity> wanted = new ArrayList<>();
        for (JsonNode book : Books.ALL) {
            wanted.add(new CosmosItemIdentity(
                    key(book.get("author").asText()), book.get("id").asText()));
        }
        for (CosmosContainer container : books.both()) {
            List<CosmosItemIdentity> some = new ArrayList<>(wanted);
            some.add(new CosmosItemIdentity(key("Hamsun"), "none"));
            FeedResponse<ObjectNode> found = container.readMany(some, ObjectNode.class);
            assertEquals(12, found.getResults().size());
            assertTrue(found.getRequestCharge() > 0);
            assertEquals(List.of("hunger"), ids(container
                    .readMany(wanted.subList(0, 1), ObjectNode.class)
                    .getResults()));
            List<CosmosItemIdentity> missing = some.subList(12, 13);
            assertEquals(List.of(), container.readMany(missing, ObjectNode.class).getResults());
        }
    }

    @Test
    void readManyByPartitionKeysFindsAllItemsOfTheKeys() {
        for (CosmosContainer container : books.both()) {
            List<ObjectNode> found = all(container.readManyByPartitionKeys(
                    List.of(key("Blixen"), key("Waltari"), key("nobody")), ObjectNode.class));
            assertEquals(List.of("africa", "egyptian", "winter"),
                    ids(found).stream().sorted().toList());
        }
    }

    @Test
    void queryMetricsCountItems() {
        CosmosQueryRequestOptions options = options().setQueryMetricsEnabled(true);
        String text = "SELECT VALUE c.id FROM c WHERE c.land = 'no'";
        String diagnostics = diagnostics(books.one(), text, options);
        Matcher counted =
                Pattern.compile("outputDocumentCount\\W+(\\d+)").matcher(diagnostics);
        assertTrue(counted.find(), diagnostics);
        assertEquals("4", counted.group(1));
    }

    @Test
    void indexMetricsNameThePathsThatWereUsed() {
        // The SDK shows the metrics of indexes among those of the query only.
        CosmosQueryRequestOptions options =
                options().setQueryMetricsEnabled(true).setIndexMetricsEnabled(true);
        String text = "SELECT VALUE c.id FROM c WHERE c.land = 'no'";
        String diagnostics = diagnostics(books.one(), text, options);
        assertTrue(diagnostics.contains("/land/?"), diagnostics);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "SELECT * FORM c",
        "SELECT x.id FROM c",
        "SELECT VALUE nope(c.id) FROM c",
        "SELECT * FROM c JOIN t IN c.tags",
        "SELECT c.land, COUNT(1) FROM c",
        "SELECT * FROM c WHERE c.id = @missing",
    })
    void whatCannotBeAnsweredIs400(String text) {
        for (CosmosContainer container : books.both()) {
            fails(400, () -> query(container, text));
        }
    }

    private static String diagnostics(
            CosmosContainer container, String text, CosmosQueryRequestOptions options) {
        StringBuilder said = new StringBuilder();
        container.queryItems(text, options, JsonNode.class)
                .iterableByPage()
                .forEach(page -> said.append(page.getCosmosDiagnostics()));
        return said.toString();
    }
}
