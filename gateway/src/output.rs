//! What the commands of `canvas-gateway` print.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stdout};
use std::process::ExitCode;

/// Prints the result of a command as a line. A reader that has closed standard output, such as `head`, is no failure.
pub fn print_line(result: impl Display) -> ExitCode {
    match writeln!(stdout(), "{result}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("canvas-gateway: standard output: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
