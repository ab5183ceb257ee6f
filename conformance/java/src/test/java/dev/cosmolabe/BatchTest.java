package dev.cosmolabe;

import static dev.cosmolabe.Support.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchItemRequestOptions;
import com.azure.cosmos.models.CosmosBatchOperationResult;
import com.azure.cosmos.models.CosmosBatchPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosBulkItemRequestOptions;
import com.azure.cosmos.models.CosmosBulkOperationResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosBulkPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Batches, which are done whole or not at all, and bulks, whose operations stand alone. */
@ExtendWith(Suite.class)
class BatchTest {
    @Test
    void aBatchDoesItsOperationsInOrder() {
        CosmosContainer container = container();
        String etag = create(container, "{id: 'old', pk: 'p', v: 1}").get("_etag").asText();
        create(container, "{id: 'doomed', pk: 'p'}");
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key("p"));
        batch.createItemOperation(item("{id: 'new', pk: 'p', v: 1}"));
        batch.upsertItemOperation(item("{id: 'up', pk: 'p', v: 1}"));
        batch.upsertItemOperation(item("{id: 'up', pk: 'p', v: 2}"));
        batch.replaceItemOperation("old", item("{id: 'old', pk: 'p', v: 2}"),
                new CosmosBatchItemRequestOptions().setIfMatchETag(etag));
        batch.patchItemOperation("new", CosmosPatchOperations.create().increment("/v", 5));
        batch.patchItemOperation("new", CosmosPatchOperations.create().increment("/v", 1),
                new CosmosBatchPatchItemRequestOptions()
                        .setFilterPredicate("FROM c WHERE c.v = 6"));
        batch.readItemOperation("new");
        batch.deleteItemOperation("doomed");

