-- An image or original counts at least 64 KiB: its rows, renditions and requests cost as much.
CREATE FUNCTION asset_counted(bytes bigint, original_bytes bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT greatest(bytes, 65536) + CASE WHEN original_bytes IS NULL THEN 0 ELSE greatest(original_bytes, 65536) END
$$;

-- Writers wait until the migration is over, so that this misses nothing.
LOCK TABLE assets IN SHARE MODE;
CREATE OR REPLACE FUNCTION count_asset() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_storage(NEW.owner_uid, asset_counted(NEW.bytes, NEW.original_bytes));
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION discount_assets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_storage(owner_uid, -sum(asset_counted(bytes, original_bytes))::bigint)
    FROM gone GROUP BY owner_uid ORDER BY owner_uid;
    RETURN NULL;
END $$;
UPDATE account_storage s SET bytes = s.bytes + small.missing
FROM (
    SELECT owner_uid, sum(asset_counted(bytes, original_bytes) - bytes - coalesce(original_bytes, 0))::bigint AS missing
    FROM assets WHERE bytes < 65536 OR original_bytes < 65536 GROUP BY owner_uid
) AS small
WHERE s.account_uid = small.owner_uid;
