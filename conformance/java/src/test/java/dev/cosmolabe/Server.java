package dev.cosmolabe;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** One `cosmolabe serve` process in memory. COSMOLABE_BIN names the binary. */
final class Server {
    /** The public development key that the server uses when no key file is given. */
    static final String KEY =
            "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2n"
                    + "Q9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

    private static final Pattern READY =
            Pattern.compile("^cosmolabe \\S+ ready on (https?://\\S+)");
    private static final Pattern LOUD =
            Pattern.compile("\"level\":\\s*\"(WARN|ERROR)\"|panicked at");
    private static final int READY_WITHIN_S = 20;
    private static final int ENDED_WITHIN_MS = 10_000;

    private final Process process;
    private final List<String> log = new CopyOnWriteArrayList<>();
    private final CompletableFuture<String> ready = new CompletableFuture<>();
    private final Thread logReader;
    private final String endpoint;

    Server() {
        Path binary = binary();
        if (!Files.exists(binary)) {
            throw new IllegalStateException("no server at " + binary + "; set COSMOLABE_BIN");
        }
        try {
            process = new ProcessBuilder(
                            binary.toString(), "serve", "--listen", "127.0.0.1:0", "--in-memory")
                    .start();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        // A run that ends early leaves no server behind.
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        logReader = follow(process.errorReader(StandardCharsets.UTF_8), log::add);
        follow(process.inputReader(StandardCharsets.UTF_8), this::lookForEndpoint);
        endpoint = waitUntilReady();
    }

    String endpoint() {
        return endpoint;
    }

    /** Ends the process and answers the lines of its log that a healthy run does not have. */
    List<String> end() {
        try {
            process.destroyForcibly().waitFor();
            logReader.join(ENDED_WITHIN_MS);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
        return log.stream().filter(line -> LOUD.matcher(line).find()).toList();
    }

    private static Path binary() {
        String named = System.getenv("COSMOLABE_BIN");
        return named != null ? Path.of(named) : Suite.path("../../target/release/cosmolabe");
    }

    private interface Line {
        void read(String line);
    }

    private static Thread follow(BufferedReader reader, Line line) {
        Thread thread = new Thread(() -> {
            try (reader) {
                reader.lines().forEach(line::read);
            } catch (IOException | UncheckedIOException ended) {
                // The stream of a process that was ended may close while it is read.
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private void lookForEndpoint(String line) {
        Matcher found = READY.matcher(line);
        if (found.find()) {
            ready.complete(found.group(1));
        }
    }

    private String waitUntilReady() {
        try {
            return ready.get(READY_WITHIN_S, TimeUnit.SECONDS);
        } catch (InterruptedException | ExecutionException | TimeoutException error) {
            process.destroyForcibly();
            throw new IllegalStateException("the server did not get ready:\n" + log, error);
        }
    }
}
