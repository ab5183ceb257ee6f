package dev.cosmolabe;

import static dev.cosmolabe.Support.*;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosFullTextIndex;
import com.azure.cosmos.models.CosmosFullTextPath;
import com.azure.cosmos.models.CosmosFullTextPolicy;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosVectorDataType;
import com.azure.cosmos.models.CosmosVectorDistanceFunction;
import com.azure.cosmos.models.CosmosVectorEmbedding;
import com.azure.cosmos.models.CosmosVectorEmbeddingPolicy;
import com.azure.cosmos.models.CosmosVectorIndexSpec;
import com.azure.cosmos.models.CosmosVectorIndexType;
import com.azure.cosmos.models.ExcludedPath;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingPolicy;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Full-text, vector and hybrid search over one physical partition and over three.
 *
 * <p>The SDK collects the statistics of all ranges, asks each for its best rows and fuses the ranks
 * itself, so that both containers must agree.
 */
@ExtendWith(Suite.class)
class SearchTest {
    private static final double[] NORTH = {0, 1, 0};

    private static Shelves texts;

    @BeforeAll
    static void makeTexts() {
        texts = Shelves.of(rows("""
                [{id: 'a', pk: 'p1', n: 0, v: [1, 0, 0],
                  text: 'The red bicycle is parked near the red barn'},
                 {id: 'b', pk: 'p2', n: 1, v: [0, 1, 0],
                  text: 'A blue bicycle and a red scooter, both old, stand in the rain'},
                 {id: 'c', pk: 'p3', n: 2, v: [0, 0, 1], text: 'A green tractor in the barn'},
                 {id: 'd', pk: 'p4', n: 3, v: [1, 1, 0], text: 'Mountains and rivers without end'},
                 {id: 'e', pk: 'p5', n: 4}]"""), SearchTest::searchable);
    }

    private static CosmosContainerProperties searchable() {
        CosmosVectorIndexSpec flat = new CosmosVectorIndexSpec();
        flat.setPath("/v");
        flat.setType(CosmosVectorIndexType.FLAT.toString());
        CosmosFullTextIndex words = new CosmosFullTextIndex();
        words.setPath("/text");
        IndexingPolicy policy = new IndexingPolicy()
                .setIncludedPaths(List.of(new IncludedPath("/*")))
                .setExcludedPaths(List.of(new ExcludedPath("/v/*")));
        policy.setVectorIndexes(List.of(flat));
        policy.setCosmosFullTextIndexes(List.of(words));

        CosmosVectorEmbedding embedding = new CosmosVectorEmbedding();
        embedding.setPath("/v");
        embedding.setDataType(CosmosVectorDataType.FLOAT32);
        embedding.setDistanceFunction(CosmosVectorDistanceFunction.COSINE);
        embedding.setEmbeddingDimensions(3);
        CosmosVectorEmbeddingPolicy vectors = new CosmosVectorEmbeddingPolicy();
        vectors.setCosmosVectorEmbeddings(List.of(embedding));

        CosmosFullTextPath path = new CosmosFullTextPath();
        path.setPath("/text");
        path.setLanguage("en-US");
        CosmosFullTextPolicy fullText = new CosmosFullTextPolicy();
        fullText.setDefaultLanguage("en-US");
        fullText.setPaths(List.of(path));
        return definition("/pk")
                .setIndexingPolicy(policy)
                .setVectorEmbeddingPolicy(vectors)
                .setFullTextPolicy(fullText);
    }

    @Test
    void policiesOfVectorsAndTextsAreKept() {
        CosmosContainerProperties kept = texts.one().read().getProperties();
        CosmosVectorEmbedding vector = kept.getVectorEmbeddingPolicy().getVectorEmbeddings().get(0);
        assertEquals("/v", vector.getPath());
        assertEquals(CosmosVectorDataType.FLOAT32, vector.getDataType());
        assertEquals(CosmosVectorDistanceFunction.COSINE, vector.getDistanceFunction());
        assertEquals("/text", kept.getFullTextPolicy().getPaths().get(0).getPath());
        IndexingPolicy indexes = kept.getIndexingPolicy();
        assertEquals("flat", indexes.getVectorIndexes().get(0).getType());
        assertEquals("/text", indexes.getCosmosFullTextIndexes().get(0).getPath());
    }

