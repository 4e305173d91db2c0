//! Progress of a call: how many outputs its works have made.

use std::collections::BTreeMap;

/// How far one work is.
pub struct State {
    pub run: String,
    /// Outputs that are made, a part of one included.
    pub made: f64,
    /// Outputs that are to be made.
    pub wanted: f64,
    /// The same in a few words.
    pub text: String,
}

/// How far all works of a call are. No number ever falls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    works: BTreeMap<String, (f64, f64)>,
    /// The latest state, in a few words.
    pub text: String,
}

impl Progress {
    /// Takes over what is known of one work.
    pub fn update(&mut self, state: State) {
        let (made, wanted) = self.works.entry(state.run).or_default();
        (*made, *wanted) = (made.max(state.made), wanted.max(state.wanted));
        self.text = state.text;
    }

    /// Outputs that are made.
    pub fn made(&self) -> f64 {
        self.works.values().map(|(made, _)| made).sum()
    }

    /// Outputs that are to be made.
    pub fn wanted(&self) -> f64 {
        self.works.values().map(|(_, wanted)| wanted).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outputs_of_all_works_count_and_never_fall() {
        let mut progress = Progress::default();
        let mut after = |run: &str, made: f64, wanted: f64| {
            progress.update(State { run: run.into(), made, wanted, text: format!("{run} {made}") });
            (progress.made(), progress.wanted(), progress.text.clone())
        };
        assert_eq!(after("run:a", 0.0, 4.0), (0.0, 4.0, "run:a 0".into()));
        assert_eq!(after("run:b", 0.5, 1.0), (0.5, 5.0, "run:b 0.5".into()));
        assert_eq!(after("run:a", 3.0, 4.0), (3.5, 5.0, "run:a 3".into()));
        // A provider may begin a video anew.
        assert_eq!(after("run:b", 0.1, 1.0), (3.5, 5.0, "run:b 0.1".into()));
        assert_eq!(after("run:b", 1.0, 1.0), (4.0, 5.0, "run:b 1".into()));
    }
}
