package dev.cosmolabe;

import static dev.cosmolabe.Support.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Pages of queries, each fetched by a query of its own: every row once, whatever the size.
 *
 * <p>The SDK resumes an order by a filter on the last key and skips rows that it has returned by
 * their rid, so rows with equal keys must come in the same order again. It offers no continuations
 * for GROUP BY and DISTINCT that it could resume; `QueriesTest` reads those in one go.
 */
@ExtendWith(Suite.class)
class PagesTest {
    private static final int COUNT = 21;

    /** One value of each primitive type, and nothing, in the order of ORDER BY. */
    private static final List<String> MIXED =
            List.of("missing", "null", "false", "true", "-1", "2.5", "'a'");

    private static Shelves numbers;

    @BeforeAll
    static void makeNumbers() {
        List<JsonNode> items = new ArrayList<>();
        for (int n = 0; n < COUNT; n++) {
            ObjectNode item = item("{list: [" + n + ", " + -n + "]}");
            item.put("id", "i" + n).put("pk", "p" + n % 11).put("n", n).put("tie", n % 3);
            String mixed = MIXED.get(n % 7);
            if (!mixed.equals("missing")) {
                item.set("mixed", json(mixed));
            }
            items.add(item);
        }
        numbers = Shelves.of(items, () -> definition("/pk"));
    }

    private static String list(IntStream values) {
        return values.boxed().map(String::valueOf).collect(Collectors.joining(", ", "[", "]"));
    }

    @Test
    void aQueryWithoutAnOrderIsResumed() {
        numbers.resume("SELECT VALUE c.n FROM c", list(IntStream.range(0, COUNT)));
    }

    @Test
    void aFilterIsResumed() {
        numbers.resume("SELECT VALUE c.n FROM c WHERE c.tie = 2",
                list(IntStream.range(0, COUNT).filter(n -> n % 3 == 2)));
    }

    @Test
    void aJoinIsResumed() {
        numbers.resume("SELECT VALUE v FROM c JOIN v IN c.list WHERE v != 0",
                list(IntStream.range(1 - COUNT, COUNT).filter(v -> v != 0)));
    }

    @Test
    void anAscendingOrderIsResumed() {
        numbers.resumeInOrder("SELECT VALUE c.n FROM c ORDER BY c.n",
                list(IntStream.range(0, COUNT)));
    }

    @Test
    void aDescendingOrderIsResumed() {
        numbers.resumeInOrder("SELECT VALUE c.n FROM c ORDER BY c.n DESC",
                list(IntStream.range(0, COUNT).map(n -> COUNT - 1 - n)));
    }

    @Test
    void anOrderOfFilteredItemsIsResumed() {
        numbers.resumeInOrder("SELECT VALUE c.n FROM c WHERE c.tie = 1 ORDER BY c.n",
                list(IntStream.range(0, COUNT).filter(n -> n % 3 == 1)));
    }

    @Test
    void topIsResumed() {
        numbers.resumeInOrder("SELECT TOP 11 VALUE c.n FROM c ORDER BY c.n",
                list(IntStream.range(0, 11)));
    }

    @Test
    void offsetAndLimitAreResumed() {
        numbers.resumeInOrder("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 7 LIMIT 10",
                list(IntStream.range(7, 17)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"ASC", "DESC"})
    void anOrderAmongEqualKeysIsResumed(String direction) {
        String text = "SELECT c.id, c.tie FROM c ORDER BY c.tie " + direction;
        for (CosmosContainer container : numbers.both()) {
            for (int size : new int[] {1, 4, 10}) {
                List<JsonNode> found = resumed(container, new SqlQuerySpec(text), size);
                List<Integer> ties = found.stream().map(row -> row.get("tie").asInt()).toList();
                List<Integer> expected = IntStream.range(0, COUNT)
                        .map(n -> direction.equals("ASC") ? n / 7 : 2 - n / 7)
                        .boxed()
                        .toList();
                assertEquals(expected, ties, text + " in pages of " + size);
                assertEquals(COUNT, new HashSet<>(ids(found)).size(), text);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"ASC", "DESC"})
    void anOrderOfMixedTypesIsResumed(String direction) {
        String text = "SELECT c.id, c.mixed FROM c ORDER BY c.mixed " + direction;
        for (CosmosContainer container : numbers.both()) {
            for (int size : new int[] {1, 4, 10}) {
                List<JsonNode> found = resumed(container, new SqlQuerySpec(text), size);
                List<JsonNode> expected = new ArrayList<>();
                for (int n = 0; n < COUNT; n++) {
                    String value = MIXED.get(direction.equals("ASC") ? n / 3 : 6 - n / 3);
                    expected.add(json(value.equals("missing") ? "'missing'" : value));
                }
                List<JsonNode> values = new ArrayList<>();
                found.forEach(row -> values.add(
                        row.has("mixed") ? row.get("mixed") : json("'missing'")));
                assertRows(expected, values, text + " in pages of " + size);
                assertEquals(COUNT, new HashSet<>(ids(found)).size(), text);
            }
        }
    }

    static Stream<SqlQuerySpec> pageable() {
        return Stream.of(
                ask("SELECT * FROM c"),
                ask("SELECT * FROM c ORDER BY c.n"),
                ask("SELECT c.tie, COUNT(1) AS n FROM c GROUP BY c.tie"),
                ask("SELECT DISTINCT c.tie FROM c"));
    }

    @ParameterizedTest
    @MethodSource("pageable")
    void noPageIsLargerThanAskedForAndEachHasACharge(SqlQuerySpec query) {
        for (CosmosContainer container : numbers.both()) {
            double charge = 0;
            for (FeedResponse<JsonNode> page : container
                    .queryItems(query, options(), JsonNode.class)
                    .iterableByPage(2)) {
                assertTrue(page.getResults().size() <= 2, "a page of " + page.getResults().size());
                charge += page.getRequestCharge();
            }
            assertTrue(charge > 0, query.getQueryText());
        }
    }

    @Test
    void readAllItemsOfAKeyIsResumed() {
        List<String> found = new ArrayList<>();
        String token = null;
        do {
            var answer = numbers.many().readAllItems(key("p3"), options(), ObjectNode.class);
            FeedResponse<ObjectNode> page = (token == null
                            ? answer.iterableByPage(1)
                            : answer.iterableByPage(token, 1))
                    .iterator()
                    .next();
            found.addAll(ids(page.getResults()));
            token = page.getContinuationToken();
        } while (token != null);
        assertEquals(List.of("i14", "i3"), found.stream().sorted().toList());
    }

    @Test
    void aContinuationServesAnotherClient() {
        SqlQuerySpec query = ask("SELECT VALUE c.n FROM c ORDER BY c.n");
        String token = page(numbers.many(), query, null, 5).getContinuationToken();
        try (CosmosClient other = Suite.connect().buildClient()) {
            CosmosContainer container = other
                    .getDatabase(Suite.database().getId())
                    .getContainer(numbers.many().getId());
            assertRows(rows("[5, 6, 7, 8, 9]"), page(container, query, token, 5).getResults(),
                    "the second page");
        }
    }

    @Test
    void aContinuationThatIsNoneIs400() {
        SqlQuerySpec query = ask("SELECT VALUE c.n FROM c ORDER BY c.n");
        fails(400, () -> page(numbers.many(), query, "junk", 5));
    }
}
