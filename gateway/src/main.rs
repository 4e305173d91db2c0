//! `canvas-gateway`: serves the API, migrates the database, administers accounts.

fn main() -> std::process::ExitCode {
    gateway::main()
}
