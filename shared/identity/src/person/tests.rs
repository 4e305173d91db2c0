use serde_json::{Value, json};

use super::*;
use crate::settings::in_file;

fn settings(members: &Value) -> Settings {
    let mut provider = json!({ "id": "p", "issuer": "https://login.example", "clientId": "c" });
    provider.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
    in_file(&json!([provider]).to_string()).expect("settings").remove(0)
}

fn person(settings: &Settings, id_token: &Value, userinfo: &Value) -> Person {
    let claims = |value: &Value| value.as_object().cloned();
    Sources { id_token: claims(id_token).expect("claims"), userinfo: claims(userinfo) }.person(settings, "ana".into())
}

#[test]
fn groups_are_a_list_one_name_or_the_keys_of_an_object() {
    for (path, claims, expected) in [
        ("groups", json!({ "groups": ["a", "b"] }), Claimed::Given(vec!["a", "b"])),
        ("groups", json!({ "groups": "a" }), Claimed::Given(vec!["a"])),
        ("groups", json!({ "groups": { "a": {}, "b": 1 } }), Claimed::Given(vec!["a", "b"])),
        ("groups", json!({ "groups": [] }), Claimed::Given(vec![])),
        ("groups", json!({ "groups": ["a", 7] }), Claimed::Malformed),
        ("groups", json!({ "groups": 7 }), Claimed::Malformed),
        ("groups", json!({ "groups": null }), Claimed::Absent),
        ("groups", json!({}), Claimed::Absent),
        ("/realm_access/roles", json!({ "realm_access": { "roles": ["a"] } }), Claimed::Given(vec!["a"])),
        ("/urn:a~1b", json!({ "urn:a/b": ["a"] }), Claimed::Given(vec!["a"])),
        ("urn:a/b", json!({ "urn:a/b": ["a"] }), Claimed::Given(vec!["a"])),
        ("/realm_access/roles", json!({ "realm_access": [] }), Claimed::Absent),
    ] {
        let settings = settings(&json!({ "groupsClaim": path, "admit": "group:a" }));
        let found = person(&settings, &claims, &Value::Null);
        let expected = match expected {
            Claimed::Given(groups) => Claimed::Given(groups.into_iter().map(str::to_owned).collect::<Vec<_>>()),
            Claimed::Malformed => Claimed::Malformed,
            Claimed::Absent => Claimed::Absent,
        };
        assert_eq!(found.groups, expected, "{path} {claims}");
        let is_in = matches!(&found.groups, Claimed::Given(groups) if groups.contains(&"a".to_owned()));
        assert_eq!(found.is_admitted_by_rule(&settings), is_in);
    }
}

#[test]
fn an_email_is_verified_by_what_has_this_very_email() {
    let settings = settings(&json!({}));
    for (id_token, userinfo, verified) in [
        (json!({ "email": "a@b.example", "email_verified": true }), Value::Null, true),
        (json!({ "email": "a@b.example" }), json!({ "email": "a@b.example", "email_verified": true }), true),
        (json!({}), json!({ "email": "a@b.example", "email_verified": true }), true),
        (json!({ "email": "a@b.example" }), json!({ "email": "own@b.example", "email_verified": true }), false),
        (json!({ "email": "a@b.example" }), json!({ "email_verified": true }), false),
        (
            json!({ "email": "a@b.example", "email_verified": false }),
            json!({ "email": "a@b.example", "email_verified": true }),
            false,
        ),
        (json!({ "email_verified": true }), json!({ "email": "a@b.example" }), false),
    ] {
        let found = person(&settings, &id_token, &userinfo);
        assert_eq!(found.verified_email().is_some(), verified, "{id_token} {userinfo}");
        assert_eq!(found.email.as_deref(), Some("a@b.example"));
    }
}

#[test]
fn claims_that_are_configured_and_say_nothing_are_named() {
    let settings = settings(&json!({ "admit": "group:a", "creditsClaim": "credits", "storageClaim": "storage" }));
    let found = person(&settings, &json!({ "credits": "many", "storage": 5 }), &Value::Null);
    let ignored: Vec<_> = found.ignored(&settings).collect();
    assert_eq!(ignored, [("groups", "absent"), ("credits", "type")]);
}

