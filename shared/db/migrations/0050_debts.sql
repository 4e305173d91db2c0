-- What work owes: outputs that were wanted and that no node stands for (docs/reference/findings.md#works-without-a-node). A job of the
-- previous release owes nothing. A canvas of its own, because `canvas_key` says that the job writes to it; without a foreign key,
-- because nobody asks for a canvas that is gone.
ALTER TABLE jobs
    ADD COLUMN about_canvas bigint,
    ADD COLUMN unmet smallint NOT NULL DEFAULT 0,
    ADD COLUMN given_up smallint NOT NULL DEFAULT 0;

CREATE INDEX IF NOT EXISTS jobs_about ON jobs (about_canvas, account_uid) WHERE unmet > 0 OR given_up > 0;
