use serde_json::{Value, json};
use service::config::Part;

use super::*;

fn provider(members: Value) -> Value {
    let mut provider = json!({ "id": "p", "issuer": "https://login.example/a", "clientId": "c" });
    provider.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
    provider
}

fn from_variables(variables: &[(&str, &str)]) -> Result<Vec<Settings>, String> {
    let required = [
        ("CANVAS_DATABASE_URL", "postgres://a:b@c/d"),
        ("CANVAS_MASTER_KEYS", "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
        ("CANVAS_REDIS_URL", "redis://a"),
    ];
    let all: Vec<_> = required.iter().chain(variables).collect();
    let lookup = |name: &str| all.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let config = Config::from_lookup(&[Part::Admin], lookup).map_err(|errors| errors[0].to_string())?;
    load(&config).map_err(|error| error.to_string())
}

#[test]
fn variables_make_one_provider() {
    assert!(from_variables(&[]).expect("none").is_empty());
    let main = from_variables(&[
        ("CANVAS_OIDC_ISSUER", "https://login.example/"),
        ("CANVAS_OIDC_CLIENT_ID", "canvas"),
        ("CANVAS_OIDC_CLIENT_SECRET", "secret"),
        ("CANVAS_OIDC_ADMIT", "group:staff, domain:example.com"),
        ("CANVAS_OIDC_SCOPES", "email groups"),
    ]);
    let [main] = &main.expect("settings")[..] else { panic!("one provider") };
    assert_eq!(
        (main.id.as_str(), main.name.as_str(), main.issuer.as_str()),
        ("main", "Single sign-on", "https://login.example/")
    );
    assert_eq!(main.client_secret.as_ref().map(Secret::expose), Some("secret"));
    assert_eq!(main.admit, [Rule::Group("staff".into()), Rule::Domain("example.com".into())]);
    assert_eq!(main.scopes, ["openid", "email", "groups"]);
    assert_eq!((main.links_by_email, main.confirm_days), (true, Some(90)));
    assert!(!format!("{main:?}").contains("\"secret\""));
}

#[test]
fn a_wrong_variable_is_named() {
    const GOOD: [(&str, &str); 2] = [("CANVAS_OIDC_ISSUER", "https://login.example"), ("CANVAS_OIDC_CLIENT_ID", "c")];
    for (variable, value) in [
        ("CANVAS_OIDC_ISSUER", "login.example"),
        ("CANVAS_OIDC_ISSUER", "http://login.example"),
        ("CANVAS_OIDC_ISSUER", "https://login.example?a"),
        ("CANVAS_OIDC_ISSUER", "https://user@login.example"),
        ("CANVAS_OIDC_CLIENT_ID", ""),
        ("CANVAS_OIDC_NAME", "a\nb"),
        ("CANVAS_OIDC_ADMIT", "everyone"),
        ("CANVAS_OIDC_ADMIT", "group:"),
        ("CANVAS_OIDC_ADMIT", "domain:a@b"),
        ("CANVAS_OIDC_LINK", "on"),
        ("CANVAS_OIDC_TRUST_EMAIL", "yes"),
        ("CANVAS_OIDC_CONFIRM_DAYS", "3651"),
        ("CANVAS_OIDC_NEW_CREDITS", "-1"),
        ("CANVAS_OIDC_FILE", "/nowhere"),
        ("CANVAS_PUBLIC_URL", "http://canvas.example.com"),
    ] {
        let variables: Vec<_> = [(variable, value)].into_iter().chain(GOOD).collect();
        let error = from_variables(&variables).expect_err(variable);
        assert!(
            error.starts_with(&format!("{variable}: ")) && error.lines().count() == 1,
            "{variable}={value}: {error}"
        );
    }
    let orphan = from_variables(&[("CANVAS_OIDC_ADMIT", "anyone")]).expect_err("an orphan");
    assert!(orphan.starts_with("CANVAS_OIDC_ADMIT: "), "{orphan}");
}

#[test]
fn a_file_makes_up_to_eight() {
    let many = |count: usize| {
        let providers = (0..count).map(|number| {
            provider(json!({ "id": format!("p{number}"), "issuer": format!("https://p{number}.example") }))
        });
        in_file(&Value::from_iter(providers).to_string()).map(|providers| providers.len())
    };
    assert_eq!((many(1), many(PROVIDERS_MAX)), (Ok(1), Ok(PROVIDERS_MAX)));
    assert!(many(0).is_err() && many(PROVIDERS_MAX + 1).is_err());
    let settings = in_file(
        &json!([provider(json!({
            "admit": ["group:a,b", "anyone"],
            "adminGroups": "x, y",
            "link": "email",
            "confirmDays": 0,
            "newCredits": 50,
        }))])
        .to_string(),
    );
    let settings = &settings.expect("settings")[0];
    assert_eq!(settings.admit, [Rule::Group("a,b".into()), Rule::Anyone]);
    assert_eq!(settings.admin_groups, ["x", "y"]);
    assert_eq!((settings.links_by_email, settings.confirm_days, settings.new_credits), (true, None, 50));
    assert!(!in_file(&json!([provider(json!({}))]).to_string()).expect("settings")[0].links_by_email);
}

#[test]
fn a_wrong_member_of_the_file_is_named() {
    for (providers, expected) in [
        (json!([provider(json!({ "id": "P" }))]), "provider \"P\": id: "),
        (json!([provider(json!({ "id": "a".repeat(33) }))]), ": id: "),
        (json!([provider(json!({ "clientId": "" }))]), "provider \"p\": clientId: "),
        (json!([provider(json!({ "clientSecretFile": "/nowhere" }))]), "provider \"p\": clientSecretFile: "),
        (json!([provider(json!({ "admit": ["all"] }))]), "provider \"p\": admit: "),
        (json!([provider(json!({ "confirmDays": 3651 }))]), "provider \"p\": confirmDays: "),
        (json!([provider(json!({ "clientSecret": "x" }))]), "unknown field `clientSecret`"),
        (json!([provider(json!({})), provider(json!({}))]), "the id \"p\" is used"),
        (json!([provider(json!({})), provider(json!({ "id": "q" }))]), "have the same issuer"),
    ] {
        let error = in_file(&providers.to_string()).expect_err("wrong");
        assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn browsers_keep_the_cookie_over_https_and_on_loopback() {
    for (url, keeps) in [
        ("https://canvas.example.com", true),
        ("http://127.0.0.1:8080", true),
        ("http://[::1]:8080", true),
        ("http://localhost:8080", true),
        ("http://app.localhost:8080", true),
        ("http://canvas.example.com", false),
        ("http://192.168.1.5:8080", false),
        ("http://localhost.example.com", false),
    ] {
        assert_eq!(is_secure(url), keeps, "{url}");
    }
}
