-- How an asset came to be (`domain::lineage::Made`, without the time, which is that of the asset), and the assets that its inputs were
-- when the work was accepted (docs/reference/assets.md#lineage). NULL, and no rows, of what earlier releases stored.
ALTER TABLE assets ADD COLUMN made jsonb;

-- Deleted with the child. Without a constraint on the parent: that it was deleted is still to be seen.
CREATE TABLE asset_parents (
    child_owner  text COLLATE "C" NOT NULL,
    child_id     text COLLATE "C" NOT NULL,
    position     smallint NOT NULL,
    parent_owner text COLLATE "C" NOT NULL,
    parent_id    text COLLATE "C" NOT NULL,
    role         text,
    PRIMARY KEY (child_owner, child_id, position),
    FOREIGN KEY (child_owner, child_id) REFERENCES assets ON DELETE CASCADE
);
CREATE INDEX asset_parents_parent ON asset_parents (parent_owner, parent_id, child_owner, child_id);
