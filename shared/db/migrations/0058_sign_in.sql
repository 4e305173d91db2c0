-- People who sign in with an OpenID provider (docs/reference/signin.md).

-- 'signin': a sign-in that was not admitted disabled the account, and the next admitted one enables it. NULL: an operator did.
ALTER TABLE accounts ADD COLUMN disabled_by text CHECK (disabled_by = 'signin');
-- Until when the last admitted sign-in confirms the account's tokens. NULL: for ever.
ALTER TABLE accounts ADD COLUMN confirm_by timestamptz(3);
-- The provider whose claim set `storage_max`.
ALTER TABLE accounts ADD COLUMN storage_from text;
-- The month for which a claim raised the balance: its first day.
ALTER TABLE accounts ADD COLUMN raised_for date;

-- A person at a provider: nothing but issuer and subject says who somebody is.
CREATE TABLE identities (
    id             uuid PRIMARY KEY,
    issuer         text COLLATE "C" NOT NULL,
    subject        text COLLATE "C" NOT NULL,
    -- Not NULL once the transaction of the first sign-in ends.
    account_uid    text COLLATE "C" REFERENCES accounts,
    -- Id of the provider in the settings.
    provider       text COLLATE "C" NOT NULL,
    -- The last verified email.
    email          text,
    created_at     timestamptz(3) NOT NULL DEFAULT now(),
    last_signin_at timestamptz(3),
    UNIQUE (issuer, subject)
);
CREATE INDEX identities_account ON identities (account_uid);

-- The identity that began a session, and the provider's name for the session.
CREATE TABLE session_logins (
    token_id    uuid PRIMARY KEY REFERENCES tokens ON DELETE CASCADE,
    identity_id uuid NOT NULL REFERENCES identities ON DELETE CASCADE,
    sid         text COLLATE "C"
);
CREATE INDEX session_logins_identity ON session_logins (identity_id);

-- A link that an administrator made. It is good only as long as nobody has used the account, so that no second one of its kind, kept by
-- whoever made it, opens the account of somebody who has come in by another way.
ALTER TABLE signin_links ADD COLUMN is_invitation boolean NOT NULL DEFAULT false;

-- Whether nobody ever signed in to an account or used a token of it.
CREATE FUNCTION is_unused(account text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT FROM tokens WHERE account_uid = account)
       AND NOT EXISTS (SELECT FROM account_sessions WHERE account_uid = account)
       AND NOT EXISTS (SELECT FROM identities WHERE account_uid = account)
       AND NOT EXISTS (SELECT FROM signin_links WHERE account_uid = account AND used_at IS NOT NULL)
$$;
