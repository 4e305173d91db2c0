-- The state of the service. Times carry milliseconds, ids compare bytewise (decisions 1.7).

-- One random key from which token hashes, cursors, preview tokens and model keys derive (decisions 2.5).
CREATE TABLE installation (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    sealed_key text NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT now()
);

-- Accounts, sessions, tokens -------------------------------------------------------------------

CREATE TABLE accounts (
    uid            text COLLATE "C" PRIMARY KEY,
    email          text NOT NULL,
    display_name   text NOT NULL DEFAULT '',
    -- Always the sum of the account's ledger rows, kept in the same transaction.
    credit_balance bigint NOT NULL DEFAULT 0 CONSTRAINT accounts_credit_not_negative CHECK (credit_balance >= 0),
    enabled        boolean NOT NULL DEFAULT true,
    created_at     timestamptz(3) NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX accounts_email ON accounts (lower(email));

-- The "delegated account session" that tokens hang on; revoking it kills them all.
CREATE TABLE account_sessions (
    id          uuid PRIMARY KEY,
    account_uid text COLLATE "C" NOT NULL REFERENCES accounts,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    revoked_at  timestamptz(3)
);
CREATE UNIQUE INDEX account_sessions_active ON account_sessions (account_uid) WHERE revoked_at IS NULL;

CREATE TABLE tokens (
    id           uuid PRIMARY KEY,
    account_uid  text COLLATE "C" NOT NULL REFERENCES accounts,
    session_id   uuid NOT NULL REFERENCES account_sessions,
    label        text NOT NULL,
    scopes       text[] NOT NULL,
    surface      text NOT NULL CHECK (surface IN ('api', 'cli', 'tool', 'browser')),
    secret_hash  bytea NOT NULL,
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    expires_at   timestamptz(3),
    revoked_at   timestamptz(3),
    last_used_at timestamptz(3)
);
CREATE INDEX tokens_account ON tokens (account_uid, created_at);

-- Every movement of credit; append-only, so that the balance can always be explained (decisions 12.4).
CREATE TABLE ledger (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_uid text COLLATE "C" NOT NULL REFERENCES accounts,
    amount      bigint NOT NULL CHECK (amount <> 0),
    reason      text NOT NULL CHECK (reason IN ('grant', 'reserve', 'return')),
    job_id      uuid,
    created_at  timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX ledger_account ON ledger (account_uid, id);
CREATE INDEX ledger_job ON ledger (job_id) WHERE job_id IS NOT NULL;

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'table % is append-only', TG_TABLE_NAME;
END $$;
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE ON ledger
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Canvases ----------------------------------------------------------------------------------------

CREATE TABLE canvases (
    key              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner_uid        text COLLATE "C" NOT NULL REFERENCES accounts,
    id               text COLLATE "C" NOT NULL,
    canvas_type      text CHECK (canvas_type = 'agent'),
    title            text NOT NULL,
    -- Opaque and unguessable; `sequence` counts the same changes in order (decisions 3.7, 4.7).
    revision         text COLLATE "C" NOT NULL,
    sequence         bigint NOT NULL DEFAULT 1,
    node_count       integer NOT NULL DEFAULT 0,
    connection_count integer NOT NULL DEFAULT 0,
    -- Serialized size of all nodes and connections, for the 64 MiB cap.
    graph_bytes      bigint NOT NULL DEFAULT 0,
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    updated_at       timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT canvases_owner_id UNIQUE (owner_uid, id)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX canvases_agent ON canvases (owner_uid) WHERE canvas_type = 'agent';
CREATE INDEX canvases_recent ON canvases (owner_uid, updated_at DESC, id DESC);

CREATE TABLE canvas_shares (
    canvas_key  bigint NOT NULL REFERENCES canvases ON DELETE CASCADE,
    account_uid text COLLATE "C" NOT NULL REFERENCES accounts,
    role        text NOT NULL CHECK (role IN ('editor', 'viewer')),
    PRIMARY KEY (account_uid, canvas_key)
);
CREATE INDEX canvas_shares_canvas ON canvas_shares (canvas_key);

CREATE TABLE nodes (
    canvas_key  bigint NOT NULL REFERENCES canvases ON DELETE CASCADE,
    id          text COLLATE "C" NOT NULL,
    -- Place in the list of nodes: the order of creation.
    ordinal     bigint GENERATED ALWAYS AS IDENTITY,
    type        text NOT NULL CHECK (type IN ('image', 'video', 'text', 'sticky')),
    title       text NOT NULL,
    x           double precision NOT NULL,
    y           double precision NOT NULL,
    width       double precision NOT NULL,
    height      double precision NOT NULL,
    agent_owned boolean NOT NULL,
    -- What clients wrote (decisions 3.5) and what the service owns (`provenance`, `job`, `history`, …), merged in reads.
    -- json, not jsonb: nothing looks inside, and jsonb rewrites numbers (1e308 comes back as 309 digits).
    metadata    json NOT NULL DEFAULT '{}',
    server      json NOT NULL DEFAULT '{}',
    asset_owner text COLLATE "C",
    asset_id    text COLLATE "C",
    -- The job that will fill this node; at most one.
    active_job  uuid,
    PRIMARY KEY (canvas_key, id),
    CHECK ((asset_owner IS NULL) = (asset_id IS NULL))
) WITH (fillfactor = 80);

CREATE TABLE connections (
    canvas_key   bigint NOT NULL REFERENCES canvases ON DELETE CASCADE,
    id           text COLLATE "C" NOT NULL,
    ordinal      bigint GENERATED ALWAYS AS IDENTITY,
    from_node_id text COLLATE "C" NOT NULL,
    to_node_id   text COLLATE "C" NOT NULL,
    purpose      text NOT NULL CHECK (purpose IN ('flow', 'reference', 'list', 'first-frame', 'last-frame')),
    role         text CHECK (role IN ('identity', 'construction', 'texture', 'fit', 'style')),
    PRIMARY KEY (canvas_key, id),
    -- Deferrable, so that it is judged at the end of a statement: one batch may swap the purposes of parallel connections.
    CONSTRAINT connections_once UNIQUE (canvas_key, from_node_id, to_node_id, purpose) DEFERRABLE INITIALLY IMMEDIATE
);
CREATE INDEX connections_to ON connections (canvas_key, to_node_id);

-- One row a revision: what changed (for `/changes`, the last 1000) and what it was about (the activity, the newest 50).
CREATE TABLE canvas_changes (
    canvas_key          bigint NOT NULL REFERENCES canvases ON DELETE CASCADE,
    sequence            bigint NOT NULL,
    revision            text COLLATE "C" NOT NULL,
    changed_nodes       text[] NOT NULL DEFAULT '{}',
    deleted_nodes       text[] NOT NULL DEFAULT '{}',
    changed_connections text[] NOT NULL DEFAULT '{}',
    deleted_connections text[] NOT NULL DEFAULT '{}',
    -- Type, actor, summary and nodes of what happened; its time and revision are the row's.
    activity            jsonb,
    at                  timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (canvas_key, sequence)
);
CREATE INDEX canvas_changes_activity ON canvas_changes (canvas_key, sequence DESC) WHERE activity IS NOT NULL;
CREATE INDEX canvas_changes_revision ON canvas_changes (canvas_key, revision);

-- Blobs and assets --------------------------------------------------------------------------------

-- Every object in the object store has a row here before it exists, so that no object is ever unknown.
--   staged:   may or may not be in the store; nothing refers to it
--   stored:   in the store, whole; the only state that may be referred to
--   removing: being deleted; never referred to again
CREATE TABLE blobs (
    key        uuid PRIMARY KEY,
    state      text NOT NULL DEFAULT 'staged' CHECK (state IN ('staged', 'stored', 'removing')),
    sha256     bytea,
    bytes      bigint,
    -- The sweeper leaves a blob alone for 24 h after somebody last meant to use it.
    touched_at timestamptz(3) NOT NULL DEFAULT now(),
    CHECK (state <> 'stored' OR (sha256 IS NOT NULL AND bytes IS NOT NULL))
);
CREATE UNIQUE INDEX blobs_content ON blobs (sha256) WHERE state = 'stored';
CREATE INDEX blobs_touched ON blobs (touched_at);

CREATE TABLE assets (
    owner_uid  text COLLATE "C" NOT NULL REFERENCES accounts,
    id         text COLLATE "C" NOT NULL,
    -- The canvas that it is stored in; NULL: the account's own (decisions 6.2).
    canvas_key bigint REFERENCES canvases ON DELETE CASCADE,
    node_id    text COLLATE "C",
    kind       text NOT NULL DEFAULT 'image' CHECK (kind IN ('image', 'prompt')),
    name       text NOT NULL,
    mime_type  text NOT NULL,
    width      integer NOT NULL,
    height     integer NOT NULL,
    bytes      bigint NOT NULL,
    blob_key   uuid NOT NULL REFERENCES blobs,
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    updated_at timestamptz(3) NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_uid, id)
);
CREATE INDEX assets_own ON assets (owner_uid, updated_at DESC, id DESC) WHERE canvas_key IS NULL;
CREATE INDEX assets_canvas ON assets (canvas_key, updated_at DESC, id DESC) WHERE canvas_key IS NOT NULL;
CREATE INDEX assets_blob ON assets (blob_key);

-- Smaller copies of a picture, keyed by content: made once, kept, shared by all assets of the same bytes (decisions 6.4).
CREATE TABLE renditions (
    source_key uuid NOT NULL REFERENCES blobs ON DELETE CASCADE,
    width      integer NOT NULL CHECK (width IN (64, 128, 256, 512, 1024, 2048)),
    task_id    uuid NOT NULL UNIQUE,
    state      text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'ready', 'undecodable', 'given-up')),
    blob_key   uuid REFERENCES blobs,
    mime_type  text,
    PRIMARY KEY (source_key, width),
    CHECK (state <> 'ready' OR (blob_key IS NOT NULL AND mime_type IS NOT NULL))
);
CREATE INDEX renditions_blob ON renditions (blob_key);

