//! `POST /console/admin/accounts/{accountUid}/credits`.

use app::account::{Adjustment, credit};
use axum::extract::State;
use domain::Violation;
use domain::id::AccountUid;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::administrator::Administrator;
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody};
use crate::extract::path::PathText;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Result, combine_violations};
use crate::reply;
use crate::state::App;

/// A movement of credit by hand.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MoveCredit {
    /// Credits to add, or to take away if negative; not 0.
    #[schema(minimum = -1000000000000i64, maximum = 1000000000000i64)]
    amount: i64,
    /// Why, for the ledger of the account.
    #[schema(min_length = 1, max_length = 200)]
    note: Option<String>,
    /// A text of your own. A request with the same one moves nothing again.
    #[schema(min_length = 1, max_length = 200)]
    idempotency_key: String,
}

impl Input for MoveCredit {}

impl MoveCredit {
    fn check(self) -> Result<Self, Vec<Violation>> {
        let mut check = Check::default();
        check.note_if(self.amount == 0, "amount", "must not be 0");
        let texts =
            [("note", self.note.as_deref().unwrap_or_default()), ("idempotencyKey", self.idempotency_key.as_str())];
        for (field, text) in texts {
            check.note_if(text.chars().any(char::is_control), field, "must not contain control characters");
        }
        check.finish(|| Some(self))
    }
}

/// The credit of an account after the movement.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreditMoved {
    /// Credits of the account.
    credit_balance: i64,
}

/// Add credits, or take them away
///
/// Moves credit of an account by hand, once for each `idempotencyKey`. The balance is never below 0.
#[utoipa::path(
    post, path = "/accounts/{accountUid}/credits", operation_id = "moveCredit", tag = "Accounts", request_body = MoveCredit,
    params(("accountUid" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Uid of the account.")),
    responses(
        ReadErrors,
        (status = 200, description = "The balance.", body = CreditMoved),
        (status = 409, description = "The key was used for another amount."),
        (status = 422, description = "The balance would be below 0."),
    )
)]
pub async fn move_credit(State(app): State<App>, admin: Administrator, path: PathText, body: JsonBody) -> Result {
    let uid = path.parameter::<AccountUid>("accountUid");
    let (wanted, uid) = combine_violations(body.checked(MoveCredit::check).await, uid)?;
    let adjustment =
        Adjustment { amount: wanted.amount, note: wanted.note.as_deref(), key: Some(&wanted.idempotency_key) };
    let mut transaction = app.transaction().await?;
    let credit_balance = credit(&mut transaction, admin.actor(), &uid, adjustment).await?;
    db::pool::commit(transaction).await?;
    Ok(reply::ok(&CreditMoved { credit_balance }))
}
