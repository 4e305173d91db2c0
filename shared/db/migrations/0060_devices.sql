-- Device codes: programs without a browser that wait for a person's decision (docs/reference/oauth.md#device-authorization).
CREATE TABLE oauth_devices (
    -- Becomes that of the grant.
    id               uuid PRIMARY KEY,
    secret_hash      bytea NOT NULL,
    user_code        text COLLATE "C" NOT NULL UNIQUE,
    scopes           text[] NOT NULL,
    -- Where the program asks from, which the person is shown.
    address          text NOT NULL,
    created_at       timestamptz(3) NOT NULL DEFAULT now(),
    until            timestamptz(3) NOT NULL,
    -- The least time between two requests of the program, and the last one.
    interval_seconds integer NOT NULL,
    polled_at        timestamptz(3),
    -- NULL until a person decides.
    is_allowed       boolean
);
CREATE INDEX oauth_devices_until ON oauth_devices (until);

-- User codes that a person typed and that wait for nobody, in the past hour.
CREATE TABLE device_misses (
    account_uid text COLLATE "C" NOT NULL REFERENCES accounts,
    at          timestamptz(3) NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX device_misses_account ON device_misses (account_uid, at);

-- The grant of a device has neither: its program presents the device code.
ALTER TABLE oauth_grants ALTER COLUMN redirect_uri DROP NOT NULL, ALTER COLUMN challenge DROP NOT NULL;
