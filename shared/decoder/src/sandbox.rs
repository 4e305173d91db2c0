//! What a decoder gives up, and the limits that its parent sets.

use serde::{Deserialize, Serialize};

/// The parts of the confinement that the kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Landlock (Linux 5.13): no path can be opened, no TCP port reached, no other process signaled.
    pub landlock: bool,
    /// seccomp with filters (Linux 3.5): system calls other than those for memory, the socket and the end are refused.
    pub seccomp: bool,
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{can_confine_programs, confine, confine_program, limit, memory, processor_time};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{can_confine_programs, confine, confine_program, limit, memory, processor_time};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::io::{Error, Result};
    use std::mem::MaybeUninit;
    use std::path::Path;
    use std::time::Duration;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
        path_beneath_rules,
    };
    use seccompiler::SeccompCmpArgLen::{Dword, Qword};
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    };

    use super::Confinement;
    use crate::program::Limits;

    /// Size of the stack in bytes, that of the threads of the service (`service::stack`).
    const STACK_BYTES: u64 = 4 << 20;

    /// Gives up everything but memory, processor time and the socket that is standard input. Parts that the kernel does not
    /// have are left out.
    ///
    /// # Errors
    ///
    /// If a part fails that every kernel has.
    pub(crate) fn confine() -> Result<Confinement> {
        detach()?;
        let landlock = landlock().is_ok_and(|is_enforced| is_enforced);
        limit_self(&[
            (libc::RLIMIT_CORE, 0),
            (libc::RLIMIT_FSIZE, 0),
            (libc::RLIMIT_NPROC, 0),
            (libc::RLIMIT_STACK, STACK_BYTES),
            // No further descriptors. The socket and the two of `/dev/null` stay.
            (libc::RLIMIT_NOFILE, 0),
        ])?;
        Ok(Confinement { landlock, seccomp: seccomp().is_ok() })
    }

    /// Closes what the parent left open, ends with the parent, and gains no privileges.
    fn detach() -> Result<()> {
        // What the parent opened without `O_CLOEXEC`. Kernels before 5.9 lack the call, and Rust opens nothing so.
        // SAFETY: nothing in this process uses a descriptor beyond the first three.
        unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
        prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)?;
        // Neither core dumps, which would have pixels, nor debuggers.
        prctl(libc::PR_SET_DUMPABLE, 0)?;
        prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
    }

    fn limit_self(limits: &[(libc::__rlimit_resource_t, u64)]) -> Result<()> {
        for (resource, value) in limits {
            let limit = libc::rlimit { rlim_cur: *value, rlim_max: *value };
            // SAFETY: the structure is valid for reads.
            if unsafe { libc::setrlimit(*resource, &limit) } != 0 {
                return Err(Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Where a foreign program finds libraries and interpreters.
    const SYSTEM: [&str; 5] = ["/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache"];

    /// Prepares this process to become a foreign program that works in a directory: nothing else can be written, nothing but the
    /// libraries of the system read, and there is no network.
    ///
    /// # Errors
    ///
    /// If the kernel lacks a part: it would be the only protection from files of the service.
    pub(crate) fn confine_program(program: &Path, directory: &Path, limits: &Limits) -> Result<()> {
        detach()?;
        limit_self(&[
            (libc::RLIMIT_CORE, 0),
            (libc::RLIMIT_FSIZE, limits.file_bytes),
            (libc::RLIMIT_STACK, 2 * STACK_BYTES),
            (libc::RLIMIT_NOFILE, 64),
        ])?;
        limit(std::process::id(), limits.memory_bytes, limits.time)?;
        if !program_landlock(program, directory).map_err(Error::other)? {
            return Err(Error::other("the kernel has no Landlock"));
        }
        program_seccomp().map_err(Error::other)
    }

    /// Returns `true` if the kernel can confine foreign programs.
    pub(crate) fn can_confine_programs() -> bool {
        const VERSION: libc::c_uint = 1;
        // SAFETY: with this flag, the call takes no attributes and returns a number.
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0, VERSION) > 0 }
    }

    /// Permits reading and execution of the program and of the libraries of the system, and files in the directory. Returns whether
    /// the kernel enforces that.
    fn program_landlock(program: &Path, directory: &Path) -> std::result::Result<bool, RulesetError> {
        let abi = ABI::V6;
        let read = AccessFs::from_read(abi);
        let files = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile | AccessFs::Truncate;
        let created = Ruleset::default()
            .handle_access(AccessFs::from_all(abi))?
            .handle_access(AccessNet::from_all(abi))?
            .scope(Scope::from_all(abi))?
            .create()?
            .add_rules(path_beneath_rules(SYSTEM.iter().map(Path::new).chain([program]), read))?
            .add_rules(path_beneath_rules(["/dev/urandom", "/dev/zero"], AccessFs::ReadFile))?
            .add_rules(path_beneath_rules(["/dev/null"], AccessFs::ReadFile | AccessFs::WriteFile))?
            .add_rules(path_beneath_rules([directory], files | AccessFs::MakeReg | AccessFs::RemoveFile))?;
        Ok(created.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
    }

    /// The system calls of a program that reads and writes files, with threads and without other processes, sockets and
    /// links.
    fn program_seccomp() -> std::result::Result<(), seccompiler::Error> {
        // Without it, the C library starts threads by `clone`, whose flags a filter can read. The filter that is applied last does
        // not permit a second one.
        apply(
            [(libc::SYS_clone3, Vec::new())].into(),
            SeccompAction::Allow,
            SeccompAction::Errno(libc::ENOSYS as u32),
        )?;
        let mut always = vec![
            libc::SYS_execve,
            // Files.
            libc::SYS_close,
            libc::SYS_copy_file_range,
            libc::SYS_dup,
            libc::SYS_dup3,
            libc::SYS_eventfd2,
            libc::SYS_faccessat,
            libc::SYS_faccessat2,
            libc::SYS_fadvise64,
            libc::SYS_fallocate,
            libc::SYS_fcntl,
            libc::SYS_fdatasync,
            libc::SYS_fstat,
            libc::SYS_fstatfs,
            libc::SYS_fsync,
            libc::SYS_ftruncate,
            libc::SYS_getcwd,
            libc::SYS_getdents64,
            libc::SYS_lseek,
            libc::SYS_newfstatat,
            libc::SYS_openat,
            libc::SYS_pipe2,
            libc::SYS_ppoll,
            libc::SYS_pread64,
            libc::SYS_preadv,
            libc::SYS_pselect6,
            libc::SYS_pwrite64,
            libc::SYS_pwritev,
            libc::SYS_read,
            libc::SYS_readlinkat,
            libc::SYS_readv,
            libc::SYS_renameat2,
            libc::SYS_sendfile,
            libc::SYS_statfs,
            libc::SYS_statx,
            libc::SYS_umask,
            libc::SYS_unlinkat,
            libc::SYS_write,
            libc::SYS_writev,
            // Memory.
            libc::SYS_brk,
            libc::SYS_madvise,
            libc::SYS_mincore,
            libc::SYS_mmap,
            libc::SYS_mprotect,
            libc::SYS_mremap,
            libc::SYS_msync,
            libc::SYS_munmap,
            // Threads and signals.
            libc::SYS_clone3,
            libc::SYS_futex,
            libc::SYS_get_robust_list,
            libc::SYS_membarrier,
            libc::SYS_restart_syscall,
            libc::SYS_rseq,
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rt_sigreturn,
            libc::SYS_rt_sigtimedwait,
            libc::SYS_sched_getaffinity,
            libc::SYS_sched_getparam,
            libc::SYS_sched_getscheduler,
            libc::SYS_sched_get_priority_max,
            libc::SYS_sched_get_priority_min,
            libc::SYS_sched_yield,
            libc::SYS_set_robust_list,
            libc::SYS_set_tid_address,
            libc::SYS_sigaltstack,
            // The process, time and random numbers.
            libc::SYS_clock_getres,
            libc::SYS_clock_gettime,
            libc::SYS_clock_nanosleep,
            libc::SYS_exit,
            libc::SYS_exit_group,
            libc::SYS_getegid,
            libc::SYS_geteuid,
            libc::SYS_getgid,
            libc::SYS_getpgid,
            libc::SYS_getpid,
            libc::SYS_getppid,
            libc::SYS_getrandom,
            libc::SYS_getrusage,
            libc::SYS_gettid,
            libc::SYS_gettimeofday,
            libc::SYS_getuid,
            libc::SYS_nanosleep,
            libc::SYS_sysinfo,
            libc::SYS_times,
            libc::SYS_uname,
        ];
        // Older forms of some of them.
        #[cfg(target_arch = "x86_64")]
        always.extend([
            libc::SYS_access,
            libc::SYS_arch_prctl,
            libc::SYS_dup2,
            libc::SYS_getpgrp,
            libc::SYS_getrlimit,
            libc::SYS_lstat,
            libc::SYS_open,
            libc::SYS_pipe,
            libc::SYS_poll,
            libc::SYS_readlink,
            libc::SYS_rename,
            libc::SYS_renameat,
            libc::SYS_select,
            libc::SYS_stat,
            libc::SYS_time,
            libc::SYS_unlink,
        ]);
        let itself = u64::from(std::process::id());
        let thread = libc::CLONE_THREAD as u64;
        let under_condition = [
            (libc::SYS_clone, 0, Dword, SeccompCmpOp::MaskedEq(thread), thread),
            (libc::SYS_ioctl, 1, Dword, SeccompCmpOp::Eq, libc::TCGETS),
            (libc::SYS_kill, 0, Dword, SeccompCmpOp::Eq, itself),
            (libc::SYS_prctl, 0, Dword, SeccompCmpOp::Eq, libc::PR_SET_NAME as u64),
            // Limits can be read: no pointer to new ones.
            (libc::SYS_prlimit64, 2, Qword, SeccompCmpOp::Eq, 0),
            (libc::SYS_tgkill, 0, Dword, SeccompCmpOp::Eq, itself),
        ];
        permit(&always, under_condition)
    }

    /// Permits these system calls, and these with a condition on an argument. Others fail with `EPERM`.
    fn permit(
        always: &[i64],
        under_condition: impl IntoIterator<Item = (i64, u8, SeccompCmpArgLen, SeccompCmpOp, u64)>,
    ) -> std::result::Result<(), seccompiler::Error> {
        let mut rules: Rules = always.iter().map(|call| (*call, Vec::new())).collect();
        for (call, argument, length, comparison, value) in under_condition {
            let condition = SeccompCondition::new(argument, length, comparison, value)?;
            rules.insert(call, vec![SeccompRule::new(vec![condition])?]);
        }
        apply(rules, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)
    }

    /// System calls with the rules, of which one must match.
    type Rules = BTreeMap<i64, Vec<SeccompRule>>;

    fn apply(
        rules: Rules,
        other: SeccompAction,
        matching: SeccompAction,
    ) -> std::result::Result<(), seccompiler::Error> {
        let filter = SeccompFilter::new(rules, other, matching, std::env::consts::ARCH.try_into()?)?;
        seccompiler::apply_filter(&BpfProgram::try_from(filter)?)
    }

    fn prctl(option: libc::c_int, argument: libc::c_ulong) -> Result<()> {
        const NONE: libc::c_ulong = 0;
        // SAFETY: the options take numbers only.
        match unsafe { libc::prctl(option, argument, NONE, NONE, NONE) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }

    /// Applies a ruleset without rules, which permits nothing. Returns whether the kernel enforces any of it.
    pub(super) fn landlock() -> std::result::Result<bool, RulesetError> {
        let abi = ABI::V6;
        let ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(abi))?
            .handle_access(AccessNet::from_all(abi))?
            .scope(Scope::from_all(abi))?;
        Ok(ruleset.create()?.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
    }

    /// Applies the list of permitted system calls. Others fail with `EPERM`, so that a library that asks for the number of
    /// processors goes on without it.
    pub(super) fn seccomp() -> std::result::Result<(), seccompiler::Error> {
        let always = [
            // The socket.
            libc::SYS_read,
            libc::SYS_write,
            // Memory.
            libc::SYS_brk,
            libc::SYS_madvise,
            libc::SYS_mremap,
            libc::SYS_munmap,
            // Time, random numbers of hash maps, locks.
            libc::SYS_clock_gettime,
            libc::SYS_futex,
            libc::SYS_getrandom,
            // Panics, aborts, and the end.
            libc::SYS_close,
            libc::SYS_exit,
            libc::SYS_exit_group,
            libc::SYS_getpid,
            libc::SYS_gettid,
            libc::SYS_restart_syscall,
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rt_sigreturn,
            libc::SYS_sigaltstack,
        ];
        // No new code.
        let no_code = SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64);
        // A signal to itself, which is how a process aborts.
        let itself = u64::from(std::process::id());
        let under_condition = [
            (libc::SYS_mmap, 2, Dword, no_code.clone(), 0),
            (libc::SYS_mprotect, 2, Dword, no_code, 0),
            (libc::SYS_tgkill, 0, Dword, SeccompCmpOp::Eq, itself),
        ];
        permit(&always, under_condition)
    }

    /// Sets how many bytes a process may allocate, and how much processor time it may have used when the kernel ends it with
    /// `SIGXCPU`. The time is rounded up to seconds.
    pub(crate) fn limit(pid: u32, memory_bytes: u64, time: Duration) -> Result<()> {
        for (resource, value) in
            [(libc::RLIMIT_DATA, memory_bytes), (libc::RLIMIT_CPU, time.as_secs() + u64::from(time.subsec_nanos() > 0))]
        {
            let limit = libc::rlimit { rlim_cur: value, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: the structure is valid for reads, and the old limit is not asked for. Neither a decoder nor a foreign program
            // has a permitted system call that changes its limits.
            if unsafe { libc::prlimit(pid.cast_signed(), resource, &limit, std::ptr::null_mut()) } != 0 {
                return Err(Error::last_os_error());
            }
        }
        Ok(())
    }

    /// The processor time that a child has used.
    pub(crate) fn processor_time(pid: u32) -> Result<Duration> {
        let (mut clock, mut time) = (0, MaybeUninit::<libc::timespec>::zeroed());
        // SAFETY: both are valid for writes, and all zeros are a valid time.
        let time = unsafe {
            let failed = libc::clock_getcpuclockid(pid.cast_signed(), &mut clock);
            if failed != 0 {
                return Err(Error::from_raw_os_error(failed));
            }
            if libc::clock_gettime(clock, time.as_mut_ptr()) != 0 {
                return Err(Error::last_os_error());
            }
            time.assume_init()
        };
        // A library that shifts clocks may make it negative.
        Ok(Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default()))
    }

    /// Bytes of memory that a child has and shares with no other process (`proc_pid_statm(5)`).
    pub(crate) fn memory(pid: u32) -> Result<u64> {
        let pages = std::fs::read_to_string(format!("/proc/{pid}/statm"))?;
        let mut pages = pages.split_ascii_whitespace().skip(1).map(|pages| pages.parse().unwrap_or_default());
        let (resident, shared): (u64, u64) = (pages.next().unwrap_or_default(), pages.next().unwrap_or_default());
        Ok(resident.saturating_sub(shared) * page_bytes())
    }

    fn page_bytes() -> u64 {
        // SAFETY: the call takes a number and returns one.
        unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.unsigned_abs()
    }

    #[cfg(test)]
    mod tests {
        use std::fs::File;
        use std::io::ErrorKind;
        use std::net::{TcpListener, TcpStream};

        use super::*;

        /// Runs `attempts` on a thread, to which confinement is limited.
        fn on_a_thread<T: Send>(attempts: impl FnOnce() -> T + Send) -> T {
            std::thread::scope(|scope| scope.spawn(attempts).join().expect("the thread ends"))
        }

        #[test]
        fn landlock_alone_refuses_files_and_ports() {
            let there = TcpListener::bind("127.0.0.1:0").expect("listens");
            let address = there.local_addr().expect("has an address");
            let program = std::env::current_exe().expect("is a file");
            let (is_enforced, opened, connected) = on_a_thread(|| {
                let is_enforced = landlock().expect("applies");
                (is_enforced, File::open(&program), TcpStream::connect(address))
            });
            // Without Landlock, the file can be read.
            assert_eq!(opened.err().map(|error| error.kind()), is_enforced.then_some(ErrorKind::PermissionDenied));
            // Ports came with the fourth version of Landlock.
            if let Err(error) = connected {
                assert_eq!(error.kind(), ErrorKind::PermissionDenied);
            }
        }

        #[test]
        fn seccomp_alone_refuses_files_sockets_and_code() {
            let program = std::env::current_exe().expect("is a file");
            let code = || {
                // SAFETY: a new mapping touches nothing that exists.
                let page = unsafe {
                    let access = libc::PROT_READ | libc::PROT_EXEC;
                    libc::mmap(std::ptr::null_mut(), 4096, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
                };
                if page == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(()) }
            };
            let attempts = || [File::open(&program).map(drop), TcpListener::bind("127.0.0.1:0").map(drop), code()];
            let refused = on_a_thread(|| {
                prctl(libc::PR_SET_NO_NEW_PRIVS, 1).expect("every kernel has it");
                seccomp().expect("the kernel has it");
                attempts()
            });
            for refused in refused {
                assert_eq!(refused.map_err(|error| error.raw_os_error()), Err(Some(libc::EPERM)));
            }
        }

        #[test]
        fn the_memory_of_a_process_grows() {
            let own = std::process::id();
            let before = memory(own).expect("is there");
            let taken = std::hint::black_box(vec![1_u8; 64 << 20]);
            assert!(memory(own).expect("is there") > before + (60 << 20));
            drop(taken);
        }

        #[test]
        fn the_time_of_a_process_grows() {
            let own = std::process::id();
            let before = processor_time(own).expect("is there");
            while processor_time(own).expect("is there") < before + Duration::from_millis(5) {}
        }
    }
}

/// Systems for development: the processes are separate, and that is all.
#[cfg(not(target_os = "linux"))]
mod other {
    use std::io::Result;
    use std::path::Path;
    use std::time::Duration;

    use super::Confinement;
    use crate::program::Limits;

    pub(crate) fn confine() -> Result<Confinement> {
        Ok(Confinement { landlock: false, seccomp: false })
    }

    pub(crate) fn confine_program(_: &Path, _: &Path, _: &Limits) -> Result<()> {
        Ok(())
    }

    pub(crate) fn can_confine_programs() -> bool {
        true
    }

    pub(crate) fn limit(_: u32, _: u64, _: Duration) -> Result<()> {
        Ok(())
    }

    pub(crate) fn memory(_: u32) -> Result<u64> {
        Ok(64 << 20)
    }

    pub(crate) fn processor_time(_: u32) -> Result<Duration> {
        Ok(Duration::ZERO)
    }
}
