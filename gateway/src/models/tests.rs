use domain::Timestamp;
use providers::Settings;
use service::keys::InstallationKey;

use super::*;

fn account(uid: &str) -> AccountUid {
    AccountUid::from_stored(uid.into())
}

pub(crate) fn saved(number: u128, provider: ProviderKind) -> db::connections::Connection {
    let second = number % 60;
    let created_at: Timestamp =
        serde_json::from_str(&format!("\"2026-01-02T03:04:{second:02}.000Z\"")).expect("a time");
    db::connections::Connection {
        id: Uuid::from_u128(number),
        provider,
        name: format!("connection {number}"),
        base_url: None,
        masked_key: String::new(),
        created_at,
    }
}

pub(crate) fn models_of(uid: &str, connections: &[db::connections::Connection]) -> Vec<Runnable> {
    let setup = Setup::load(Settings { catalogue: None, url: None, protocol: "openai", key: None }).expect("loads");
    let keys = DerivedKeys::derive(&InstallationKey::from_bytes([7; 32]));
    runnable(&setup, &keys, &account(uid), connections)
}

/// Two connections to one provider, and the managed runtime.
fn models() -> Vec<Runnable> {
    models_of("me", &[saved(1, ProviderKind::OpenAi), saved(2, ProviderKind::OpenAi)])
}

fn connection(number: u128) -> String {
    Uuid::from_u128(number).to_string()
}

fn refused(models: &[Runnable], model: Option<&str>, connection: Option<&str>, capability: Capability) -> String {
    choose(models, model, connection, capability.into()).expect_err("refused").field
}

#[test]
fn connections_come_by_age_before_the_managed_runtime_each_in_catalogue_order() {
    let models = models();
    assert!(models.is_sorted_by(|one, next| one.place < next.place));
    let owners: Vec<_> = models.iter().map(|it| it.connection.as_ref().map(|it| it.id.clone())).collect();
    let mut distinct = owners.clone();
    distinct.dedup();
    assert_eq!(distinct, [Some(connection(1)), Some(connection(2)), None]);
    let managed: Vec<_> = models.iter().filter(|it| it.place.managed).map(|it| it.entry.id.as_str()).collect();
    assert_eq!(managed, ["sketch", "outline", "animatic"]);
}

#[test]
fn a_key_is_the_accounts_connections_and_models_own_and_stays() {
    let (mine, again) = (models(), models());
    let yours = models_of("you", &[saved(1, ProviderKind::OpenAi), saved(2, ProviderKind::OpenAi)]);
    let mut keys: Vec<_> = mine.iter().chain(&yours).map(|it| it.key.clone()).collect();
    let all = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), all, "no two are alike");
    assert!(mine.iter().zip(&again).all(|(one, other)| one.has_key(&other.key)));
    assert!(keys.iter().all(|key| key.len() == 43 && domain::id::is_plain_id(key)));
}

#[test]
fn without_a_name_the_first_model_with_the_capability_is_meant() {
    let models = models();
    let first = choose(&models, None, None, Capability::ImageGenerate.into()).expect("there is one");
    assert_eq!(first.connection.as_ref().map(|it| it.id.clone()), Some(connection(1)));
    let second = choose(&models, None, Some(&connection(2)), Capability::ImageGenerate.into()).expect("there is one");
    assert_eq!(second.connection.as_ref().map(|it| it.id.clone()), Some(connection(2)));
    let video = choose(&models, None, None, Capability::VideoGenerate.into()).expect("there is one");
    assert_eq!(video.entry.id, "animatic");
    assert_eq!(refused(&models, None, Some(&connection(1)), Capability::VideoGenerate), "model");
}

#[test]
fn a_model_is_named_by_id_or_handle() {
    let models = models();
    let id = models[0].entry.id.clone();
    let capability = models[0].entry.capabilities[0];
    assert_eq!(choose(&models, Some(&id), None, capability.into()).expect("found").key, models[0].key);
    let twin = models.iter().rfind(|it| it.entry.id == id).expect("the second connection has it, too");
    assert_eq!(choose(&models, Some(&id), Some(&connection(2)), capability.into()).expect("found").key, twin.key);
    let handle = format!("model:{}", twin.key);
    assert_eq!(choose(&models, Some(&handle), None, capability.into()).expect("found").key, twin.key);
    assert_eq!(choose(&models, Some(&handle), Some(&connection(2)), capability.into()).expect("found").key, twin.key);
}

#[test]
fn what_names_no_model_is_reported_by_its_field() {
    let models = models();
    let handle = format!("model:{}", models[0].key);
    let other = connection(9);
    for (model, connection, capability, field) in [
        (Some("absent"), None, Capability::ImageGenerate, "model"),
        (Some("model:absent-key"), None, Capability::ImageGenerate, "model"),
        (Some("sketch"), None, Capability::VideoGenerate, "model"),
        (Some("outline"), None, Capability::ImageGenerate, "model"),
        (Some(&*handle), Some(&*connection(2)), Capability::ImageGenerate, "connectionId"),
        (Some("sketch"), Some(&*connection(2)), Capability::ImageGenerate, "connectionId"),
        (None, Some(&*other), Capability::ImageGenerate, "connectionId"),
        (Some("sketch"), Some(&*other), Capability::ImageGenerate, "connectionId"),
    ] {
        assert_eq!(refused(&models, model, connection, capability), field, "{model:?} {connection:?}");
    }
    let yours = models_of("you", &[]);
    assert_eq!(refused(&yours, Some(&handle), None, Capability::ImageGenerate), "model", "another account's key");
}

#[test]
fn text_models_have_no_document_and_are_for_nobody() {
    let models = models();
    let all = Scopes::from_slice(Scope::ALL);
    let outline = models.iter().find(|it| it.entry.id == "outline").expect("is there");
    assert!(outline.document().is_none() && !outline.is_for(all));
    let image = Scopes::from_slice(&[Scope::ImageGenerate]);
    let video = Scopes::from_slice(&[Scope::VideoGenerate]);
    let sketch = models.iter().find(|it| it.entry.id == "sketch").expect("is there");
    assert!(sketch.is_for(image) && !sketch.is_for(video));
    let animatic = models.iter().find(|it| it.entry.id == "animatic").expect("is there");
    assert!(!animatic.is_for(image) && animatic.is_for(video));
    assert_eq!(sketch.document().map(|it| (it.credit_cost, it.connection_id)), Some((1, None)));
}
