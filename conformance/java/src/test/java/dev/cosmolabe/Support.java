package dev.cosmolabe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.util.CosmosPagedIterable;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.DoubleNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.function.Executable;

/** Small helpers of the cases: JSON, keys, containers, pages, expected failures, deadlines. */
final class Support {
    /** Reads JSON with bare names and single quotes, so that cases stay readable. */
    private static final ObjectMapper JSON = JsonMapper.builder()
            .enable(JsonReadFeature.ALLOW_SINGLE_QUOTES, JsonReadFeature.ALLOW_UNQUOTED_FIELD_NAMES)
            .build();

    private static final List<String> SYSTEM =
            List.of("_rid", "_self", "_etag", "_ts", "_attachments", "_lsn");
    private static final int PAGES_MAX = 500;

    private Support() {}

    static JsonNode json(String text) {
        try {
            return JSON.readTree(text);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(text, error);
        }
    }

    static ObjectNode item(String text) {
        return (ObjectNode) json(text);
    }

    static List<JsonNode> rows(String text) {
        List<JsonNode> rows = new ArrayList<>();
        json(text).forEach(rows::add);
        return rows;
    }

    static String unique(String prefix) {
        return prefix + "-" + UUID.randomUUID().toString().substring(0, 13);
    }

    static PartitionKey key(Object value) {
        return new PartitionKey(value);
    }

    /** A hierarchical partition key, or the beginning of one. */
    static PartitionKey levels(String... values) {
        PartitionKeyBuilder builder = new PartitionKeyBuilder();
        List.of(values).forEach(builder::add);
        return builder.build();
    }

    /** A container under a new name, keyed by these paths. */
    static CosmosContainerProperties definition(String... paths) {
        // The SDK names no hash version unless it is told to, and containers of the first version
        // have one physical partition.
        PartitionKeyDefinition key = new PartitionKeyDefinition()
                .setPaths(List.of(paths))
                .setKind(paths.length == 1 ? PartitionKind.HASH : PartitionKind.MULTI_HASH)
                .setVersion(PartitionKeyDefinitionVersion.V2);
        return new CosmosContainerProperties(unique("c"), key);
    }

    static CosmosContainer make(CosmosContainerProperties definition) {
        Suite.database().createContainer(definition);
        return Suite.database().getContainer(definition.getId());
    }

    /** With three physical partitions. */
    static CosmosContainer makeWide(CosmosContainerProperties definition) {
        ThroughputProperties throughput = ThroughputProperties.createManualThroughput(30_000);
        Suite.database().createContainer(definition, throughput);
        return Suite.database().getContainer(definition.getId());
    }

    static CosmosContainer container() {
        return make(definition("/pk"));
    }

    static ObjectNode create(CosmosContainer container, String text) {
        return container.createItem(item(text)).getItem();
    }

    static ObjectNode read(CosmosContainer container, String id, Object key) {
        return container.readItem(id, key(key), ObjectNode.class).getItem();
    }

    static CosmosItemRequestOptions ifMatch(String etag) {
        return new CosmosItemRequestOptions().setIfMatchETag(etag);
    }

    /** The user's own properties of an item. */
    static ObjectNode user(JsonNode item) {
        return ((ObjectNode) item).deepCopy().remove(SYSTEM);
    }

    static List<String> ids(List<? extends JsonNode> items) {
        return items.stream().map(item -> item.get("id").asText()).toList();
    }

    static SqlQuerySpec ask(String text, Object... namesAndValues) {
        List<SqlParameter> parameters = new ArrayList<>();
        for (int at = 0; at < namesAndValues.length; at += 2) {
            parameters.add(new SqlParameter((String) namesAndValues[at], namesAndValues[at + 1]));
        }
        return new SqlQuerySpec(text, parameters);
    }

    /**
     * Options without query metrics, which the SDK asks for by default.
     *
     * <p>Putting them together, it counts retries without a lock, and now and then throws "retries
     * must not be negative" when it fetches a page while it hands out the one before.
     */
    static CosmosQueryRequestOptions options() {
        return new CosmosQueryRequestOptions().setQueryMetricsEnabled(false);
    }

