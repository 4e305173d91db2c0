-- Budgets of tokens, apps and accounts (docs/reference/authentication.md#budgets). Whoever changes a budget, or what it counts, has locked
-- the row of its account. `authority` is the id of the token or app; a budget of the account has none. No foreign key: the consent to an
-- app sets its budgets before there is a token.
CREATE TABLE budgets (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_uid text COLLATE "C" NOT NULL REFERENCES accounts,
    authority   uuid,
    unit        text NOT NULL CHECK (unit IN ('credits', 'outputs')),
    period      text NOT NULL CHECK (period IN ('day', 'month', 'total')),
    max         bigint NOT NULL CHECK (max >= 0),
    -- What was counted in the window that begins at `window_from`: the start of a UTC day or month, or when the budget was set.
    spent       bigint NOT NULL DEFAULT 0 CHECK (spent >= 0),
    window_from timestamptz(3) NOT NULL,
    UNIQUE NULLS NOT DISTINCT (account_uid, authority, unit, period)
);

-- The token or app on whose authority credit was reserved, and to whose budgets it returns. NULL: before this release.
ALTER TABLE ledger ADD COLUMN authority uuid;

-- The budgets of an account and of some of its tokens and apps, as they are at a moment: a window that is over counts nothing.
-- `next_window` is NULL for a budget in total.
CREATE FUNCTION budgets_at(account text, authorities uuid[], moment timestamptz) RETURNS TABLE (
    id bigint, authority uuid, unit text, period text, max bigint, spent bigint, window_from timestamptz, next_window timestamptz
) LANGUAGE sql STABLE AS $$
    SELECT b.id, b.authority, b.unit, b.period, b.max, CASE WHEN w.start > b.window_from THEN 0 ELSE b.spent END,
           greatest(b.window_from, w.start), (w.start AT TIME ZONE 'UTC' + w.length) AT TIME ZONE 'UTC'
    FROM budgets b
    CROSS JOIN LATERAL (
        SELECT CASE WHEN b.period <> 'total' THEN date_trunc(b.period, moment, 'UTC') END AS start,
               CASE b.period WHEN 'day' THEN interval '1 day' WHEN 'month' THEN interval '1 month' END AS length
    ) AS w
    WHERE b.account_uid = account AND (b.authority IS NULL OR b.authority = ANY(authorities))
$$;
