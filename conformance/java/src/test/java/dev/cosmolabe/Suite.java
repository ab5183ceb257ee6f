package dev.cosmolabe;

import static org.junit.jupiter.api.extension.ConditionEvaluationResult.disabled;
import static org.junit.jupiter.api.extension.ConditionEvaluationResult.enabled;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosDatabase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;

/** One server, one client and one database for all classes; the cases that are turned off. */
final class Suite implements BeforeAllCallback, ExecutionCondition {
    private static final Pattern SKIP = Pattern.compile("^\"([^\"]+)\"\\s*=\\s*\"(.+)\"\\s*$");
    private static final Map<String, String> SKIPS = skips();
    private static Running running;

    static {
        // The SDK reads this once. Without it, it asks for TLS whatever the endpoint says.
        System.setProperty("COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "true");
    }

    static CosmosClient client() {
        return running.client;
    }

    /** A client of its own, for cases about sessions. Whoever asks for it closes it. */
    static CosmosClientBuilder connect() {
        return connect(running.server);
    }

    static CosmosAsyncClient asyncClient() {
        return running.asyncClient;
    }

    static CosmosDatabase database() {
        return running.database;
    }

    /** A path from the directory of the suite. */
    static Path path(String name) {
        return Path.of(System.getProperty("basedir", "")).resolve(name);
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        // JUnit closes what the root holds when the last class is done.
        running = context.getRoot()
                .getStore(Namespace.GLOBAL)
                .getOrComputeIfAbsent(Running.class, key -> new Running(), Running.class);
    }

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        String name = context.getRequiredTestClass().getSimpleName()
                + context.getTestMethod().map(method -> "::" + method.getName()).orElse("");
        String reason = SKIPS.get(name);
        return reason == null ? enabled("not among the skips") : disabled(reason);
    }

    private static CosmosClientBuilder connect(Server server) {
        return new CosmosClientBuilder()
                .endpoint(server.endpoint())
                .key(Server.KEY)
                .gatewayMode()
                .contentResponseOnWriteEnabled(true);
    }

    private static Map<String, String> skips() {
        Map<String, String> skips = new HashMap<>();
        try {
            for (String line : Files.readAllLines(path("skips.toml"))) {
                Matcher found = SKIP.matcher(line);
                if (found.matches()) {
                    skips.put(found.group(1), found.group(2));
                } else if (!line.isBlank() && !line.startsWith("#")) {
                    throw new IllegalStateException("not a skip: " + line);
                }
            }
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        return skips;
    }

    private static final class Running implements AutoCloseable {
        final Server server = new Server();
        final CosmosClient client = connect(server).buildClient();
        final CosmosAsyncClient asyncClient = connect(server).buildAsyncClient();
        final CosmosDatabase database = database();

        private CosmosDatabase database() {
            client.createDatabase("conformance");
            return client.getDatabase("conformance");
        }

        @Override
        public void close() {
            client.close();
            asyncClient.close();
            List<String> complaints = server.end();
            if (!complaints.isEmpty()) {
                throw new AssertionError("the server logged warnings or errors: " + complaints);
            }
        }
    }
}
