-- Apps: programs that a person authorized (docs/reference/oauth.md).

-- A client that an operator listed. Other clients are not stored.
CREATE TABLE oauth_clients (
    id            text COLLATE "C" PRIMARY KEY,
    name          text NOT NULL,
    redirect_uris text[] NOT NULL,
    created_at    timestamptz(3) NOT NULL DEFAULT now()
);

-- What a person granted. Its id becomes that of the app's token, when the client exchanges the code.
CREATE TABLE oauth_grants (
    id           uuid PRIMARY KEY,
    account_uid  text COLLATE "C" NOT NULL REFERENCES accounts,
    client_id    text COLLATE "C" NOT NULL,
    client_kind  text NOT NULL,
    client_name  text NOT NULL,
    client_host  text,
    redirect_uri text NOT NULL,
    scopes       text[] NOT NULL,
    surface      text NOT NULL,
    challenge    text NOT NULL,
    created_at   timestamptz(3) NOT NULL DEFAULT now(),
    -- The end of the app; NULL: none.
    ends_at      timestamptz(3),
    code_hash    bytea NOT NULL,
    code_until   timestamptz(3) NOT NULL,
    -- Set when the code was first presented, whether or not it was exchanged.
    code_used_at timestamptz(3),
    -- Number of the pair of tokens that is valid now; 0 before the code is exchanged.
    generation   integer NOT NULL DEFAULT 0,
    refresh_hash bytea,
    refreshed_at timestamptz(3)
);
CREATE INDEX oauth_grants_account ON oauth_grants (account_uid);
CREATE INDEX oauth_grants_unredeemed ON oauth_grants (code_until) WHERE generation = 0;

-- The access token of an app ends by itself, and the one before it shortly after a refresh. The app goes on.
ALTER TABLE tokens ADD COLUMN access_until timestamptz(3);
ALTER TABLE tokens ADD COLUMN previous_hash bytea;
ALTER TABLE tokens ADD COLUMN previous_until timestamptz(3);
