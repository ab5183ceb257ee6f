package dev.cosmolabe;

import static dev.cosmolabe.Support.*;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchRequestOptions;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Session tokens and consistency levels. */
@ExtendWith(Suite.class)
class SessionTest {
    @Test
    void readsAndQueriesSeeTheWritesOfTheirClient() {
        CosmosContainer container = makeWide(definition("/pk"));
        for (int v = 0; v < 10; v++) {
            container.upsertItem(item("{id: 'a', pk: 'p', v: " + v + "}"));
            assertEquals(v, read(container, "a", "p").get("v").asInt());
            assertRows(rows("[" + v + "]"), query(container, "SELECT VALUE c.v FROM c"), "query");
        }
    }

    @Test
    void aTokenCarriesASessionToAnotherClient() {
        CosmosContainer container = makeWide(definition("/pk"));
        String token = container.createItem(item("{id: 'a', pk: 'p'}")).getSessionToken();
        try (CosmosClient client = Suite.connect().buildClient()) {
            CosmosContainer other =
                    client.getDatabase(Suite.database().getId()).getContainer(container.getId());
            CosmosItemRequestOptions after = new CosmosItemRequestOptions().setSessionToken(token);
            assertEquals("a", other.readItem("a", key("p"), after, ObjectNode.class)
                    .getItem().get("id").asText());
            CosmosQueryRequestOptions options = options().setSessionToken(token);
            assertEquals(List.of("a"), ids(query(other, "SELECT * FROM c", options)));
        }
    }

    @Test
    void aTokenOfTheFutureIs404() {
        CosmosContainer container = container();
        create(container, "{id: 'a', pk: 'p'}");
        CosmosItemRequestOptions future =
                new CosmosItemRequestOptions().setSessionToken("0:-1#999999999999");
        fails(404, 1002, () -> container.readItem("a", key("p"), future, ObjectNode.class));
    }

    @Test
    void aBatchThatWritesOnlyNeedsNoToken() {
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key("p"));
        batch.createItemOperation(item("{id: 'a', pk: 'p'}"));
        CosmosBatchRequestOptions future =
                new CosmosBatchRequestOptions().setSessionToken("0:-1#999999999999");
        assertEquals(200, container().executeCosmosBatch(batch, future).getStatusCode());
    }

    @Test
    void aBatchThatReadsWithATokenOfTheFutureIs404() {
        CosmosContainer container = container();
        create(container, "{id: 'a', pk: 'p'}");
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key("p"));
        batch.readItemOperation("a");
        CosmosBatchRequestOptions future =
                new CosmosBatchRequestOptions().setSessionToken("0:-1#999999999999");
        fails(404, 1002, () -> container.executeCosmosBatch(batch, future));
    }

    @Test
    void consistencyMayBeWeakenedOnly() {
        CosmosContainer container = container();
        create(container, "{id: 'a', pk: 'p'}");
        CosmosItemRequestOptions weak =
                new CosmosItemRequestOptions().setConsistencyLevel(ConsistencyLevel.EVENTUAL);
        assertEquals(200,
                container.readItem("a", key("p"), weak, ObjectNode.class).getStatusCode());
        CosmosItemRequestOptions strong =
                new CosmosItemRequestOptions().setConsistencyLevel(ConsistencyLevel.STRONG);
        fails(400, () -> container.readItem("a", key("p"), strong, ObjectNode.class));
    }
}
