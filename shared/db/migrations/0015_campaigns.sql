-- Legacy campaigns (decisions 16): runs of up to eight shots, one image job and one target node each. Deprecated; nothing
-- refers to these tables, so that they can be dropped with the room that uses them.
CREATE TABLE campaigns (
    id           uuid PRIMARY KEY,
    account_uid  text COLLATE "C" NOT NULL REFERENCES accounts,
    canvas_key   bigint NOT NULL REFERENCES canvases ON DELETE CASCADE,
    title        text NOT NULL,
    brief        text NOT NULL,
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    updated_at   timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX campaigns_recent ON campaigns (account_uid, created_at DESC, id DESC);

CREATE TABLE campaign_shots (
    campaign_id uuid NOT NULL REFERENCES campaigns ON DELETE CASCADE,
    position    integer NOT NULL,
    id          text COLLATE "C" NOT NULL,
    prompt      text NOT NULL,
    job_id      uuid NOT NULL,
    node_id     text COLLATE "C" NOT NULL,
    decision    text CHECK (decision IN ('approve', 'reject')),
    PRIMARY KEY (campaign_id, id)
);
