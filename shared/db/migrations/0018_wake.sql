-- A task that waits for another one's end, as a Recipe run does for the job of its picture, is woken by it.

-- Whether it was to be woken while a worker had it: that worker does not park it then. A claim begins anew. What a process of the
-- version before parks meanwhile, it parks for half a second.
ALTER TABLE tasks ADD COLUMN woken boolean NOT NULL DEFAULT false;
