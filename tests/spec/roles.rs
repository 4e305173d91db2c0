//! Roles of the database (docs/reference/configuration.md#database-roles). All end-to-end tests run with them: each process of a stack
//! connects with its own. `shared/db/src/roles/tests.rs` has what they are refused.

use std::collections::HashMap;
use std::path::Path;

use e2e::api::text;
use e2e::{Kind, Part, Stack, User, binary};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgConnection};
use testkit::TestDatabase;

const KINDS: [Kind; 4] = [Kind::Gateway, Kind::ImageWorker, Kind::VideoWorker, Kind::Dispatcher];

/// The refusal of a statement with that many parameters, or NULL. The executor checks the privileges of all tables and columns of a
/// plan before it begins, and EXPLAIN goes as far as that.
const REFUSAL: &str = "
    CREATE FUNCTION refusal(role text, statement text, parameters int) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
        refused text;
    BEGIN
        EXECUTE format('SET LOCAL ROLE %I', role);
        EXECUTE 'PREPARE tried AS ' || statement;
        BEGIN
            EXECUTE 'EXPLAIN EXECUTE tried' || coalesce((SELECT '(' || string_agg('NULL', ',') || ')' FROM generate_series(1, parameters)), '');
        EXCEPTION WHEN insufficient_privilege THEN
            refused := SQLERRM;
        END;
        DEALLOCATE tried;
        RESET ROLE;
        RETURN refused;
    END $$";

