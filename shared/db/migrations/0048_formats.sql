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
