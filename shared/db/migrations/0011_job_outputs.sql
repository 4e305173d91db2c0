-- One row for each output of an image job: what stands between a crash and a second submit (decisions 9.8, 12.4, 12.5;
-- reliability.md 2, "Provider submits"). Made when a worker first takes the job; goes with the job.
--   ready:      not submitted, or surely not accepted: it may be submitted
--   submitting: a submit was begun. Found by a worker that did not begin it, its outcome is unknown
--   submitted:  the provider has it under the id in `run`
--   stored:     its picture is in the store; `placement` is what the job's end needs of it
--   failed:     it will not be made; `failure` says why
--   canceled:   the job ended before it did
CREATE TABLE job_outputs (
    job_id       uuid NOT NULL REFERENCES jobs ON DELETE CASCADE,
    -- From 0, in the order of the job's targets.
    position     integer NOT NULL CHECK (position >= 0),
    state        text NOT NULL DEFAULT 'ready' CHECK
                 (state IN ('ready', 'submitting', 'submitted', 'stored', 'failed', 'canceled')),
    -- Submits so far.
    attempts     integer NOT NULL DEFAULT 0,
    -- How often the present state's own work did not work out: repeats and look-ups while submitting, downloads while
    -- submitted.
    tries        integer NOT NULL DEFAULT 0,
    -- Whether the provider is known to have begun it, so that a cancel charges it.
    accepted     boolean NOT NULL DEFAULT false,
    -- Whether it may have been begun all the same, with nobody left to ask: what an operator looks up at the provider.
    orphan       boolean NOT NULL DEFAULT false,
    -- A `providers::Run`; holds no secret.
    run          jsonb,
    submitted_at timestamptz(3),
    -- Not before this time is the next step.
    due_at       timestamptz(3) NOT NULL DEFAULT now(),
    -- From the first submit on: when it is given up.
    deadline_at  timestamptz(3),
    -- A `db::jobs::Placement`.
    placement    jsonb,
    -- A `domain::job::Failure`; while ready or submitting, what the last attempt met.
    failure      jsonb,
    PRIMARY KEY (job_id, position),
    CHECK (state <> 'submitted' OR run IS NOT NULL),
    CHECK (state <> 'stored' OR placement IS NOT NULL),
    CHECK (state <> 'failed' OR failure IS NOT NULL)
) WITH (fillfactor = 70);

-- Of a return: how many of the returned outputs a provider may have made, and be paid for, all the same. Outlives the job.
ALTER TABLE ledger ADD COLUMN possible_orphans integer NOT NULL DEFAULT 0;
