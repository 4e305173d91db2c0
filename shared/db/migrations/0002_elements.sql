-- Elements: reusable visual references with immutable versions, in collections (decisions 7); and what `/changes` needs to
-- tell what was made since a revision from what was only changed (decisions 4.7).

-- What an element is stands in its versions; here is where it stands among the others.
CREATE TABLE elements (
    owner_uid         text COLLATE "C" NOT NULL REFERENCES accounts,
    id                text COLLATE "C" NOT NULL,
    lifecycle         text NOT NULL DEFAULT 'active' CHECK (lifecycle IN ('active', 'archived')),
    -- The newest version: the only one that the next may follow.
    version           integer NOT NULL DEFAULT 1 CHECK (version >= 1),
    -- Name and guidelines of the newest version in lower case. Lowered before they come here, because what `lower` does
    -- depends on the server's locale.
    search_name       text NOT NULL,
    search_guidelines text NOT NULL,
    created_at        timestamptz(3) NOT NULL DEFAULT now(),
    updated_at        timestamptz(3) NOT NULL DEFAULT now(),
    archived_at       timestamptz(3),
    PRIMARY KEY (owner_uid, id),
    CHECK ((lifecycle = 'archived') = (archived_at IS NOT NULL))
);
CREATE INDEX elements_recent ON elements (owner_uid, lifecycle, updated_at DESC, id DESC);

CREATE TABLE element_versions (
    owner_uid        text COLLATE "C" NOT NULL,
    element_id       text COLLATE "C" NOT NULL,
    version          integer NOT NULL CHECK (version >= 1),
    name             text NOT NULL,
    type             text NOT NULL CHECK
                     (type IN ('character', 'product/object', 'environment', 'style', 'material/texture', 'lighting')),
    -- Ids of assets of the owner, in the order given. No reference: a version outlives its pictures, and its source
    -- health says so.
    source_asset_ids text[] NOT NULL,
    guidelines       text,
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_uid, element_id, version),
    FOREIGN KEY (owner_uid, element_id) REFERENCES elements ON DELETE CASCADE
);
CREATE TRIGGER element_versions_immutable BEFORE UPDATE ON element_versions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE element_collections (
    owner_uid  text COLLATE "C" NOT NULL REFERENCES accounts,
    id         text COLLATE "C" NOT NULL,
    name       text NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    updated_at timestamptz(3) NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_uid, id)
);
CREATE INDEX element_collections_recent ON element_collections (owner_uid, updated_at DESC, id DESC);

-- Which elements are in which collections; `place` keeps the order in which an element's were given.
CREATE TABLE element_memberships (
    owner_uid     text COLLATE "C" NOT NULL,
    element_id    text COLLATE "C" NOT NULL,
    collection_id text COLLATE "C" NOT NULL,
    place         smallint NOT NULL,
    PRIMARY KEY (owner_uid, element_id, collection_id),
    FOREIGN KEY (owner_uid, element_id) REFERENCES elements ON DELETE CASCADE,
    FOREIGN KEY (owner_uid, collection_id) REFERENCES element_collections ON DELETE CASCADE
);
CREATE INDEX element_memberships_collection ON element_memberships (owner_uid, collection_id);

-- The sequence of the change that made a node or connection; 0: before this was kept.
ALTER TABLE nodes ADD COLUMN made bigint NOT NULL DEFAULT 0;
ALTER TABLE connections ADD COLUMN made bigint NOT NULL DEFAULT 0;
-- Of the changed ones those that the change made. What was made and deleted since a revision is in no list of `/changes`.
ALTER TABLE canvas_changes
    ADD COLUMN made_nodes       text[] NOT NULL DEFAULT '{}',
    ADD COLUMN made_connections text[] NOT NULL DEFAULT '{}';
