"""The optimistic-concurrency model of the AWS article, written straightforwardly.

One row with a version, N clients that each want one successful write, hops of |Normal(10, 2)| ms,
full jitter with base 5 ms and cap 2 s (the first window is twice the base). Standard library
only; it is what the speed of `ressac sim aws-occ` is compared with.

    python3 bench/aws_occ.py [clients] [runs]
"""

import heapq
import random
import sys
import time


def run(policy, clients, seed):
    draw = random.Random(seed)
    hop = lambda: abs(draw.gauss(10.0, 2.0))
    events, number = [], 0

    def push(at, step, client):
        nonlocal number
        heapq.heappush(events, (at, number, step, client))
        number += 1

    attempts = [0] * clients
    previous = [5.0] * clients
    seen = [0] * clients
    won = [False] * clients
    version, calls, handled, last = 0, 0, 0, 0.0
    for client in range(clients):
        push(hop(), "read", client)
    while events:
        now, _, step, client = heapq.heappop(events)
        handled += 1
        if step == "read":
            seen[client] = version
            push(now + hop(), "answer", client)
        elif step == "answer":
            push(now + hop(), "write", client)
        elif step == "write":
            calls += 1
            won[client] = seen[client] == version
            version += won[client]
            push(now + hop(), "written", client)
        elif won[client]:
            last = now
        else:
            attempts[client] += 1
            window = min(2000.0, 5.0 * 2 ** attempts[client])
            if policy == "none":
                wait = 0.0
            elif policy == "exponential":
                wait = window
            elif policy == "full":
                wait = draw.uniform(0, window)
            elif policy == "equal":
                wait = window / 2 + draw.uniform(0, window / 2)
            else:
                wait = previous[client] = min(2000.0, draw.uniform(5.0, 3 * previous[client]))
            push(now + wait + hop(), "read", client)
    return calls, last, handled


if __name__ == "__main__":
    clients = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    begun, all_events = time.process_time(), 0
    for policy in ("none", "exponential", "full", "equal", "decorrelated"):
        results = [run(policy, clients, seed) for seed in range(runs)]
        calls, last, events = (sum(column) for column in zip(*results))
        all_events += events
        print(f"{policy:<14} {calls / runs:8.1f} calls  {last / runs:8.0f} ms")
    spent = time.process_time() - begun
    print(f"{5 * runs} runs, {all_events} events, {spent:.2f} s: {all_events / spent / 1e6:.2f} M events/s")
