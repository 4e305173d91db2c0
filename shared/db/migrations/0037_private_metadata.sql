-- Private metadata of uploads (docs/reference/assets.md#private-metadata): `blob_key` is the file that is served, without it.
-- What was removed, as classes.
ALTER TABLE assets ADD COLUMN metadata_removed text[] NOT NULL DEFAULT '{}';
-- The file as it came, for the owner of the asset alone; NULL when it is the one that is served, or was not kept. The sweeper of
-- the previous release does not know it, and leaves it alone for the day that it leaves every new blob alone.
ALTER TABLE assets ADD COLUMN original_blob uuid REFERENCES blobs;
ALTER TABLE assets ADD COLUMN original_mime_type text;
ALTER TABLE assets ADD COLUMN original_bytes bigint;
ALTER TABLE assets ADD COLUMN original_reason text;
ALTER TABLE assets ADD CONSTRAINT assets_original CHECK (
    num_nonnulls(original_blob, original_mime_type, original_bytes, original_reason) IN (0, 4)
);
CREATE INDEX IF NOT EXISTS assets_original_blob ON assets (original_blob) WHERE original_blob IS NOT NULL;

-- As in 0017, with the original.
CREATE OR REPLACE FUNCTION count_asset() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_storage(NEW.owner_uid, NEW.bytes + coalesce(NEW.original_bytes, 0));
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION discount_assets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_storage(owner_uid, -sum(bytes + coalesce(original_bytes, 0))::bigint)
    FROM gone GROUP BY owner_uid ORDER BY owner_uid;
    RETURN NULL;
END $$;
