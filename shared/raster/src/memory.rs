//! Memory that the process keeps between images.

/// Makes the allocator of glibc keep up to 64 MiB of freed memory for each thread, and take blocks below 32 MiB from it.
///
/// By default, it starts with 128 KiB and raises both limits to these values while blocks of up to 32 MiB are freed
/// (`mallopt(3)`, `M_MMAP_THRESHOLD`). Until then, the kernel has to clear every page again for each image. That takes a fifth
/// of the time of a 12 MP progressive JPEG, whose coefficients are 36 MB. The limits are set at the start of a process, so that
/// the speed of a job does not depend on those before it.
pub fn keep_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the function changes two limits of the allocator under the allocator's own lock. It rejects values that are too
    // large, and then the defaults stay.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// Page faults of this thread so far.
    fn faults() -> i64 {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the structure is valid for writes, and all zeros are a valid value of it.
        unsafe {
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()), 0);
            usage.assume_init().ru_minflt
        }
    }

    #[test]
    fn an_image_gets_the_pages_of_the_one_before() {
        keep_freed();
        let faults_of_an_image = || {
            let before = faults();
            drop(std::hint::black_box([vec![1_u8; 24 << 20], vec![1; 6 << 20], vec![1; 6 << 20]]));
            faults() - before
        };
        let run = move || (faults_of_an_image(), faults_of_an_image());
        let (first, second) = std::thread::spawn(run).join().expect("the thread ends");
        assert!(first > 8000, "36 MiB have 9216 pages, {first} were new");
        assert!(second < 100, "{second} pages were new");
    }
}