-- Jobs --------------------------------------------------------------------------------------------

CREATE TABLE jobs (
    id                uuid PRIMARY KEY,
    account_uid       text COLLATE "C" NOT NULL REFERENCES accounts,
    token_id          uuid NOT NULL REFERENCES tokens,
    kind              text NOT NULL CHECK (kind IN ('image', 'action', 'video', 'recipe')),
    operation         text NOT NULL,
    status            text NOT NULL CHECK (status IN
                      ('preparing', 'queued', 'running', 'finalizing', 'canceling', 'succeeded', 'failed', 'canceled', 'expired')),
    -- Grows with every visible change; with the id it is the record's ETag.
    version           integer NOT NULL DEFAULT 1,
    canvas_key        bigint REFERENCES canvases ON DELETE SET NULL,
    canvas_owner      text COLLATE "C",
    canvas_id         text COLLATE "C",
    canvas_revision   text COLLATE "C",
    -- What was asked, resolved and normalized: a `domain::job::Request`.
    request           jsonb NOT NULL,
    -- What came of it: a `domain::job::Outcome`; images, or the failure.
    outcome           jsonb,
    estimated_seconds integer NOT NULL,
    credit_cost       bigint NOT NULL DEFAULT 0,
    cancel_reason     text CHECK (cancel_reason IN ('stale_preparing', 'user_requested', 'setup_failed')),
    created_at        timestamptz(3) NOT NULL DEFAULT now(),
    queued_at         timestamptz(3),
    started_at        timestamptz(3),
    completed_at      timestamptz(3),
    -- First server finalization: the first read or webhook attempt of the terminal record (decisions 9.3).
    finalized_at      timestamptz(3),
    -- When the next step of retention is due: expiry, or removal.
    retain_until      timestamptz(3),
    updated_at        timestamptz(3) NOT NULL DEFAULT now()
) WITH (fillfactor = 70);
CREATE INDEX jobs_active ON jobs (account_uid)
    WHERE status IN ('preparing', 'queued', 'running', 'finalizing', 'canceling');
