-- The least that a durable job needs of PostgreSQL, in the tables of the service: one statement to accept it, one to claim it, and one
-- to end it. Key, record and task alone: no canvas, no asset, no history, no message.
-- Acceptance and end wait for the disk. A claim does not, as in the service.
\set key random(1, 9000000000000000000)

WITH job AS (
    INSERT INTO jobs (id, account_uid, token_id, kind, operation, status, request, estimated_seconds, queued_at)
    VALUES (('01990000-0000-7000-8000-' || lpad(to_hex(nextval('task_turns')), 12, '0'))::uuid, :uid, :token, 'action', 'resize',
            'queued', :request, 1, now())
    RETURNING id, account_uid
), keyed AS (
    INSERT INTO idempotency_keys (account_uid, key, fingerprint, outcome, job_id)
    SELECT account_uid, :key, :fingerprint, '{}', id FROM job
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

WITH settled AS (
    DELETE FROM task_queue WHERE id = :id AND lease_token = :lease_token RETURNING id
)
UPDATE jobs SET status = 'succeeded', version = version + 1, outcome = :outcome, started_at = now(), completed_at = now(),
       updated_at = now(), retain_until = now() + interval '30 days'
WHERE id = (SELECT id FROM settled);
