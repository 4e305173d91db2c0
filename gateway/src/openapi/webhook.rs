//! The request that the service itself makes at the end of a run (docs/reference/webhooks.md).
//!
//! It stands under `webhooks`, so that generators of client libraries make the types of events, too.

use domain::event::Event;
use domain::webhook::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, standard};
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{HttpMethod, OpenApi, PathItem, PathsBuilder, Ref, Required, ResponseBuilder};
use utoipa::{PartialSchema, ToSchema};

/// The effect of an answer that asks for another attempt.
const RETRIED: &str = "The event is sent again, after 10 seconds, 1 minute and 5 minutes.";

/// Adds the request and the types of what it carries.
pub fn add(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    let mut schemas = vec![(Event::name().into_owned(), Event::schema())];
    Event::schemas(&mut schemas);
    for (name, schema) in schemas {
        components.schemas.entry(name).or_insert(schema);
    }
    let body = ContentBuilder::new().schema(Some(Ref::from_schema_name(Event::name()))).build();
    let mut operation = OperationBuilder::new()
        .operation_id(Some("runEnded"))
        .tag("Webhooks")
        .summary(Some("Receive the end of a run"))
        .description(Some(
            "The service sends this request to the `webhook.url` of a start when the run ends. Use it instead of polling. It makes at \
             most four attempts, until one is acknowledged. An event can arrive more than once: the same `id` is the same event. \
             It carries two signatures with the same secret, the second as Standard Webhooks defines it: verify either, in constant \
             time. The request never carries a credential, a preview URL or a text output.",
        ))
        .parameters(Some([
            header(ID_HEADER, "`webhook:<id>`, the same in all attempts.", "^webhook:"),
            header(TIMESTAMP_HEADER, "When this attempt was made, in seconds of the epoch.", "^[0-9]{10,13}$"),
            header(
                SIGNATURE_HEADER,
                "`v1=` and, in lower-case hex, HMAC-SHA256 over `<timestamp>.<raw body>`, keyed with the `webhook.secret` of the start.",
                "v1=[0-9a-f]{64}",
            ),
            header(standard::ID_HEADER, "The same as `Service-Webhook-Id`.", "^webhook:"),
            header(standard::TIMESTAMP_HEADER, "The same as `Service-Webhook-Timestamp`.", "^[0-9]{10,13}$"),
            header(
                standard::SIGNATURE_HEADER,
                "`v1,` and, in base64, HMAC-SHA256 over `<id>.<timestamp>.<raw body>`, keyed with the UTF-8 bytes of the \
                 `webhook.secret` of the start. Several signatures are separated by spaces. Of a secret `whsec_<base64>`, one keyed with \
                 the decoded bytes comes first.",
                "^v1,[0-9A-Za-z+/]{43}=",
            ),
        ]))
        .request_body(Some(
            RequestBodyBuilder::new().content("application/json", body).required(Some(Required::True)).build(),
        ))
        // What is signed needs no credential of ours.
        .securities(Some([]));
    for (status, meaning) in [
        ("2XX", "Acknowledges the event. It must come within 10 seconds."),
        ("3XX", "Is not followed and ends the delivery."),
        ("408", RETRIED),
        ("425", RETRIED),
        ("429", RETRIED),
        ("4XX", "Refuses the event and ends the delivery."),
        ("5XX", RETRIED),
    ] {
        operation = operation.response(status, ResponseBuilder::new().description(meaning).build());
    }
    let request = PathItem::new(HttpMethod::Post, operation.build());
    document.webhooks = Some(PathsBuilder::new().path("runEnded", request).build());
}

fn header(name: &str, description: &str, pattern: &str) -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).build();
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(text))
        .build()
}

#[cfg(test)]
mod tests {
    use domain::event::{Event, EventData, EventOutput, EventRecipeRun, EventRun, EventType};
    use domain::id::NodeId;
    use domain::recipe::run::{OutputStatus, RunStatus};
    use serde_json::{Value, json};
    use uuid::Uuid;

    use crate::router::documented;

    fn event() -> Value {
        let id = Uuid::nil();
        let run = EventRecipeRun {
            id: format!("recipe-{id}"),
            run: format!("run:recipe-{id}"),
            status: RunStatus::Succeeded,
            operation: "recipe".into(),
            recipe_id: "a-recipe".parse().expect("an id"),
            recipe_version: "1.0.0".into(),
            canvas_id: "a-canvas".parse().expect("an id"),
            canvas_handle: "canvas:somebody:a-canvas".to_owned().try_into().expect("a handle"),
            outputs: vec![EventOutput {
                key: "title".into(),
                status: OutputStatus::Succeeded,
                node_id: NodeId::generate(),
                asset_id: None,
                stand_in: true,
            }],
            failure: None,
            stand_in: true,
        };
        let event = Event {
            id: format!("event:{id}"),
            kind: EventType::RecipeRunSucceeded,
            api_version: "v1".into(),
            created_at: serde_json::from_value(json!("2026-01-02T03:04:05.678Z")).expect("a time"),
            data: EventData { run: EventRun::Recipe(Box::new(run)) },
        };
        serde_json::to_value(event).expect("serializes")
    }

    #[test]
    fn an_event_is_what_the_document_says() {
        let document = documented().1;
        let request = &document["webhooks"]["runEnded"]["post"];
        assert_eq!(request["security"], json!([]), "it carries no credential of ours");
        let mut schema = request["requestBody"]["content"]["application/json"]["schema"].clone();
        schema["components"] = document["components"].clone();
        let schema = jsonschema::draft202012::new(&schema).expect("a schema");
        let event = event();
        if let Err(error) = schema.validate(&event) {
            panic!("{error}: {event}");
        }
        for field in ["id", "type", "apiVersion", "createdAt", "data"] {
            let mut lacking = event.clone();
            lacking.as_object_mut().expect("an object").remove(field);
            assert!(!schema.is_valid(&lacking), "{field} is always there");
        }
    }
}
