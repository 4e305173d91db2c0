-- `admin asset clean` replaces the file of an asset (docs/reference/command-line.md#admin-asset-clean).
CREATE FUNCTION recount_asset() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_storage(
        NEW.owner_uid,
        asset_counted(NEW.bytes, NEW.original_bytes) - asset_counted(OLD.bytes, OLD.original_bytes)
    );
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER assets_recounted AFTER UPDATE OF bytes, original_bytes ON assets DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION recount_asset();

-- The conversion of a file whose format the service does not keep is a rendition of width 0. What was allowed still is.
ALTER TABLE renditions
    DROP CONSTRAINT renditions_width_check,
    ADD CONSTRAINT renditions_width_check
        CHECK (width IN (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)) NOT VALID;

-- Whether a file is an image of more than one frame. Files of earlier releases are not looked at again.
ALTER TABLE blobs ADD COLUMN animated boolean NOT NULL DEFAULT false;
CREATE FUNCTION is_animated(asset assets) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT b.animated FROM blobs b WHERE b.key = asset.blob_key
$$;
