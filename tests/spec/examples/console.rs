//! The examples of the console's routes (docs/reference/console.md), as its pages send the requests.

use e2e::api::text;
use e2e::{Call, Client, Stack, images};
use reqwest::Method;
use serde_json::{Value, json};
use service::keys::code_challenge;
use url::Url;

use super::recorder::{ONLY, PUBLIC_URL, Recorder};

/// A browser in which a person is signed in.
struct Browser {
    client: Client,
    /// `<id>.<secret>`.
    session: String,
}

impl Browser {
    fn call(&self, method: Method, path: &str, body: &Value) -> Call {
        let call = page_call(&self.client, method, path, body);
        call.header("cookie", &format!("__Host-canvas={}", self.session))
    }
}

/// A request from a page of the console, without a session.
fn page_call(client: &Client, method: Method, path: &str, body: &Value) -> Call {
    let call = client.call(method, path).header("origin", PUBLIC_URL).header("x-canvas-console", "1");
    if body.is_null() { call } else { call.body("application/json", body.to_string()) }
}

impl Recorder {
    /// Records a request of a page and its answer.
    async fn visit(&mut self, browser: &Browser, id: &str, method: Method, path: &str, body: Value) -> Value {
        let reply = browser.call(method, path, &body).await;
        assert!(matches!(reply.status, 200..=204), "{reply}");
        if reply.status != 204 {
            return self.record(id, ONLY, path, body, reply);
        }
        let request = self.named(&body);
        let entry = self.entry(id);
        if !request.is_null() {
            entry["request"][ONLY] = request;
        }
        for (name, value) in self.parameters(id, path) {
            self.parameter(id, &name, &value);
        }
        Value::Null
    }

    /// Hides a secret `<id>.<secret>`, of which the id is replaced like any other.
    fn hide(&mut self, secret: &str, name: &str) {
        let (_, secret) = secret.split_once('.').expect("an id and a secret");
        self.names.insert(secret.to_owned(), name.to_owned());
    }

    /// Signs in by a new link and records both requests.
    async fn sign_in(&mut self, stack: &Stack) -> Browser {
        let made = stack.admin(&["admin", "session", "link", "--account", "studio"]).await.expect_success();
        let link = text(&made, "/url").split_once('#').expect("a fragment").1.to_owned();
        self.hide(&link, "LINK_SECRET");
        let client = stack.anonymous();
        let mut session = String::new();
        for (name, body) in [("preview", json!({"link": link, "preview": true})), ("link", json!({"link": link}))] {
            let reply = page_call(&client, Method::POST, "/console/session", &body).await;
            if let Some(cookie) = reply.header("set-cookie") {
                let pair = cookie.split(';').next().and_then(|pair| pair.strip_prefix("__Host-canvas="));
                session = pair.expect("the session").to_owned();
            }
            self.record("signIn", name, "/console/session", body, reply);
        }
        Browser { client, session }
    }

    pub(super) async fn console(&mut self, stack: &Stack) {
        let page = self.sign_in(stack).await;
        let document = page.client.get("/console/openapi.json").await.ok();
        let info = &document["info"];
        let shown = json!({"openapi": document["openapi"], "info": {"title": info["title"], "version": info["version"]},
            "paths": {}});
        self.entry("getConsoleDocument")["responses"]["200"][ONLY] = shown;
        self.visit(&page, "getSession", Method::GET, "/console/session", Value::Null).await;
        let name = json!({"displayName": "Studio"});
        self.visit(&page, "renameAccount", Method::PATCH, "/console/account", name).await;
        self.visit(&page, "listSessions", Method::GET, "/console/sessions", Value::Null).await;
        self.providers(stack, &page).await;
        self.tokens_and_connections(&page).await;
        self.apps(stack, &page).await;
        self.sharing_and_deletion(stack, &page).await;
        self.console_failures(&page).await;
        let list = self.visit(&page, "listDeliveries", Method::GET, "/console/deliveries?limit=1", Value::Null).await;
        let delivery = text(&list, "/deliveries/0/webhook/id").trim_start_matches("webhook:");
        let path = format!("/console/deliveries/{delivery}/replay");
        self.visit(&page, "replayDelivery", Method::POST, &path, Value::Null).await;
        self.visit(&page, "getCredit", Method::GET, "/console/credit?limit=1", Value::Null).await;
        self.visit(&page, "listAudit", Method::GET, "/console/audit?event=token.&limit=1", Value::Null).await;
        // The number depends on what else happened.
        self.entry("listAudit")["responses"]["200"][ONLY]["entries"][0]["id"] = json!(41);
        let other = self.sign_in(stack).await;
        let (id, _) = other.session.split_once('.').expect("an id and a secret");
        let path = format!("/console/sessions/{id}");
        self.visit(&page, "endSession", Method::DELETE, &path, Value::Null).await;
        self.visit(&page, "signOut", Method::DELETE, "/console/session", Value::Null).await;
        let page = self.sign_in(stack).await;
        self.visit(&page, "endAllSessions", Method::DELETE, "/console/sessions", Value::Null).await;
    }

