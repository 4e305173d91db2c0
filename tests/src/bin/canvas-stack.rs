//! The owner of a stack that tests share. A test starts it (`tests/src/shared.rs`); it ends by itself.

use std::path::Path;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let directory = std::env::args_os().nth(1).expect("the directory of a shared stack");
    e2e::own(Path::new(&directory)).await;
}
