-- The statements of the gateway for a batch of one `node.move`: authentication, and the write. The gateway has the graph from the
-- batch before, and this script its revision, which is its key.
-- Every run of the benchmark compares them with the statements that PostgreSQL recorded (statements.rs). Authentication, which
-- locks nothing, reads the first canvas for every client, because pgbench cannot build an array.
\set canvas_key :first_key + :client_id
\set base :key
\set key random(1, 9000000000000000000)

SELECT asked.place AS "place!", found.* FROM unnest((SELECT :tokens::uuid[]), (SELECT :owners::text[]), (SELECT :asked::text[]))
    WITH ORDINALITY AS asked (token, owner, canvas, place)
CROSS JOIN LATERAL (
    SELECT t.id AS "token!", t.kind AS "kind!", t.parent IS NOT NULL AS "is_narrow!", t.label AS "label!",
           t.scopes AS "scopes!", t.surface AS "surface!",
           t.secret_hash AS "secret_hash!", t.expires_at AS "expires_at?",
           (t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
            AND (t.idle_until IS NULL OR t.idle_until > now())
            AND (t.parent IS NULL OR EXISTS (
                SELECT FROM tokens p WHERE p.id = t.parent AND p.revoked_at IS NULL
                  AND (p.expires_at IS NULL OR p.expires_at > now())
            ))
            AND s.revoked_at IS NULL AND a.enabled) AS "valid!",
           (t.last_used_at IS NULL OR t.last_used_at < now() - interval '1 minute') AS "use_unrecorded!",
           a.uid AS "uid!", a.email AS "email!", a.display_name AS "display_name!", a.credit_balance AS "credit_balance!",
           c.key AS "key?", c.owner_uid AS "owner_uid?", c.id AS "id?", c.canvas_type AS "canvas_type?",
           c.title AS "title?", c.revision AS "revision?", c.sequence AS "sequence?",
           c.node_count AS "node_count?", c.connection_count AS "connection_count?",
           c.graph_bytes AS "graph_bytes?", c.created_at AS "created_at?", c.updated_at AS "updated_at?",
           CASE WHEN c.owner_uid = a.uid THEN 'owner' ELSE
               (SELECT role FROM canvas_shares sh WHERE sh.canvas_key = c.key AND sh.account_uid = a.uid)
           END AS "role?"
    FROM tokens t
    JOIN account_sessions s ON s.id = t.session_id
    JOIN accounts a ON a.uid = t.account_uid
    LEFT JOIN canvases c ON c.owner_uid = coalesce(asked.owner, a.uid) AND c.id = asked.canvas
    WHERE t.id = asked.token LIMIT 1
) AS found;

