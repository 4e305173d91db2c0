//! Suites: many tests that share one stack.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Instant;

use futures_util::{FutureExt, StreamExt, stream};

/// How many tests run concurrently: enough to overlap their waits, few enough not to slow down each other.
const AT_ONCE: usize = 4;

/// A named test that is ready to run.
pub type Behaviour<'a> = (&'static str, Pin<Box<dyn Future<Output = ()> + 'a>>);

/// Defines a test that starts a stack and runs each of the named functions (`async fn(&Stack)`), even if some fail.
/// `E2E_ONLY=<part of a name>` leaves out those whose names do not contain it.
#[macro_export]
macro_rules! suite {
    ($(#[$attribute:meta])* $name:ident on $builder:expr; $($behaviour:ident),+ $(,)?) => {
        $(#[$attribute])*
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let stack = $builder.start().await;
            let behaviours: Vec<$crate::Behaviour<'_>> =
                vec![$((stringify!($behaviour), Box::pin($behaviour(&stack)))),+];
            $crate::run(behaviours).await;
        }
    };
}

/// Runs tests concurrently. Panics at the end with the names of those that failed.
pub async fn run(behaviours: Vec<Behaviour<'_>>) {
    let only = std::env::var("E2E_ONLY").unwrap_or_default();
    let wanted = behaviours.into_iter().filter(|(name, _)| name.contains(&only));
    let outcomes = wanted.map(|(name, behaviour)| async move {
        // The tests share only the stack. A panic leaves no inconsistent state in this process.
        let began = Instant::now();
        let outcome = AssertUnwindSafe(behaviour).catch_unwind().await;
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("{verdict:>6} {:>5} ms  {name}", began.elapsed().as_millis());
        outcome.err().map(|panic| format!("  {name}: {}", message(panic.as_ref())))
    });
    let failures: Vec<String> =
        stream::iter(outcomes).buffer_unordered(AT_ONCE).filter_map(async |failure| failure).collect().await;
    assert!(failures.is_empty(), "{} behaviours failed:\n{}", failures.len(), failures.join("\n"));
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => (*text).to_owned(),
        (None, None) => "a panic without a message".to_owned(),
    }
}
