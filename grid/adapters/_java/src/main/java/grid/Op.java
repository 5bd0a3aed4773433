package grid;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** One operation, with the policy of the run where it says nothing itself. */
final class Op {
    private final JsonObject fields;

    Op(JsonObject fields) {
        this.fields = fields;
    }

    /** A field as text; null where it is absent. */
    String text(String name) {
        JsonElement value = fields.get(name);
        return value == null || value.isJsonNull() ? null : value.getAsString();
    }

    /** A setting, or the library's own value. */
    double number(String name, double otherwise) {
        String value = text(name);
        return value == null || value.isEmpty() ? otherwise : Double.parseDouble(value);
    }

    /** A setting in milliseconds, or the library's own value. */
    Duration time(String name, long otherwise) {
        return Duration.ofMillis(Math.max(1, (long) number(name, otherwise)));
    }

    /** A part of a setting such as `failure_rate=0.5,open=2s`. */
    String part(String setting, String name, String otherwise) {
        for (String pair : text(setting).split(",")) {
            if (pair.startsWith(name + "=")) {
                return pair.substring(name.length() + 1);
            }
        }
        return otherwise;
    }

    /** The request of every attempt: method, target, headers, key and body. */
    HttpRequest request() throws IOException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(text("url")));
        String file = text("body_file");
        String method = text("method") == null ? "GET" : text("method");
        if (file == null) {
            switch (method) {
                case "GET" -> request.GET();
                case "DELETE" -> request.DELETE();
                default -> request.method(method, BodyPublishers.noBody());
            }
        } else if ("stream".equals(text("body_mode"))) {
            InputStream once = Files.newInputStream(Path.of(file));
            request.method(method, BodyPublishers.ofInputStream(() -> once));
        } else {
            request.method(method, BodyPublishers.ofFile(Path.of(file)));
        }
        if (fields.has("headers")) {
            JsonElement given = fields.get("headers");
            JsonArray pairs = given.isJsonArray()
                ? given.getAsJsonArray() : JsonParser.parseString(given.getAsString()).getAsJsonArray();
            for (JsonElement pair : pairs) {
                JsonArray line = pair.getAsJsonArray();
                request.header(line.get(0).getAsString(), line.get(1).getAsString());
            }
        }
        if ("given".equals(text("key_mode"))) {
            request.header("Idempotency-Key", text("key"));
        }
        if (text("attempt_timeout_ms") != null) {
            request.timeout(time("attempt_timeout_ms", 0));
        }
        return request.build();
    }

    /** A client of java.net.http that trusts the given authority. */
    HttpClient http() {
        HttpClient.Builder client = HttpClient.newBuilder();
        client.version("2".equals(text("http")) ? HttpClient.Version.HTTP_2 : HttpClient.Version.HTTP_1_1);
        if (text("ca_file") != null) {
            client.sslContext(trusting(Path.of(text("ca_file"))));
        }
        return client.build();
    }

    private static SSLContext trusting(Path file) {
        try (InputStream pem = Files.newInputStream(file)) {
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            int number = 0;
            for (var each : CertificateFactory.getInstance("X.509").generateCertificates(pem)) {
                store.setCertificateEntry("ca" + number++, each);
            }
            TrustManagerFactory trust =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(store);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, trust.getTrustManagers(), null);
            return context;
        } catch (IOException | GeneralSecurityException e) {
            throw new IllegalStateException("the authority of " + file + " cannot be read", e);
        }
    }
}
