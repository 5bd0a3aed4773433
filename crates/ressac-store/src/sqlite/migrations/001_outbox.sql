-- Moments are nanoseconds since the Unix epoch. "No deadline" is the largest integer, so that it sorts last.

CREATE TABLE partner (
    no        INTEGER PRIMARY KEY,
    name      TEXT    NOT NULL UNIQUE,
    owner     TEXT,
    epoch     INTEGER NOT NULL DEFAULT 0,
    until     INTEGER NOT NULL DEFAULT 0,
    waiting   INTEGER NOT NULL DEFAULT 0,
    sending   INTEGER NOT NULL DEFAULT 0,
    delivered INTEGER NOT NULL DEFAULT 0,
    dead      INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Apart from the row above, which every commit rewrites for its counters.
CREATE TABLE snapshot (
    partner INTEGER PRIMARY KEY REFERENCES partner (no),
    data    BLOB    NOT NULL
) STRICT;

-- The hot row: narrow, rewritten on every step.
CREATE TABLE message (
    seq         INTEGER PRIMARY KEY,
    id          BLOB    NOT NULL UNIQUE,
    partner     INTEGER NOT NULL REFERENCES partner (no),
    -- 0 waiting, 1 sending, 2 delivered, 3 dead
    state       INTEGER NOT NULL CHECK (state BETWEEN 0 AND 3),
    -- 0 first, 1 retry, 2 replay
    class       INTEGER NOT NULL CHECK (class BETWEEN 0 AND 2),
    -- The queue a waiting row can be taken from: 0 first, 1 retry, 2 replay, 3 first but not yet due.
    -- NULL: not waiting, or behind another one of its lane.
    line        INTEGER CHECK (line IS NULL OR (state = 0 AND line BETWEEN 0 AND 3)),
    due         INTEGER NOT NULL,
    deadline    INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    series      INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    begun_at    INTEGER,
    ended_at    INTEGER,
    lane        TEXT,
    place       INTEGER,
    because     TEXT,
    reason      TEXT,
    blame       TEXT,
    processed   TEXT,
    operation   BLOB    NOT NULL
) STRICT;

CREATE INDEX message_first ON message (partner, deadline) WHERE line = 0;
CREATE INDEX message_due ON message (partner, line, due) WHERE line > 0;
CREATE INDEX message_lane ON message (partner, lane, place) WHERE lane IS NOT NULL AND state < 2;
CREATE INDEX message_state ON message (partner, state);
CREATE INDEX message_delivered ON message (ended_at) WHERE state = 2;

-- The cold part: written once, read when the message is sent. The body comes last, so that the rest is
-- read without it.
CREATE TABLE content (
    seq       INTEGER PRIMARY KEY REFERENCES message (seq),
    key       TEXT    NOT NULL,
    key_given INTEGER NOT NULL,
    method    TEXT    NOT NULL,
    path      TEXT    NOT NULL,
    body_len  INTEGER NOT NULL,
    headers   BLOB    NOT NULL,
    body      BLOB    NOT NULL
) STRICT;

CREATE TABLE idempotency (
    partner     INTEGER NOT NULL,
    key         TEXT    NOT NULL,
    seq         INTEGER NOT NULL,
    fingerprint BLOB    NOT NULL,
    PRIMARY KEY (partner, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt (
    rowno      INTEGER PRIMARY KEY,
    seq        INTEGER NOT NULL REFERENCES message (seq),
    series     INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    kind       TEXT,
    status     INTEGER,
    processed  TEXT,
    blame      TEXT,
    hint_ms    INTEGER,
    note       TEXT,
    reply_head BLOB,
    reply_body BLOB
) STRICT;

CREATE UNIQUE INDEX attempt_number ON attempt (seq, series, number);

CREATE TABLE series_end (
    seq       INTEGER NOT NULL REFERENCES message (seq),
    series    INTEGER NOT NULL,
    ended_at  INTEGER NOT NULL,
    reason    TEXT    NOT NULL,
    blame     TEXT    NOT NULL,
    processed TEXT    NOT NULL,
    PRIMARY KEY (seq, series)
) STRICT, WITHOUT ROWID;

-- No reference to message: evidence may be about a message that is gone.
CREATE TABLE late_settle (
    rowno         INTEGER PRIMARY KEY,
    partner       INTEGER NOT NULL REFERENCES partner (no),
    id            BLOB    NOT NULL,
    refused_at    INTEGER NOT NULL,
    epoch         INTEGER NOT NULL,
    current_epoch INTEGER NOT NULL,
    wanted        TEXT    NOT NULL,
    attempt       TEXT
) STRICT;

CREATE INDEX late_settle_partner ON late_settle (partner);
CREATE INDEX late_settle_age ON late_settle (refused_at);
