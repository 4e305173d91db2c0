-- The statements of the gateway for a batch of one `node.move`: authentication, key and canvas row, node, revision, outcome. The
-- gateway has the graph from the batch before.
-- Every run of the benchmark compares them with the statements that PostgreSQL recorded (statements.rs). Authentication, which
-- locks nothing, reads the first canvas for every client, because pgbench cannot build an array.
\set canvas :first_canvas + :client_id
\set canvas_key :first_key + :client_id
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
           a.uid AS "uid!", a.email AS "email!", a.credit_balance AS "credit_balance!",
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

BEGIN;

WITH taken AS (
    INSERT INTO idempotency_keys (account_uid, key, fingerprint, outcome, job_id) VALUES (:uid, :key, :fingerprint, NULL, NULL)
    ON CONFLICT DO NOTHING RETURNING account_uid
), account AS MATERIALIZED (
    SELECT uid FROM accounts WHERE uid = (SELECT account_uid FROM taken WHERE 'false'::boolean) FOR NO KEY UPDATE
), held AS MATERIALIZED (
    SELECT * FROM canvases
    WHERE owner_uid = :uid AND id = :canvas
      AND (SELECT count(*) FROM taken) = 1 AND (SELECT count(*) FROM account) = 'false'::boolean::int
    FOR UPDATE
)
SELECT (SELECT count(*) FROM taken) = 1 AS "is_fresh!", key AS "key?", owner_uid AS "owner_uid?", id AS "id?",
       canvas_type, title AS "title?", revision AS "revision?", sequence AS "sequence?",
       node_count AS "node_count?", connection_count AS "connection_count?", graph_bytes AS "graph_bytes?",
       created_at AS "created_at?", updated_at AS "updated_at?",
       CASE WHEN owner_uid = :uid THEN 'owner' ELSE
           (SELECT role FROM canvas_shares s WHERE s.canvas_key = held.key AND s.account_uid = :uid FOR SHARE)
       END AS role
FROM (SELECT) AS one LEFT JOIN held ON true;

INSERT INTO nodes (canvas_key, made, ordinal, id, type, title, x, y, width, height, agent_owned, metadata, server,
                   asset_owner, asset_id, active_job)
OVERRIDING SYSTEM VALUE
SELECT :canvas_key, (SELECT sequence + 1 FROM canvases WHERE key = :canvas_key), coalesce(place, nextval('nodes_ordinal_seq')), id,
       type, title, x, y, width, height, agent_owned, metadata, server, asset_owner, asset_id, active_job
FROM UNNEST(:nodes::text[], :types::text[], :titles::text[], :xs::float8[], :ys::float8[], :widths::float8[],
            :heights::float8[], :owned::bool[], :metadata::json[], :server::json[], :nulls::text[], :nulls::text[],
            :nulls::uuid[], :nulls::int8[])
     AS n (id, type, title, x, y, width, height, agent_owned, metadata, server, asset_owner, asset_id, active_job, place)
ON CONFLICT (canvas_key, id) DO UPDATE SET
    type = excluded.type, title = excluded.title, x = excluded.x, y = excluded.y, width = excluded.width,
    height = excluded.height, metadata = excluded.metadata, server = excluded.server,
    asset_owner = excluded.asset_owner, asset_id = excluded.asset_id, active_job = excluded.active_job;

WITH written AS (
 UPDATE nodes SET server = n.server::json, asset_owner = n.asset_owner, asset_id = n.asset_id,
        active_job = n.active_job, width = n.width, height = n.height
 FROM unnest((SELECT :none::text[]), (SELECT :none::text[]), (SELECT :none::text[]), (SELECT :none::text[]),
             (SELECT :none::uuid[]), (SELECT :none::float8[]), (SELECT :none::float8[]))
      AS n (id, server, asset_owner, asset_id, active_job, width, height)
 WHERE nodes.canvas_key = (SELECT :canvas_key::bigint) AND nodes.id = ANY((SELECT :none::text[])::text[]) AND nodes.id = n.id
), bumped AS (
 UPDATE canvases SET revision = :key, sequence = sequence + 1, updated_at = clock_timestamp(),
        title = coalesce(NULL, title), node_count = node_count + 0, connection_count = connection_count + 0,
        graph_bytes = greatest(graph_bytes + 0, 0)
 WHERE key = :canvas_key RETURNING *
), noted AS (
 INSERT INTO canvas_changes (canvas_key, sequence, revision, changed_nodes, deleted_nodes,
                             changed_connections, deleted_connections, activity, at,
                             regrouped, renamed, made_nodes, made_connections)
 SELECT key, sequence, revision, :nodes, :none, :none, :none, :activity, updated_at, :none, NULL::text IS NOT NULL,
        ARRAY(SELECT id FROM nodes
              WHERE canvas_key = :canvas_key AND id = ANY((SELECT :nodes::text[])::text[]) AND made = bumped.sequence),
        ARRAY(SELECT id FROM connections
              WHERE canvas_key = :canvas_key AND id = ANY((SELECT :none::text[])::text[]) AND made = bumped.sequence)
 FROM bumped
), trimmed AS (
 DELETE FROM canvas_changes USING bumped
 WHERE canvas_key = bumped.key AND canvas_changes.sequence <= bumped.sequence - :kept
)
SELECT key, owner_uid, id, canvas_type, title, revision, sequence, node_count, connection_count, graph_bytes,
       created_at, updated_at, NULL AS role
FROM bumped;

UPDATE idempotency_keys SET outcome = :outcome WHERE account_uid = :uid AND key = :key;

COMMIT;
