-- What sweepers look at in a round, bounded, however much is kept.
--
-- The indexes are made in the order in which the end of an import writes to the two tables.

-- How far the walk over all blobs has come. On record and not in a process, so that it comes to its end however short processes
-- live, and replicas share it.
CREATE TABLE blob_walk (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    -- Everything up to this key was looked at.
    after    uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
);
INSERT INTO blob_walk DEFAULT VALUES;

-- Blobs on their way in or out: few, and found without a walk. Not by `touched_at`, so that touching a blob enters it nowhere anew.
CREATE INDEX IF NOT EXISTS blobs_unsettled ON blobs (key) WHERE state <> 'stored';

-- Imports that came to nothing; each is gone ten minutes after its end.
CREATE INDEX IF NOT EXISTS imports_failed ON imports (ended_at) WHERE state = 'ended';
-- Imports of an account that are still to end: how many it may start.
CREATE INDEX IF NOT EXISTS imports_pending ON imports (account_uid) WHERE state = 'pending';
