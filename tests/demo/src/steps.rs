//! Steps: each prints a line with what it made and how long it took. No step waits silently or forever.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// After this long without an end, and again after the same time, a step says what it waits for.
const SAY_AFTER: Duration = Duration::from_secs(15);

/// What is awaited at the moment.
#[derive(Default)]
pub struct Awaited {
    what: RefCell<String>,
    away: Cell<Duration>,
}

impl Awaited {
    /// Says what is awaited from now on.
    pub fn set(&self, what: impl Display) {
        self.what.replace(what.to_string());
    }

    /// Adds time in which the service gave no answer, which a step does not count.
    pub fn add_away(&self, time: Duration) {
        self.away.set(self.away.get() + time);
    }
}

/// Counts steps and watches them.
pub struct Steps<'a> {
    number: u32,
    limit: Duration,
    awaited: &'a Awaited,
}

impl<'a> Steps<'a> {
    /// Steps that may take `limit` each. They learn what they wait for from `awaited`.
    pub fn new(limit: Duration, awaited: &'a Awaited) -> Self {
        Self { number: 0, limit, awaited }
    }

    /// Runs a step, which tells what it made and returns a value.
    pub async fn step<T>(&mut self, name: &str, work: impl Future<Output = Result<(String, T)>>) -> Result<T> {
        self.number += 1;
        self.awaited.set(name);
        self.awaited.away.set(Duration::ZERO);
        let number = self.number;
        let began = Instant::now();
        let seconds = || format!("{:.1} s", began.elapsed().as_secs_f64());
        match self.watch(began, work).await {
            Ok((made, value)) => {
                println!("   {number:>2}. {name}: {made} ({})", seconds());
                Ok(value)
            }
            Err(error) => {
                println!("   {number:>2}. {name}: FAILED ({})", seconds());
                Err(error)
            }
        }
    }

    async fn watch<T>(&self, began: Instant, work: impl Future<Output = Result<T>>) -> Result<T> {
        let mut work = std::pin::pin!(work);
        let mut said = began;
        loop {
            if let Ok(result) = tokio::time::timeout(Duration::from_millis(250), &mut work).await {
                return result;
            }
            if began.elapsed() > self.limit + self.awaited.away.get() {
                return Err(Error::TooLong(self.awaited.what.borrow().clone()));
            }
            if said.elapsed() > SAY_AFTER {
                said = Instant::now();
                println!("       waiting for {} s: {}", began.elapsed().as_secs(), self.awaited.what.borrow());
            }
        }
    }
}