#[test]
fn userinfo_fills_what_the_id_token_lacks() {
    let settings = settings(&json!({ "admit": "group:a", "creditsClaim": "credits" }));
    let id_token = json!({ "email": "ana@a.example", "sid": "s", "groups": ["b"] });
    let userinfo =
        json!({ "email": "ana@a.example", "email_verified": true, "groups": ["a"], "credits": 5, "sid": "t" });
    let found = person(&settings, &id_token, &userinfo);
    assert_eq!(found.verified_email(), Some("ana@a.example"));
    assert_eq!((found.groups, found.credits), (Claimed::Given(vec!["b".to_owned()]), Claimed::Given(5)));
    assert_eq!(found.session.as_deref(), Some("s"));
    let lacks = |claims: &Value| {
        Sources { id_token: claims.as_object().cloned().expect("claims"), userinfo: None }.lack_any(&settings)
    };
    let all = json!({ "email": "a@b", "email_verified": false, "name": "A", "groups": [], "credits": 0 });
    assert!(!lacks(&all));
    for member in ["email", "email_verified", "name", "groups", "credits"] {
        let mut some = all.clone();
        some.as_object_mut().expect("an object").remove(member);
        assert!(lacks(&some), "{member}");
    }
}

#[test]
fn an_email_counts_as_the_provider_or_the_operator_says() {
    for (claims, trusted, verified) in [
        (json!({ "email": "a@b", "email_verified": true }), false, Some("a@b")),
        (json!({ "email": "a@b", "email_verified": "true" }), false, Some("a@b")),
        (json!({ "email": "a@b", "email_verified": false }), false, None),
        (json!({ "email": "a@b", "email_verified": "yes" }), false, None),
        (json!({ "email": "a@b", "email_verified": 1 }), false, None),
        (json!({ "email": "a@b" }), false, None),
        (json!({ "email": "a@b" }), true, Some("a@b")),
        (json!({ "email": "ana", "email_verified": true }), true, None),
        (json!({ "preferred_username": "a@b", "upn": "a@b", "email_verified": true }), true, None),
    ] {
        let settings = settings(&json!({ "trustEmail": trusted }));
        assert_eq!(person(&settings, &claims, &Value::Null).verified_email(), verified, "{claims}");
    }
}

#[test]
fn rules_admit_and_groups_give_the_role() {
    let claims = json!({ "email": "ana@A.example", "email_verified": true, "groups": ["staff", "ops"] });
    for (admit, expected) in [
        ("", false),
        ("anyone", true),
        ("group:staff", true),
        ("group:Staff", false),
        ("group:none,domain:a.example", true),
        ("domain:example", false),
        ("domain:b.a.example", false),
    ] {
        let settings = settings(&json!({ "admit": admit }));
        assert_eq!(person(&settings, &claims, &Value::Null).is_admitted_by_rule(&settings), expected, "{admit}");
    }
    let unverified = json!({ "email": "ana@a.example" });
    let domain = settings(&json!({ "admit": "domain:a.example" }));
    assert!(!person(&domain, &unverified, &Value::Null).is_admitted_by_rule(&domain));
    for (groups, claims, expected) in [
        (json!([]), claims.clone(), None),
        (json!(["ops"]), claims.clone(), Some(true)),
        (json!("none, ops"), claims.clone(), Some(true)),
        (json!(["none"]), claims.clone(), Some(false)),
        (json!(["ops"]), json!({}), Some(false)),
        (json!(["ops"]), json!({ "groups": 7 }), None),
    ] {
        let settings = settings(&json!({ "adminGroups": groups }));
        assert_eq!(person(&settings, &claims, &Value::Null).is_admin(&settings), expected, "{groups} {claims}");
    }
}

#[test]
fn amounts_are_whole_and_not_negative_and_names_are_one_line() {
    let settings = settings(&json!({ "creditsClaim": "c", "storageClaim": "/s/max" }));
    for (value, expected) in [
        (json!(0), Claimed::Given(0)),
        (json!(i64::MAX), Claimed::Given(i64::MAX)),
        (json!(-1), Claimed::Malformed),
        (json!(1.5), Claimed::Malformed),
        (json!("5"), Claimed::Malformed),
        (json!(null), Claimed::Absent),
    ] {
        let found = person(&settings, &json!({ "c": value, "s": { "max": value } }), &Value::Null);
        assert_eq!((found.credits, found.storage), (expected.clone(), expected), "{value}");
    }
    for (name, expected) in [
        (json!("Ana\u{7}\nB"), Some("Ana  B".to_owned())),
        (json!(" "), None),
        (json!(7), None),
        (json!("ü".repeat(81)), Some("ü".repeat(80))),
    ] {
        assert_eq!(person(&settings, &json!({ "name": name }), &Value::Null).name, expected);
    }
}
