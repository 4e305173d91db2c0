-- Which nodes a start made for its work: those of its targets whose `made` is the sequence of the change that accepted the work.
-- A step of a Recipe run has the sequence of its run. NULL for work that an earlier release accepted: it made none.
ALTER TABLE jobs ADD COLUMN canvas_sequence bigint;
ALTER TABLE recipe_runs ADD COLUMN canvas_sequence bigint;
-- Whether the end of the work deletes those that are still empty.
ALTER TABLE jobs ADD COLUMN remove_targets boolean NOT NULL DEFAULT false;
ALTER TABLE recipe_runs ADD COLUMN remove_targets boolean NOT NULL DEFAULT false;
