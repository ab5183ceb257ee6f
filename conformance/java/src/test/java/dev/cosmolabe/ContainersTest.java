package dev.cosmolabe;

import static dev.cosmolabe.Support.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.ComputedProperty;
import com.azure.cosmos.models.ConflictResolutionMode;
import com.azure.cosmos.models.ConflictResolutionPolicy;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosDatabaseProperties;
import com.azure.cosmos.models.ExcludedPath;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingMode;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.SpatialSpec;
import com.azure.cosmos.models.SpatialType;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.ThroughputResponse;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Databases and containers: policies as they were set, what they do, and throughput. */
@ExtendWith(Suite.class)
class ContainersTest {
    @Test
    void aDatabaseIsCreatedListedFoundAndDeleted() {
        String id = unique("db");
        assertEquals(201, Suite.client().createDatabase(id).getStatusCode());
        fails(409, () -> Suite.client().createDatabase(id));
        assertEquals(200, Suite.client().createDatabaseIfNotExists(id).getStatusCode());
        List<String> listed = all(Suite.client().readAllDatabases()).stream()
                .map(CosmosDatabaseProperties::getId)
                .toList();
        assertTrue(listed.contains(id), listed.toString());
        CosmosDatabase database = Suite.client().getDatabase(id);
        assertEquals(id, database.read().getProperties().getId());
        database.delete();
        fails(404, database::read);
    }

    @Test
    void aContainerIsCreatedListedFoundAndDeleted() {
        CosmosContainer container = container();
        CosmosDatabase database = Suite.database();
        assertEquals("/pk", container.read().getProperties().getPartitionKeyDefinition()
                .getPaths().get(0));
        fails(409, () -> database.createContainer(container.getId(), "/pk"));
        String text = "SELECT * FROM c WHERE c.id = '" + container.getId() + "'";
        assertEquals(1, all(database.queryContainers(text)).size());
        assertTrue(all(database.readAllContainers()).stream()
                .anyMatch(one -> one.getId().equals(container.getId())));
        container.delete();
        fails(404, container::read);
    }

    @Test
    void aContainerMadeAgainWithAnotherKeyIsUsedByClientsThatKnewTheOld() {
        CosmosContainer container = container();
        create(container, "{id: 'a', pk: 'p'}");
        try (var other = Suite.connect().buildClient()) {
            CosmosDatabase database = other.getDatabase(Suite.database().getId());
            database.getContainer(container.getId()).delete();
            database.createContainer(container.getId(), "/other");
        }
        create(container, "{id: 'b', other: 'q'}");
        assertEquals("b", read(container, "b", "q").get("id").asText());
        assertEquals(List.of("b"), ids(query(container, "SELECT * FROM c")));
    }

    @Test
    void theIndexingPolicyIsKept() {
        IndexingPolicy policy = new IndexingPolicy()
                .setIndexingMode(IndexingMode.CONSISTENT)
                .setIncludedPaths(List.of(new IncludedPath("/*")))
                .setExcludedPaths(List.of(new ExcludedPath("/x/?"), new ExcludedPath("/y/*")))
                .setCompositeIndexes(List.of(List.of(
                        sorted("/a", CompositePathSortOrder.ASCENDING),
                        sorted("/b", CompositePathSortOrder.DESCENDING))));
        policy.setSpatialIndexes(List.of(new SpatialSpec()
                .setPath("/at/*")
                .setSpatialTypes(List.of(SpatialType.POINT, SpatialType.POLYGON))));
        CosmosContainer container = make(definition("/pk").setIndexingPolicy(policy));
        IndexingPolicy kept = container.read().getProperties().getIndexingPolicy();
        assertEquals(IndexingMode.CONSISTENT, kept.getIndexingMode());
        assertEquals(List.of("/*"),
                kept.getIncludedPaths().stream().map(IncludedPath::getPath).toList());
        List<String> excluded =
                kept.getExcludedPaths().stream().map(ExcludedPath::getPath).toList();
        assertTrue(excluded.containsAll(List.of("/x/?", "/y/*")), excluded.toString());
        List<CompositePath> composite = kept.getCompositeIndexes().get(0);
        assertEquals(List.of("/a", "/b"), composite.stream().map(CompositePath::getPath).toList());
        assertEquals(CompositePathSortOrder.DESCENDING, composite.get(1).getOrder());
        assertTrue(kept.getSpatialIndexes().get(0).getSpatialTypes().contains(SpatialType.POLYGON));
    }

