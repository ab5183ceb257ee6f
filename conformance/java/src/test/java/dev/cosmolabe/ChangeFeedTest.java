package dev.cosmolabe;

import static com.azure.cosmos.models.CosmosChangeFeedRequestOptions.*;
import static dev.cosmolabe.Support.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Change feed: starts, scopes, resuming, all versions and deletes, and the processor. */
@ExtendWith(Suite.class)
class ChangeFeedTest {
    private static final FeedRange EVERYTHING = FeedRange.forFullRange();
    private static final Duration SOON = Duration.ofSeconds(20);

    /** What the feed has now, and the token to go on from. */
    private record Changes(List<JsonNode> items, String token) {
        static Changes of(CosmosContainer container, CosmosChangeFeedRequestOptions options) {
            List<JsonNode> items = new ArrayList<>();
            String token = null;
            for (FeedResponse<JsonNode> page :
                    container.queryChangeFeed(options, JsonNode.class).iterableByPage()) {
                items.addAll(page.getResults());
                token = page.getContinuationToken();
            }
            assertNotNull(token, "a feed without a continuation");
            return new Changes(items, token);
        }

        static Changes after(CosmosContainer container, String token) {
            return of(container, createForProcessingFromContinuation(token));
        }

        List<String> names() {
            return ids(items);
        }
    }

    private static void create(CosmosContainer container, String key, String... names) {
        for (String name : names) {
            Support.create(container, "{id: '" + name + "', pk: '" + key + "'}");
        }
    }

    @Test
    void fromTheBeginningEveryLiveItemComesOnceInTheOrderOfItsLastWrite() {
        CosmosContainer container = container();
        create(container, "p", "a", "b", "c", "d");
        container.upsertItem(item("{id: 'b', pk: 'p', v: 2}"));
        container.deleteItem("c", key("p"), new CosmosItemRequestOptions());
        Changes changes = Changes.of(container, createForProcessingFromBeginning(EVERYTHING));
        assertEquals(List.of("a", "d", "b"), changes.names());
        assertEquals(2, changes.items().get(2).get("v").asInt());
    }

    @Test
    void fromNowOnlyLaterChangesCome() {
        CosmosContainer container = makeWide(definition("/pk"));
        create(container, "p", "before");
        Changes none = Changes.of(container, createForProcessingFromNow(EVERYTHING));
        assertEquals(List.of(), none.names());
        create(container, "p", "after");
        create(container, "q", "too");
        Changes later = Changes.after(container, none.token());
        assertEquals(Set.of("after", "too"), new HashSet<>(later.names()));
        assertEquals(List.of(), Changes.after(container, later.token()).names());
    }

    @Test
    void fromAPointInTimeWhatWasWrittenSinceComes() {
        CosmosContainer container = container();
        create(container, "p", "a", "b");
        Instant past = Instant.now().minusSeconds(3600);
        assertEquals(List.of("a", "b"), Changes.of(container,
                createForProcessingFromPointInTime(past, EVERYTHING)).names());
        Instant future = Instant.now().plusSeconds(3600);
        assertEquals(List.of(), Changes.of(container,
                createForProcessingFromPointInTime(future, EVERYTHING)).names());
    }

    @Test
    void pagesAreResumedWhereTheyEnded() {
        CosmosContainer container = container();
        create(container, "p", "a", "b", "c", "d", "e");
        FeedResponse<JsonNode> first = container
                .queryChangeFeed(
                        createForProcessingFromBeginning(EVERYTHING).setMaxItemCount(2),
                        JsonNode.class)
                .iterableByPage()
                .iterator()
                .next();
        assertEquals(List.of("a", "b"), ids(first.getResults()));
        assertEquals(List.of("c", "d", "e"),
                Changes.after(container, first.getContinuationToken()).names());
    }

    @Test
    void everyRangeHasItsOwnItems() {
        CosmosContainer container = makeWide(definition("/pk"));
        for (int n = 0; n < 30; n++) {
            create(container, "p" + n, "i" + n);
        }
        List<FeedRange> ranges = container.getFeedRanges();
        assertEquals(3, ranges.size());
        List<String> found = new ArrayList<>();
        List<String> tokens = new ArrayList<>();
        for (FeedRange range : ranges) {
            Changes share = Changes.of(container, createForProcessingFromBeginning(range));
            assertFalse(share.names().isEmpty(), "a range without items");
            found.addAll(share.names());
            tokens.add(share.token());
        }
        assertEquals(30, found.size());
        assertEquals(30, new HashSet<>(found).size());

        create(container, "p7", "later");
        List<String> later = new ArrayList<>();
        tokens.forEach(token -> later.addAll(Changes.after(container, token).names()));
        assertEquals(List.of("later"), later);
    }

    @Test
    void allRangesTogetherKeepTheOrderWithinAKey() {
        CosmosContainer container = makeWide(definition("/pk"));
        for (int n = 0; n < 40; n++) {
            create(container, "p" + n % 8, "i" + n);
        }
        Changes changes = Changes.of(container,
                createForProcessingFromBeginning(EVERYTHING).setMaxItemCount(3));
        assertEquals(40, new HashSet<>(changes.names()).size());
        assertEquals(40, changes.names().size());
        for (int key = 0; key < 8; key++) {
            String own = "p" + key;
            List<Integer> order = changes.items().stream()
                    .filter(change -> change.get("pk").asText().equals(own))
                    .map(change -> Integer.valueOf(change.get("id").asText().substring(1)))
                    .toList();
            assertEquals(order.stream().sorted().toList(), order);
        }
    }

