-- Recipes with immutable versions, and their runs (decisions 13).

-- Where a Recipe stands among the others; what it says is in its versions.
CREATE TABLE recipes (
    id         text COLLATE "C" PRIMARY KEY,
    -- Whose private workflow it is; NULL: in the catalogue, for everybody.
    owner_uid  text COLLATE "C" REFERENCES accounts,
    -- The newest version, written `1.0.<version>`: the only one that the next may follow.
    version    integer NOT NULL DEFAULT 0 CHECK (version >= 0),
    -- What a search looks into, of the newest version. Lowered before it comes here, because what `lower` does depends on
    -- the server's locale.
    search     text NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    updated_at timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX recipes_catalogue ON recipes (updated_at DESC, id DESC) WHERE owner_uid IS NULL;
CREATE INDEX recipes_private ON recipes (owner_uid, updated_at DESC, id DESC) WHERE owner_uid IS NOT NULL;

CREATE TABLE recipe_versions (
    recipe_id  text COLLATE "C" NOT NULL REFERENCES recipes ON DELETE CASCADE,
    version    integer NOT NULL CHECK (version >= 0),
    -- A `domain::recipe::Definition`.
    definition jsonb NOT NULL,
    created_at timestamptz(3) NOT NULL DEFAULT now(),
    PRIMARY KEY (recipe_id, version)
);
CREATE TRIGGER recipe_versions_immutable BEFORE UPDATE ON recipe_versions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
