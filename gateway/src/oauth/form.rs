//! Parameters of a request, as a form or a query.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{FromRequest, Request};
use db::audit::Origin;
use domain::limits::OAUTH_BODY_MAX;
use url::form_urlencoded;

use super::error::{OauthError, Result};
use crate::address::ClientAddress;
use crate::audit;
use crate::extract::json::{JsonBody, is_form};
use crate::problem::Problem;
use crate::rates::{self, Rate};
use crate::state::App;

/// The parameters. An empty value counts as none (RFC 6749, section 3.1).
pub struct Parameters<'a> {
    values: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    repeated: BTreeSet<Cow<'a, str>>,
}

impl<'a> Parameters<'a> {
    pub fn parse(text: &'a [u8]) -> Self {
        let (mut values, mut repeated) = (BTreeMap::new(), BTreeSet::new());
        for (name, value) in form_urlencoded::parse(text) {
            match values.entry(name) {
                Entry::Occupied(first) => {
                    repeated.insert(first.key().clone());
                }
                Entry::Vacant(place) => {
                    place.insert(value);
                }
            }
        }
        values.retain(|_, value| !value.is_empty());
        Self { values, repeated }
    }

    /// The value of a parameter; for one that is repeated, the first.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(AsRef::as_ref)
    }

    /// A parameter that was sent more than once.
    pub fn repeated(&self) -> Option<&str> {
        self.repeated.first().map(AsRef::as_ref)
    }

    /// Returns `true` if this parameter was sent more than once.
    pub fn is_repeated(&self, name: &str) -> bool {
        self.repeated.contains(name)
    }

    /// The value of a parameter that a request needs.
    pub fn required(&self, name: &str) -> Result<&str> {
        self.get(name).ok_or_else(|| OauthError::invalid_request(format!("{name} is required")))
    }
}

/// The body of a request with a form.
pub struct Form {
    body: Vec<u8>,
    /// Where the request comes from.
    pub origin: Origin,
}

impl Form {
    /// Reads the body of a request within this rate of its address. What is in the query counts for nothing and may be a secret, so it is
    /// refused.
    pub async fn receive(app: &App, request: Request, rate: Rate) -> Result<Self> {
        rates::take(app, rate, &ClientAddress::from_extensions(request.extensions())).await?;
        let (parts, body) = request.into_parts();
        let origin = audit::origin(&parts);
        let request = Request::from_parts(parts, body);
        if request.uri().query().is_some() {
            return Err(OauthError::invalid_request("parameters belong into the body"));
        }
        if !is_form(request.headers()) {
            let why = "the body must be application/x-www-form-urlencoded";
            return Err(Problem::UnsupportedMediaType(why.into()).into());
        }
        let Ok(body) = JsonBody::from_request(request, &()).await;
        Ok(Self { body: body.bytes(OAUTH_BODY_MAX).await?, origin })
    }

    /// Its parameters; refused if one is repeated.
    pub fn parameters(&self) -> Result<Parameters<'_>> {
        let parameters = Parameters::parse(&self.body);
        match parameters.repeated() {
            Some(name) => Err(OauthError::invalid_request(format!("{name} is repeated"))),
            None => Ok(parameters),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_repetitions_are_known() {
        let parameters = Parameters::parse(b"a=1%202&b=&c=3&c=4&d");
        assert_eq!((parameters.get("a"), parameters.get("b"), parameters.get("d")), (Some("1 2"), None, None));
        assert_eq!((parameters.get("c"), parameters.repeated()), (Some("3"), Some("c")));
        assert!(parameters.is_repeated("c") && !parameters.is_repeated("a"));
        assert_eq!(Parameters::parse(b"b=&b=").repeated(), Some("b"), "also an empty one");
    }
}
