-- Runs of Recipes: one row a run, one row a step (decisions 13.6, 13.7).

-- A run of a Recipe; its id is that of its task, its reservation and its webhook's run. Kept until its account is purged.
CREATE TABLE recipe_runs (
    id              uuid PRIMARY KEY,
    account_uid     text COLLATE "C" NOT NULL REFERENCES accounts,
    -- The delegation: the run goes on while this token, its session and its account hold (decisions 13.7).
    token_id        uuid NOT NULL REFERENCES tokens,
    status          text NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'canceled')),
    -- Grows with every visible change; with the id it is the record's ETag.
    version         integer NOT NULL DEFAULT 1,
    recipe_id       text COLLATE "C" NOT NULL,
    recipe_version  integer NOT NULL,
    canvas_key      bigint REFERENCES canvases ON DELETE SET NULL,
    canvas_owner    text COLLATE "C" NOT NULL,
    canvas_id       text COLLATE "C" NOT NULL,
    instance_node   text COLLATE "C" NOT NULL,
    -- A `domain::recipe::run::Plan`.
    plan            jsonb NOT NULL,
    -- Credits that are reserved under the run's own id: those of the steps that have not begun. A step takes its share along.
    reserved        bigint NOT NULL CHECK (reserved >= 0),
    -- A `domain::recipe::run::RunFailure`.
    failure         jsonb,
    -- A `domain::review::CompletionReview`.
    review          jsonb,
    created_at      timestamptz(3) NOT NULL DEFAULT now(),
    started_at      timestamptz(3),
    completed_at    timestamptz(3),
    updated_at      timestamptz(3) NOT NULL DEFAULT now(),
    CHECK ((completed_at IS NOT NULL) = (status IN ('succeeded', 'failed', 'canceled')))
) WITH (fillfactor = 70);
CREATE INDEX recipe_runs_active ON recipe_runs (account_uid) WHERE status IN ('queued', 'running');

-- One row a step.
CREATE TABLE recipe_run_outputs (
    run_id       uuid NOT NULL REFERENCES recipe_runs ON DELETE CASCADE,
    position     smallint NOT NULL,
    status       text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'running', 'succeeded', 'failed', 'canceled')),
    -- The image job that makes it. No reference: the run outlives its jobs.
    job_id       uuid,
    asset_owner  text COLLATE "C",
    asset_id     text COLLATE "C",
    value        text,
    -- A `domain::recipe::run::RunFailure`.
    failure      jsonb,
    started_at   timestamptz(3),
    completed_at timestamptz(3),
    PRIMARY KEY (run_id, position),
    CHECK ((asset_owner IS NULL) = (asset_id IS NULL))
);

-- The run whose step a job is: such a job counts as part of its run.
ALTER TABLE jobs ADD COLUMN recipe_run uuid;
