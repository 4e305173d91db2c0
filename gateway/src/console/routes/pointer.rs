//! `POST /console/canvases/{ownerUid}/{canvasId}/pointer`: what a person points at (docs/reference/console.md#pointers).

use std::borrow::Cow;

use axum::extract::State;
use axum::response::IntoResponse;
use domain::Violation;
use domain::limits::POINTER_BODY_MAX;
use domain::stream::{Participant, Pointer, PointerState};
use http::StatusCode;
use serde::Deserialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::extract::caller::Point;
use crate::extract::canvas::CanvasAccess;
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody};
use crate::openapi::errors::ReadErrors;
use crate::problem::{Result, combine_violations};
use crate::reply;
use crate::state::App;

/// Request to show a pointer: its state, and nothing else.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct ShowPointer(PointerState);

impl PartialSchema for ShowPointer {
    fn schema() -> RefOr<Schema> {
        let mut schema = PointerState::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        }
        schema
    }
}

impl ToSchema for ShowPointer {
    fn name() -> Cow<'static, str> {
        "ShowPointer".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        PointerState::schemas(schemas);
    }
}

impl Input for ShowPointer {
    const LIMIT: usize = POINTER_BODY_MAX;
}

impl ShowPointer {
    fn check(self) -> Result<PointerState, Vec<Violation>> {
        let mut check = Check::default();
        for place in [2, 3] {
            let side = self.0.view.map(|view| view[place].0);
            check.note_if(side.is_some_and(|side| side <= 0.0), format!("view[{place}]"), "must be greater than 0");
        }
        check.finish(|| Some(self.0))
    }
}

/// Show a pointer
///
/// Shows what the person points at to those who follow the canvas with `GET /events?pointers=true`, until the next such request,
/// for 10 seconds at most. An empty object ends it. Nothing is stored. A session sends at most 600 pointers a minute, which take
/// nothing from its other requests.
#[utoipa::path(
    post, path = "/canvases/{ownerUid}/{canvasId}/pointer", operation_id = "showPointer", tag = "Pointers",
    request_body = ShowPointer,
    params(
        ("ownerUid" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Uid of the canvas's owner."),
        ("canvasId" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Plain id of the canvas."),
    ),
    responses(ReadErrors, (status = 204, description = "The pointer is shown."))
)]
pub async fn show(State(app): State<App>, on: CanvasAccess<Point>, body: JsonBody) -> Result {
    let (state, _) = combine_violations(body.checked(ShowPointer::check).await, on.named())?;
    let (canvas, ..) = on.readable()?;
    let caller = &on.caller.credential;
    let id = app.keys.participant_id(&canvas.to_string(), caller.token.as_bytes());
    let who = Participant { id, label: caller.label.clone(), surface: caller.surface };
    app.live.pointers().show(canvas, &caller.account, Pointer { who, state }).await;
    Ok(reply::private(StatusCode::NO_CONTENT.into_response()))
}
