-- Batches of operations that are named instead of sent again (docs/reference/operations.md#batches-that-are-set-aside).
CREATE TABLE set_aside (
    account_uid text COLLATE "C" NOT NULL REFERENCES accounts,
    id          text COLLATE "C" NOT NULL,
    canvas_key  bigint NOT NULL REFERENCES canvases ON DELETE CASCADE,
    -- The operations, as they were sent.
    body        json NOT NULL,
    expires_at  timestamptz(3) NOT NULL,
    PRIMARY KEY (account_uid, id)
);
CREATE INDEX set_aside_due ON set_aside (expires_at);
-- For the deletion of a canvas.
CREATE INDEX set_aside_canvas ON set_aside (canvas_key);
