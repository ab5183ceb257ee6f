package dev.cosmolabe;

import static dev.cosmolabe.Support.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Items: create, read, replace, upsert, patch, delete, etags, answers without a body, ids. */
@ExtendWith(Suite.class)
class ItemsTest {
    private CosmosContainer container;

    @BeforeEach
    void make() {
        container = container();
    }

    @Test
    void createAnswersTheItemItsEtagItsChargeAndASessionToken() {
        CosmosItemResponse<ObjectNode> created =
                container.createItem(item("{id: 'a', pk: 'p', name: 'first'}"));
        assertEquals(201, created.getStatusCode());
        assertEquals(item("{id: 'a', pk: 'p', name: 'first'}"), user(created.getItem()));
        assertEquals(created.getItem().get("_etag").asText(), created.getETag());
        assertTrue(created.getRequestCharge() > 0);
        assertTrue(created.getSessionToken().startsWith("0:"), created.getSessionToken());
        assertNotNull(created.getActivityId());
        assertEquals(created.getItem(), read(container, "a", "p"));
    }

    @Test
    void whatIsMissingIs404() {
        CosmosException caught = fails(404, 0, () -> read(container, "none", "p"));
        assertTrue(caught.getRequestCharge() > 0);
        assertNotNull(caught.getActivityId());
        ObjectNode body = item("{id: 'none', pk: 'p'}");
        CosmosItemRequestOptions options = new CosmosItemRequestOptions();
        fails(404, 0, () -> container.replaceItem(body, "none", key("p"), options));
        fails(404, 0, () -> container.deleteItem("none", key("p"), options));
        CosmosPatchOperations set = CosmosPatchOperations.create().set("/v", 1);
        fails(404, 0, () -> container.patchItem("none", key("p"), set, ObjectNode.class));
    }

    @Test
    void itemsOfAMissingContainerAre404() {
        CosmosContainer missing = Suite.database().getContainer("missing");
        fails(404, () -> read(missing, "a", "p"));
        fails(404, () -> create(missing, "{id: 'a', pk: 'p'}"));
    }

    @Test
    void anIdIsUniqueWithinItsPartitionKey() {
        create(container, "{id: 'a', pk: 'p'}");
        fails(409, () -> create(container, "{id: 'a', pk: 'p'}"));
        create(container, "{id: 'a', pk: 'q'}");
    }

    @Test
    void anItemWithoutAnIdIsRefused() {
        fails(400, () -> create(container, "{pk: 'p'}"));
    }

    @Test
    void anItemUnderAnotherKeyThanItsOwnIsRefused() {
        ObjectNode body = item("{id: 'a', pk: 'p'}");
        CosmosItemRequestOptions options = new CosmosItemRequestOptions();
        fails(400, 1001, () -> container.createItem(body, key("q"), options));
    }

    @Test
    void upsertCreatesAndThenReplaces() {
        CosmosItemResponse<ObjectNode> created =
                container.upsertItem(item("{id: 'a', pk: 'p', v: 1, w: 1}"));
        CosmosItemResponse<ObjectNode> replaced =
                container.upsertItem(item("{id: 'a', pk: 'p', v: 2}"));
        assertEquals(201, created.getStatusCode());
        assertEquals(200, replaced.getStatusCode());
        assertEquals(item("{id: 'a', pk: 'p', v: 2}"), user(read(container, "a", "p")));
        assertEquals(created.getItem().get("_rid"), replaced.getItem().get("_rid"));
        assertNotEquals(created.getETag(), replaced.getETag());
    }

    @Test
    void replaceMayChangeTheId() {
        create(container, "{id: 'old', pk: 'p'}");
        ObjectNode body = item("{id: 'new', pk: 'p'}");
        container.replaceItem(body, "old", key("p"), new CosmosItemRequestOptions());
        assertEquals(body, user(read(container, "new", "p")));
        fails(404, () -> read(container, "old", "p"));
    }

    @Test
    void aDeletedItemIsGone() {
        ObjectNode created = create(container, "{id: 'a', pk: 'p'}");
        assertEquals(204, container
                .deleteItem(created, new CosmosItemRequestOptions())
                .getStatusCode());
        fails(404, () -> read(container, "a", "p"));
    }

    @Test
    void deleteByPartitionKeyLeavesTheOthers() {
        for (int n = 0; n < 4; n++) {
            create(container, "{id: 'i" + n + "', pk: 'gone'}");
            create(container, "{id: 'i" + n + "', pk: 'stays'}");
        }
        container.deleteAllItemsByPartitionKey(key("gone"), new CosmosItemRequestOptions());
        until("the items of the key are gone",
                () -> all(container.readAllItems(key("gone"), ObjectNode.class)).isEmpty());
        assertEquals(4, all(container.readAllItems(key("stays"), ObjectNode.class)).size());
    }

    @Test
    void bodiesSurvive() {
        String text = """
                {id: 'a', pk: 'p', z: [1, 2.5, -3, 1e100, 0.1, null, true, {deep: [{er: 'x'}]}],
                 text: 'é 😀 " \\\\ \\n \\u2028', '': 'empty name', big: 9007199254740992}""";
        create(container, text);
        assertRows(List.of(item(text)), List.of(user(read(container, "a", "p"))), text);
    }

