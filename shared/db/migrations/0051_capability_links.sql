-- Capability links: secrets in a path that download one file, or take one upload (docs/reference/assets.md#capability-links).
CREATE TABLE capability_links (
    -- SHA-256 of the secret, which is stored nowhere.
    hash         bytea PRIMARY KEY,
    kind         text NOT NULL CHECK (kind IN ('download', 'upload')),
    account_uid  text COLLATE "C" NOT NULL REFERENCES accounts,
    -- The token that made it, with which it ends. Without a constraint: a token that is gone is no valid one.
    token_id     uuid NOT NULL,
    -- What a download serves: an asset, or the video of a job.
    asset_owner  text COLLATE "C",
    asset_id     text COLLATE "C",
    job_id       uuid,
    -- Where an upload goes.
    canvas_key   bigint REFERENCES canvases ON DELETE CASCADE,
    -- The name of a download; name, declared size and hash, and place of an upload.
    spec         jsonb NOT NULL DEFAULT '{}',
    -- SHA-256 of the bytes that an upload received, and what became of them.
    sha256       bytea,
    result       jsonb,
    expires_at   timestamptz(3) NOT NULL,
    -- The request that is sending an upload, and until when it counts as alive unless it says so again.
    lease        uuid,
    leased_until timestamptz(3)
);
CREATE INDEX capability_links_account ON capability_links (account_uid, kind, expires_at);
CREATE INDEX capability_links_due ON capability_links (expires_at);
-- For the deletion of a canvas.
CREATE INDEX capability_links_canvas ON capability_links (canvas_key) WHERE canvas_key IS NOT NULL;
