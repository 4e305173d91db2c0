-- Gives the task table and its columns the names that the code and the documents use.
--
-- The view `tasks` keeps the old names for processes of the previous release. It is automatically updatable: their statements,
-- row locks included, work on the table and its indexes. The next release drops the view. The sequences and the
-- function keep their names, because processes of both releases call them.

ALTER TABLE tasks RENAME TO task_queue;
ALTER TABLE task_queue RENAME COLUMN lane TO fairness_key;
ALTER TABLE task_queue RENAME COLUMN turn TO fair_seq;
ALTER TABLE task_queue RENAME COLUMN expired TO expired_leases;
ALTER TABLE task_queue RENAME COLUMN suspect TO quarantined;
ALTER TABLE task_queue RENAME COLUMN woken TO ready_requested;

ALTER INDEX tasks_ready RENAME TO task_queue_ready;
ALTER INDEX tasks_lane RENAME TO task_queue_fairness_key;
ALTER INDEX tasks_parked RENAME TO task_queue_scheduled;
ALTER INDEX tasks_leases RENAME TO task_queue_leases;
ALTER INDEX tasks_service RENAME TO task_queue_leased;
ALTER INDEX tasks_suspects RENAME TO task_queue_quarantined;

CREATE VIEW tasks AS
    SELECT id, queue, kind, fairness_key AS lane, state, fair_seq AS turn, due_at, claims, expired_leases AS expired,
           quarantined AS suspect, lease_token, lease_until, lease_owner, cancel_requested, traceparent, created_at, tenant,
           ready_requested AS woken
    FROM task_queue;
