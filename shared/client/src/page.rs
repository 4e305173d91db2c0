//! Lists, page by page.

use std::collections::VecDeque;

use domain::page::Page;
use serde::Deserialize;
use serde_json::Value;

use crate::call::Call;
use crate::problem::{Error, Result};

/// The items of a list. Each page is read when its first item is asked for.
pub struct Pages<F> {
    list: F,
    name: &'static str,
    waiting: VecDeque<Value>,
    next: Option<Option<String>>,
}

impl<F: Fn() -> Call<T>, T: 'static> Pages<F> {
    /// The items in the member `name` of the answers of `list`, for example `canvases`.
    pub fn new(name: &'static str, list: F) -> Self {
        Self { list, name, waiting: VecDeque::new(), next: Some(None) }
    }

    /// The next item; `None` at the end of the list.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(item) = self.waiting.pop_front() {
                return Ok(Some(item));
            }
            let Some(cursor) = self.next.take() else { return Ok(None) };
            let mut answer = (self.list)().query_if("cursor", cursor).await?.json();
            match answer.get_mut(self.name).map(Value::take) {
                Some(Value::Array(items)) => self.waiting.extend(items),
                _ => return Err(Error::Unexpected(format!("a page without {}", self.name))),
            }
            let page = answer.get_mut("page").map(Value::take).unwrap_or_default();
            // Campaigns are listed without a page.
            self.next = Page::deserialize(page).ok().and_then(|page| page.next_cursor).map(Some);
        }
    }

    /// At most `limit` items.
    pub async fn take(mut self, limit: usize) -> Result<Vec<Value>> {
        let mut items = Vec::new();
        while items.len() < limit
            && let Some(item) = self.next().await?
        {
            items.push(item);
        }
        Ok(items)
    }
}
