-- What each process may do with each table, sequence and function: the one list of it (docs/reference/configuration.md#database-roles).
--
-- `canvas-gateway migrate` runs this file after the migrations, as the role that owns the schema. A process has a role of its own if there
-- is one with the owner's name and the suffix of the process, such as `canvas_image_worker`. That role is given exactly what its column
-- says; a process without one connects as the owner. `canvas.role_passwords`, a JSON object from suffixes to passwords, makes roles that
-- are missing and sets the passwords.
--
-- The letters are those of PostgreSQL: r SELECT, a INSERT, w UPDATE, d DELETE, X EXECUTE. A row lock needs UPDATE of a column, `nextval`
-- and `setval` need UPDATE of the sequence. A name with columns is about these columns alone. Every table and sequence has a row, if only
-- to say that no process needs it. `tests/spec/roles.rs` compares the list with the statements in the processes' programs: all that
-- they need is here, and nothing else.
--
-- Upgrades replace processes after this file ran: what the previous release needs stays until the next one.
DO $$
DECLARE
    owner name := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'public.accounts'::regclass);
    passwords jsonb := nullif(current_setting('canvas.role_passwords', true), '');
    processes text[] :=                           '{gateway, image_worker, video_worker, webhook_dispatcher}';
    privileges text[][] := ARRAY[
        ['_sqlx_migrations',                       'r',     'r',          'r',          'r'],
        ['account_sessions',                       'arwd',  '',           '',           ''],
        ['account_sessions (id, revoked_at)',      '',      'r',          'r',          ''],
        ['account_storage',                        'arwd',  '',           '',           ''],
        ['accounts',                               'arw',   '',           '',           ''],
        ['accounts (uid, enabled, preview_epoch)', '',      'r',          'r',          ''],
        ['accounts (credit_balance)',              '',      'rw',         'rw',         ''],
        ['admit_storage',                          'X',     'X',          'X',          ''],
        ['asset_parents',                          'ar',    'ar',         'ar',         ''],
        ['assets',                                 'arwd',  'arw',        'ar',         ''],
        ['audit',                                    'ard',  '',          '',          ''],
        ['audit_id_seq',                             '',     '',          '',          ''],
        ['audit_origins',                            'ard',  '',          '',          ''],
        ['audit_seals',                              'ard',  '',          '',          ''],
        ['audit_seals_id_seq',                       '',     '',          '',          ''],
        ['blob_walk',                              '',      'rw',         '',           ''],
        ['blobs',                                  'arw',   'arwd',       'arw',        ''],
        ['budgets',                                'arwd',  '',           '',           ''],
        ['budgets (id, account_uid, authority, unit, period, max, window_from)',
                                                   '',      'r',          'r',          ''],
        ['budgets (spent)',                        '',      'rw',         'rw',         ''],
        ['budgets_id_seq',                         '',      '',           '',           ''],
        ['campaign_shots',                         'arw',   '',           '',           ''],
        ['campaigns',                              'arwd',  '',           '',           ''],
        ['canvas_changes',                         'arwd',  'ard',        'ard',        ''],
        ['canvas_shares',                          'arwd',  'r',          'r',          ''],
        ['canvas_shares (role)',                   '',      'w',          'w',          ''],
        ['canvases',                               'arwd',  'rw',         'rw',         ''],
        ['canvases_key_seq',                       '',      '',           '',           ''],
        ['capability_links',                       'arwd',  'rwd',        '',           ''],
        ['connections',                            'arwd',  'arwd',       'arwd',       ''],
        ['connections_ordinal_seq',                'w',     'w',          'w',          ''],
        ['deleted_connections',                    'ard',   'ard',        'ard',        ''],
        ['deleted_nodes',                          'ard',   'ard',        'ard',        ''],
        ['device_misses',                          'ard',   '',           '',           ''],
        ['element_collections',                    'arwd',  '',           '',           ''],
        ['element_memberships',                    'ard',   '',           '',           ''],
        ['element_versions',                       'ar',    '',           '',           ''],
        ['elements',                               'arwd',  '',           '',           ''],
        ['idempotency_keys',                       'arwd',  'arwd',       'ar',         ''],
        ['identities',                             'arwd',  '',           '',           ''],
        ['imports',                                'ard',   'rwd',        '',           ''],
        ['installation',                           'arw',   '',           '',           ''],
        ['job_history',                            'ar',    'a',          'a',          ''],
        ['job_outputs',                            'rw',    'arw',        'arw',        ''],
        ['jobs',                                   'arwd',  'arwd',       'rw',         ''],
        ['jobs (id, status)',                      '',      '',           '',           'r'],
        ['jobs (finalized_at, retain_until)',      '',      '',           '',           'rw'],
        ['ledger',                                 'ar',    'ar',         'ar',         ''],
        ['ledger_id_seq',                          '',      '',           '',           ''],
        ['ledger_notes',                           'ard',   '',           '',           ''],
        ['nodes',                                  'arwd',  'arwd',       'arwd',       ''],
        ['nodes_ordinal_seq',                      'w',     'w',          'w',          ''],
        ['oauth_clients',                          'ard',   '',           '',           ''],
        ['oauth_devices',                          'arwd',  '',           '',           ''],
        ['oauth_grants',                           'arwd',  '',           '',           ''],
        ['outbox',                                 '',      '',           '',           ''],
        ['outbox_id_seq',                          '',      '',           '',           ''],
        ['provider_connections',                   'arwd',  'r',          'r',          ''],
        ['recipe_run_outputs',                     'arw',   'rw',         '',           ''],
        ['recipe_runs',                            'arwd',  'rw',         'r',          ''],
        ['recipe_versions',                        'ar',    '',           '',           ''],
        ['recipes',                                'arwd',  '',           '',           ''],
        ['renditions',                             'arw',   'arw',        'ar',         ''],
        ['session_logins',                         'ar',    '',           '',           ''],
        ['set_aside',                              'arwd',  '',           '',           ''],
        ['signin_links',                           'arwd',  '',           '',           ''],
        ['task_floor_generation',                  'r',     'rw',         'r',          'r'],
        ['task_floor_image',                       'r',     'rw',         'r',          'r'],
        ['task_floor_import',                      'r',     'rw',         'r',          'r'],
        ['task_floor_recipe',                      'r',     'rw',         'r',          'r'],
        ['task_floor_video',                       'r',     'r',          'rw',         'r'],
        ['task_floor_webhook',                     'r',     'r',          'r',          'rw'],
        ['task_queue',                             'arwd',  'arwd',       'arwd',       'rwd'],
        ['task_turns',                             'rw',    'rw',         'rw',         'rw'],
        ['tasks',                                  '',      '',           '',           ''],
        ['tokens',                                 'arwd',  '',           '',           ''],
        ['tokens (id, session_id, parent, label, surface, revoked_at)',
                                                   '',      'r',          'r',          ''],
        ['webhook_attempts',                       '',      '',           '',           'arw'],
        ['webhook_deliveries',                     'arwd',  'rw',         'rw',         'rwd'],
        ['workers',                                'r',     'arwd',       'arwd',       'arwd']
    ];
    letters jsonb := '{"r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE", "X": "EXECUTE"}';
    object text[];
    row text[];
    letter text;
    role name;
