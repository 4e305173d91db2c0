-- Short names (docs/reference/canvases.md#refs): a canvas has a slug, a node the ref n<ref>, a connection the ref c<ref>. `node_ref` and
-- `connection_ref` are the last numbers that were given. `referenced` is the `sequence` up to which every node and connection has its
-- number: a write of this release keeps it equal, and one of the previous release, which gives no numbers, leaves it behind.
ALTER TABLE canvases
    ADD COLUMN slug text COLLATE "C",
    ADD COLUMN node_ref integer NOT NULL DEFAULT 0,
    ADD COLUMN connection_ref integer NOT NULL DEFAULT 0,
    ADD COLUMN referenced bigint NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN ref integer;
ALTER TABLE connections ADD COLUMN ref integer;
ALTER TABLE deleted_nodes ADD COLUMN ref integer;
ALTER TABLE deleted_connections ADD COLUMN ref integer;
CREATE UNIQUE INDEX IF NOT EXISTS canvases_slug ON canvases (slug) WHERE slug IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS nodes_ref ON nodes (canvas_key, ref) WHERE ref IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS connections_ref ON connections (canvas_key, ref) WHERE ref IS NOT NULL;

-- A slug that no canvas has: 40 random bits. The seventh and ninth byte of a UUID are not all random.
CREATE FUNCTION new_slug() RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    drawn text;
BEGIN
    LOOP
        SELECT '~' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + get_byte(bytes, place) % 32, 1), '')
        INTO drawn
        FROM (SELECT uuid_send(gen_random_uuid()) AS bytes) AS random, unnest(ARRAY[0, 1, 2, 3, 4, 5, 9, 10]) AS place;
        EXIT WHEN NOT EXISTS (SELECT FROM canvases WHERE slug = drawn);
    END LOOP;
    RETURN drawn;
END $$;
-- For the canvases of both releases. The older ones get theirs from `ensure_refs`.
ALTER TABLE canvases ALTER COLUMN slug SET DEFAULT new_slug();

-- The next `wanted` numbers of refs that are no ids of the canvas. Its caller has locked the canvas.
CREATE FUNCTION next_node_refs(canvas bigint, wanted bigint) RETURNS SETOF integer LANGUAGE sql STABLE ROWS 1 AS $$
    WITH taken AS MATERIALIZED (SELECT id FROM nodes WHERE canvas_key = canvas AND id ~ '^n[1-9][0-9]*$')
    SELECT number
    FROM canvases c,
         generate_series(c.node_ref + 1, c.node_ref + wanted::integer + (SELECT count(*) FROM taken)::integer) AS number
    WHERE c.key = canvas AND 'n' || number NOT IN (SELECT id FROM taken)
    ORDER BY number LIMIT wanted
$$;
CREATE FUNCTION next_connection_refs(canvas bigint, wanted bigint) RETURNS SETOF integer LANGUAGE sql STABLE ROWS 1 AS $$
    WITH taken AS MATERIALIZED (SELECT id FROM connections WHERE canvas_key = canvas AND id ~ '^c[1-9][0-9]*$')
    SELECT number
    FROM canvases c,
         generate_series(c.connection_ref + 1, c.connection_ref + wanted::integer + (SELECT count(*) FROM taken)::integer) AS number
    WHERE c.key = canvas AND 'c' || number NOT IN (SELECT id FROM taken)
    ORDER BY number LIMIT wanted
$$;

