-- Saved connections to third-party providers: an account's own keys (decisions 2.4, 12). What is not set up here is run by
-- the operator, and no row says so.
CREATE TABLE provider_connections (
    id          uuid PRIMARY KEY,
    account_uid text COLLATE "C" NOT NULL REFERENCES accounts,
    provider    text NOT NULL CHECK (provider IN
                ('openai', 'google', 'replicate', 'fal', 'stability', 'black-forest-labs', 'runway')),
    name        text COLLATE "C" NOT NULL,
    -- The operator's own address of the provider's API; NULL: the provider's.
    base_url    text,
    -- Under the key ring; `connection:<id>` is the context of the seal. Replaced in place, so that the id stays (decisions 2.4).
    sealed_key  text NOT NULL,
    masked_key  text NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    updated_at  timestamptz(3) NOT NULL DEFAULT now(),
    CONSTRAINT provider_connections_named UNIQUE (account_uid, provider, name)
);
CREATE INDEX provider_connections_account ON provider_connections (account_uid, created_at, id);