    @ParameterizedTest
    @ValueSource(strings = {"a b", "ünï", "a%20b", "a+b", "it's", "100%", "a&b=c;d,e@f:g", "日本"})
    void idsWithUnusualCharactersAreFoundAgain(String id) {
        ObjectNode body = item("{pk: 'p'}").put("id", id);
        container.createItem(body);
        assertEquals(body, user(read(container, id, "p")));
        container.deleteItem(id, key("p"), new CosmosItemRequestOptions());
        fails(404, () -> read(container, id, "p"));
    }

    @Test
    void anEtagGuardsReplaceUpsertPatchAndDelete() {
        String stale = create(container, "{id: 'a', pk: 'p', v: 1}").get("_etag").asText();
        ObjectNode body = item("{id: 'a', pk: 'p', v: 2}");
        String current =
                container.replaceItem(body, "a", key("p"), ifMatch(stale)).getETag();
        CosmosPatchOperations patch = CosmosPatchOperations.create().increment("/v", 1);
        CosmosPatchItemRequestOptions guard = new CosmosPatchItemRequestOptions();
        guard.setIfMatchETag(stale);
        fails(412, () -> container.replaceItem(body, "a", key("p"), ifMatch(stale)));
        fails(412, () -> container.upsertItem(body, key("p"), ifMatch(stale)));
        fails(412, () -> container.patchItem("a", key("p"), patch, guard, ObjectNode.class));
        fails(412, () -> container.deleteItem("a", key("p"), ifMatch(stale)));
        container.deleteItem("a", key("p"), ifMatch(current));
    }

    @Test
    void aReadOfAnUnmodifiedItemIs304AndHasNoBody() {
        String etag = create(container, "{id: 'a', pk: 'p'}").get("_etag").asText();
        CosmosItemRequestOptions unless = new CosmosItemRequestOptions().setIfNoneMatchETag(etag);
        CosmosItemResponse<ObjectNode> same =
                container.readItem("a", key("p"), unless, ObjectNode.class);
        assertEquals(304, same.getStatusCode());
        assertNull(same.getItem());
        container.upsertItem(item("{id: 'a', pk: 'p', v: 2}"));
        CosmosItemResponse<ObjectNode> changed =
                container.readItem("a", key("p"), unless, ObjectNode.class);
        assertEquals(200, changed.getStatusCode());
        assertEquals(2, changed.getItem().get("v").asInt());
    }

    @Test
    void writesMayBeAnsweredWithoutABody() {
        CosmosItemRequestOptions quiet =
                new CosmosItemRequestOptions().setContentResponseOnWriteEnabled(false);
        ObjectNode body = item("{id: 'a', pk: 'p', v: 1}");
        CosmosItemResponse<ObjectNode> created = container.createItem(body, key("p"), quiet);
        assertNull(created.getItem());
        assertEquals(created.getETag(), read(container, "a", "p").get("_etag").asText());
        assertNull(container.upsertItem(body, key("p"), quiet).getItem());
        assertNull(container.replaceItem(body, "a", key("p"), quiet).getItem());
    }

    @Test
    void patchDoesItsOperationsInOrder() {
        create(container, "{id: 'a', pk: 'p', n: 1, list: [1, 3], o: {x: 1}, old: 1}");
        CosmosPatchOperations patch = CosmosPatchOperations.create()
                .add("/list/1", 2)
                .add("/list/-", 4)
                .set("/set", Map.of("deep", true))
                .replace("/o/x", 2)
                .remove("/old")
                .increment("/n", -3)
                .increment("/n", 0.5)
                .move("/o/x", "/moved");
        ObjectNode patched =
                container.patchItem("a", key("p"), patch, ObjectNode.class).getItem();
        String expected = "[{id: 'a', pk: 'p', n: -1.5, list: [1, 2, 3, 4], o: {},"
                + " set: {deep: true}, moved: 2}]";
        assertRows(rows(expected), List.of(user(patched)), "as answered");
        assertEquals(patched, read(container, "a", "p"));
    }

    @Test
    void patchKeepsItsCondition() {
        create(container, "{id: 'a', pk: 'p', n: 8}");
        CosmosPatchOperations patch = CosmosPatchOperations.create().set("/n", 1);
        CosmosPatchItemRequestOptions above = new CosmosPatchItemRequestOptions()
                .setFilterPredicate("FROM c WHERE c.n > 7");
        assertEquals(200, container
                .patchItem("a", key("p"), patch, above, ObjectNode.class)
                .getStatusCode());
        fails(412, () -> container.patchItem("a", key("p"), patch, above, ObjectNode.class));
    }

    @Test
    void aPatchThatCannotBeDoneChangesNothing() {
        ObjectNode before = create(container, "{id: 'a', pk: 'p', text: 'x'}");
        for (CosmosPatchOperations bad : List.of(
                CosmosPatchOperations.create().set("/v", 1).replace("/none", 1),
                CosmosPatchOperations.create().set("/v", 1).remove("/none"),
                CosmosPatchOperations.create().set("/v", 1).increment("/text", 1),
                CosmosPatchOperations.create().set("/v", 1).add("/none/x", 1),
                CosmosPatchOperations.create().set("/v", 1).set("/id", "b"),
                CosmosPatchOperations.create().set("/v", 1).set("/pk", "q"))) {
            fails(400, () -> container.patchItem("a", key("p"), bad, ObjectNode.class));
        }
        assertEquals(before, read(container, "a", "p"));
    }

    @Test
    void anItemOfMoreThanTwoMegabytesIs413() {
        ObjectNode large = item("{id: 'a', pk: 'p'}").put("text", "t".repeat(3 << 20));
        fails(413, () -> container.createItem(large));
    }
}
