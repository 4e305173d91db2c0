//! Lists, page by page.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::marker::PhantomData;

use domain::action::Action;
use domain::asset::Asset;
use domain::canvas::CanvasSummary;
use domain::element::{Element, ElementCollection, ElementVersion};
use domain::job::RunSummary;
use domain::model::{Model, ProviderConnection};
use domain::page::Page;
use domain::recipe::Recipe;
use domain::webhook::Delivery;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::answer::Answer;
use crate::answers::*;
use crate::call::Call;
use crate::problem::{Error, Result};

/// An answer that is a page of a list.
pub trait List: 'static {
    /// The member that holds the items.
    const ITEMS: &'static str;
    /// An item.
    type Item: DeserializeOwned;
}

macro_rules! lists {
    ($($list:ident: $items:literal of $item:ty;)+) => {
        $(impl List for $list {
            const ITEMS: &'static str = $items;
            type Item = $item;
        })+
    };
}

lists! {
    ActionPage: "actions" of Action;
    AssetList: "assets" of Asset;
    CanvasList: "canvases" of CanvasSummary;
    CollectionList: "collections" of ElementCollection;
    ConnectionList: "connections" of ProviderConnection;
    DeliveryList: "deliveries" of Delivery;
    ElementList: "elements" of Element;
    ModelPage: "models" of Model;
    RecipePage: "recipes" of Recipe;
    RunList: "runs" of RunSummary;
    VersionList: "versions" of ElementVersion;
}

/// An item of a list: its JSON as it was received, which is a `T` unless the service is of a later release.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Item<T> {
    json: Box<RawValue>,
    #[serde(skip)]
    of: PhantomData<fn() -> T>,
}

impl<T> Item<T> {
    /// The item as another type.
    pub fn read<U: DeserializeOwned>(&self) -> Option<U> {
        serde_json::from_str(self.json.get()).ok()
    }
}

impl<T: DeserializeOwned> Item<T> {
    /// The item as a value; `None` if it has a value that this release does not know.
    pub fn value(&self) -> Option<T> {
        self.read()
    }
}

impl<T> fmt::Display for Item<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.json.get())
    }
}

/// Items of a page, and the cursor of the next page.
pub type Items<I> = (Vec<Item<I>>, Option<String>);

impl<T: List> Answer<T> {
    /// The items of the page.
    pub fn items(&self) -> Result<Items<T::Item>> {
        let unexpected = |error: serde_json::Error| Error::Unexpected(error.to_string());
        let members: HashMap<String, Box<RawValue>> = serde_json::from_slice(&self.body).map_err(unexpected)?;
        let items = members.get(T::ITEMS).ok_or_else(|| Error::Unexpected(format!("a page without {}", T::ITEMS)))?;
        let items = serde_json::from_str(items.get()).map_err(unexpected)?;
        let page: Option<Page> = members.get("page").and_then(|page| serde_json::from_str(page.get()).ok());
        Ok((items, page.and_then(|page| page.next_cursor)))
    }
}

/// The items of a list. Each page is read when its first item is asked for.
pub struct Pages<F, I> {
    list: F,
    waiting: VecDeque<Item<I>>,
    next: Option<Option<String>>,
}

impl<T: List, F: Fn() -> Call<T>> Pages<F, T::Item> {
    /// The items in the answers of `list`.
    pub fn new(list: F) -> Self {
        Self { list, waiting: VecDeque::new(), next: Some(None) }
    }

    /// The next item; `None` at the end of the list.
    pub async fn next(&mut self) -> Result<Option<Item<T::Item>>> {
        loop {
            if let Some(item) = self.waiting.pop_front() {
                return Ok(Some(item));
            }
            let Some(cursor) = self.next.take() else { return Ok(None) };
            let (items, next) = (self.list)().query_if("cursor", cursor).await?.items()?;
            self.waiting.extend(items);
            self.next = next.map(Some);
        }
    }

    /// At most `limit` items.
    pub async fn take(mut self, limit: usize) -> Result<Vec<Item<T::Item>>> {
        let mut items = Vec::new();
        while items.len() < limit
            && let Some(item) = self.next().await?
        {
            items.push(item);
        }
        Ok(items)
    }
}
