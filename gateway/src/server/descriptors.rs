//! Open files of the process: each connection is one.

use std::io;

/// Files that are no connections of clients: those of services, stored objects and logs.
const OTHERS: usize = 256;

/// Raises the limit of open files to the highest that the system permits, and returns how many connections of clients fit.
///
/// The limit that a process starts with is 1024 on most systems, for programs that use `select`; this one does not.
pub fn raise_limit() -> io::Result<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a valid `rlimit` for their duration.
    let raised = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit) == 0
        }
    };
    if !raised {
        return Err(io::Error::last_os_error());
    }
    Ok(usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX).saturating_sub(OTHERS).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_highest_that_is_permitted() {
        let connections = raise_limit().expect("is permitted");
        let limits = std::fs::read_to_string("/proc/self/limits").expect("Linux");
        let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("has the limit");
        let [soft, hard] = [3, 4].map(|at| line.split_whitespace().nth(at).expect("a number"));
        assert_eq!(soft, hard);
        assert_eq!(soft.parse::<usize>().unwrap_or(usize::MAX).saturating_sub(OTHERS), connections);
    }
}