    @Test
    void aLogicalPartitionHasItsOwnFeed() {
        CosmosContainer container = makeWide(definition("/pk"));
        create(container, "p", "a", "b");
        create(container, "q", "c");
        FeedRange own = FeedRange.forLogicalPartition(key("p"));
        Changes changes = Changes.of(container, createForProcessingFromBeginning(own));
        assertEquals(List.of("a", "b"), changes.names());
        create(container, "q", "d");
        create(container, "p", "e");
        assertEquals(List.of("e"), Changes.after(container, changes.token()).names());
    }

    @Test
    void aPrefixOfAHierarchicalKeyHasItsOwnFeed() {
        CosmosContainer container = makeWide(definition("/t", "/u"));
        for (String id : List.of("a1", "a2", "b1", "b2")) {
            container.createItem(item("{id: '" + id + "', t: '" + id.charAt(0) + "', u: '"
                    + id.charAt(1) + "'}"));
        }
        FeedRange prefix = FeedRange.forLogicalPartition(levels("a"));
        assertEquals(Set.of("a1", "a2"), new HashSet<>(
                Changes.of(container, createForProcessingFromBeginning(prefix)).names()));
    }

    @Test
    void aBatchStaysWhole() {
        CosmosContainer container = container();
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key("p"));
        for (String name : List.of("a", "b", "c", "d")) {
            batch.createItemOperation(item("{id: '" + name + "', pk: 'p'}"));
        }
        container.executeCosmosBatch(batch);
        FeedResponse<JsonNode> page = container
                .queryChangeFeed(
                        createForProcessingFromBeginning(EVERYTHING).setMaxItemCount(1),
                        JsonNode.class)
                .iterableByPage()
                .iterator()
                .next();
        assertEquals(Set.of("a", "b", "c", "d"), new HashSet<>(ids(page.getResults())));
    }

    @Test
    void allVersionsAndDeletesCome() {
        Duration hour = Duration.ofMinutes(60);
        CosmosContainer container = make(definition("/pk")
                .setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(hour)));
        assertEquals(hour, container.read().getProperties().getChangeFeedPolicy()
                .getRetentionDurationForAllVersionsAndDeletesPolicy());
        String token = Changes.of(container,
                createForProcessingFromNow(EVERYTHING).allVersionsAndDeletes()).token();
        Support.create(container, "{id: 'a', pk: 'p', v: 1}");
        container.upsertItem(item("{id: 'a', pk: 'p', v: 2}"));
        container.patchItem("a", key("p"), CosmosPatchOperations.create().increment("/v", 1),
                JsonNode.class);
        container.deleteItem("a", key("p"), new CosmosItemRequestOptions());
        List<JsonNode> changes = Changes.of(container,
                createForProcessingFromContinuation(token).allVersionsAndDeletes()).items();
        assertEquals(List.of("create", "replace", "replace", "delete"), changes.stream()
                .map(change -> change.at("/metadata/operationType").asText())
                .toList());
        assertEquals(List.of(1, 2, 3), changes.subList(0, 3).stream()
                .map(change -> change.at("/current/v").asInt())
                .toList());
        assertEquals("a", changes.get(3).at("/metadata/id").asText());
        assertEquals(3, changes.get(3).at("/previous/v").asInt());
    }

    @Test
    void aProcessorHandsOverWhatIsThereAndWhatComes() throws InterruptedException {
        CosmosContainer container = makeWide(definition("/pk"));
        CosmosContainer leases = make(definition("/id"));
        for (int n = 0; n < 20; n++) {
            create(container, "p" + n, "i" + n);
        }
        CosmosAsyncDatabase database =
                Suite.asyncClient().getDatabase(Suite.database().getId());
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        ChangeFeedProcessor processor = new ChangeFeedProcessorBuilder()
                .hostName("host")
                .feedContainer(database.getContainer(container.getId()))
                .leaseContainer(database.getContainer(leases.getId()))
                .options(new ChangeFeedProcessorOptions()
                        .setStartFromBeginning(true)
                        .setFeedPollDelay(Duration.ofMillis(100)))
                .handleLatestVersionChanges(changes -> changes.forEach(
                        change -> seen.add(change.getCurrent().get("id").asText())))
                .buildChangeFeedProcessor();
        processor.start().block(SOON);
        try {
            Set<String> found = new HashSet<>();
            for (int n = 0; n < 20; n++) {
                found.add(take(seen));
            }
            assertEquals(20, found.size());
            create(container, "p3", "later");
            assertEquals("later", take(seen));
            assertEquals(3, processor.getCurrentState().block(SOON).size());
        } finally {
            processor.stop().block(SOON);
        }
        assertTrue(seen.isEmpty(), seen.toString());
    }

    private static String take(BlockingQueue<String> seen) throws InterruptedException {
        String name = seen.poll(SOON.toSeconds(), TimeUnit.SECONDS);
        assertNotNull(name, "nothing was handed over");
        return name;
    }
}
