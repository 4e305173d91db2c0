-- A preview token is bound to the epoch of its asset, which moves when somebody loses a right to it
-- (docs/reference/assets.md#preview-epochs). It is the sum of two counters that only grow.
ALTER TABLE accounts ADD COLUMN preview_epoch bigint NOT NULL DEFAULT 0;
ALTER TABLE assets ADD COLUMN preview_epoch bigint NOT NULL DEFAULT 0;

CREATE FUNCTION preview_epoch(asset assets) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT asset.preview_epoch + (SELECT a.preview_epoch FROM accounts a WHERE a.uid = asset.owner_uid)
$$;

-- The owner of assets is disabled.
CREATE FUNCTION end_previews_of_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.preview_epoch := OLD.preview_epoch + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER accounts_previews BEFORE UPDATE OF enabled ON accounts
    FOR EACH ROW WHEN (OLD.enabled AND NOT NEW.enabled) EXECUTE FUNCTION end_previews_of_account();

-- A share is withdrawn or narrowed: previews of what is stored in the canvas, and of what its nodes show or showed. The row of the
-- canvas is not touched, so that a withdrawal does not wait for writers of the canvas. Nothing moves when the canvas itself is deleted.
CREATE FUNCTION end_previews_of_canvas() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM canvases WHERE key = OLD.canvas_key) THEN RETURN NULL; END IF;
    UPDATE assets SET preview_epoch = preview_epoch + 1 WHERE canvas_key = OLD.canvas_key;
    UPDATE assets SET preview_epoch = preview_epoch + 1
    WHERE canvas_key IS DISTINCT FROM OLD.canvas_key AND (owner_uid, id) IN (
        SELECT asset_owner, asset_id FROM nodes WHERE canvas_key = OLD.canvas_key AND asset_id IS NOT NULL
        UNION SELECT asset_owner, asset_id FROM deleted_nodes WHERE canvas_key = OLD.canvas_key AND asset_id IS NOT NULL
    );
    RETURN NULL;
END $$;
CREATE TRIGGER canvas_shares_withdrawn AFTER DELETE ON canvas_shares
    FOR EACH ROW EXECUTE FUNCTION end_previews_of_canvas();
CREATE TRIGGER canvas_shares_narrowed AFTER UPDATE OF role ON canvas_shares
    FOR EACH ROW WHEN (OLD.role = 'editor' AND NEW.role = 'viewer') EXECUTE FUNCTION end_previews_of_canvas();
