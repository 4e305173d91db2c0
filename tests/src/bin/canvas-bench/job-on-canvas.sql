-- What an Action into a node leaves in PostgreSQL, with the same three statements as `job.sql`: beside key, record and task the rows
-- of its canvas at acceptance and end (node, revision, change), the asset, and the history of the record. No message.
-- Acceptance and end wait for the disk. A claim does not, as in the service.
\set key random(1, 9000000000000000000)
\set number random(1, :canvases)

WITH canvas AS MATERIALIZED (
    SELECT key, owner_uid, id FROM canvases WHERE owner_uid = :uid AND id = 'baseline-' || :number::text FOR UPDATE
), job AS (
    INSERT INTO jobs (id, account_uid, token_id, kind, operation, status, canvas_key, canvas_owner, canvas_id, request,
                      estimated_seconds, queued_at)
    SELECT ('01990000-0000-7000-8000-' || lpad(to_hex(nextval('task_turns')), 12, '0'))::uuid, :uid, :token, 'action', 'resize',
           'queued', key, owner_uid, id, :request, 1, now()
    FROM canvas
    RETURNING id, account_uid, canvas_key
), keyed AS (
    INSERT INTO idempotency_keys (account_uid, key, fingerprint, outcome, job_id)
    SELECT account_uid, :key, :fingerprint, '{}', id FROM job
), history AS (
    INSERT INTO job_history (job_id, version, status) SELECT id, 1, 'queued' FROM job
), bound AS (
    UPDATE nodes SET active_job = job.id, server = :server FROM job
    WHERE nodes.canvas_key = job.canvas_key AND nodes.id = 'target'
), bumped AS (
    UPDATE canvases c SET revision = gen_random_uuid()::text, sequence = sequence + 1, updated_at = clock_timestamp()
    FROM job WHERE c.key = job.canvas_key
    RETURNING c.key, c.sequence, c.revision
), noted AS (
    INSERT INTO canvas_changes (canvas_key, sequence, revision, changed_nodes, activity, regrouped, renamed)
    SELECT key, sequence, revision, '{target}', :activity, '{}', false FROM bumped
)
INSERT INTO task_queue (id, queue, kind, fairness_key, fair_seq)
SELECT id, 'baseline', 'action', account_uid, nextval('task_turns') FROM job;

WITH unflushed AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
), found AS MATERIALIZED (
    SELECT id FROM task_queue WHERE queue = 'baseline' AND state = 'ready' ORDER BY fair_seq, id LIMIT 1 FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE task_queue SET state = 'leased', lease_token = gen_random_uuid(), lease_until = now() + interval '30 s',
           claims = claims + 1
    WHERE id = (SELECT id FROM found) AND (SELECT count(*) FROM unflushed) = 1
    RETURNING id, lease_token
)
-- Rarely another client takes the only task that this statement sees.
SELECT coalesce((SELECT id FROM claimed), gen_random_uuid()) AS id,
       coalesce((SELECT lease_token FROM claimed), gen_random_uuid()) AS lease_token
\gset

WITH canvas AS MATERIALIZED (
    SELECT key FROM canvases WHERE key = (SELECT canvas_key FROM jobs WHERE id = :id) FOR UPDATE
), settled AS (
    DELETE FROM task_queue WHERE id = :id AND lease_token = :lease_token AND (SELECT count(*) FROM canvas) = 1 RETURNING id
), ended AS (
    UPDATE jobs SET status = 'succeeded', version = version + 1, outcome = :outcome, started_at = now(), completed_at = now(),
           updated_at = now(), retain_until = now() + interval '30 days'
    WHERE id = (SELECT id FROM settled)
    RETURNING id, version, canvas_key
), history AS (
    INSERT INTO job_history (job_id, version, status) SELECT id, version, 'succeeded' FROM ended
), made AS (
    INSERT INTO assets (owner_uid, id, canvas_key, name, mime_type, width, height, bytes, blob_key)
    SELECT :uid, id::text, canvas_key, 'asset-resize.png', 'image/png', 1, 1, 68, :blob FROM ended
), filled AS (
    UPDATE nodes SET active_job = NULL, server = :server, asset_owner = :uid, asset_id = ended.id::text FROM ended
    WHERE nodes.canvas_key = ended.canvas_key AND nodes.id = 'target'
), bumped AS (
    UPDATE canvases c SET revision = gen_random_uuid()::text, sequence = sequence + 1, updated_at = clock_timestamp()
    FROM ended WHERE c.key = ended.canvas_key
    RETURNING c.key, c.sequence, c.revision
)
INSERT INTO canvas_changes (canvas_key, sequence, revision, changed_nodes, activity, regrouped, renamed)
SELECT key, sequence, revision, '{target}', :activity, '{}', false FROM bumped;