    /** All rows of a query over every partition. */
    static List<JsonNode> query(CosmosContainer container, String text) {
        return query(container, text, options());
    }

    static List<JsonNode> query(
            CosmosContainer container, String text, CosmosQueryRequestOptions options) {
        return all(container.queryItems(text, options, JsonNode.class));
    }

    static <T> List<T> all(CosmosPagedIterable<T> answer) {
        return together(answer.iterableByPage());
    }

    static <T> List<T> together(Iterable<FeedResponse<T>> pages) {
        List<T> found = new ArrayList<>();
        pages.forEach(page -> found.addAll(page.getResults()));
        return found;
    }

    /** All rows, each page through a query of its own that resumes from the one before. */
    static List<JsonNode> resumed(CosmosContainer container, SqlQuerySpec query, int size) {
        List<JsonNode> found = new ArrayList<>();
        String token = null;
        for (int pages = 0; pages < PAGES_MAX; pages++) {
            FeedResponse<JsonNode> page = page(container, query, token, size);
            if (page == null) {
                return found;
            }
            assertTrue(page.getResults().size() <= size, "a page of " + page.getResults().size());
            found.addAll(page.getResults());
            token = page.getContinuationToken();
            if (token == null) {
                return found;
            }
        }
        return fail("the continuation never ended: " + query.getQueryText());
    }

    /** The page after a continuation, or nothing if it led to nothing more. */
    static FeedResponse<JsonNode> page(
            CosmosContainer container, SqlQuerySpec query, String token, int size) {
        CosmosPagedIterable<JsonNode> answer =
                container.queryItems(query, options(), JsonNode.class);
        Iterator<FeedResponse<JsonNode>> pages = token == null
                ? answer.iterableByPage(size).iterator()
                : answer.iterableByPage(token, size).iterator();
        return pages.hasNext() ? pages.next() : null;
    }

    /** Expects these rows in this order; 1 and 1.0 are the same number. */
    static void assertRows(List<JsonNode> expected, List<JsonNode> found, String message) {
        assertEquals(expected.stream().map(Support::plain).toList(),
                found.stream().map(Support::plain).toList(), message);
    }

    static void assertSameRows(List<JsonNode> expected, List<JsonNode> found, String message) {
        assertEquals(sorted(expected), sorted(found), message);
    }

    static CosmosException fails(int status, Executable act) {
        CosmosException caught = assertThrows(CosmosException.class, act);
        assertEquals(status, caught.getStatusCode(), caught.getShortMessage());
        return caught;
    }

    static CosmosException fails(int status, int subStatus, Executable act) {
        CosmosException caught = fails(status, act);
        assertEquals(subStatus, caught.getSubStatusCode(), caught.getShortMessage());
        return caught;
    }

    /** Asks until the answer is yes, and fails loudly when it never is. */
    static void until(String what, BooleanSupplier ask) {
        long deadline = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (!ask.getAsBoolean()) {
            assertTrue(System.nanoTime() < deadline, "not within 20 s: " + what);
            LockSupport.parkNanos(Duration.ofMillis(50).toNanos());
        }
    }

    private static List<String> sorted(List<JsonNode> rows) {
        return rows.stream().map(row -> plain(row).toString()).sorted().toList();
    }

    /** The value with numbers of one kind and names in order. */
    private static JsonNode plain(JsonNode value) {
        if (value.isNumber()) {
            return DoubleNode.valueOf(value.asDouble());
        }
        if (value.isArray()) {
            ArrayNode array = JsonNodeFactory.instance.arrayNode();
            value.forEach(one -> array.add(plain(one)));
            return array;
        }
        if (value.isObject()) {
            ObjectNode object = JsonNodeFactory.instance.objectNode();
            List<String> names = new ArrayList<>();
            value.fieldNames().forEachRemaining(names::add);
            names.stream().sorted().forEach(name -> object.set(name, plain(value.get(name))));
            return object;
        }
        return value;
    }
}