    @Test
    void fullTextContainsFindsWordsAndPhrases() {
        where("FullTextContains(c.text, 'bicycle')", "['a', 'b']");
        where("FullTextContains(c.text, 'red bicycle')", "['a']");
        where("FullTextContainsAll(c.text, 'red', 'barn')", "['a']");
        where("FullTextContainsAny(c.text, 'scooter', 'tractor')", "['b', 'c']");
    }

    @Test
    void theNearestVectorsComeFirst() {
        texts.answerInOrder(
                ask("SELECT TOP 2 c.id, VectorDistance(c.v, @to) AS score FROM c"
                        + " ORDER BY VectorDistance(c.v, @to)", "@to", new double[] {2, 1, 0}),
                "[{id: 'd', score: 0.9486832980505138}, {id: 'a', score: 0.8944271909999159}]");
        texts.answerInOrder(
                ask("SELECT c.id FROM c WHERE c.n != 3 ORDER BY VectorDistance(c.v, @to)"
                        + " OFFSET 1 LIMIT 1", "@to", new double[] {2, 1, 0}),
                "[{id: 'b'}]");
    }

    @Test
    void theBestTextsComeFirst() {
        texts.answerInOrder(
                "SELECT TOP 2 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'red')",
                "[{id: 'a'}, {id: 'b'}]");
        texts.answerInOrder(
                "SELECT TOP 1 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'green', 'tractor')",
                "[{id: 'c'}]");
    }

    @Test
    void aRankMayBeFilteredAndSkipped() {
        texts.answerInOrder(
                "SELECT TOP 1 c.id, c.n FROM c WHERE c.n > 0"
                        + " ORDER BY RANK FullTextScore(c.text, 'red', 'scooter')",
                "[{id: 'b', n: 1}]");
        // The SDK refuses an offset that is not below the limit, and asks a range for no more
        // rows than the limit, so that the limit has to leave room for the offset.
        texts.answerInOrder(
                "SELECT c.id FROM c WHERE FullTextContainsAny(c.text, 'red', 'barn')"
                        + " ORDER BY RANK FullTextScore(c.text, 'red', 'barn') OFFSET 1 LIMIT 5",
                "[{id: 'c'}, {id: 'b'}]");
    }

    @Test
    void ranksAreFused() {
        fused("FullTextScore(c.text, 'bicycle'), FullTextScore(c.text, 'scooter'),"
                + " FullTextScore(c.text, 'rain')", "[{id: 'b'}]");
        fused("VectorDistance(c.v, @to), FullTextScore(c.text, 'scooter')", "[{id: 'b'}]");
    }

    @Test
    void ranksAreFusedByWeight() {
        fused("FullTextScore(c.text, 'tractor'), VectorDistance(c.v, @to), [5, 1]", "[{id: 'c'}]");
        fused("FullTextScore(c.text, 'tractor'), VectorDistance(c.v, @to), [1, 5]", "[{id: 'b'}]");
    }

    @Test
    void aRankWithinAKeySeesThatKeyOnly() {
        CosmosQueryRequestOptions within = options().setPartitionKey(key("p2"));
        String text = "SELECT TOP 3 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'red')";
        for (CosmosContainer container : texts.both()) {
            assertEquals(List.of("b"), ids(query(container, text, within)));
        }
    }

    private static void where(String filter, String expected) {
        texts.answer("SELECT VALUE c.id FROM c WHERE " + filter, expected);
    }

    private static void fused(String functions, String expected) {
        texts.answerInOrder(
                ask("SELECT TOP 1 c.id FROM c ORDER BY RANK RRF(" + functions + ")", "@to", NORTH),
                expected);
    }
}
