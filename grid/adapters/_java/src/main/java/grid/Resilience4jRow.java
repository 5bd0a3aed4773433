package grid;

import io.github.resilience4j.circuitbreaker.CircuitBreaker;
import io.github.resilience4j.circuitbreaker.CircuitBreakerConfig;
import io.github.resilience4j.core.IntervalFunction;
import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.retry.RetryConfig;
import java.io.IOException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.concurrent.Callable;

/**
 * Resilience4j round java.net.http: as its documentation shows, results with a 5xx and IOExceptions
 * are retried; here 429 too. It knows no methods.
 */
public final class Resilience4jRow {
    private record Client(HttpClient http, CircuitBreaker breaker) {}

    public static void main(String[] args) throws Exception {
        Loop.run("Resilience4j", Retry.class, op -> new Client(op.http(), breaker(op)),
            Resilience4jRow::send);
    }

    private static HttpResponse<byte[]> send(Client client, Op op) throws Exception {
        HttpRequest request = op.request();
        Callable<HttpResponse<byte[]>> call =
            () -> client.http.send(request, BodyHandlers.ofByteArray());
        if (client.breaker != null) {
            call = CircuitBreaker.decorateCallable(client.breaker, call);
        }
        return Retry.decorateCallable(retry(op), call).call();
    }

    private static Retry retry(Op op) {
        // A first interval i is drawn from i/2 to 3i/2: from base to three times base.
        long interval = 2 * Math.max(1, (long) op.number("base_ms", 250));
        return Retry.of("row", RetryConfig.<HttpResponse<byte[]>>custom()
            .maxAttempts((int) op.number("attempts", 3))
            .intervalFunction(IntervalFunction.ofExponentialRandomBackoff(interval,
                op.number("factor", IntervalFunction.DEFAULT_MULTIPLIER)))
            .retryOnResult(Resilience4jRow::failed)
            .retryExceptions(IOException.class)
            .build());
    }

    private static boolean failed(Object reply) {
        int status = ((HttpResponse<?>) reply).statusCode();
        return status == 429 || status >= 500;
    }

    private static CircuitBreaker breaker(Op op) {
        if (op.text("breaker") == null || op.text("breaker").equals("off")) {
            return null;
        }
        double seconds = Double.parseDouble(op.part("breaker", "open", "5s").replace("s", ""));
        String window = op.part("breaker", "window", "10s").replace("s", "");
        float rate = 100 * Float.parseFloat(op.part("breaker", "failure_rate", "0.5"));
        int calls = Integer.parseInt(op.part("breaker", "min_calls", "20"));
        int probes = Integer.parseInt(op.part("breaker", "probes", "3"));
        return CircuitBreaker.of("row", CircuitBreakerConfig.custom()
            .slidingWindowType(CircuitBreakerConfig.SlidingWindowType.TIME_BASED)
            .slidingWindowSize(Integer.parseInt(window))
            .failureRateThreshold(rate)
            .minimumNumberOfCalls(calls)
            .waitDurationInOpenState(Duration.ofMillis((long) (1000 * seconds)))
            .permittedNumberOfCallsInHalfOpenState(probes)
            .recordResult(Resilience4jRow::failed)
            .build());
    }
}
