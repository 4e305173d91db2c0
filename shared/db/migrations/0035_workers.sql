-- The workers of each queue, as they last reported. A runner writes its row while it claims; a row that is not renewed belongs to a
-- process that ended, hangs or cannot reach the database.
CREATE TABLE workers (
    queue    text NOT NULL,
    -- Unique for each start of a process; also the holder of its leases (`task_queue.lease_owner`).
    instance text NOT NULL,
    seen_at  timestamptz(3) NOT NULL DEFAULT now(),
    version  text NOT NULL,
    slots    integer NOT NULL,
    busy     integer NOT NULL,
    PRIMARY KEY (queue, instance)
) WITH (fillfactor = 50);
