package dev.cosmolabe;

import static dev.cosmolabe.Support.*;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Partition keys of every kind, over three physical partitions. */
@ExtendWith(Suite.class)
class KeysTest {
    private static CosmosContainer places;

    /** Twelve items under three levels: two lands, three cities each, two streets each. */
    @BeforeAll
    static void makePlaces() {
        places = makeWide(definition("/land", "/city", "/street"));
        for (int n = 0; n < 12; n++) {
            ObjectNode place = item("{}").put("id", "i" + n).put("n", n);
            place.put("land", "l" + n / 6).put("city", "c" + n / 2 % 3).put("street", "s" + n % 2);
            places.createItem(place);
        }
    }

    static Stream<Arguments> keys() {
        return Stream.of(
                Arguments.of("'text'", key("text")),
                Arguments.of("''", key("")),
                Arguments.of("'ünï 日本'", key("ünï 日本")),
                Arguments.of("7", key(7)),
                Arguments.of("1.5", key(1.5)),
                Arguments.of("-0.25e-3", key(-0.25e-3)),
                Arguments.of("true", key(true)),
                Arguments.of("false", key(false)),
                Arguments.of("null", key(null)));
    }

    @ParameterizedTest
    @MethodSource("keys")
    void anItemIsFoundUnderItsKeyWhateverItsType(String value, PartitionKey key) {
        CosmosContainer container = makeWide(definition("/pk"));
        ObjectNode body = item("{id: 'a', pk: " + value + "}");
        container.createItem(body);
        container.upsertItem(body, key, new CosmosItemRequestOptions());
        assertEquals(body, user(container.readItem("a", key, ObjectNode.class).getItem()));
        CosmosQueryRequestOptions within = options().setPartitionKey(key);
        assertEquals(List.of("a"), ids(query(container, "SELECT * FROM c", within)));
        container.deleteItem("a", key, new CosmosItemRequestOptions());
    }

    @Test
    void anItemWithoutAKeyIsFoundUnderNone() {
        CosmosContainer container = makeWide(definition("/pk"));
        create(container, "{id: 'null', pk: null}");
        create(container, "{id: 'none'}");
        assertEquals(item("{id: 'none'}"), user(container
                .readItem("none", PartitionKey.NONE, ObjectNode.class)
                .getItem()));
        fails(404, () -> container.readItem("null", PartitionKey.NONE, ObjectNode.class));
        container.deleteItem("none", PartitionKey.NONE, new CosmosItemRequestOptions());
    }

    @Test
    void aKeyMayLieBelowAnotherProperty() {
        CosmosContainer container = make(definition("/a/b"));
        create(container, "{id: 'x', a: {b: 'k'}}");
        assertEquals(item("{id: 'x', a: {b: 'k'}}"), user(read(container, "x", "k")));
    }

    @Test
    void anItemIsFoundUnderAllLevelsOfItsKey() {
        PartitionKey own = levels("l0", "c1", "s1");
        assertEquals(3, places.readItem("i3", own, ObjectNode.class).getItem().get("n").asInt());
        PartitionKey other = levels("l1", "c1", "s1");
        fails(404, () -> places.readItem("i3", other, ObjectNode.class));
    }

    @Test
    void aPrefixOfAKeySelectsEverythingBelow() {
        assertEquals(List.of(0, 1, 2, 3, 4, 5), below(levels("l0")));
        assertEquals(List.of(8, 9), below(levels("l1", "c1")));
        assertEquals(List.of(9), below(levels("l1", "c1", "s1")));
        assertEquals(List.of(), below(levels("l2")));
    }

    @Test
    void aFilterOnTheLevelsOfAKeyFindsTheSame() {
        String text = "SELECT VALUE c.n FROM c WHERE c.land = 'l1' AND c.city = 'c1'";
        assertSameRows(rows("[8, 9]"), query(places, text), text);
    }

    @Test
    void itemsOfAHierarchicalKeyAreReadTogether() {
        List<CosmosItemIdentity> wanted = new ArrayList<>();
        for (int n = 0; n < 12; n += 2) {
            PartitionKey key = levels("l" + n / 6, "c" + n / 2 % 3, "s0");
            wanted.add(new CosmosItemIdentity(key, "i" + n));
        }
        List<ObjectNode> found = places.readMany(wanted, ObjectNode.class).getResults();
        assertEquals(List.of("i0", "i10", "i2", "i4", "i6", "i8"),
                ids(found).stream().sorted().toList());
    }

    private static List<Integer> below(PartitionKey key) {
        CosmosQueryRequestOptions within = options().setPartitionKey(key);
        String text = "SELECT VALUE c.n FROM c ORDER BY c.n";
        return all(places.queryItems(text, within, Integer.class));
    }
}
