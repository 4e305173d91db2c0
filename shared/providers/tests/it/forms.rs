//! Tests of answers in unusual forms: words in place of an image, and images that are wrapped in another way than the protocol
//! says.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use domain::job::FailureCode;
use providers::catalogue::EntryType;
use providers::{Artifact, CallError};
use serde_json::{Value, json};
use testkit::providers::{SIMULATOR_KEY, Vendor};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::harness::{Harness, PATIENCE, harness, image, order, provider};

/// A server that gives these answers, each once. Returns its URL.
async fn server(answers: Vec<Value>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for answer in answers {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !is_complete(&request) {
                assert_ne!(connection.read_buf(&mut request).await.unwrap(), 0, "a request");
            }
            let body = answer.to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            connection.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    url
}

/// Returns `true` if a request has the body that its head declares.
fn is_complete(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    request.len() - end - 4 >= length.map_or(0, |length| length.trim().parse().unwrap())
}

/// The image that an order becomes when the provider gives these answers. A call without an answer left fails otherwise.
async fn made(vendor: Vendor, answers: &[Value]) -> Result<Artifact, CallError> {
    let Harness { simulator, models, .. } = harness(vendor).await;
    let model = models.iter().find(|model| model.kind == EntryType::Image).unwrap();
    let order = order(model, model.capabilities[0], "job-1");
    let provider = provider(vendor, &server(answers.to_vec()).await, SIMULATOR_KEY, PATIENCE);
    Harness { simulator, provider, models: Vec::new() }.make(&order).await
}

/// The answers before the one with the result: that to the submit, and that to a poll.
fn before(vendor: Vendor) -> Vec<Value> {
    match vendor {
        Vendor::Fal => vec![json!({"request_id": "1"}), json!({"status": "COMPLETED"})],
        Vendor::Replicate => vec![json!({"id": "1", "status": "starting"})],
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn words_in_place_of_an_image_are_a_refusal_and_final() {
    const WORDS: &str = "I am not able to draw this person.";
    let parts = |parts: Value| json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
    for (vendor, answer) in [
        (Vendor::Google, parts(json!([{"text": WORDS}]))),
        (
            Vendor::Google,
            parts(
                json!([{"thought": true, "text": "Hm."}, {"text": "I am not able "}, {"text": "to draw this person."}]),
            ),
        ),
        (Vendor::OpenAi, json!({"data": [], "message": WORDS})),
        (Vendor::OpenAi, json!({"data": [{"text": WORDS}]})),
        (Vendor::OpenAi, json!({"error": {"message": WORDS}})),
        (Vendor::Compatible, json!({"data": null, "detail": WORDS})),
        (Vendor::Stability, json!({"errors": [WORDS], "name": "refused"})),
        (Vendor::Fal, json!({"images": [], "description": WORDS})),
        (Vendor::Replicate, json!({"id": "1", "status": "succeeded", "output": WORDS})),
        (
            Vendor::Replicate,
            json!({"id": "1", "status": "succeeded", "output": ["I am not able ", "to draw this person."]}),
        ),
    ] {
        let answers = [before(vendor), vec![answer.clone()]].concat();
        let call_error = made(vendor, &answers).await.unwrap_err();
        let failure = call_error.failure();
        let case = format!("{vendor:?} {answer}: {call_error:?}");
        assert_eq!((failure.code, failure.retryable), (FailureCode::ProviderRejected, false), "{case}");
        assert_eq!((call_error.detail.as_str(), call_error.maybe_accepted), (WORDS, false), "{case}");
    }
    let long = parts(json!([{"text": "no ".repeat(200)}]));
    let detail = made(Vendor::Google, &[long]).await.unwrap_err().detail;
    assert_eq!(detail, format!("{}…", &"no ".repeat(200)[..300]), "300 characters");
}

#[tokio::test]
async fn an_answer_with_neither_words_nor_an_image_is_no_refusal() {
    for (vendor, answer) in [
        (Vendor::Google, json!({"candidates": [{"content": {"parts": []}, "finishReason": "NO_IMAGE"}]})),
        (Vendor::Google, json!({"candidates": [{"content": {"parts": [{"thought": true, "text": "Hm."}]}}]})),
        (Vendor::OpenAi, json!({"data": []})),
        (Vendor::OpenAi, json!({"data": [{"revised_prompt": "a kite"}]})),
        (Vendor::Stability, json!({"finish_reason": "SUCCESS"})),
        (Vendor::Fal, json!({"images": [], "description": ""})),
        (Vendor::Replicate, json!({"id": "1", "status": "succeeded", "output": [" "]})),
    ] {
        let answers = [before(vendor), vec![answer.clone()]].concat();
        let failure = made(vendor, &answers).await.unwrap_err().failure();
        assert_eq!(failure.code, FailureCode::ProviderUnavailable, "{vendor:?} {answer}: {failure:?}");
    }
}

#[tokio::test]
async fn a_paid_image_is_taken_in_every_form() {
    let image = image().bytes;
    let code = STANDARD.encode(&image);
    let data_url = format!("data:image/png;base64,{code}");
    let broken: String =
        code.as_bytes().chunks(20).map(|line| format!("{}\r\n", String::from_utf8_lossy(line))).collect();
    let safe = URL_SAFE_NO_PAD.encode(&image);
    let mut cases = vec![
        (Vendor::OpenAi, json!({"data": [{"url": data_url}]})),
        (Vendor::OpenAi, json!({"data": [{"b64_json": "", "url": data_url}]})),
        (Vendor::OpenAi, json!({"data": [{"revised_prompt": "a kite"}, {"b64_json": code}]})),
        (Vendor::Compatible, json!({"data": [{"b64_json": null, "url": data_url}], "message": "Done."})),
        (Vendor::Google, json!({"candidates": [{"content": {"parts": [{"inline_data": {"data": code}}]}}]})),
        (Vendor::Stability, json!({"image": code})),
        (Vendor::Fal, json!({"images": [{"url": data_url}], "description": "A kite."})),
        (Vendor::Replicate, json!({"id": "1", "status": "succeeded", "output": data_url})),
        (Vendor::Replicate, json!({"id": "1", "status": "succeeded", "output": ["A kite:", data_url]})),
        (Vendor::Replicate, json!({"id": "1", "status": "succeeded", "output": {"image": data_url}})),
    ];
    for text in [&data_url, &broken, &safe] {
        cases.push((Vendor::OpenAi, json!({"data": [{"b64_json": text}]})));
        cases.push((Vendor::Compatible, json!({"data": [{"b64_json": text}]})));
        cases.push((Vendor::Google, json!({"candidates": [{"content": {"parts": [{"inlineData": {"data": text}}]}}]})));
        cases.push((Vendor::Stability, json!({"image": text, "finish_reason": "SUCCESS"})));
    }
    for (vendor, answer) in cases {
        let made = made(vendor, &[before(vendor), vec![answer.clone()]].concat()).await;
        let artifact = made.unwrap_or_else(|error| panic!("{vendor:?} {answer}: {error:?}"));
        assert_eq!((artifact.bytes, artifact.media_type), (image.clone(), "image/png"), "{vendor:?} {answer}");
    }
}
