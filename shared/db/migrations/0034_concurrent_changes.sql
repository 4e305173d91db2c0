-- What a request based on an earlier revision may depend on besides the nodes and connections that changed
-- (docs/reference/conventions.md#stale-revisions). Null in changes that the previous release records: nothing is known of them.
ALTER TABLE canvas_changes
    -- Sections that gained or lost members.
    ADD COLUMN IF NOT EXISTS regrouped text[],
    -- Whether the canvas was renamed.
    ADD COLUMN IF NOT EXISTS renamed boolean;
