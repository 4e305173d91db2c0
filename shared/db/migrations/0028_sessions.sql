-- Sessions of people in the browser, and the links that sign them in (docs/reference/console.md).

-- A session is a token that only a cookie can present. It ends when it was not used until `idle_until`. A session that was
-- signed in by a token names it as its parent, and ends with it.
ALTER TABLE tokens ADD COLUMN kind text NOT NULL DEFAULT 'agent' CHECK (kind IN ('agent', 'session', 'oauth'));
ALTER TABLE tokens ADD COLUMN parent uuid REFERENCES tokens;
ALTER TABLE tokens ADD COLUMN idle_until timestamptz(3);
-- The browser of a session, as it names itself.
ALTER TABLE tokens ADD COLUMN client text;
CREATE INDEX IF NOT EXISTS tokens_parent ON tokens (parent) WHERE parent IS NOT NULL;

-- A link works once, until it expires.
CREATE TABLE signin_links (
    id          uuid PRIMARY KEY,
    account_uid text COLLATE "C" NOT NULL REFERENCES accounts,
    secret_hash bytea NOT NULL,
    created_at  timestamptz(3) NOT NULL DEFAULT now(),
    expires_at  timestamptz(3) NOT NULL,
    used_at     timestamptz(3)
);
CREATE INDEX signin_links_account ON signin_links (account_uid);
