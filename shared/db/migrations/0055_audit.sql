-- The audit (docs/reference/administration.md#audit): a row for each act, written in the transaction of the act. It has ids and numbers;
-- names are resolved when it is read. Without foreign keys, because it outlives what it names.
CREATE TABLE audit (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
    event       text COLLATE "C" NOT NULL,
    outcome     text NOT NULL CHECK (outcome IN ('ok', 'refused')),
    -- Who acted: an account, and by which credential or command.
    actor_uid   text COLLATE "C",
    via         text NOT NULL,
    via_id      text,
    -- Whose affairs it concerns.
    account_uid text COLLATE "C",
    request_id  uuid,
    details     jsonb NOT NULL CHECK (octet_length(details::text) <= 4096),
    -- SHA-256 of the salt, the address and the client in `audit_origins`.
    origin      bytea
);
CREATE INDEX audit_event ON audit (event, id);
CREATE INDEX audit_actor ON audit (actor_uid, id) WHERE actor_uid IS NOT NULL;
CREATE INDEX audit_account ON audit (account_uid, id) WHERE account_uid IS NOT NULL;
CREATE INDEX audit_request ON audit (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX audit_at ON audit (at);

-- Where an act came from. Deleted earlier than the rows of the audit, which then keep a hash whose salt is gone.
CREATE TABLE audit_origins (
    audit_id    bigint PRIMARY KEY,
    account_uid text COLLATE "C",
    salt        uuid NOT NULL,
    address     text,
    client      text,
    at          timestamptz(3) NOT NULL
);
CREATE INDEX audit_origins_account ON audit_origins (account_uid) WHERE account_uid IS NOT NULL;
CREATE INDEX audit_origins_at ON audit_origins (at);

-- A chain of HMACs over the rows: `head` covers the head before, `ids`, and the rows with these ids, which are all of the month of `at`.
CREATE TABLE audit_seals (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz(3) NOT NULL,
    ids       int8multirange NOT NULL,
    rows      bigint NOT NULL,
    head      bytea NOT NULL,
    sealed_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX audit_seals_ids ON audit_seals USING gist (ids);

-- Rows may only be deleted with their month, after the audit itself says that the month was dropped.
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.at < (SELECT max((details ->> 'before')::timestamptz) FROM audit WHERE event = 'audit.dropped') THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'table % is append-only', TG_TABLE_NAME;
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER audit_keeps_all BEFORE TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER audit_seals_append_only BEFORE UPDATE OR DELETE ON audit_seals
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER audit_seals_keeps_all BEFORE TRUNCATE ON audit_seals
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
