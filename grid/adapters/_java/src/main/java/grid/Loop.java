package grid;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * The loop that every Java adapter shares: operations come in as lines, results go out as lines.
 * Each operation has a thread of its own, so that all may wait at once.
 */
final class Loop<C> {
    /** Sends an operation and gives the last reply. */
    interface Send<C> {
        HttpResponse<byte[]> apply(C client, Op op) throws Exception;
    }

    private final Map<String, Lazy<C>> clients = new ConcurrentHashMap<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final Function<Op, C> make;
    private final Send<C> send;

    private Loop(Function<Op, C> make, Send<C> send) {
        this.make = make;
        this.send = send;
    }

    static <C> void run(String name, Class<?> library, Function<Op, C> make, Send<C> send)
        throws Exception {
        new Loop<>(make, send).read(name, library);
    }

    private void read(String name, Class<?> library) throws Exception {
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        JsonObject policy = new JsonObject();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonObject fields = JsonParser.parseString(line).getAsJsonObject();
            if (fields.has("hello")) {
                policy = fields;
                JsonObject ready = new JsonObject();
                ready.addProperty("ready", 1);
                ready.addProperty("name", name);
                ready.addProperty("version", version(library));
                say(ready);
            } else if (fields.has("end")) {
                clients.remove(fields.get("end").getAsString());
            } else if (fields.has("op")) {
                JsonObject all = policy.deepCopy();
                fields.entrySet().forEach(e -> all.add(e.getKey(), e.getValue()));
                start(new Op(all));
            }
        }
        threads.shutdown();
        threads.awaitTermination(1, TimeUnit.HOURS);
        System.exit(0);
    }

    private void start(Op op) {
        String id = op.text("client") == null ? op.text("op") : op.text("client");
        Lazy<C> client = clients.computeIfAbsent(id, unused -> new Lazy<>());
        threads.execute(() -> {
            JsonObject line = new JsonObject();
            line.addProperty("op", op.text("op"));
            line.addProperty("ok", false);
            try {
                tell(line, send.apply(client.get(() -> make.apply(op)), op));
            } catch (Exception e) {
                line.addProperty("error", e + (e.getCause() == null ? "" : " by " + e.getCause()));
            }
            say(line);
        });
    }

    private static void tell(JsonObject line, HttpResponse<byte[]> reply)
        throws NoSuchAlgorithmException {
        line.addProperty("ok", reply.statusCode() / 100 == 2);
        line.addProperty("status", reply.statusCode());
        line.addProperty("body_len", reply.body().length);
        byte[] sum = MessageDigest.getInstance("SHA-256").digest(reply.body());
        line.addProperty("body_sha256", HexFormat.of().formatHex(sum));
        reply.request().headers().firstValue("Idempotency-Key")
            .ifPresent(key -> line.addProperty("key", key));
    }

    private static synchronized void say(JsonElement line) {
        System.out.println(line);
        System.out.flush();
    }

    /** The version in the name of the library's file. */
    private static String version(Class<?> library) throws IOException {
        String file = library.getProtectionDomain().getCodeSource().getLocation().getPath();
        return file.replaceAll(".*-([0-9.]+)\\.jar", "$1");
    }

    private static final class Lazy<C> {
        private C made;

        synchronized C get(java.util.function.Supplier<C> make) {
            if (made == null) {
                made = make.get();
            }
            return made;
        }
    }
}
