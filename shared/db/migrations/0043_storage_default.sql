-- Accounts have a maximum of storage unless the operator says otherwise (docs/reference/assets.md#storage-quota).

-- The maximum of an account without one of its own, where CANVAS_ACCOUNT_STORAGE_MAX is not set. Accounts from before keep what they
-- had: 0, no limit.
ALTER TABLE accounts ADD COLUMN storage_default bigint NOT NULL DEFAULT 0 CHECK (storage_default >= 0);
ALTER TABLE accounts ALTER COLUMN storage_default SET DEFAULT 21474836480;

-- The maximum of an account in bytes; 0: no limit. Its own wins over that of the process, which wins over the default.
CREATE FUNCTION storage_limit(accounts) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce($1.storage_max, nullif(current_setting('canvas.storage_max', true), '')::bigint, $1.storage_default)
$$;

-- Decides whether an account may store `more` bytes. With `hold`, what it stores stays the same until the transaction ends, unless
-- there is no limit: then nobody waits.
CREATE FUNCTION admit_storage(account text, more bigint, hold boolean, OUT bytes bigint, OUT max bigint, OUT is_admitted boolean)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT storage_limit(a) INTO STRICT max FROM accounts a WHERE a.uid = account;
    IF hold AND max > 0 THEN
        INSERT INTO account_storage VALUES (account, 0) ON CONFLICT DO NOTHING;
        PERFORM FROM account_storage s WHERE s.account_uid = account FOR NO KEY UPDATE;
    END IF;
    bytes := coalesce((SELECT s.bytes FROM account_storage s WHERE s.account_uid = account), 0);
    is_admitted := max = 0 OR bytes + more <= max;
END $$;
