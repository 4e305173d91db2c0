//! Query parameters: unknown ones are ignored, known ones validated, every violation reported
//! (docs/reference/conventions.md#query-parameters).

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use domain::Violation;
use domain::id::{AccountUid, CanvasRef};
use percent_encoding::percent_decode_str;

use super::owner::with_owner;
use crate::problem::{Problem, Result};

/// Reads known parameters of a query string and collects violations.
pub struct QueryReader<'a> {
    query: &'a str,
    violations: Vec<Violation>,
}

impl<'a> QueryReader<'a> {
    pub fn new(uri: &'a http::Uri) -> Self {
        Self { query: uri.query().unwrap_or_default(), violations: Vec::new() }
    }

    /// The parameter as text: at most once, UTF-8, without U+0000, at most `max` characters.
    pub fn text(&mut self, name: &str, max: usize) -> Option<String> {
        let refuse = |message: String| Err(message);
        let text = match decode(self.verbatim(name)?) {
            None => refuse("must be UTF-8".into()),
            Some(text) if text.contains('\0') => refuse("must not contain the character U+0000".into()),
            Some(text) if text.chars().count() > max => refuse(format!("must have at most {max} characters")),
            Some(text) => Ok(text.into_owned()),
        };
        text.map_err(|message| self.violations.push(Violation::new(name, message))).ok()
    }

    /// The parameter as it was sent, at most once: for tokens, which never need percent-encoding.
    pub fn verbatim(&mut self, name: &str) -> Option<&'a str> {
        let mut values = self.values(name);
        let (value, repeated) = (values.next()?, values.next().is_some());
        if repeated {
            self.refuse(name, "must be sent at most once");
        }
        (!repeated).then_some(value)
    }

    /// Whether the parameter was sent.
    pub fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    fn values<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.query.split('&').filter_map(move |pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key).as_deref() == Some(name)).then_some(value)
        })
    }

    /// The parameter in its type.
    pub fn parsed<T: FromStr<Err: Display>>(&mut self, name: &str) -> Option<T> {
        let text = self.text(name, 1024)?;
        text.parse().map_err(|error: T::Err| self.violations.push(Violation::new(name, error.to_string()))).ok()
    }

    /// The parameter as one of the names in `all`.
    pub fn named<T: FromStr + Display>(&mut self, name: &str, all: &[T]) -> Option<T> {
        let text = self.text(name, 80)?;
        let value = text.parse().ok();
        if value.is_none() {
            let names: Vec<String> = all.iter().map(ToString::to_string).collect();
            self.refuse(name, format!("must be one of {}", names.join(", ")));
        }
        value
    }

    /// Every value of a parameter that may be repeated, in its type.
    pub fn each<T: FromStr<Err: Display>>(&mut self, name: &str) -> Vec<T> {
        let mut parsed = Vec::new();
        for value in self.values(name).collect::<Vec<_>>() {
            match decode(value).ok_or_else(|| "must be UTF-8".to_owned()).and_then(|text| text.parse().map_err(message))
            {
                Ok(value) => parsed.push(value),
                Err(message) => self.refuse(name, message),
            }
        }
        parsed
    }

    /// The parameter as a whole number within a range.
    pub fn integer(&mut self, name: &str, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let text = self.text(name, 1024)?;
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits && range.contains(&number) => Some(number),
            _ => {
                let message = format!("must be a whole number from {} to {}", range.start(), range.end());
                self.violations.push(Violation::new(name, message));
                None
            }
        }
    }

    /// Whether the parameter `view` asks for the short form of the response.
    pub fn wants_summary(&mut self) -> bool {
        let view = self.text("view", 1024);
        if view.as_deref().is_some_and(|view| view != "summary") {
            self.refuse("view", "must be `summary`");
        }
        view.is_some()
    }

    /// The parameter `ownerUid`.
    pub fn owner(&mut self) -> Option<AccountUid> {
        let text = self.text("ownerUid", 1024)?;
        match domain::id::is_plain_id(&text) {
            true => Some(AccountUid::from_stored(text)),
            false => {
                self.refuse("ownerUid", "must be 1 to 180 letters, digits, `_` or `-`");
                None
            }
        }
    }

    /// The parameter `canvasId`, combined with `ownerUid`.
    pub fn canvas(&mut self) -> Option<CanvasRef> {
        let owner = self.owner();
        let canvas = self.parsed("canvasId")?;
        with_owner(canvas, owner).map_err(|problem| self.violations.extend(problem.violations())).ok()
    }

    /// Adds a violation found elsewhere.
    pub fn refuse(&mut self, field: &str, message: impl Into<String>) {
        self.violations.push(Violation::new(field, message));
    }

    /// Adds violations found elsewhere; `None` when there are any.
    pub fn take<T>(&mut self, read: Result<T, Vec<Violation>>) -> Option<T> {
        read.map_err(|violations| self.violations.extend(violations)).ok()
    }

    /// Fails with every violation that was collected.
    pub fn finish(self) -> Result<()> {
        if self.violations.is_empty() { Ok(()) } else { Err(Problem::Invalid(self.violations)) }
    }
}

fn message(error: impl Display) -> String {
    error.to_string()
}

/// Form decoding: `+` is a space, `%XX` a byte.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(|decoded| Cow::Owned(decoded.into_owned()))
}