    /// Sign-in with a provider. Its redirects and its answer have no body.
    async fn providers(&mut self, stack: &Stack, page: &Browser) {
        self.visit(page, "listSignInProviders", Method::GET, "/console/oidc", Value::Null).await;
        let link = page.call(Method::POST, "/console/oidc/main/link", &Value::Null).await.expect(200);
        let url = Url::parse(text(&link.json(), "/url")).expect("a URL");
        for (name, value) in
            url.query_pairs().filter(|(name, _)| ["state", "nonce", "code_challenge"].contains(&&**name))
        {
            self.names.insert(value.into_owned(), name.to_uppercase());
        }
        self.record("linkIdentity", ONLY, "/console/oidc/main/link", Value::Null, link);
        for (id, path) in [
            ("startSignIn", "/console/oidc/main/start"),
            ("endSignIn", "/console/oidc/main/callback?state=STATE&code=CODE&iss=https://id.example.com"),
            ("logOutFromProvider", "/console/oidc/main/logout"),
        ] {
            self.entry(id);
            for (name, value) in self.parameters(id, path) {
                self.parameter(id, &name, &value);
            }
        }
        let link = ["admin", "identity", "link", "--account", "studio", "--subject", "248289761001"];
        stack.admin(&link).await.expect_success();
        let list = self.visit(page, "listIdentities", Method::GET, "/console/identities", Value::Null).await;
        let path = format!("/console/identities/{}", text(&list, "/identities/0/id"));
        self.visit(page, "unlinkIdentity", Method::DELETE, &path, Value::Null).await;
    }

    async fn apps(&mut self, stack: &Stack, page: &Browser) {
        let client = stack.anonymous();
        let redirect = "https://agent.example.com/callback";
        let registered = json!({"client_name": "Layout agent", "redirect_uris": [redirect]});
        let registered = client.send("/oauth/register", &registered).await.expect(201).json();
        let client_id = text(&registered, "/client_id");
        self.names.insert(client_id.to_owned(), "cbi_CLIENT".to_owned());
        let verifier = "a-verifier-of-forty-three-characters-0123456";
        let query = format!(
            "response_type=code&client_id={client_id}&redirect_uri={redirect}&scope=canvas:read+canvas:write&state=STATE\
             &code_challenge={}&code_challenge_method=S256",
            code_challenge(verifier)
        );
        let request = json!({"query": query});
        self.visit(page, "previewAuthorization", Method::POST, "/console/authorizations/preview", request).await;
        let request = json!({"query": query, "decision": "allow", "scopes": ["canvas:read"], "expiresDays": 30});
        let decided = page.call(Method::POST, "/console/authorizations", &request).await.expect(200);
        let url = Url::parse(text(&decided.json(), "/redirectTo")).expect("a URL");
        let code = url.query_pairs().find(|(name, _)| name == "code").expect("a code").1.into_owned();
        self.hide(&code, "CODE_SECRET");
        self.record("decideAuthorization", ONLY, "/console/authorizations", request, decided);
        let exchange = [
            ("grant_type", "authorization_code"),
            ("client_id", client_id),
            ("code", &code),
            ("redirect_uri", redirect),
            ("code_verifier", verifier),
        ];
        client.form("/oauth/token", &exchange).await.expect(200);
        let asked = client.form("/oauth/device", &[("client_id", "canvas-cli"), ("scope", "canvas:read")]).await.ok();
        let user_code = text(&asked, "/user_code");
        self.names.insert(user_code.to_owned(), "BCDF-GHJK".to_owned());
        let request = json!({"userCode": user_code});
        self.visit(page, "previewDevice", Method::POST, "/console/devices/preview", request).await;
        let request = json!({"userCode": user_code, "decision": "deny"});
        self.visit(page, "decideDevice", Method::POST, "/console/devices", request).await;
        let list = self.visit(page, "listApps", Method::GET, "/console/apps?limit=1", Value::Null).await;
        let path = format!("/console/apps/{}", text(&list, "/apps/0/id"));
        let budgets = json!({"budgets": [{"unit": "credits", "period": "month", "max": 100}]});
        self.visit(page, "setAppBudgets", Method::PUT, &format!("{path}/budgets"), budgets).await;
        self.visit(page, "endApp", Method::DELETE, &path, Value::Null).await;
    }