    @Test
    void policiesOtherThanTheIndexAreKept() {
        CosmosContainerProperties definition = definition("/a", "/b")
                .setDefaultTimeToLiveInSeconds(100)
                .setUniqueKeyPolicy(new UniqueKeyPolicy()
                        .setUniqueKeys(List.of(new UniqueKey(List.of("/email", "/name")))))
                .setConflictResolutionPolicy(
                        ConflictResolutionPolicy.createLastWriterWinsPolicy("/when"))
                .setComputedProperties(
                        List.of(new ComputedProperty("low", "SELECT VALUE LOWER(c.name) FROM c")));
        CosmosContainerProperties kept = make(definition).read().getProperties();
        assertEquals(100, kept.getDefaultTimeToLiveInSeconds());
        assertEquals(List.of("/email", "/name"),
                kept.getUniqueKeyPolicy().getUniqueKeys().get(0).getPaths());
        assertEquals(ConflictResolutionMode.LAST_WRITER_WINS,
                kept.getConflictResolutionPolicy().getMode());
        assertEquals("/when", kept.getConflictResolutionPolicy().getConflictResolutionPath());
        assertEquals(PartitionKind.MULTI_HASH, kept.getPartitionKeyDefinition().getKind());
        assertEquals(PartitionKeyDefinitionVersion.V2,
                kept.getPartitionKeyDefinition().getVersion());
        assertEquals(List.of("/a", "/b"), kept.getPartitionKeyDefinition().getPaths());
        assertEquals("low", kept.getComputedProperties().iterator().next().getName());
    }

    @Test
    void policiesMayBeReplaced() {
        CosmosContainer container = container();
        CosmosContainerProperties properties = container.read().getProperties();
        properties.setDefaultTimeToLiveInSeconds(-1);
        properties.getIndexingPolicy().setIncludedPaths(List.of(new IncludedPath("/a/?")));
        properties.getIndexingPolicy().setExcludedPaths(List.of(new ExcludedPath("/*")));
        container.replace(properties);
        CosmosContainerProperties kept = container.read().getProperties();
        assertEquals(-1, kept.getDefaultTimeToLiveInSeconds());
        assertEquals("/a/?", kept.getIndexingPolicy().getIncludedPaths().get(0).getPath());
    }

    @Test
    void uniqueKeysHoldWithinAPartitionKey() {
        UniqueKeyPolicy policy =
                new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/email"))));
        CosmosContainer container = make(definition("/pk").setUniqueKeyPolicy(policy));
        create(container, "{id: 'a', pk: 'p', email: 'x'}");
        fails(409, () -> create(container, "{id: 'b', pk: 'p', email: 'x'}"));
        create(container, "{id: 'b', pk: 'q', email: 'x'}");
    }

    @Test
    void computedPropertiesMayBeQueried() {
        CosmosContainer container = make(definition("/pk").setComputedProperties(
                List.of(new ComputedProperty("low", "SELECT VALUE LOWER(c.name) FROM c"))));
        create(container, "{id: 'a', pk: 'p', name: 'OSLO'}");
        create(container, "{id: 'b', pk: 'p', name: 'Rome'}");
        String text = "SELECT VALUE c.low FROM c WHERE c.low = 'oslo'";
        assertRows(rows("['oslo']"), query(container, text), text);
    }

    @Test
    void itemsExpireAfterTheirTimeToLive() {
        CosmosContainer container = make(definition("/pk").setDefaultTimeToLiveInSeconds(-1));
        create(container, "{id: 'short', pk: 'p', ttl: 1}");
        create(container, "{id: 'long', pk: 'p'}");
        until("the item expired",
                () -> ids(query(container, "SELECT * FROM c")).equals(List.of("long")));
        fails(404, 0, () -> read(container, "short", "p"));
    }

    @Test
    void manualThroughputIsReadAndReplaced() {
        CosmosContainer container = makeWide(definition("/pk"));
        ThroughputResponse read = container.readThroughput();
        assertEquals(30_000, read.getProperties().getManualThroughput());
        assertTrue(read.getMinThroughput() > 0);
        assertFalse(read.isReplacePending());
        ThroughputProperties more = ThroughputProperties.createManualThroughput(30_100);
        assertEquals(30_100,
                container.replaceThroughput(more).getProperties().getManualThroughput());
        assertEquals(30_100, container.readThroughput().getProperties().getManualThroughput());
    }

    @Test
    void autoscaleThroughputIsReadAndReplaced() {
        CosmosContainerProperties definition = definition("/pk");
        Suite.database().createContainer(
                definition, ThroughputProperties.createAutoscaledThroughput(4_000));
        CosmosContainer container = Suite.database().getContainer(definition.getId());
        assertEquals(4_000, container.readThroughput().getProperties().getAutoscaleMaxThroughput());
        ThroughputProperties more = ThroughputProperties.createAutoscaledThroughput(5_000);
        assertEquals(5_000,
                container.replaceThroughput(more).getProperties().getAutoscaleMaxThroughput());
    }

    @Test
    void throughputOfADatabaseIsSharedByItsContainers() {
        String id = unique("db");
        Suite.client().createDatabase(id, ThroughputProperties.createManualThroughput(500));
        CosmosDatabase database = Suite.client().getDatabase(id);
        assertEquals(500, database.readThroughput().getProperties().getManualThroughput());
        database.replaceThroughput(ThroughputProperties.createManualThroughput(600));
        assertEquals(600, database.readThroughput().getProperties().getManualThroughput());
        database.createContainer("shares", "/pk");
        fails(400, () -> database.getContainer("shares").readThroughput());
        database.delete();
    }

    private static CompositePath sorted(String path, CompositePathSortOrder order) {
        return new CompositePath().setPath(path).setOrder(order);
    }
}
