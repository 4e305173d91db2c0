-- Administrators (docs/reference/administration.md), and what they need.
ALTER TABLE accounts
    ADD COLUMN role text NOT NULL DEFAULT 'member' CHECK (role IN ('member', 'admin')),
    -- Who gave the role: NULL is a command or an administrator.
    ADD COLUMN role_from text;

-- Credit that was moved by hand: a key under which a repetition of the request moves none.
ALTER TABLE ledger ADD COLUMN request_key text;
CREATE UNIQUE INDEX IF NOT EXISTS ledger_request ON ledger (account_uid, request_key) WHERE request_key IS NOT NULL;

-- Why credit was moved by hand, in the words of who did. Apart from the ledger, which nobody changes, because a purge deletes it.
CREATE TABLE ledger_notes (
    ledger_id   bigint PRIMARY KEY REFERENCES ledger,
    account_uid text COLLATE "C" NOT NULL REFERENCES accounts,
    note        text NOT NULL
);
CREATE INDEX ledger_notes_account ON ledger_notes (account_uid);