-- Gives a canvas its slug, and numbers to the nodes and connections without one, in the order of creation. It makes no revision. Each
-- statement sees what was committed before the lock was obtained.
CREATE FUNCTION ensure_refs(canvas bigint, OUT slug text, OUT node_ref integer, OUT connection_ref integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    missing text[];
BEGIN
    PERFORM FROM canvases WHERE key = canvas FOR UPDATE;
    missing := ARRAY(SELECT id FROM nodes WHERE canvas_key = canvas AND ref IS NULL ORDER BY ordinal);
    WITH given AS (
        UPDATE nodes n SET ref = number
        FROM unnest(missing, ARRAY(SELECT next_node_refs(canvas, cardinality(missing)))) AS named (id, number)
        WHERE n.canvas_key = canvas AND n.id = named.id RETURNING n.ref
    )
    UPDATE canvases c SET node_ref = greatest(c.node_ref, (SELECT max(ref) FROM given)) WHERE c.key = canvas;
    missing := ARRAY(SELECT id FROM connections WHERE canvas_key = canvas AND ref IS NULL ORDER BY ordinal);
    WITH given AS (
        UPDATE connections n SET ref = number
        FROM unnest(missing, ARRAY(SELECT next_connection_refs(canvas, cardinality(missing)))) AS named (id, number)
        WHERE n.canvas_key = canvas AND n.id = named.id RETURNING n.ref
    )
    UPDATE canvases c
    SET connection_ref = greatest(c.connection_ref, (SELECT max(ref) FROM given)), slug = coalesce(c.slug, new_slug()),
        referenced = c.sequence
    WHERE c.key = canvas
    RETURNING c.slug, c.node_ref, c.connection_ref INTO slug, node_ref, connection_ref;
END $$;

-- As in 0047, with refs.
CREATE OR REPLACE FUNCTION move_rows(
    canvas bigint, change bigint, before bigint, bytes_max bigint,
    deletes_connections text[], deletes_nodes text[], sections text[], section_members text[],
    restores_connections text[], restores_nodes text[],
    OUT connection_count integer, OUT node_count integer, OUT bytes bigint, OUT gone bigint,
    OUT connection_ids text[], OUT connection_ordinals bigint[], OUT node_ids text[], OUT node_ordinals bigint[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    WITH removed_connections AS (
        DELETE FROM connections WHERE canvas_key = canvas AND id = ANY(deletes_connections) RETURNING *
    ), kept_connections AS (
        INSERT INTO deleted_connections (canvas_key, id, sequence, deleted_before, ordinal, from_node_id, to_node_id, purpose, role, ref, bytes)
        SELECT canvas_key, id, change, before, ordinal, from_node_id, to_node_id, purpose, role, ref,
               octet_length(id) + octet_length(from_node_id) + octet_length(to_node_id)
        FROM removed_connections
        RETURNING bytes
    ), removed_nodes AS (
        DELETE FROM nodes WHERE canvas_key = canvas AND id = ANY(deletes_nodes) RETURNING *
    ), freed AS (
        SELECT section, array_agg(member) AS members FROM unnest(sections, section_members) AS f (section, member) GROUP BY section
    ), kept_nodes AS (
        INSERT INTO deleted_nodes (canvas_key, id, sequence, deleted_before, ordinal, type, title, x, y, width, height, agent_owned,
                                   metadata, server, asset_owner, asset_id, active_job, ref, members, bytes)
        SELECT canvas_key, id, change, before, ordinal, type, title, x, y, width, height, agent_owned, metadata, server, asset_owner,
               asset_id, active_job, ref, coalesce(members, '{}'),
               octet_length(id) + octet_length(title) + octet_length(metadata::text) + octet_length(server::text)
               + coalesce(octet_length(array_to_string(members, '')), 0)
        FROM removed_nodes LEFT JOIN freed ON section = id
        RETURNING bytes
    ), removed AS (
        SELECT coalesce(sum(bytes), 0)::bigint AS bytes
        FROM (SELECT bytes FROM kept_connections UNION ALL SELECT bytes FROM kept_nodes) AS kept
    ), restored_connections AS (
        DELETE FROM deleted_connections WHERE canvas_key = canvas AND id = ANY(restores_connections) RETURNING id, ordinal, bytes
    ), restored_nodes AS (
        DELETE FROM deleted_nodes WHERE canvas_key = canvas AND id = ANY(restores_nodes) RETURNING id, ordinal, bytes
    ), forgotten_connections AS (
        DELETE FROM deleted_connections
        WHERE (SELECT bytes FROM removed) > 0 AND canvas_key = canvas AND id <> ALL(restores_connections)
          AND deleted_before < before + (SELECT bytes FROM removed) - bytes_max
        RETURNING bytes
    ), forgotten_nodes AS (
        DELETE FROM deleted_nodes
        WHERE (SELECT bytes FROM removed) > 0 AND canvas_key = canvas AND id <> ALL(restores_nodes)
          AND deleted_before < before + (SELECT bytes FROM removed) - bytes_max
        RETURNING bytes
    )
    SELECT (SELECT count(*) FROM removed_connections), (SELECT count(*) FROM removed_nodes), (SELECT bytes FROM removed),
           (SELECT coalesce(sum(bytes), 0)
            FROM (SELECT bytes FROM restored_connections UNION ALL SELECT bytes FROM restored_nodes
                  UNION ALL SELECT bytes FROM forgotten_connections UNION ALL SELECT bytes FROM forgotten_nodes) AS every),
           ARRAY(SELECT id FROM restored_connections ORDER BY id), ARRAY(SELECT ordinal FROM restored_connections ORDER BY id),
           ARRAY(SELECT id FROM restored_nodes ORDER BY id), ARRAY(SELECT ordinal FROM restored_nodes ORDER BY id)
    INTO connection_count, node_count, bytes, gone, connection_ids, connection_ordinals, node_ids, node_ordinals;
END $$;
