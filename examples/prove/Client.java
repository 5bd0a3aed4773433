// A retrying java.net.http client, and its adapter for `ressac prove`: java Client.java
import java.io.*;
import java.net.URI;
import java.net.http.*;
import java.nio.file.*;
import java.security.MessageDigest;
import java.time.*;
import java.time.format.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.*;
import java.util.stream.Stream;

public class Client {
    // ---------------------------------------------------------- the client
    static final Set<Integer> RETRYABLE = Set.of(429, 502, 503, 504);
    static final Set<String> IDEMPOTENT = Set.of("GET", "HEAD", "PUT", "DELETE");
    static {
        // java.net.http sends a GET again by itself after a reset: two layers of retries (B08, D10).
        System.setProperty("jdk.httpclient.redirects.retrylimit", "1");
    }
    static final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    static String send(Map<String, String> op, Map<String, String> pace) throws Exception {
        int attempts = Integer.parseInt(pace.getOrDefault("attempts", "4"));
        double base = Double.parseDouble(pace.getOrDefault("base_ms", "500"));
        double cap = Double.parseDouble(pace.getOrDefault("cap_ms", "30000"));
        String method = op.get("method");
        var body = op.containsKey("body_file")
            ? HttpRequest.BodyPublishers.ofByteArray(Files.readAllBytes(Path.of(op.get("body_file"))))
            : HttpRequest.BodyPublishers.noBody();
        var request = HttpRequest.newBuilder(URI.create(op.get("url"))).method(method, body)
            .timeout(Duration.ofSeconds(30));
        if (op.containsKey("key")) request.header("Idempotency-Key", op.get("key"));
        for (String[] header : headers(op.getOrDefault("headers", "[]"))) request.header(header[0], header[1]);
        boolean repeatable = IDEMPOTENT.contains(method) || "1".equals(op.get("safe")) || op.containsKey("key");
        for (int attempt = 1; ; attempt++) {
            double hint = -1;
            boolean again = repeatable;
            String result;
            try {
                var reply = http.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
                int status = reply.statusCode();
                boolean ok = status >= 200 && status < 300;
                result = String.format("\"ok\":%b,\"status\":%d,\"attempts\":%d,\"body_len\":%d,\"body_sha256\":\"%s\"",
                    ok, status, attempt, reply.body().length, sha256(reply.body()));
                if (ok) return result;
                again = again && RETRYABLE.contains(status);
                hint = hint(reply.headers());
            } catch (IOException error) {
                result = String.format("\"ok\":false,\"attempts\":%d,\"error\":\"%s\"", attempt,
                    error.getClass().getSimpleName());
            }
            if (!again || attempt >= attempts) return result;
            double ceiling = Math.min(cap, base * Math.pow(2, attempt - 1));
            double drawn = ThreadLocalRandom.current().nextDouble() * Math.max(ceiling, hint);
            Thread.sleep((long) (Math.max(hint, 0) + drawn));
        }
    }

    static final List<DateTimeFormatter> DATES = Stream
        .of("EEE, dd MMM yyyy HH:mm:ss 'GMT'", "EEEE, dd-MMM-yy HH:mm:ss 'GMT'", "EEE MMM ppd HH:mm:ss yyyy")
        .map(form -> DateTimeFormatter.ofPattern(form, Locale.US)).toList();

    /** Milliseconds that Retry-After asks for; -1 where it is absent or malformed. */
    static double hint(HttpHeaders headers) {
        if (headers.allValues("retry-after").size() > 1) return -1;
        var value = headers.firstValue("retry-after").orElse("").trim();
        if (value.matches("[0-9]+")) return Double.parseDouble(value) * 1000;
        var at = date(value);
        var sent = headers.firstValue("date").map(Client::date).orElse(null);
        if (at == null) return -1;
        return Math.max(0, Duration.between(sent == null ? Instant.now() : sent, at).toMillis());
    }

    static Instant date(String text) {
        for (var form : DATES) {
            try {
                return LocalDateTime.parse(text, form).toInstant(ZoneOffset.UTC);
            } catch (DateTimeParseException error) {
                // Another form, or none.
            }
        }
        return null;
    }

    // --------------------------------------------------------- the adapter
    static final Pattern FIELD = Pattern.compile(
        "\"(\\w+)\":(?:\"((?:[^\"\\\\]|\\\\.)*)\"|(-?[0-9.]+)|(\\[.*?\\](?=[,}]\"|[,}]$|,\")))");

    /** A flat JSON object; use a JSON library where you have one. */
    static Map<String, String> read(String line) {
        var out = new HashMap<String, String>();
        var m = FIELD.matcher(line);
        while (m.find()) {
            String text = m.group(2) != null ? m.group(2).replace("\\\"", "\"").replace("\\\\", "\\")
                : m.group(3) != null ? m.group(3) : m.group(4);
            out.put(m.group(1), text);
        }
        return out;
    }

    static List<String[]> headers(String json) {
        var out = new ArrayList<String[]>();
        var m = Pattern.compile("\\[\"([^\"]*)\",\"([^\"]*)\"\\]").matcher(json);
        while (m.find()) out.add(new String[] {m.group(1), m.group(2)});
        return out;
    }

    static String sha256(byte[] bytes) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    public static void main(String[] arguments) throws Exception {
        var threads = Executors.newCachedThreadPool(task -> {
            var thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
        var input = new BufferedReader(new InputStreamReader(System.in));
        Map<String, String> pace = Map.of();
        for (String line; (line = input.readLine()) != null; ) {
            var told = read(line);
            if (told.containsKey("hello")) {
                pace = told;
                say("{\"ready\":1,\"name\":\"java-example\",\"version\":\"1\"}");
            } else if (told.containsKey("op")) {
                var with = pace;
                threads.submit(() -> {
                    String result;
                    try {
                        result = send(told, with);
                    } catch (Exception error) {
                        result = "\"ok\":false,\"error\":\"" + error.getClass().getSimpleName() + "\"";
                    }
                    say("{\"op\":\"" + told.get("op") + "\"," + result + "}");
                });
            }
        }
        Thread.sleep(300);
    }
}
