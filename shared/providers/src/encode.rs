//! Encodings of request bodies.

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::{HeaderValue, Method};
use serde_json::{Map, Value, json};
use url::Url;

use crate::call_error::{CallError, Class};
use crate::catalogue::{DurationForm, ReferenceField, ReferenceForm, SizeForm, parse_box};
use crate::order::{Order, OrderImage, Shape};
use crate::protocol::Request;

/// Encodes the image in base64 without a prefix.
pub(crate) fn base64(image: &OrderImage) -> String {
    STANDARD.encode(&image.bytes)
}

/// Encodes the image as a `data:` URL.
pub(crate) fn data_url(image: &OrderImage) -> String {
    let mut url = format!("data:{};base64,", image.media_type);
    STANDARD.encode_string(&image.bytes, &mut url);
    url
}

/// Reads base64 that ends as encoders of all kinds end it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes base64, also in a `data:` URL, with white space, in the URL-safe alphabet, or without padding: the result is paid and
/// is not dropped for its form. `None` if it is invalid or empty.
pub(crate) fn decode(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let encoded = if is_data_url(text) { text.split_once(',')?.1 } else { text };
    // The usual form is not copied.
    let decoded = STANDARD.decode(encoded).or_else(|_| LENIENT.decode(normalized(encoded)));
    decoded.ok().filter(|bytes| !bytes.is_empty()).map(Bytes::from)
}

/// Returns `true` if a text is a `data:` URL.
pub(crate) fn is_data_url(text: &str) -> bool {
    text.get(.."data:".len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
}

/// Base64 without white space and percent-encoding, in the standard alphabet.
fn normalized(encoded: &str) -> Vec<u8> {
    let hex = |digit: u8| char::from(digit).to_digit(16);
    let mut normalized = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let mut byte = *first;
        if let (b'%', [high, low, after @ ..]) = (byte, after)
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            byte = (high * 16 + low) as u8;
            rest = after;
        }
        match byte {
            b'-' => normalized.push(b'+'),
            b'_' => normalized.push(b'/'),
            byte if byte.is_ascii_whitespace() => {}
            byte => normalized.push(byte),
        }
    }
    normalized
}

/// The fields of an order under the names that the model uses, without its images.
pub(crate) fn fields(order: &Order) -> Result<Map<String, Value>, CallError> {
    let wire = &order.model.wire;
    let mut fields = wire.fixed.clone();
    if !order.references.is_empty() {
        fields.extend(wire.edit_fixed.clone());
    }
    fields.insert(wire.prompt.as_deref().unwrap_or("prompt").into(), order.instruction().into());
    let mut set = |field: &Option<String>, value: Option<Value>| {
        if let (Some(field), Some(value)) = (field, value) {
            fields.insert(field.clone(), value);
        }
    };
    set(&wire.seed, Some(order.seed().into()));
    set(&wire.quality, order.quality().map(Value::from));
    if let Shape::Video { duration_seconds, aspect_ratio, resolution, generate_audio, .. } = &order.shape {
        set(&wire.aspect_ratio, aspect_ratio.as_deref().map(Value::from));
        set(&wire.resolution, resolution.as_deref().map(Value::from));
        set(&wire.audio, generate_audio.map(Value::from));
        if let (Some(seconds), Some(takes)) = (*duration_seconds, &wire.duration) {
            let value = match takes.form {
                DurationForm::Integer => json!(seconds),
                DurationForm::Text => json!(seconds.to_string()),
                DurationForm::Seconds => json!(format!("{seconds}s")),
            };
            fields.insert(takes.field.clone(), value);
        }
    }
    if let (Some(size), Some(takes)) = (size(order), &wire.size) {
        match takes.form {
            SizeForm::Text => {
                fields.insert(takes.field.clone(), json!(size));
            }
            SizeForm::Box => {
                let (width, height) = parse_box(size)
                    .ok_or_else(|| CallError::new(Class::Invalid, "the size must have the form WIDTHxHEIGHT"))?;
                fields.insert("width".into(), json!(width));
                fields.insert("height".into(), json!(height));
            }
        }
    }
    Ok(fields)
}

/// The size to request. It is that of the order, except for models that use the size of the
/// reference.
fn size(order: &Order) -> Option<&str> {
    let from_reference = order.model.wire.size_from_reference && !order.references.is_empty();
    order.size().filter(|_| !from_reference)
}

/// The fields of an order including its images and frames, each written by `image`.
pub(crate) fn fields_with_images(
    order: &Order,
    image: fn(&OrderImage) -> String,
) -> Result<Map<String, Value>, CallError> {
    let mut fields = fields(order)?;
    let wire = &order.model.wire;
    let (first, last) = order.frames();
    for (frame, field) in [(first, &wire.first_frame), (last, &wire.last_frame)] {
        if let Some(frame) = frame {
            let field =
                field.as_ref().ok_or_else(|| CallError::new(Class::Invalid, "the model has no field for frames"))?;
            fields.insert(field.clone(), image(frame).into());
        }
    }
    if let Some(mask) = &order.mask {
        fields.insert(mask_field(order)?.to_owned(), image(mask).into());
    }
    if order.references.is_empty() {
        return Ok(fields);
    }
    let takes = references_field(order)?;
    let mut images = order.references.iter().map(image);
    match takes.form {
        ReferenceForm::List => {
            fields.insert(takes.field.clone(), images.collect());
        }
        ReferenceForm::Single => {
            fields.insert(takes.field.clone(), images.next().into());
        }
        ReferenceForm::Numbered => fields.extend(images.enumerate().map(|(index, image)| match index {
            0 => (takes.field.clone(), image.into()),
            _ => (format!("{}_{}", takes.field, index + 1), image.into()),
        })),
    }
    Ok(fields)
}

