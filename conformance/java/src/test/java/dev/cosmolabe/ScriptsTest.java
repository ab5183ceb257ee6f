package dev.cosmolabe;

import static dev.cosmolabe.Support.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosScripts;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureResponse;
import com.azure.cosmos.models.CosmosTriggerProperties;
import com.azure.cosmos.models.CosmosUserDefinedFunctionProperties;
import com.azure.cosmos.models.TriggerOperation;
import com.azure.cosmos.models.TriggerType;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Stored procedures, triggers and user-defined functions. */
@ExtendWith(Suite.class)
class ScriptsTest {
    private static final String CREATE = """
            function (id, more) {
                console.log("creates " + id);
                var items = getContext().getCollection();
                var link = items.getSelfLink();
                items.createDocument(link, {id: id, pk: "p"}, function (error, item) {
                    if (error) throw error;
                    getContext().getResponse().setBody({id: item.id, more: more});
                });
            }""";

    private CosmosContainer container;
    private CosmosScripts scripts;

    @BeforeEach
    void make() {
        container = container();
        scripts = container.getScripts();
    }

    private CosmosStoredProcedureResponse execute(String id, List<Object> arguments) {
        return scripts.getStoredProcedure(id).execute(arguments,
                new CosmosStoredProcedureRequestOptions()
                        .setPartitionKey(key("p"))
                        .setScriptLoggingEnabled(true));
    }

    @Test
    void aProcedureTakesArgumentsWritesLogsAndAnswers() {
        scripts.createStoredProcedure(new CosmosStoredProcedureProperties("create", CREATE));
        CosmosStoredProcedureResponse done =
                execute("create", List.of("a", Map.of("deep", List.of(1, true))));
        assertEquals(json("{id: 'a', more: {deep: [1, true]}}"), json(done.getResponseAsString()));
        assertEquals("creates a", done.getScriptLog());
        assertTrue(done.getRequestCharge() > 0);
        assertEquals("a", read(container, "a", "p").get("id").asText());
    }

    @Test
    void aProcedureThatThrowsIs400AndUndoesItsWrites() {
        String body = """
                function () {
                    var items = getContext().getCollection();
                    items.createDocument(items.getSelfLink(), {id: "a", pk: "p"});
                    throw new Error("enough");
                }""";
        scripts.createStoredProcedure(new CosmosStoredProcedureProperties("throws", body));
        var caught = fails(400, () -> execute("throws", List.of()));
        assertTrue(caught.getMessage().contains("enough"), caught.getShortMessage());
        fails(404, () -> read(container, "a", "p"));
    }

    @Test
    void proceduresAreReplacedListedQueriedAndDeleted() {
        scripts.createStoredProcedure(new CosmosStoredProcedureProperties("one", CREATE));
        CosmosStoredProcedureProperties one =
                scripts.getStoredProcedure("one").read().getProperties();
        assertEquals(CREATE, one.getBody());
        one.setBody("function () { getContext().getResponse().setBody({n: 1}); }");
        scripts.getStoredProcedure("one").replace(one);
        assertEquals(json("{n: 1}"), json(execute("one", List.of()).getResponseAsString()));
        assertEquals(1, all(scripts.readAllStoredProcedures()).size());
        String text = "SELECT * FROM r WHERE r.id = 'one'";
        assertEquals(1, all(scripts.queryStoredProcedures(text, null)).size());
        scripts.getStoredProcedure("one").delete();
        fails(404, () -> scripts.getStoredProcedure("one").read());
        fails(404, () -> execute("one", List.of()));
    }

    @Test
    void aScriptThatIsNoJavaScriptIsRefused() {
        fails(400, () -> scripts.createStoredProcedure(
                new CosmosStoredProcedureProperties("bad", "function ( {")));
    }

    @Test
    void triggersChangeTheItemBeforeAndWriteAnotherAfter() {
        scripts.createTrigger(new CosmosTriggerProperties("before", """
                function () {
                    var request = getContext().getRequest();
                    var item = request.getBody();
                    item.stamped = true;
                    request.setBody(item);
                }""").setTriggerType(TriggerType.PRE).setTriggerOperation(TriggerOperation.ALL));
        scripts.createTrigger(new CosmosTriggerProperties("after", """
                function () {
                    var items = getContext().getCollection();
                    var item = getContext().getResponse().getBody();
                    var log = {id: "log-" + item.id, pk: item.pk};
                    if (!items.createDocument(items.getSelfLink(), log)) throw new Error("no");
                }""")
                .setTriggerType(TriggerType.POST)
                .setTriggerOperation(TriggerOperation.CREATE));
        CosmosItemRequestOptions both = new CosmosItemRequestOptions()
                .setPreTriggerInclude(List.of("before"))
                .setPostTriggerInclude(List.of("after"));
        ObjectNode body = item("{id: 'a', pk: 'p'}");
        assertTrue(container.createItem(body, key("p"), both).getItem().get("stamped").asBoolean());
        assertEquals("log-a", read(container, "log-a", "p").get("id").asText());
        assertEquals(2, all(scripts.readAllTriggers()).size());
        container.upsertItem(item("{id: 'b', pk: 'p'}"));
        fails(404, () -> read(container, "log-b", "p"));
    }

    @Test
    void aTriggerThatThrowsUndoesTheWrite() {
        scripts.createTrigger(new CosmosTriggerProperties(
                        "refuse", "function () { throw new Error('refused'); }")
                .setTriggerType(TriggerType.POST)
                .setTriggerOperation(TriggerOperation.ALL));
        CosmosItemRequestOptions after =
                new CosmosItemRequestOptions().setPostTriggerInclude(List.of("refuse"));
        fails(400, () -> container.createItem(item("{id: 'a', pk: 'p'}"), key("p"), after));
        fails(404, () -> read(container, "a", "p"));
    }

    @Test
    void functionsAreCalledInQueriesThatTheSdkMerges() {
        CosmosContainer wide = makeWide(definition("/pk"));
        wide.getScripts().createUserDefinedFunction(new CosmosUserDefinedFunctionProperties(
                "twice", "function (x) { return x * 2; }"));
        for (int n = 0; n < 9; n++) {
            create(wide, "{id: 'i" + n + "', pk: 'p" + n + "', n: " + n + "}");
        }
        String text = "SELECT VALUE udf.twice(c.n) FROM c WHERE udf.twice(c.n) > 9 ORDER BY c.n";
        assertRows(rows("[10, 12, 14, 16]"), query(wide, text), text);
        String sum = "SELECT VALUE SUM(udf.twice(c.n)) FROM c";
        assertRows(rows("[72]"), query(wide, sum), sum);
    }
}
