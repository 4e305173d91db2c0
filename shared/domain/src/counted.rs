//! Numbers in messages.

use std::fmt::Display;

/// A number of things: `1 node`, `2 nodes`.
pub fn counted(count: impl Display, thing: &str) -> String {
    let count = count.to_string();
    let end = if count == "1" { "" } else { "s" };
    format!("{count} {thing}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_singular() {
        assert_eq!([0, 1, 2, 11].map(|count| counted(count, "node")), ["0 nodes", "1 node", "2 nodes", "11 nodes"]);
        assert_eq!((counted(1.0, "credit"), counted(0.5, "credit")), ("1 credit".into(), "0.5 credits".into()));
    }
}
