package grid;

import dev.failsafe.CircuitBreaker;
import dev.failsafe.Failsafe;
import dev.failsafe.FailsafeExecutor;
import dev.failsafe.RetryPolicy;
import dev.failsafe.RetryPolicyBuilder;
import java.io.IOException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;

/**
 * Failsafe round java.net.http: as its documentation shows, IOExceptions and results with 429 or a
 * 5xx are handled. It knows no methods.
 */
public final class FailsafeRow {
    private record Client(HttpClient http, CircuitBreaker<HttpResponse<byte[]>> breaker) {}

    public static void main(String[] args) throws Exception {
        Loop.run("Failsafe", Failsafe.class, op -> new Client(op.http(), breaker(op)),
            FailsafeRow::send);
    }

    private static HttpResponse<byte[]> send(Client client, Op op) throws Exception {
        HttpRequest request = op.request();
        FailsafeExecutor<HttpResponse<byte[]>> failsafe = Failsafe.with(retry(op));
        if (client.breaker != null) {
            failsafe = failsafe.compose(client.breaker);
        }
        return failsafe.get(() -> client.http.send(request, BodyHandlers.ofByteArray()));
    }

    private static RetryPolicy<HttpResponse<byte[]>> retry(Op op) {
        RetryPolicyBuilder<HttpResponse<byte[]>> policy = RetryPolicy.builder();
        // A first delay d is drawn from d/2 to 3d/2: from base to three times base.
        Duration delay = op.time("base_ms", 500).multipliedBy(2);
        return policy
            .handle(IOException.class)
            .handleResultIf(FailsafeRow::failed)
            .withBackoff(delay, Duration.ofHours(1), op.number("factor", 2))
            .withJitter(0.5)
            .withMaxAttempts((int) op.number("attempts", 3))
            .build();
    }

    private static boolean failed(HttpResponse<byte[]> reply) {
        return reply != null && (reply.statusCode() == 429 || reply.statusCode() >= 500);
    }

    private static CircuitBreaker<HttpResponse<byte[]>> breaker(Op op) {
        if (op.text("breaker") == null || op.text("breaker").equals("off")) {
            return null;
        }
        double open = Double.parseDouble(op.part("breaker", "open", "5s").replace("s", ""));
        double window = Double.parseDouble(op.part("breaker", "window", "10s").replace("s", ""));
        double rate = Double.parseDouble(op.part("breaker", "failure_rate", "0.5"));
        return CircuitBreaker.<HttpResponse<byte[]>>builder()
            .handle(IOException.class)
            .handleResultIf(FailsafeRow::failed)
            .withFailureRateThreshold((int) (100 * rate),
                Integer.parseInt(op.part("breaker", "min_calls", "20")),
                Duration.ofMillis((long) (1000 * window)))
            .withDelay(Duration.ofMillis((long) (1000 * open)))
            .withSuccessThreshold(Integer.parseInt(op.part("breaker", "probes", "3")))
            .build();
    }
}