        CosmosBatchResponse done = container.executeCosmosBatch(batch);
        assertTrue(done.isSuccessStatusCode(), done.getErrorMessage());
        assertEquals(List.of(201, 201, 200, 200, 200, 200, 200, 204), statuses(done));
        assertTrue(done.getRequestCharge() > 0);
        assertNotNull(done.getSessionToken());
        ObjectNode read = done.getResults().get(6).getItem(ObjectNode.class);
        assertEquals(7, read.get("v").asInt());
        assertEquals(read.get("_etag").asText(), done.getResults().get(6).getETag());
        assertEquals(List.of("new", "old", "up"),
                ids(query(container, "SELECT * FROM c ORDER BY c.id")));
    }

    static Stream<Arguments> failures() {
        CosmosPatchOperations set = CosmosPatchOperations.create().set("/v", 2);
        CosmosPatchOperations remove = CosmosPatchOperations.create().remove("/none");
        ObjectNode taken = item("{id: 'taken', pk: 'p'}");
        return Stream.of(
                failure("a create of what exists", 409, batch -> batch.createItemOperation(taken)),
                failure("a read of nothing", 404, batch -> batch.readItemOperation("none")),
                failure("a delete of nothing", 404, batch -> batch.deleteItemOperation("none")),
                failure("a stale etag", 412, batch -> batch.replaceItemOperation("taken", taken,
                        new CosmosBatchItemRequestOptions().setIfMatchETag("\"stale\""))),
                failure("an impossible patch", 400,
                        batch -> batch.patchItemOperation("taken", remove)),
                failure("a condition", 412, batch -> batch.patchItemOperation("taken", set,
                        new CosmosBatchPatchItemRequestOptions()
                                .setFilterPredicate("FROM c WHERE c.v = 9"))),
                failure("another key", 400,
                        batch -> batch.createItemOperation(item("{id: 'x', pk: 'q'}"))));
    }

    private static Arguments failure(String name, int status, Consumer<CosmosBatch> add) {
        return Arguments.of(name, status, add);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("failures")
    void oneFailureUndoesTheBatch(String name, int status, Consumer<CosmosBatch> add) {
        CosmosContainer container = container();
        ObjectNode before = create(container, "{id: 'taken', pk: 'p', v: 1}");
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key("p"));
        batch.createItemOperation(item("{id: 'first', pk: 'p'}"));
        batch.patchItemOperation("taken", CosmosPatchOperations.create().set("/w", 1));
        add.accept(batch);
        batch.createItemOperation(item("{id: 'last', pk: 'p'}"));

        CosmosBatchResponse done = container.executeCosmosBatch(batch);
        assertFalse(done.isSuccessStatusCode());
        assertEquals(status, done.getStatusCode());
        assertEquals(List.of(424, 424, status, 424), statuses(done));
        assertEquals(List.of(before), query(container, "SELECT * FROM c"));
    }

    @Test
    void aBatchHoldsAHundredOperationsAndNoMore() {
        CosmosContainer container = container();
        assertEquals(100, container.executeCosmosBatch(creates(100, "a")).size());
        fails(400, () -> container.executeCosmosBatch(creates(101, "b")));
        assertRows(rows("[100]"), query(container, "SELECT VALUE COUNT(1) FROM c"), "items");
    }

    @Test
    void theChargeOfABatchIsTheSumOfItsOperations() {
        CosmosBatchResponse done = container().executeCosmosBatch(creates(5, "a"));
        assertEquals(sumOfCharges(done), done.getRequestCharge(), 0.1);
    }

    @Test
    void theChargeOfAFailedBatchIsTheSumOfItsOperations() {
        CosmosContainer container = container();
        create(container, "{id: 'a1', pk: 'p'}");
        CosmosBatchResponse done = container.executeCosmosBatch(creates(3, "a"));
        assertEquals(409, done.getStatusCode());
        assertEquals(sumOfCharges(done), done.getRequestCharge(), 0.1);
    }

    @Test
    void aBatchWhoseAnswerIsTooLargeIs413() {
        CosmosContainer container = container();
        container.createItem(item("{id: 'a', pk: 'p'}").put("text", "t".repeat(1 << 20)));
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key("p"));
        for (int n = 0; n < 10; n++) {
            batch.readItemOperation("a");
        }
        assertEquals(413, container.executeCosmosBatch(batch).getStatusCode());
    }

    @Test
    void aBulkReadOfAnUnmodifiedItemIs304() {
        CosmosContainer container = container();
        String etag = create(container, "{id: 'a', pk: 'p'}").get("_etag").asText();
        assertEquals(304, statusOfRead(
                container, new CosmosBulkItemRequestOptions().setIfNoneMatchETag(etag)));
        assertEquals(200, statusOfRead(
                container, new CosmosBulkItemRequestOptions().setIfNoneMatchETag("\"other\"")));
    }

    /** As odd as it is, `bulkETagTest` of the SDK's own suite expects it of the service. */
    @Test
    void aBulkReadIfTheEtagMatchesIs304() {
        CosmosContainer container = container();
        String etag = create(container, "{id: 'a', pk: 'p'}").get("_etag").asText();
        assertEquals(304, statusOfRead(
                container, new CosmosBulkItemRequestOptions().setIfMatchETag(etag)));
    }

    @Test
    void aBulkWritesOverAllPartitions() {
        CosmosContainer container = makeWide(definition("/pk"));
        List<CosmosItemOperation> creates = new ArrayList<>();
        for (int n = 0; n < 200; n++) {
            ObjectNode body = item("{}").put("id", "i" + n).put("pk", "p" + n % 23);
            creates.add(CosmosBulkOperations.getCreateItemOperation(body, key("p" + n % 23), n));
        }
        List<Integer> contexts = new ArrayList<>();
        for (CosmosBulkOperationResponse<Integer> one : container
                .<Integer>executeBulkOperations(creates)) {
            assertNotNull(one.getResponse(), String.valueOf(one.getException()));
            assertEquals(201, one.getResponse().getStatusCode());
            assertTrue(one.getResponse().getRequestCharge() > 0);
            assertEquals(one.getBatchContext(),
                    Integer.valueOf(one.getResponse()
                            .getItem(ObjectNode.class)
                            .get("id")
                            .asText()
                            .substring(1)));
            contexts.add(one.getBatchContext());
        }
        assertEquals(200, contexts.stream().distinct().count());
        assertRows(rows("[200]"), query(container, "SELECT VALUE COUNT(1) FROM c"), "items");
    }

    @Test
    void operationsOfABulkSucceedAndFailEachForItself() {
        CosmosContainer container = makeWide(definition("/pk"));
        for (int n = 0; n < 6; n++) {
            create(container, "{id: 'i" + n + "', pk: 'p" + n + "', v: " + n + "}");
        }
        CosmosPatchOperations set = CosmosPatchOperations.create().set("/v", 7);
        List<CosmosItemOperation> operations = List.of(
                CosmosBulkOperations.getCreateItemOperation(
                        item("{id: 'new', pk: 'p0'}"), key("p0"), "create"),
                CosmosBulkOperations.getCreateItemOperation(
                        item("{id: 'i0', pk: 'p0'}"), key("p0"), "create again"),
                CosmosBulkOperations.getUpsertItemOperation(
                        item("{id: 'i1', pk: 'p1', v: 7}"), key("p1"), "upsert"),
                CosmosBulkOperations.getReadItemOperation("i2", key("p2"), "read"),
                CosmosBulkOperations.getReadItemOperation("none", key("p2"), "read nothing"),
                CosmosBulkOperations.getPatchItemOperation("i3", key("p3"), set, "patch"),
                CosmosBulkOperations.getPatchItemOperation("i4", key("p4"), set,
                        new CosmosBulkPatchItemRequestOptions()
                                .setFilterPredicate("FROM c WHERE c.v = 9"),
                        "patch on a condition"),
                CosmosBulkOperations.getReplaceItemOperation("i4", item("{id: 'i4', pk: 'p4'}"),
                        key("p4"), new CosmosBulkItemRequestOptions().setIfMatchETag("\"stale\""),
                        "replace what is stale"),
                CosmosBulkOperations.getDeleteItemOperation("i5", key("p5"), "delete"));
        Map<String, Integer> found = new TreeMap<>();
        for (CosmosBulkOperationResponse<String> one : container
                .<String>executeBulkOperations(operations)) {
            assertNotNull(one.getResponse(), String.valueOf(one.getException()));
            found.put(one.getBatchContext(), one.getResponse().getStatusCode());
        }
        assertEquals(Map.of("create", 201, "create again", 409, "upsert", 200, "read", 200,
                "read nothing", 404, "patch", 200, "patch on a condition", 412,
                "replace what is stale", 412, "delete", 204), found);
        assertEquals(4, read(container, "i4", "p4").get("v").asInt());
    }

    private static CosmosBatch creates(int count, String prefix) {
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key("p"));
        for (int n = 0; n < count; n++) {
            batch.createItemOperation(item("{id: '" + prefix + n + "', pk: 'p'}"));
        }
        return batch;
    }

    private static double sumOfCharges(CosmosBatchResponse done) {
        return done.getResults().stream()
                .mapToDouble(CosmosBatchOperationResult::getRequestCharge)
                .sum();
    }

    private static int statusOfRead(
            CosmosContainer container, CosmosBulkItemRequestOptions options) {
        return container
                .executeBulkOperations(List.of(
                        CosmosBulkOperations.getReadItemOperation("a", key("p"), options)))
                .iterator()
                .next()
                .getResponse()
                .getStatusCode();
    }

    private static List<Integer> statuses(CosmosBatchResponse done) {
        return done.getResults().stream().map(CosmosBatchOperationResult::getStatusCode).toList();
    }
}
