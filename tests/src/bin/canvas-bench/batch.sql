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
    SELECT t.id AS "token!", t.kind AS "kind!", coalesce(t.parent, t.id) AS "authority!", t.parent IS NOT NULL AS "is_narrow!", t.label AS "label!", t.scopes AS "scopes!", t.surface AS "surface!",
           CASE WHEN t.access_until <= now() THEN ''::bytea ELSE t.secret_hash END AS "secret_hash!",
           CASE WHEN t.previous_until > now() THEN t.previous_hash END AS "previous_hash?",
           t.created_at AS "signed_in_at!", t.expires_at AS "expires_at?",
           (t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
            AND (t.idle_until IS NULL OR t.idle_until > now())
            AND (t.parent IS NULL OR EXISTS (
                SELECT FROM tokens p WHERE p.id = t.parent AND p.revoked_at IS NULL
                  AND (p.expires_at IS NULL OR p.expires_at > now())
            ))
            AND s.revoked_at IS NULL AND a.enabled
            AND (a.confirm_by IS NULL OR a.confirm_by > now() OR NOT false
                 OR t.kind = 'session' AND t.parent IS NULL)) AS "valid!",
           (t.last_used_at IS NULL OR t.last_used_at < now() - interval '1 minute') AS "use_unrecorded!",
           a.uid AS "uid!", a.role AS "account_role!", a.email AS "email!", a.display_name AS "display_name!", a.credit_balance AS "credit_balance!", a.confirm_by AS "confirm_by?",
           c.key AS "key?", c.owner_uid AS "owner_uid?", c.id AS "id?", c.canvas_type AS "canvas_type?",
           c.title AS "title?", c.revision AS "revision?", c.sequence AS "sequence?", c.slug AS "slug?", c.node_ref AS "node_ref?",
           c.connection_ref AS "connection_ref?", c.referenced AS "referenced?",
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
), moved AS MATERIALIZED (
    SELECT locked.key, locked.sequence, moved.*
    FROM locked LEFT JOIN LATERAL (
        SELECT *
        FROM move_rows(locked.key, locked.sequence + 1, locked.deleted_bytes, :deleted_bytes_max, :none, :none, :none, :none, :none, :none)
        WHERE cardinality(:none::text[]) + cardinality(:none::text[]) + cardinality(:none::text[]) + cardinality(:none::text[]) > 0
    ) AS moved ON true
), put_nodes AS (
    INSERT INTO nodes (canvas_key, made, ordinal, id, type, title, x, y, width, height, agent_owned, metadata, server,
                       asset_owner, asset_id, active_job, ref)
    OVERRIDING SYSTEM VALUE
    SELECT key, sequence + 1, coalesce(place, nextval('nodes_ordinal_seq')), id, type, title, x, y, width, height,
           agent_owned, metadata::json, server::json, asset_owner, asset_id, active_job, ref
    FROM (
        SELECT moved.key, moved.sequence, n.*, place
        FROM moved CROSS JOIN unnest((SELECT :nodes::text[]), (SELECT :types::text[]), (SELECT :titles::text[]), (SELECT :xs::float8[]),
                    (SELECT :ys::float8[]), (SELECT :widths::float8[]), (SELECT :heights::float8[]), (SELECT :owned::bool[]),
                    (SELECT :metadata::text[]), (SELECT :server::text[]), (SELECT :nulls::text[]), (SELECT :nulls::text[]),
                    (SELECT :nulls::uuid[]), (SELECT :nulls::int[])) WITH ORDINALITY
             AS n (id, type, title, x, y, width, height, agent_owned, metadata, server, asset_owner, asset_id,
                   active_job, ref, position)
        LEFT JOIN unnest(moved.node_ids, moved.node_ordinals) AS restored (id, place) USING (id)
        ORDER BY position
    ) AS n
    ON CONFLICT (canvas_key, id) DO UPDATE SET
        type = excluded.type, title = excluded.title, x = excluded.x, y = excluded.y, width = excluded.width,
        height = excluded.height, metadata = excluded.metadata, server = excluded.server,
        asset_owner = excluded.asset_owner, asset_id = excluded.asset_id, active_job = excluded.active_job
    RETURNING id, made
), put_connections AS (
    INSERT INTO connections (canvas_key, made, ordinal, id, from_node_id, to_node_id, purpose, role, ref)
    OVERRIDING SYSTEM VALUE
    SELECT key, sequence + 1, coalesce(place, nextval('connections_ordinal_seq')), id, from_node_id, to_node_id, purpose,
           role, ref
    FROM (
        SELECT moved.key, moved.sequence, c.*, place
        FROM moved CROSS JOIN unnest((SELECT :none::text[]), (SELECT :none::text[]), (SELECT :none::text[]), (SELECT :none::text[]),
                    (SELECT :none::text[]), (SELECT :none::int[])) WITH ORDINALITY
             AS c (id, from_node_id, to_node_id, purpose, role, ref, position)
        LEFT JOIN unnest(moved.connection_ids, moved.connection_ordinals) AS restored (id, place) USING (id)
        ORDER BY position
    ) AS c
    ON CONFLICT (canvas_key, id) DO UPDATE SET purpose = excluded.purpose, role = excluded.role
    RETURNING id, made
), recorded AS (
    SELECT 100 + pg_column_size(:nodes::text[]) + pg_column_size(:none::text[]) + pg_column_size(:none::text[])
           + pg_column_size(:none::text[]) + pg_column_size(:none::text[]) + pg_column_size(:none::text[])
           + coalesce(pg_column_size(:activity::jsonb), 0) AS bytes
), bumped AS (
    UPDATE canvases
    SET revision = :key, sequence = canvases.sequence + 1,
        referenced = CASE WHEN referenced = canvases.sequence THEN canvases.sequence + 1 ELSE referenced END,
        node_ref = greatest(node_ref, NULL), connection_ref = greatest(connection_ref, NULL), updated_at = clock_timestamp(), title = coalesce(NULL, title),
        node_count = canvases.node_count - coalesce(moved.node_count, 0)
                     + (SELECT count(*) FROM put_nodes WHERE made = canvases.sequence + 1)::int,
        connection_count = canvases.connection_count - coalesce(moved.connection_count, 0)
                           + (SELECT count(*) FROM put_connections WHERE made = canvases.sequence + 1)::int,
        graph_bytes = greatest(graph_bytes + 0, 0), deleted_bytes = deleted_bytes + coalesce(moved.bytes, 0),
        history_bytes = greatest(
            history_bytes + (SELECT bytes FROM recorded) + coalesce(moved.bytes, 0)
            - CASE WHEN (canvases.sequence + 1) % :trim_every = 0
                   THEN trim_history(canvases.key, canvases.sequence + 1 - :kept, coalesce(moved.gone, 0))
                   ELSE coalesce(moved.gone, 0) END, 0)
    FROM moved
    WHERE canvases.key = moved.key
    RETURNING canvases.*
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
       sequence AS "sequence!", slug, node_ref AS "node_ref!",
       connection_ref AS "connection_ref!", referenced AS "referenced!", node_count AS "node_count!", connection_count AS "connection_count!",
       graph_bytes AS "graph_bytes!", created_at AS "created_at!", updated_at AS "updated_at!", NULL AS role
FROM taken FULL JOIN bumped ON true;
