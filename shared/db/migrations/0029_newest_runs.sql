-- The order in which an account's jobs and Recipe runs are listed. Neither column ever changes, so that updates of a row stay
-- in place (HOT).
CREATE INDEX IF NOT EXISTS jobs_newest ON jobs (account_uid, created_at, id) WHERE recipe_run IS NULL;
CREATE INDEX IF NOT EXISTS recipe_runs_newest ON recipe_runs (account_uid, created_at, id);