CREATE INDEX jobs_retention ON jobs (retain_until) WHERE retain_until IS NOT NULL;
CREATE INDEX jobs_canvas ON jobs (canvas_key) WHERE canvas_key IS NOT NULL;

-- Every state that a job was in: what fault campaigns check transitions against, and what timing is read from.
CREATE TABLE job_history (
    job_id  uuid NOT NULL REFERENCES jobs ON DELETE CASCADE,
    version integer NOT NULL,
    status  text NOT NULL,
    at      timestamptz(3) NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, version)
);

-- Work that is waiting, parked or leased; a row lives from acceptance to settlement and is small, because it is hot.
-- Its id is that of what it works on: a job, a webhook delivery, a rendition.
--   ready:  may be claimed; `turn` orders it fairly between lanes
--   parked: may be claimed from `due_at` on, when it is made ready with a fresh turn
--   leased: a worker has it until `lease_until`, and only that worker's `lease_token` can settle it
-- `turn` is start-time fair queueing: a task's turn is one more than the last of its lane, and at least the one
-- in service. Ten thousand tasks of one account thus stand in ten thousand turns, and another's first stands in the next.
CREATE SEQUENCE task_turns;
CREATE TABLE tasks (
    id               uuid PRIMARY KEY,
    queue            text NOT NULL,
    kind             text NOT NULL,
    lane             text COLLATE "C" NOT NULL,
    state            text NOT NULL DEFAULT 'ready' CHECK (state IN ('ready', 'parked', 'leased')),
    turn             bigint NOT NULL,
    due_at           timestamptz(3) NOT NULL DEFAULT now(),
    claims           integer NOT NULL DEFAULT 0,
    -- Leases that ran out since it last went as planned: workers that died or stalled with it in hand. After two it may be
    -- what killed them, and is worked on alone.
    expired          integer NOT NULL DEFAULT 0,
    suspect          boolean GENERATED ALWAYS AS (expired >= 2) STORED NOT NULL,
    lease_token      uuid,
    lease_until      timestamptz,
    lease_owner      text,
    cancel_requested boolean NOT NULL DEFAULT false,
    traceparent      text,
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    CHECK ((state = 'leased') = (lease_token IS NOT NULL)),
    CHECK ((state = 'leased') = (lease_until IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500);
CREATE INDEX tasks_ready ON tasks (queue, turn, id) WHERE state = 'ready';
CREATE INDEX tasks_lane ON tasks (queue, lane, turn DESC) WHERE state = 'ready';
CREATE INDEX tasks_parked ON tasks (queue, due_at) WHERE state = 'parked';
CREATE INDEX tasks_leased ON tasks (queue, lease_until) WHERE state = 'leased';
CREATE INDEX tasks_service ON tasks (queue, turn) WHERE state = 'leased';
CREATE INDEX tasks_suspects ON tasks (queue) WHERE state = 'ready' AND suspect;

-- Wake-ups that the broker has not confirmed yet. Committed with the work they announce, deleted on the confirm.
CREATE TABLE outbox (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue         text NOT NULL,
    task_id       uuid NOT NULL,
    traceparent   text,
    claimed_until timestamptz,
    created_at    timestamptz(3) NOT NULL DEFAULT now()
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500);

-- Answers that were given once and are given again (decisions 1.12).
CREATE TABLE idempotency_keys (
    account_uid text COLLATE "C" NOT NULL REFERENCES accounts,
    key         text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    -- A `domain::idempotency::Outcome`: where the original result is found.
    outcome     jsonb,
    job_id      uuid,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    PRIMARY KEY (account_uid, key)
);
CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at);
CREATE INDEX idempotency_keys_job ON idempotency_keys (job_id) WHERE job_id IS NOT NULL;

-- Webhooks ------------------------------------------------------------------------------------------

CREATE TABLE webhook_deliveries (
    id              uuid PRIMARY KEY,
    account_uid     text COLLATE "C" NOT NULL REFERENCES accounts,
    job_id          uuid NOT NULL UNIQUE,
    url             text NOT NULL,
    sealed_secret   text NOT NULL,
    status          text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivering', 'delivered', 'failed')),
    -- The event, fixed when the job ends; the same bytes in every attempt.
    event_id        text COLLATE "C",
    event_type      text,
    body            bytea,
    attempts        integer NOT NULL DEFAULT 0,
    -- While an operator's replay is under way: the attempts it has begun; more than one only when a process died in one.
    replay_attempts integer,
    next_attempt_at timestamptz(3),
    last_attempt_at timestamptz(3),
    delivered_at    timestamptz(3),
    last_status     integer,
    error_code      text,
    created_at      timestamptz(3) NOT NULL DEFAULT now(),
    CHECK ((event_id IS NULL) = (body IS NULL))
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX webhook_deliveries_event ON webhook_deliveries (event_id) WHERE event_id IS NOT NULL;
CREATE INDEX webhook_deliveries_recent ON webhook_deliveries (account_uid, created_at DESC);
CREATE INDEX webhook_deliveries_created ON webhook_deliveries (created_at);

-- An attempt counts before it is sent. An operator's replay is recorded apart (decisions 15.4).
CREATE TABLE webhook_attempts (
    delivery_id uuid NOT NULL REFERENCES webhook_deliveries ON DELETE CASCADE,
    number      integer NOT NULL,
    replay      boolean NOT NULL DEFAULT false,
    started_at  timestamptz(3) NOT NULL DEFAULT now(),
    finished_at timestamptz(3),
    status      integer,
    error       text,
    PRIMARY KEY (delivery_id, replay, number)
);
