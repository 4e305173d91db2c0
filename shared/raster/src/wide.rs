//! Compiles hot loops for the widest instructions of the machine.

/// Defines a function whose body is compiled twice on x86-64, for every processor and for those
/// with AVX2, and selected at run time. Neither version may use instructions that round differently
/// (such as a fused multiply-add), so both give the same results.
macro_rules! wide {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        $visibility fn $name($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn body($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2($($argument: $type),*) $(-> $result)? {
                body($($argument),*)
            }

            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has the feature.
                return unsafe { avx2($($argument),*) };
            }
            body($($argument),*)
        }
    };
}

pub(crate) use wide;
