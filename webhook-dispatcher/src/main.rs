//! `canvas-webhook-dispatcher`: delivers signed webhooks.

use std::process::ExitCode;

fn main() -> ExitCode {
    spine::main(webhook_dispatcher::NAME, "delivers signed webhooks", webhook_dispatcher::run)
}
