-- Administrators (docs/reference/administration.md), and what they need.
ALTER TABLE accounts
    ADD COLUMN role text NOT NULL DEFAULT 'member' CHECK (role IN ('member', 'admin')),
    -- Who gave the role: NULL is a command or an administrator.
    ADD COLUMN role_from text;

-- Credit that was moved by hand: why, and a key under which a repetition of the request moves none.
ALTER TABLE ledger
    ADD COLUMN note text,
    ADD COLUMN request_key text;
CREATE UNIQUE INDEX IF NOT EXISTS ledger_request ON ledger (account_uid, request_key) WHERE request_key IS NOT NULL;
