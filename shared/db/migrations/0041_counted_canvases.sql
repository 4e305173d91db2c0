-- What canvases keep counts towards the storage of their owner: graph, undoable deletions and changes together, rounded up to 64 KiB
-- (docs/reference/assets.md#storage-quota).
--
-- A process of the previous release records changes and deletions without their sizes. They are not counted, and
-- `canvas-gateway admin account recount` repairs what such a process leaves behind.

-- Sizes of the kept records, which are subtracted when a record goes. Records from before have 0, and were never added.
ALTER TABLE canvas_changes ADD COLUMN bytes integer NOT NULL DEFAULT 0;
ALTER TABLE deleted_nodes ADD COLUMN bytes integer NOT NULL DEFAULT 0;
ALTER TABLE deleted_connections ADD COLUMN bytes integer NOT NULL DEFAULT 0;

ALTER TABLE canvases
    -- Sum of the sizes of its changes and deletions.
    ADD COLUMN history_bytes bigint NOT NULL DEFAULT 0,
    -- What it counts; written by the trigger alone. 0 until its first write or the first recount after this migration.
    ADD COLUMN counted bigint NOT NULL DEFAULT 0;

-- Bytes of a canvas, rounded up to steps of 64 KiB, at least one.
CREATE FUNCTION canvas_counted(bytes bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT greatest((bytes + 65535) / 65536, 1) * 65536
$$;

CREATE FUNCTION step_canvas() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.counted := canvas_counted(NEW.graph_bytes + NEW.history_bytes);
    RETURN NEW;
END $$;
-- The function is called where another step begins, which a small edit seldom does. The condition is that of `canvas_counted`, which
-- PostgreSQL would parse in each statement.
CREATE TRIGGER canvases_stepped BEFORE INSERT OR UPDATE ON canvases FOR EACH ROW
    WHEN (NEW.counted <> greatest((NEW.graph_bytes + NEW.history_bytes + 65535) / 65536, 1) * 65536) EXECUTE FUNCTION step_canvas();

-- Deletes the changes of a canvas up to number `until`, with what they deleted. Returns their sizes and `gone`, which a caller passes
-- that has deleted other rows of the history before.
CREATE FUNCTION trim_history(canvas bigint, until bigint, gone bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    WITH nodes AS (
        DELETE FROM deleted_nodes WHERE canvas_key = canvas AND sequence <= until RETURNING bytes
    ), connections AS (
        DELETE FROM deleted_connections WHERE canvas_key = canvas AND sequence <= until RETURNING bytes
    ), changes AS (
        DELETE FROM canvas_changes WHERE canvas_key = canvas AND sequence <= until RETURNING bytes
    )
    SELECT gone + coalesce(sum(bytes), 0) INTO gone
    FROM (SELECT bytes FROM nodes UNION ALL SELECT bytes FROM connections UNION ALL SELECT bytes FROM changes) AS trimmed;
    RETURN gone;
END $$;

-- As for assets (0017): growth is counted at the commit, so that until then nobody waits for it. Creations and deletions, of which a
-- statement may have many, are counted by the statement.
CREATE FUNCTION count_canvas() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_storage(NEW.owner_uid, NEW.counted - OLD.counted);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER canvases_counted AFTER UPDATE ON canvases DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.counted <> NEW.counted) EXECUTE FUNCTION count_canvas();

CREATE FUNCTION count_canvases() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_storage(owner_uid, sum(counted)::bigint) FROM made GROUP BY owner_uid ORDER BY owner_uid;
    RETURN NULL;
END $$;
CREATE TRIGGER canvases_made AFTER INSERT ON canvases REFERENCING NEW TABLE AS made
    FOR EACH STATEMENT EXECUTE FUNCTION count_canvases();

CREATE FUNCTION discount_canvases() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_storage(owner_uid, -sum(counted)::bigint) FROM gone GROUP BY owner_uid ORDER BY owner_uid;
    RETURN NULL;
END $$;
CREATE TRIGGER canvases_discounted AFTER DELETE ON canvases REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION discount_canvases();