    async fn tokens_and_connections(&mut self, page: &Browser) {
        let request = json!({"label": "layout agent", "scopes": ["canvas:read", "canvas:write"], "expiresDays": 30});
        let created = page.call(Method::POST, "/console/tokens", &request).await.expect(201);
        self.hide(text(&created.json(), "/secret"), "TOKEN_SECRET");
        let created = self.record("createToken", ONLY, "/console/tokens", request, created);
        self.visit(page, "listTokens", Method::GET, "/console/tokens?limit=1", Value::Null).await;
        let path = format!("/console/tokens/{}", text(&created, "/token/id"));
        let budgets = json!({"budgets": [{"unit": "credits", "period": "month", "max": 100}]});
        self.visit(page, "setTokenBudgets", Method::PUT, &format!("{path}/budgets"), budgets).await;
        self.visit(page, "revokeToken", Method::DELETE, &path, Value::Null).await;
        let request = json!({"provider": "fal", "name": "Studio", "apiKey": "fal-0123456789abcdef"});
        let saved = self.visit(page, "saveConnection", Method::POST, "/console/connections", request).await;
        self.visit(page, "listConnections", Method::GET, "/console/connections", Value::Null).await;
        // A connection has all models of its provider.
        for (id, status, models) in [
            ("saveConnection", "201", "/example/connection/models"),
            ("listConnections", "200", "/example/connections/0/models"),
        ] {
            let models = self.entry(id)["responses"][status].pointer_mut(models).and_then(Value::as_array_mut);
            models.expect("a list").truncate(1);
        }
        let path = format!("/console/connections/{}", text(&saved, "/connection/id"));
        self.visit(page, "deleteConnection", Method::DELETE, &path, Value::Null).await;
    }

    async fn sharing_and_deletion(&mut self, stack: &Stack, page: &Browser) {
        let account = ["admin", "account", "create", "--email", "ana@example.com", "--uid", "ana"];
        stack.admin(&account).await.expect_success();
        let members = "/console/canvases/studio/harbor/members";
        let member = format!("{members}/ana@example.com");
        self.visit(page, "setMember", Method::PUT, &member, json!({"role": "editor"})).await;
        self.visit(page, "listMembers", Method::GET, &format!("{members}?limit=1"), Value::Null).await;
        self.visit(page, "removeMember", Method::DELETE, &member, Value::Null).await;
        let pointer = json!({"at": [120.5, -40], "selection": ["sketch-1"], "view": [-400, -300, 1280, 720]});
        self.visit(page, "showPointer", Method::POST, "/console/canvases/studio/harbor/pointer", pointer).await;
        self.client.send("/canvases", &json!({"id": "draft"})).await.expect(201);
        self.client.upload_into("draft", "image/png", images::same_png(32, 24)).await;
        let confirmed = json!({"confirm": true});
        self.visit(page, "deleteCanvas", Method::DELETE, "/console/canvases/studio/draft", confirmed.clone()).await;
        let asset = self.client.upload("image/png", images::same_png(32, 24)).await;
        let path = format!("/console/assets/studio/{}", text(&asset, "/id"));
        self.visit(page, "deleteAsset", Method::DELETE, &path, confirmed).await;
    }

    /// The failures whose examples in the contract have no counterpart here.
    async fn console_failures(&mut self, page: &Browser) {
        let confirmed = json!({"confirm": true});
        let asset = self.client.upload_into("harbor", "image/png", images::same_png(48, 32)).await;
        let shown = format!("/console/assets/studio/{}", text(&asset, "/id"));
        let stranger = "/console/canvases/studio/harbor/members/nobody@example.com";
        for (response, name, method, path, body) in [
            ("BadRequest", "violations", Method::POST, "/console/tokens", json!({"label": "", "scopes": []})),
            ("Conflict", "shown", Method::DELETE, shown.as_str(), confirmed.clone()),
            ("NotFound", "missing", Method::DELETE, "/console/canvases/studio/missing", confirmed),
            ("UnprocessableEntity", "email", Method::PUT, stranger, json!({"role": "viewer"})),
        ] {
            let reply = page.call(method, path, &body).await;
            assert!(matches!(reply.status, 400..=499), "{reply}");
            self.console_failure(response, name, reply);
        }
        let foreign = page.client.send("/console/tokens", &json!({})).await.expect(403);
        self.console_failure("Forbidden", "origin", foreign);
    }
}
