-- Moves the rows that a change of a canvas deletes to those that are kept, and takes the rows that it restores from there. Of the kept
-- rows the oldest go, as far as they, all later ones and those of this change together exceed `bytes_max`: a change costs only what
-- it deletes.
--
-- A function, because few changes delete or restore anything, and preparing to write to four tables more would take a quarter of the
-- time of the statement that writes a change. Its caller has locked the canvas. `change` is the number of the change, `before` the
-- `deleted_bytes` before it. `bytes` is the size of what it deletes, `gone` that of what is no longer kept. What it restores had these
-- places in the order of creation.
CREATE FUNCTION move_rows(
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
        INSERT INTO deleted_connections (canvas_key, id, sequence, deleted_before, ordinal, from_node_id, to_node_id, purpose, role, bytes)
        SELECT canvas_key, id, change, before, ordinal, from_node_id, to_node_id, purpose, role,
               octet_length(id) + octet_length(from_node_id) + octet_length(to_node_id)
        FROM removed_connections
        RETURNING bytes
    ), removed_nodes AS (
        DELETE FROM nodes WHERE canvas_key = canvas AND id = ANY(deletes_nodes) RETURNING *
    ), freed AS (
        SELECT section, array_agg(member) AS members FROM unnest(sections, section_members) AS f (section, member) GROUP BY section
    ), kept_nodes AS (
        INSERT INTO deleted_nodes (canvas_key, id, sequence, deleted_before, ordinal, type, title, x, y, width, height, agent_owned,
                                   metadata, server, asset_owner, asset_id, active_job, members, bytes)
        SELECT canvas_key, id, change, before, ordinal, type, title, x, y, width, height, agent_owned, metadata, server, asset_owner,
               asset_id, active_job, coalesce(members, '{}'),
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
