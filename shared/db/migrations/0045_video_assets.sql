-- Videos as assets (docs/reference/videos.md#videos-that-stay).
--
-- A process of the previous release cannot read such an asset. Upgrade all processes before the first video is started with a target
-- or kept.
ALTER TABLE assets DROP CONSTRAINT assets_kind_check;
ALTER TABLE assets ADD CONSTRAINT assets_kind_check CHECK (kind IN ('image', 'prompt', 'video'));

-- Of a video: its duration and whether it has sound; NULL where that is not known.
ALTER TABLE assets ADD COLUMN duration_ms bigint CHECK (duration_ms >= 0);
ALTER TABLE assets ADD COLUMN has_audio boolean;
-- Its poster, an image; NULL when there is none. The sweeper of the previous release does not know it, as it does not know originals
-- (0037).
ALTER TABLE assets ADD COLUMN poster_key uuid REFERENCES blobs;
ALTER TABLE assets ADD COLUMN poster_mime_type text;
ALTER TABLE assets ADD CONSTRAINT assets_poster CHECK (num_nonnulls(poster_key, poster_mime_type) IN (0, 2));
CREATE INDEX IF NOT EXISTS assets_poster ON assets (poster_key) WHERE poster_key IS NOT NULL;

-- 'made': an output of a job. 'brought': an upload or an import. NULL: stored by a release from before, when an output was what a
-- canvas stores without a node of its own.
ALTER TABLE assets ADD COLUMN origin_kind text CHECK (origin_kind IN ('made', 'brought'));

-- A job whose video became an asset refers to the asset alone. From then on the bytes count for the owner of the asset, and no longer
-- for the account of the job. A process of the previous release never clears the column.
CREATE FUNCTION discount_moved_video() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM add_storage(OLD.account_uid, -(SELECT bytes FROM blobs WHERE key = OLD.video_blob));
    RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION discount_moved_video() FROM PUBLIC;
CREATE CONSTRAINT TRIGGER videos_moved AFTER UPDATE ON jobs DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.video_blob IS NOT NULL AND NEW.video_blob IS NULL) EXECUTE FUNCTION discount_moved_video();
