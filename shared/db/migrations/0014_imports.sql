-- Imports: what was asked for, and what came of it (decisions 14).
--
-- The id is that of the task that does the work, and what the idempotency key's outcome names. A success stays as long as
-- its key, because replays are answered from it; any other outcome frees its key once somebody received it, or after ten
-- minutes.
CREATE TABLE imports (
    id          uuid PRIMARY KEY,
    account_uid text COLLATE "C" NOT NULL REFERENCES accounts,
    token_id    uuid NOT NULL REFERENCES tokens,
    canvas_key  bigint NOT NULL REFERENCES canvases ON DELETE CASCADE,
    -- A `domain::import::Request`.
    request     jsonb NOT NULL,
    state       text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'succeeded', 'ended')),
    -- A `domain::import::Outcome`, once there is one.
    outcome     jsonb,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    ended_at    timestamptz(3),
    CHECK ((state = 'pending') = (outcome IS NULL)),
    CHECK ((state = 'pending') = (ended_at IS NULL))
);
CREATE INDEX imports_ended ON imports (ended_at) WHERE state <> 'pending';
