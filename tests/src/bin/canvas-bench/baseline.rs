//! The baseline of a canvas read: the same HTTP and database libraries with as many threads and connections as the gateway,
//! one prepared select by primary key for each request, and the same bytes as the response. It has no authentication, no logs,
//! no metrics and no limits.

use std::io::Read;
use std::process::{ExitCode, Stdio};

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use bytes::Bytes;
use clap::Args;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use crate::DATABASE_CONNECTIONS;

/// Arguments of the baseline server. The document is read from stdin, and the address is written to stdout.
#[derive(Args)]
pub struct Arguments {
    /// URL of the database.
    #[arg(long, env = "BASELINE_DATABASE_URL", hide_env_values = true)]
    database_url: String,
    /// Key of the canvas whose row is selected.
    #[arg(long)]
    key: i64,
}

#[derive(Clone)]
struct Baseline {
    pool: PgPool,
    key: i64,
    document: Bytes,
}

/// Serves until the process is killed, on the same kind of runtime as the gateway.
pub fn run(arguments: Arguments) -> ExitCode {
    let mut document = Vec::new();
    std::io::stdin().read_to_end(&mut document).expect("reads the document");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("starts a runtime");
    runtime.block_on(async {
        let pool = PgPoolOptions::new()
            .max_connections(DATABASE_CONNECTIONS)
            // The ping would be a second statement for each request.
            .test_before_acquire(false)
            .connect_lazy(&arguments.database_url)
            .expect("a database URL");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds a free port");
        println!("{}", listener.local_addr().expect("has an address"));
        let baseline = Baseline { pool, key: arguments.key, document: document.into() };
        axum::serve(listener, Router::new().route("/", get(serve)).with_state(baseline)).await.expect("serves");
    });
    ExitCode::SUCCESS
}

async fn serve(State(baseline): State<Baseline>) -> impl IntoResponse {
    let revision: String = sqlx::query_scalar("SELECT revision FROM canvases WHERE key = $1")
        .bind(baseline.key)
        .fetch_one(&baseline.pool)
        .await
        .expect("the canvas exists");
    assert!(!revision.is_empty());
    ([(CONTENT_TYPE, "application/json")], baseline.document)
}

/// Starts the baseline server as a child process, which ends with the handle, and returns its address.
pub async fn start(database_url: &str, key: i64, document: &[u8]) -> (Child, String) {
    let mut child = Command::new(std::env::current_exe().expect("knows its own path"))
        .args(["baseline", "--key", &key.to_string()])
        .env("BASELINE_DATABASE_URL", database_url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("starts the baseline");
    let mut stdin = child.stdin.take().expect("is piped");
    stdin.write_all(document).await.expect("the baseline reads");
    drop(stdin);
    let stdout = child.stdout.take().expect("is piped");
    let authority = BufReader::new(stdout).lines().next_line().await.expect("reads").expect("the baseline listens");
    (child, authority)
}
