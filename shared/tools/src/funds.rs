//! Work that costs more than there is.

use serde_json::{Value, json};

use crate::answer::Next;
use crate::call::Call;
use crate::failure::Failure;

/// Models that are told at most.
const MODELS_MAX: usize = 10;

/// Adds the balance to a refusal for its price, and what would fit: models with the number of outputs that can be paid. Where the
/// call can be made smaller, the call that fits.
pub async fn told(failure: Failure, call: &Call, capability: &str, model: Option<&str>) -> Failure {
    let Ok(status) = call.client.get_auth_status().await else { return failure };
    let balance = status.json()["creditBalance"].as_i64().unwrap_or_default();
    let budget = failure.details["maxCredits"].as_i64().map_or(balance, |cap| cap.min(balance));
    let price = failure.details["creditCost"].as_i64().unwrap_or_default();
    let mut failure = failure.with_detail("balance", balance.into());
    failure.message = format!("it costs {price} credits, and {budget} can be spent ({balance} in all)");
    let read = match call.client.list_models().query("capability", capability).query("limit", 100).await {
        Ok(read) => read.json(),
        Err(_) => return failure,
    };
    let fits = |model: &Value| -> Option<Value> {
        let price = model["creditCost"].as_i64()?;
        let count = if price > 0 { budget / price } else { i64::MAX };
        (count > 0).then(|| json!({"model": model["handle"], "name": model["name"], "creditCost": price, "outputsUpTo": count.min(4)}))
    };
    let fitting: Vec<Value> =
        read["models"].as_array().into_iter().flatten().filter_map(fits).take(MODELS_MAX).collect();
    // The price of one output of this call.
    let count = call.arguments.get("count").and_then(Value::as_i64).unwrap_or(1).max(1);
    let affordable = budget * count / price.max(1);
    if call.arguments.contains_key("count") && affordable > 0 {
        let mut fewer = call.arguments.clone();
        fewer.insert("count".to_owned(), affordable.into());
        failure =
            failure.then(Next::new(call.tool, fewer.into(), "as many as can be paid; ask a person about the others"));
    } else if let Some(cheaper) = fitting.iter().find(|it| Some(it["model"].as_str().unwrap_or_default()) != model) {
        let mut with = call.arguments.clone();
        with.insert("model".to_owned(), cheaper["model"].clone());
        failure = failure.then(Next::new(call.tool, with.into(), "a model that can be paid"));
    }
    failure.with_detail("fitting", fitting.into())
}
