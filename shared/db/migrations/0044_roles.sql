-- What the processes may do with a role each (../roles.sql, docs/reference/configuration.md#database-roles).
--
-- The counts of storage and the epochs of previews are kept by triggers, for every writer. They run as the owner of the schema, so that
-- no process needs the right to write them by itself. Nobody else can use these functions: a trigger calls its function whoever writes,
-- and EXECUTE decides who may make a trigger of it.
DO $$
DECLARE
    function regprocedure;
BEGIN
    FOREACH function IN ARRAY ARRAY[
        'count_asset()', 'discount_assets()', 'count_video()', 'discount_video()', 'count_canvas()', 'count_canvases()',
        'discount_canvases()', 'end_previews_of_canvas()', 'admit_storage(text, bigint, boolean)'
    ]::regprocedure[] LOOP
        -- Temporary objects last: a caller could otherwise put its own in the place of these tables.
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = public, pg_temp', function);
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function);
    END LOOP;
END $$;
