//! Processor time of the parts of a stack, and priority of the attackers.

use std::process::Command;

use e2e::{Part, Stack};

/// Clock ticks per second in /proc (proc(5)): `USER_HZ` is 100 on every architecture that Linux and Rust both support.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of processor time that a part has used, user and system (proc(5), /proc/\[pid]/stat).
pub fn seconds(stack: &Stack, part: Part) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", stack.process_id(part))).unwrap_or_default();
    ticks(&stat).unwrap_or_default() / TICKS_PER_SECOND
}

/// Gives the calling thread the lowest priority: it takes what others leave of the processors.
pub fn yield_to_others() {
    // The number of the thread: /proc/thread-self leads to PID/task/TID.
    let thread = std::fs::read_link("/proc/thread-self").expect("Linux");
    let reniced = Command::new("renice").args(["-n", "19", "-p"]).arg(thread.file_name().expect("a thread")).output();
    assert!(reniced.expect("util-linux has renice").status.success(), "everybody may lower a priority");
}

/// The fields 14 and 15. The second field is in parentheses and may contain any character.
fn ticks(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    Some(fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_of_stat_is_read_whatever_the_program_is_called() {
        let line = "12 (a) b (c) S 1 12 12 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 9 0 100 1 1";
        assert_eq!((super::ticks(line), super::ticks("12 (a) S 1")), (Some(300.0), None));
    }
}
