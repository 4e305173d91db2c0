//! Formats errors for operators.

use std::error::Error;

/// An error with all its causes, in one line: the outermost error rarely shows what must be fixed. A cause whose text is
/// already contained in its error, as with some libraries, is not repeated.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    /// An error with a message and an optional source.
    #[derive(Debug)]
    struct Said(&'static str, Option<Box<Said>>);

    impl fmt::Display for Said {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Said {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn causes_are_listed_once_outermost_first() {
        let because = |text, cause| Said(text, Some(Box::new(cause)));
        let refused = || Said("connection refused", None);
        assert_eq!(chain(&refused()), "connection refused");
        let plain = because("cannot enqueue", because("no connection", refused()));
        assert_eq!(chain(&plain), "cannot enqueue: no connection: connection refused");
        let specific = because("no connection: connection refused", refused());
        assert_eq!(chain(&specific), "no connection: connection refused");
    }
}