BEGIN
    -- Of two migrations at the same time one waits for the other: each writes the same rows of the catalog.
    PERFORM pg_advisory_xact_lock(hashtext('canvas.roles'));
    FOR process IN 1 .. 4 LOOP
        role := owner || '_' || processes[process];
        IF passwords ? processes[process] THEN
            IF to_regrole(quote_ident(role)) IS NULL THEN EXECUTE format('CREATE ROLE %I', role); END IF;
            EXECUTE format('ALTER ROLE %I LOGIN PASSWORD %L', role, passwords ->> processes[process]);
        END IF;
        CONTINUE WHEN to_regrole(quote_ident(role)) IS NULL;
        EXECUTE format('GRANT USAGE ON SCHEMA public TO %I', role);
        EXECUTE (
            SELECT format('REVOKE ALL ON %s FROM %I', string_agg(oid::regclass::text, ', '), role) FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relowner = to_regrole(quote_ident(owner))
              AND relkind IN ('r', 'p', 'v', 'S')
        );
        FOREACH row SLICE 1 IN ARRAY privileges LOOP
            object := regexp_match(row[1], '^(\w+) ?(\(.*\))?$');
            FOREACH letter IN ARRAY string_to_array(row[1 + process], NULL) LOOP
                EXECUTE format('GRANT %s %s ON %s public.%I TO %I', letters ->> letter, object[2],
                               CASE letter WHEN 'X' THEN 'FUNCTION' ELSE 'TABLE' END, object[1], role);
            END LOOP;
        END LOOP;
    END LOOP;
END $$;
