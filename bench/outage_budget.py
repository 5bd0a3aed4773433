"""A second, independent model of `ressac sim outage` with a budget that drops.

1,000 requests a second from 10 clients, all refused for 5 s, full jitter, 5 retries, a bucket of
tokens in each client. It answers one question: what differs between a token that is taken when a
retry is *scheduled* and one that is taken when it is *sent*. Standard library only.

    python3 bench/outage_budget.py
"""

import heapq
import random
import statistics

CLIENTS, RATE, HALF_TRIP = 10, 1000.0, 0.005
BEGIN, END, HORIZON = 10.0, 15.0, 25.0
BASE, CAP, RETRIES = 0.5, 30.0, 5


def run(seed, when_scheduled, ratio, bucket):
    draw = random.Random(seed)
    events, number = [], 0
    tokens = [float(bucket)] * CLIENTS
    offered, fresh_in, offered_in, lost_in, lost_after = {}, 0, 0, 0, 0

    def push(time, kind, retries, client):
        nonlocal number
        heapq.heappush(events, (time, number, kind, retries, client))
        number += 1

    time = 0.0
    while True:
        time += draw.expovariate(RATE)
        if time >= HORIZON:
            break
        push(time, "fresh", 0, draw.randrange(CLIENTS))
    while events:
        now, _, kind, retries, client = heapq.heappop(events)
        if now >= HORIZON:
            break
        lost = False
        if kind == "fresh":
            tokens[client] = min(bucket, tokens[client] + ratio)
            fresh_in += BEGIN <= now < END
        if kind == "refused":
            lost = retries >= RETRIES or tokens[client] < 1
            if not lost:
                tokens[client] -= when_scheduled
                wait = draw.random() * min(CAP, BASE * 2**retries)
                push(now + wait, "retry", retries + 1, client)
        else:
            if kind == "retry" and not when_scheduled:
                lost = tokens[client] < 1
                tokens[client] -= not lost
            if not lost:
                arrival = now + HALF_TRIP
                offered[int(arrival)] = offered.get(int(arrival), 0) + 1
                if BEGIN <= arrival < END:
                    offered_in += 1
                    push(arrival + HALF_TRIP, "refused", retries, client)
        if lost:
            lost_in += BEGIN <= now < END
            lost_after += now >= END
    return max(offered.values()), offered_in / fresh_in, lost_in, lost_after


for ratio, bucket in ((0.1, 100), (0.1, 10), (0.2, 200)):
    for when_scheduled in (True, False):
        columns = list(zip(*(run(seed, when_scheduled, ratio, bucket) for seed in range(20))))
        figures = "  ".join(
            f"{name} {statistics.mean(column):.3f} ± {statistics.stdev(column):.3f}"
            for name, column in zip(("peak/s", "amplification", "lost in", "lost after"), columns)
        )
        word = "scheduled" if when_scheduled else "sent"
        print(f"ratio {ratio}, bucket {bucket}, taken when {word:<9}  {figures}")
