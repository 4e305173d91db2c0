-- Where queues begin, so that nobody reads what stands before (tasks/floors.rs).
--
-- While a transaction stays open, a dump above all, what was deleted since it began stays in the indexes: 100000 tasks that were
-- done meanwhile cost each enqueue 75 ms and each claim 15 ms before this.

-- Leases by their end, under a predicate that a search for turns does not imply: of two indexes for the same rows it took this one
-- now and then, and read all of them. A process of the release before finds its expired leases by it, too.
DROP INDEX tasks_leased;
CREATE INDEX IF NOT EXISTS tasks_leases ON tasks (queue, lease_until) WHERE lease_until IS NOT NULL;

-- A turn below which no ready or leased task of the queue stands. A sequence, because it is a number that is written and read
-- without versions; a queue without one begins at 0.
CREATE SEQUENCE task_floor_image MINVALUE 0;
CREATE SEQUENCE task_floor_import MINVALUE 0;
CREATE SEQUENCE task_floor_generation MINVALUE 0;
CREATE SEQUENCE task_floor_recipe MINVALUE 0;
CREATE SEQUENCE task_floor_video MINVALUE 0;
CREATE SEQUENCE task_floor_webhook MINVALUE 0;

CREATE FUNCTION task_floor(queue text) RETURNS bigint LANGUAGE sql STABLE AS
    $$ SELECT coalesce(pg_sequence_last_value(to_regclass('task_floor_' || queue)), 0) $$;
