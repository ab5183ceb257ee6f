package dev.cosmolabe;

import static dev.cosmolabe.Support.assertRows;
import static dev.cosmolabe.Support.assertSameRows;
import static dev.cosmolabe.Support.rows;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.util.CosmosPagedIterable;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.function.Supplier;

/** The same items in a container with one physical partition and in one with three. */
record Shelves(CosmosContainer one, CosmosContainer many) {
    /** The sizes of pages in which every query is asked; 0 leaves the size to the SDK. */
    private static final int[] SIZES = {0, 1, 3};

    private interface Comparison {
        void compare(List<JsonNode> expected, List<JsonNode> found, String message);
    }

    static Shelves of(List<JsonNode> items, Supplier<CosmosContainerProperties> definition) {
        Shelves shelves =
                new Shelves(Support.make(definition.get()), Support.makeWide(definition.get()));
        shelves.both().forEach(container -> items.forEach(container::createItem));
        return shelves;
    }

    List<CosmosContainer> both() {
        return List.of(one, many);
    }

    /** Expects these rows in any order. */
    void answer(String text, String expected) {
        answer(new SqlQuerySpec(text), expected);
    }

    void answer(SqlQuerySpec query, String expected) {
        expect(query, expected, Support::assertSameRows);
    }

    void answerInOrder(String text, String expected) {
        answerInOrder(new SqlQuerySpec(text), expected);
    }

    void answerInOrder(SqlQuerySpec query, String expected) {
        expect(query, expected, Support::assertRows);
    }

    /** Expects these rows in order, each page through a query that resumes from the one before. */
    void resumeInOrder(String text, String expected) {
        for (CosmosContainer container : both()) {
            for (int size : new int[] {1, 3, 7}) {
                List<JsonNode> found = Support.resumed(container, new SqlQuerySpec(text), size);
                assertRows(rows(expected), found, text + " resumed in pages of " + size);
            }
        }
    }

    void resume(String text, String expected) {
        for (CosmosContainer container : both()) {
            for (int size : new int[] {1, 3, 7}) {
                List<JsonNode> found = Support.resumed(container, new SqlQuerySpec(text), size);
                assertSameRows(rows(expected), found, text + " resumed in pages of " + size);
            }
        }
    }

    private void expect(SqlQuerySpec query, String expected, Comparison comparison) {
        for (CosmosContainer container : both()) {
            for (int size : SIZES) {
                CosmosPagedIterable<JsonNode> answer =
                        container.queryItems(query, Support.options(), JsonNode.class);
                List<JsonNode> found = size == 0
                        ? Support.all(answer)
                        : Support.together(answer.iterableByPage(size));
                String message = query.getQueryText() + " in pages of " + size;
                comparison.compare(rows(expected), found, message);
            }
        }
    }
}
