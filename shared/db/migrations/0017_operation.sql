-- What operators need: a limit to what an account stores, and an end to an account.

-- Bytes that an account's assets and videos may take together; NULL: the operator's default, 0: no limit.
ALTER TABLE accounts ADD COLUMN storage_max bigint CHECK (storage_max >= 0);
-- When everything of the account was deleted. Its row stays for its ledger, which is append-only and explains balances for
-- ever, and so that its uid is never given to somebody else.
ALTER TABLE accounts ADD COLUMN purged_at timestamptz(3);

-- Bytes that an account's assets and videos take, each as often as it is stored: that equal content is one blob is the
-- operator's gain. A table of its own, because an account's row is locked early by starts of jobs and this one is the last
-- that a transaction locks.
CREATE TABLE account_storage (
    account_uid text COLLATE "C" PRIMARY KEY REFERENCES accounts,
    bytes       bigint NOT NULL
) WITH (fillfactor = 50);

CREATE FUNCTION add_storage(account text, added bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO account_storage AS s (account_uid, bytes) VALUES (account, added)
    ON CONFLICT (account_uid) DO UPDATE SET bytes = s.bytes + added;
$$;

-- Counted by the schema and not by statements of the service, so that processes of the version before count, too, while
-- both run. What is added is counted when its transaction commits: until then nobody waits for it.
CREATE FUNCTION count_asset() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_storage(NEW.owner_uid, NEW.bytes);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER assets_counted AFTER INSERT ON assets DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION count_asset();

-- What is deleted is counted by the statement: a canvas may take ten thousand assets along.
CREATE FUNCTION discount_assets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_storage(owner_uid, -sum(bytes)::bigint) FROM gone GROUP BY owner_uid ORDER BY owner_uid;
    RETURN NULL;
END $$;
CREATE TRIGGER assets_discounted AFTER DELETE ON assets REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION discount_assets();

-- A video is no asset and goes with its job.
CREATE FUNCTION count_video() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_storage(NEW.account_uid, (SELECT bytes FROM blobs WHERE key = NEW.video_blob));
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER videos_counted AFTER UPDATE ON jobs DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.video_blob IS NULL AND NEW.video_blob IS NOT NULL) EXECUTE FUNCTION count_video();

CREATE FUNCTION discount_video() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_storage(OLD.account_uid, -(SELECT bytes FROM blobs WHERE key = OLD.video_blob));
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER videos_discounted AFTER DELETE ON jobs DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.video_blob IS NOT NULL) EXECUTE FUNCTION discount_video();

-- The triggers keep writers out until the migration is over, so that this misses nothing.
INSERT INTO account_storage (account_uid, bytes)
SELECT account_uid, sum(bytes) FROM (
    SELECT owner_uid AS account_uid, bytes FROM assets
    UNION ALL
    SELECT j.account_uid, b.bytes FROM jobs j JOIN blobs b ON b.key = j.video_blob
) AS stored GROUP BY account_uid;

-- By what a purge deletes, and the foreign keys that it would otherwise look through whole tables for. That of jobs serves an
-- operator's list of an account's jobs as well.
CREATE INDEX jobs_account ON jobs (account_uid, id);
CREATE INDEX jobs_token ON jobs (token_id);
CREATE INDEX tokens_session ON tokens (session_id);
CREATE INDEX imports_account ON imports (account_uid);
CREATE INDEX imports_token ON imports (token_id);
CREATE INDEX imports_canvas ON imports (canvas_key);
CREATE INDEX recipe_runs_account ON recipe_runs (account_uid, id);
CREATE INDEX recipe_runs_token ON recipe_runs (token_id);
CREATE INDEX recipe_runs_canvas ON recipe_runs (canvas_key) WHERE canvas_key IS NOT NULL;
CREATE INDEX campaigns_canvas ON campaigns (canvas_key);