/// The privileges of a role that none of these statements needs: without it, all of them are still permitted, and no function that they
/// call with the rights of its caller is about it.
const NEEDLESS: &str = "
    CREATE FUNCTION needless(role text, statements text[], parameters int[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
    DECLARE
        granted record;
    BEGIN
        FOR granted IN
            SELECT relname, format('%s ON %I', privilege_type, relname) AS privilege, ARRAY[privilege_type, relname] AS words
            FROM pg_class, aclexplode(relacl)
            WHERE grantee = to_regrole(role) AND relkind <> 'S' AND relname <> '_sqlx_migrations'
            UNION ALL
            SELECT relname, format('%s (%I) ON %I', privilege_type, attname, relname), ARRAY[privilege_type, relname, attname]
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid, aclexplode(attacl) WHERE grantee = to_regrole(role)
        LOOP
            EXECUTE format('REVOKE %s FROM %I', granted.privilege, role);
            IF NOT EXISTS (
                SELECT FROM unnest(statements, parameters) AS s (statement, parameters)
                WHERE statement ~ ('\\m' || granted.relname || '\\M') AND refusal(role, statement, s.parameters) IS NOT NULL
            ) AND NOT EXISTS (
                SELECT FROM pg_proc p
                WHERE pronamespace = 'public'::regnamespace AND NOT prosecdef
                  AND (SELECT bool_and(prosrc ~ ('\\m' || word || '\\M')) FROM unnest(granted.words) word)
                  AND EXISTS (SELECT FROM unnest(statements) statement WHERE statement ~ ('\\m' || proname || '\\M'))
            ) THEN
                RETURN NEXT granted.privilege;
            END IF;
            EXECUTE format('GRANT %s TO %I', granted.privilege, role);
        END LOOP;
    END $$";

/// The statements of the service with the numbers of their parameters, as the macros have prepared them.
fn statements() -> Vec<(String, i32)> {
    let prepared = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.sqlx")).expect("has statements");
    let statement = |path: &Path| {
        let text = std::fs::read(path).expect("reads a statement");
        let described: Value = serde_json::from_slice(&text).expect("is JSON");
        let parameters = described["describe"]["parameters"]["Left"].as_array().map_or(0, Vec::len);
        let query = described["query"].as_str().expect("a statement").to_owned();
        (query, i32::try_from(parameters).expect("few"))
    };
    let all = prepared.map(|entry| statement(&entry.expect("lists").path()));
    // One that is about the transaction has no plan and needs no privilege.
    all.filter(|(query, _)| query != "SET CONSTRAINTS ALL IMMEDIATE").collect()
}

/// Those of `all` that are in the program of a process: the linker leaves out what the process cannot reach.
fn within(kind: Kind, all: &[(String, i32)]) -> Vec<(String, i32)> {
    const BEGINNING: usize = 12;
    let program = std::fs::read(binary(kind.binary())).expect("reads a program");
    let mut beginnings: HashMap<&[u8], Vec<&(String, i32)>> = HashMap::new();
    for statement in all {
        beginnings.entry(&statement.0.as_bytes()[..BEGINNING]).or_default().push(statement);
    }
    let mut found = Vec::new();
    let mut at = 0;
    // A loop over indexes, because iterators over so many bytes are slow without optimization.
    while at + BEGINNING <= program.len() {
        if matches!(program[at], b'D' | b'I' | b'S' | b'U' | b'W') {
            let rest = &program[at..];
            let candidates = beginnings.get(&rest[..BEGINNING]).map(Vec::as_slice).unwrap_or_default();
            found.extend(candidates.iter().filter(|(query, _)| rest.starts_with(query.as_bytes())).copied().cloned());
        }
        at += 1;
    }
    found.sort_unstable();
    found.dedup();
    found
}

async fn run(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[tokio::test]
async fn a_role_has_the_privileges_that_the_statements_of_its_process_need_and_no_others() {
    let database = TestDatabase::new().await;
    let mut connection = database.pool().acquire().await.expect("connects");
    for sql in [REFUSAL, NEEDLESS, "SET plan_cache_mode = force_generic_plan"] {
        run(&mut connection, sql).await;
    }
    let all = statements();
    assert!(all.len() > 250, "{}", all.len());
    for kind in KINDS {
        let role = format!("canvas_{}", kind.role().expect("this release has roles"));
        let (queries, parameters): (Vec<String>, Vec<i32>) = within(kind, &all).into_iter().unzip();
        assert!(queries.len() > 10 && queries.len() < all.len(), "{role}: {}", queries.len());
        let refused = "SELECT refused || ': ' || statement FROM unnest($2, $3) AS s (statement, parameters),
                       LATERAL refusal($1, statement, parameters) refused WHERE refused IS NOT NULL";
        let refused: Vec<String> = sqlx::query_scalar(refused)
            .bind(&role)
            .bind(&queries)
            .bind(&parameters)
            .fetch_all(&mut *connection)
            .await
            .expect("tries every statement");
        assert_eq!(refused, [""; 0], "{role}");
        let needless: Vec<String> = sqlx::query_scalar("SELECT needless($1, $2, $3)")
            .bind(&role)
            .bind(&queries)
            .bind(&parameters)
            .fetch_all(&mut *connection)
            .await
            .expect("tries every privilege");
        assert_eq!(needless, [""; 0], "{role}");
    }
}

/// An Action with its job, task, asset and node.
async fn works(user: &User, canvas: &str) {
    let job = user.start_resize(canvas, json!({})).await;
    assert_eq!(user.finished(&job).await["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_with_the_role_of_the_owner_work_and_say_so_and_are_given_their_own_one_by_one() {
    let stack = Stack::builder().image_workers(1).video_workers(1).dispatchers(1).start().await;
    let owner =
        stack.env().iter().find(|(name, _)| name == "CANVAS_DATABASE_URL").expect("the harness sets it").1.clone();
    let parts = stack.parts();
    let said = |part: Part| stack.log(part).matches("owns the schema").count();
    for part in &parts {
        assert_eq!(said(*part), 0, "{part}");
        stack.restart_with(*part, &[("CANVAS_DATABASE_URL", &owner)]).await;
        assert_eq!(said(*part), 1, "{part}");
    }
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    works(&user, &canvas).await;
    let migrated = stack.admin(&["migrate"]).await.expect_success();
    let roles = ["canvas_gateway", "canvas_image_worker", "canvas_video_worker", "canvas_webhook_dispatcher"];
    assert_eq!(migrated["roles"], json!(roles));
    for part in &parts {
        stack.restart(*part).await;
        assert_eq!(said(*part), 1, "{part}");
        works(&user, &canvas).await;
    }
}

#[tokio::test]
async fn a_process_whose_role_has_no_rights_yet_waits_for_the_migration() {
    let stack = Stack::builder().dispatchers(1).start().await;
    for part in stack.parts() {
        let role = part.0.role().expect("this release has roles");
        let taken = format!("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM canvas_{role}");
        sqlx::raw_sql(AssertSqlSafe(taken)).execute(stack.pool()).await.expect("revokes");
        stack.launch_with(part, &[]);
    }
    for part in stack.parts() {
        let what = format!("{part} to check the database");
        let message = testkit::wait_for(&what, e2e::PATIENCE, async || {
            let report = stack.readiness(part, "unready").await;
            let message = report["components"]["database"]["message"].as_str();
            message.filter(|message| message.contains("role")).map(str::to_owned)
        });
        let message = message.await;
        assert!(message.starts_with("database refuses the role: run canvas-gateway migrate"), "{part}: {message}");
    }
    stack.admin(&["migrate"]).await.expect_success();
    for part in stack.parts() {
        stack.ready(part).await;
    }
}