WITH taken AS (
    INSERT INTO idempotency_keys (account_uid, key, fingerprint, outcome, job_id)
    SELECT :uid, :key, :fingerprint, :outcome, NULL FROM canvases WHERE key = :canvas_key AND revision = :base AND owner_uid = :uid
    ON CONFLICT DO NOTHING RETURNING account_uid
), held AS MATERIALIZED (
    SELECT key, owner_uid, sequence, deleted_bytes, counted,
           canvas_counted(graph_bytes + history_bytes + 0) AS will_count
    FROM canvases
    WHERE key = :canvas_key
      AND (:base::text IS NULL OR revision = :base AND owner_uid = :uid AND (SELECT count(*) FROM taken) = 1)
    FOR UPDATE
), locked AS MATERIALIZED (
    SELECT key, sequence, deleted_bytes FROM held
    WHERE CASE WHEN false AND will_count > counted
               THEN (SELECT is_admitted FROM admit_storage(owner_uid, will_count - counted, true)) ELSE true END
), removed_connections AS (
    DELETE FROM connections
    WHERE cardinality(:none::text[]) > 0 AND canvas_key = (SELECT key FROM locked)
      AND id = ANY((SELECT :none::text[])::text[])
    RETURNING *
), kept_connections AS (
    INSERT INTO deleted_connections (canvas_key, id, sequence, deleted_before, ordinal, from_node_id, to_node_id,
                                     purpose, role, bytes)
    SELECT canvas_key, id, locked.sequence + 1, locked.deleted_bytes, ordinal, from_node_id, to_node_id, purpose, role,
           octet_length(id) + octet_length(from_node_id) + octet_length(to_node_id)
    FROM removed_connections CROSS JOIN locked
    RETURNING bytes
), removed_nodes AS (
    DELETE FROM nodes
    WHERE cardinality(:none::text[]) > 0 AND canvas_key = (SELECT key FROM locked)
      AND id = ANY((SELECT :none::text[])::text[])
    RETURNING *
), freed AS (
    SELECT section, array_agg(member) AS members
    FROM unnest((SELECT :none::text[]), (SELECT :none::text[])) AS f (section, member) GROUP BY section
), kept_nodes AS (
    INSERT INTO deleted_nodes (canvas_key, id, sequence, deleted_before, ordinal, type, title, x, y, width, height,
                               agent_owned, metadata, server, asset_owner, asset_id, active_job, members, bytes)
    SELECT canvas_key, id, locked.sequence + 1, locked.deleted_bytes, ordinal, type, title, x, y, width, height,
           agent_owned, metadata, server, asset_owner, asset_id, active_job, coalesce(members, '{}'),
           octet_length(id) + octet_length(title) + octet_length(metadata::text) + octet_length(server::text)
           + coalesce(octet_length(array_to_string(members, '')), 0)
    FROM removed_nodes CROSS JOIN locked LEFT JOIN freed ON section = id
    RETURNING bytes
), removed_bytes AS (
    SELECT coalesce(sum(bytes), 0)::bigint AS bytes
    FROM (SELECT bytes FROM kept_connections UNION ALL SELECT bytes FROM kept_nodes) AS kept
), restored_nodes AS (
    DELETE FROM deleted_nodes
    WHERE cardinality(:none::text[]) > 0 AND canvas_key = (SELECT key FROM locked)
      AND id = ANY((SELECT :none::text[])::text[])
    RETURNING id, ordinal, bytes
), restored_connections AS (
    DELETE FROM deleted_connections
    WHERE cardinality(:none::text[]) > 0 AND canvas_key = (SELECT key FROM locked)
      AND id = ANY((SELECT :none::text[])::text[])
    RETURNING id, ordinal, bytes
), put_nodes AS (
    INSERT INTO nodes (canvas_key, made, ordinal, id, type, title, x, y, width, height, agent_owned, metadata, server,
                       asset_owner, asset_id, active_job)
    OVERRIDING SYSTEM VALUE
    SELECT locked.key, locked.sequence + 1, coalesce(n.place, nextval('nodes_ordinal_seq')), n.id, type, title, x, y, width,
           height, agent_owned, metadata::json, server::json, asset_owner, asset_id, active_job
    FROM locked CROSS JOIN (
        SELECT n.*, restored.ordinal AS place
        FROM unnest((SELECT :nodes::text[]), (SELECT :types::text[]), (SELECT :titles::text[]), (SELECT :xs::float8[]),
                    (SELECT :ys::float8[]), (SELECT :widths::float8[]), (SELECT :heights::float8[]), (SELECT :owned::bool[]),
                    (SELECT :metadata::text[]), (SELECT :server::text[]), (SELECT :nulls::text[]), (SELECT :nulls::text[]),
                    (SELECT :nulls::uuid[])) WITH ORDINALITY
             AS n (id, type, title, x, y, width, height, agent_owned, metadata, server, asset_owner, asset_id,
                   active_job, position)
        LEFT JOIN restored_nodes AS restored USING (id)
        ORDER BY position
    ) AS n
    ON CONFLICT (canvas_key, id) DO UPDATE SET
        type = excluded.type, title = excluded.title, x = excluded.x, y = excluded.y, width = excluded.width,
        height = excluded.height, metadata = excluded.metadata, server = excluded.server,
        asset_owner = excluded.asset_owner, asset_id = excluded.asset_id, active_job = excluded.active_job
    RETURNING id, made
), put_connections AS (
    INSERT INTO connections (canvas_key, made, ordinal, id, from_node_id, to_node_id, purpose, role)
    OVERRIDING SYSTEM VALUE
    SELECT locked.key, locked.sequence + 1, coalesce(c.place, nextval('connections_ordinal_seq')), c.id, from_node_id,
           to_node_id, purpose, role
    FROM locked CROSS JOIN (
        SELECT c.*, restored.ordinal AS place
        FROM unnest((SELECT :none::text[]), (SELECT :none::text[]), (SELECT :none::text[]), (SELECT :none::text[]),
                    (SELECT :none::text[])) WITH ORDINALITY AS c (id, from_node_id, to_node_id, purpose, role, position)
        LEFT JOIN restored_connections AS restored USING (id)
        ORDER BY position
    ) AS c
    ON CONFLICT (canvas_key, id) DO UPDATE SET purpose = excluded.purpose, role = excluded.role
    RETURNING id, made
), forgotten_nodes AS (
    DELETE FROM deleted_nodes
    WHERE (SELECT bytes FROM removed_bytes) > 0 AND canvas_key = (SELECT key FROM locked)
      AND deleted_before < (SELECT deleted_bytes FROM locked) + (SELECT bytes FROM removed_bytes) - :deleted_bytes_max
      AND id <> ALL((SELECT :none::text[])::text[])
    RETURNING bytes
), forgotten_connections AS (
    DELETE FROM deleted_connections
    WHERE (SELECT bytes FROM removed_bytes) > 0 AND canvas_key = (SELECT key FROM locked)
      AND deleted_before < (SELECT deleted_bytes FROM locked) + (SELECT bytes FROM removed_bytes) - :deleted_bytes_max
      AND id <> ALL((SELECT :none::text[])::text[])
    RETURNING bytes
), gone_bytes AS (
    SELECT coalesce(sum(bytes), 0)::bigint AS bytes
    FROM (SELECT bytes FROM restored_nodes UNION ALL SELECT bytes FROM restored_connections
          UNION ALL SELECT bytes FROM forgotten_nodes UNION ALL SELECT bytes FROM forgotten_connections) AS gone
), recorded AS (
    SELECT 100 + pg_column_size(:nodes::text[]) + pg_column_size(:none::text[]) + pg_column_size(:none::text[])
           + pg_column_size(:none::text[]) + pg_column_size(:none::text[]) + pg_column_size(:none::text[])
           + coalesce(pg_column_size(:activity::jsonb), 0) AS bytes
), bumped AS (
    UPDATE canvases
    SET revision = :key, sequence = sequence + 1, updated_at = clock_timestamp(), title = coalesce(NULL, title),
        node_count = node_count - (SELECT count(*) FROM removed_nodes)::int
                     + (SELECT count(*) FROM put_nodes WHERE made = canvases.sequence + 1)::int,
        connection_count = connection_count - (SELECT count(*) FROM removed_connections)::int
                           + (SELECT count(*) FROM put_connections WHERE made = canvases.sequence + 1)::int,
        graph_bytes = greatest(graph_bytes + 0, 0), deleted_bytes = deleted_bytes + (SELECT bytes FROM removed_bytes),
        history_bytes = greatest(
            history_bytes + (SELECT bytes FROM recorded) + (SELECT bytes FROM removed_bytes)
            - CASE WHEN (sequence + 1) % :trim_every = 0 THEN trim_history(key, sequence + 1 - :kept, (SELECT bytes FROM gone_bytes))
                   ELSE (SELECT bytes FROM gone_bytes) END, 0)
    WHERE key = (SELECT key FROM locked)
    RETURNING *
), noted AS (
    INSERT INTO canvas_changes (canvas_key, sequence, revision, changed_nodes, deleted_nodes, changed_connections,
                                deleted_connections, activity, at, regrouped, renamed, made_nodes, made_connections, bytes)
    SELECT key, sequence, revision, :nodes::text[] || :none::text[], :none, :none, :none, :activity, updated_at, :none, NULL::text IS NOT NULL,
           ARRAY(SELECT id FROM put_nodes WHERE made = sequence),
           ARRAY(SELECT id FROM put_connections WHERE made = sequence), (SELECT bytes FROM recorded)
    FROM bumped
)
SELECT coalesce(key, (SELECT 'the canvas is no longer at revision ' || :base)::bigint) AS "key!",
       owner_uid AS "owner_uid!", id AS "id!", canvas_type, title AS "title!", revision AS "revision!",
       sequence AS "sequence!", node_count AS "node_count!", connection_count AS "connection_count!",
       graph_bytes AS "graph_bytes!", created_at AS "created_at!", updated_at AS "updated_at!", NULL AS role
FROM taken FULL JOIN bumped ON true;
