//! `canvas-webhook-dispatcher`: delivers signed webhooks.

fn main() -> std::process::ExitCode {
    webhook_dispatcher::main()
}