/// The field for the images of an order.
pub(crate) fn references_field(order: &Order) -> Result<&ReferenceField, CallError> {
    let takes = order.model.wire.references.as_ref();
    takes.ok_or_else(|| CallError::new(Class::Invalid, "the model has no field for images"))
}

/// The field for the mask of an order.
pub(crate) fn mask_field(order: &Order) -> Result<&str, CallError> {
    let field = order.model.wire.mask.as_deref();
    field.ok_or_else(|| CallError::new(Class::Invalid, "the model has no field for a mask"))
}

/// The endpoint of an order. In order of precedence: the endpoint of its capability, the endpoint
/// for images if it has some, the endpoint of the model, the id of the model.
pub(crate) fn endpoint(order: &Order) -> &str {
    let wire = &order.model.wire;
    let edit = wire.edit_endpoint.as_ref().filter(|_| !order.references.is_empty());
    wire.endpoints.get(&order.capability).or(edit).or(wire.endpoint.as_ref()).unwrap_or(&order.model.id)
}

/// One part of a multipart body.
pub(crate) enum Part<'a> {
    /// A text field.
    Text(&'a str, &'a str),
    /// An image file.
    File(&'a str, &'a OrderImage),
}

/// Builds a `multipart/form-data` POST request (RFC 7578). Field names are constants and need no
/// escaping.
pub(crate) fn multipart(url: Url, parts: &[Part<'_>]) -> Request {
    let boundary = boundary(parts);
    let mut body = Vec::new();
    for part in parts {
        body.extend_from_slice(format!("--{boundary}\r\nContent-Disposition: form-data; ").as_bytes());
        match part {
            Part::Text(name, value) => {
                body.extend_from_slice(format!("name=\"{name}\"\r\n\r\n{value}").as_bytes());
            }
            Part::File(name, image) => {
                let extension = image.media_type.trim_start_matches("image/");
                let head = format!(
                    "name=\"{name}\"; filename=\"image.{extension}\"\r\nContent-Type: {}\r\n\r\n",
                    image.media_type
                );
                body.extend_from_slice(head.as_bytes());
                body.extend_from_slice(&image.bytes);
            }
        }
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let content_type = HeaderValue::from_str(&format!("multipart/form-data; boundary={boundary}"));
    Request { body: body.into(), ..Request::new(Method::POST, url) }
        .with(http::header::CONTENT_TYPE, content_type.expect("a boundary of letters and digits"))
}

/// A boundary that occurs in no part. It is the first suitable one of a fixed series, so that equal
/// orders give equal requests.
fn boundary(parts: &[Part<'_>]) -> String {
    let occurs = |boundary: &str| {
        parts.iter().any(|part| {
            let content = match part {
                Part::Text(_, value) => value.as_bytes(),
                Part::File(_, image) => &image.bytes,
            };
            content.windows(boundary.len()).any(|window| window == boundary.as_bytes())
        })
    };
    let mut series = (0u64..).map(|number| format!("canvas-service-boundary-{number}"));
    series.find(|boundary| !occurs(boundary)).expect("a finite body holds finitely many boundaries")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_in_every_form() {
        // Its code has both signs in which the alphabets differ.
        let bytes = b"\xfb\xff\xfe picture";
        let code = STANDARD.encode(bytes);
        assert!(code.contains('+') && code.contains('/') && code.ends_with('='), "{code}");
        let safe = code.replace('+', "-").replace('/', "_");
        for text in [
            code.clone(),
            safe.trim_end_matches('=').to_owned(),
            safe,
            format!(" {}\r\n{}\n", &code[..5], &code[5..]),
            format!("data:image/png;base64,{code}"),
            format!("DATA:image/png;name=a.png;base64,{}", code.trim_end_matches('=')),
            format!("data:;base64,\n{code}"),
            format!("data:image/png;base64,{}", code.replace('+', "%2B").replace('/', "%2f").replace('=', "%3D")),
        ] {
            assert_eq!(decode(&text).as_deref(), Some(&bytes[..]), "{text}");
        }
        for text in ["", " ", "data:image/png;base64,", "data:image/png", "not base64!", "https://x.example/a.png", "%"]
        {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn a_boundary_never_occurs_in_a_part() {
        let image = OrderImage {
            bytes: Bytes::from_static(b"..canvas-service-boundary-0.."),
            media_type: "image/png",
            role: None,
        };
        let parts = [Part::Text("a", "canvas-service-boundary-1"), Part::File("image", &image)];
        let request = multipart("http://host/".parse().unwrap(), &parts);
        assert_eq!(request.headers["content-type"], "multipart/form-data; boundary=canvas-service-boundary-2");
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        assert_eq!(
            body,
            "--canvas-service-boundary-2\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\ncanvas-service-boundary-1\r\n\
             --canvas-service-boundary-2\r\nContent-Disposition: form-data; name=\"image\"; filename=\"image.png\"\r\n\
             Content-Type: image/png\r\n\r\n..canvas-service-boundary-0..\r\n--canvas-service-boundary-2--\r\n"
        );
    }
}
