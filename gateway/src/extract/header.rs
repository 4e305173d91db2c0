//! Headers that a request may carry only once (docs/reference/conventions.md#repeated-parameters-and-headers).

use domain::Violation;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The value of a header that is read once; a violation when the header was sent more than once.
pub fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Violation> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(Violation::new(written(name), "must be sent at most once")),
        (value, None) => Ok(value),
    }
}

/// The conventional spelling of a header name, such as `Idempotency-Key`.
fn written(name: &HeaderName) -> String {
    let words = name.as_str().split('-').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_is_sent_twice_is_named_as_it_is_written() {
        let name = HeaderName::from_static("x-service-file-name");
        let mut headers = HeaderMap::new();
        assert_eq!(single(&headers, &name), Ok(None));
        headers.append(&name, HeaderValue::from_static("a.png"));
        assert_eq!(single(&headers, &name), Ok(Some(&HeaderValue::from_static("a.png"))));
        headers.append(&name, HeaderValue::from_static("a.png"));
        let refused = Violation::new("X-Service-File-Name", "must be sent at most once");
        assert_eq!(single(&headers, &name), Err(refused));
    }
}
