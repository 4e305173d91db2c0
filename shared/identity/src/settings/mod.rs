//! The providers that the operator configured (docs/reference/signin.md#settings).

use serde::Deserialize;
use service::config::{Config, ConfigError, Secret};
use url::{Host, Url};

use crate::person::ClaimPath;

/// Most providers at once.
pub const PROVIDERS_MAX: usize = 8;
/// The id of the provider that variables configure.
const MAIN: &str = "main";
/// Longest id of a provider.
const ID_MAX: usize = 32;
/// Longest name of a provider, in characters.
const NAME_MAX: usize = 80;
/// Longest client id and longest issuer.
const TEXT_MAX: usize = 512;
const DAYS_MAX: u32 = 3650;

/// Whom a provider's people are admitted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Members of a group.
    Group(String),
    /// Those whose verified email is of a domain.
    Domain(String),
    Anyone,
}

/// A provider. `Debug` hides its secret.
#[derive(Clone, Debug)]
pub struct Settings {
    pub id: String,
    pub name: String,
    /// The issuer as the operator wrote it, which tokens repeat byte for byte.
    pub issuer: String,
    /// The issuer as a URL.
    pub issuer_url: Url,
    pub client_id: String,
    /// `None` for a public client.
    pub client_secret: Option<Secret>,
    pub scopes: Vec<String>,
    pub admit: Vec<Rule>,
    /// Whether a verified email links a person to the account of that email.
    pub links_by_email: bool,
    pub trust_email: bool,
    /// `None` unless a rule or a role depends on groups.
    pub groups_claim: Option<ClaimPath>,
    pub admin_groups: Vec<String>,
    pub credits_claim: Option<ClaimPath>,
    pub storage_claim: Option<ClaimPath>,
    pub new_credits: i64,
    /// Days for which a sign-in confirms an account; `None` for ever.
    pub confirm_days: Option<u32>,
}

/// A list in the file: an array, or one text with commas.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum List {
    Items(Vec<String>),
    Text(String),
}

impl List {
    fn items(self) -> Vec<String> {
        match self {
            Self::Items(items) => items,
            Self::Text(text) => split(&text, ','),
        }
    }
}

fn split(text: &str, separator: char) -> Vec<String> {
    text.split(separator).map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

/// A provider as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    id: String,
    name: Option<String>,
    issuer: String,
    client_id: String,
    client_secret_file: Option<String>,
    scopes: Option<List>,
    admit: Option<List>,
    link: Option<String>,
    #[serde(default)]
    trust_email: bool,
    groups_claim: Option<String>,
    admin_groups: Option<List>,
    credits_claim: Option<String>,
    storage_claim: Option<String>,
    #[serde(default)]
    new_credits: u32,
    confirm_days: Option<u32>,
}

/// A wrong member.
struct Wrong {
    /// The variable of the member, which for a provider in the file names it as well.
    variable: &'static str,
    problem: String,
}

fn wrong(variable: &'static str, problem: impl Into<String>) -> Wrong {
    Wrong { variable, problem: problem.into() }
}

/// Reads the configured providers. There may be none.
///
/// # Errors
///
/// The first wrong value.
pub fn load(config: &Config) -> Result<Vec<Settings>, ConfigError> {
    let invalid = |variable, problem| Err(ConfigError::Invalid { variable, problem });
    let providers = match (&config.oidc_issuer, &config.oidc_file) {
        (None, None) => return Ok(Vec::new()),
        (Some(_), Some(_)) => {
            return invalid(
                "CANVAS_OIDC_FILE",
                "expected either this variable or CANVAS_OIDC_ISSUER, not both".to_owned(),
            );
        }
        (Some(issuer), None) => {
            let provider =
                main(config, issuer).map_err(|Wrong { variable, problem }| ConfigError::Invalid { variable, problem });
            vec![provider?]
        }
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path).map_err(|error| format!("expected a readable file: {error}"));
            match text.and_then(|text| in_file(&text)) {
                Ok(providers) => providers,
                Err(problem) => return invalid("CANVAS_OIDC_FILE", problem),
            }
        }
    };
    if !is_secure(&config.public_url) {
        let problem = "expected https, or a loopback address, because sign-in by OpenID Connect is set".to_owned();
        return invalid("CANVAS_PUBLIC_URL", problem);
    }
    Ok(providers)
}

fn main(config: &Config, issuer: &str) -> Result<Settings, Wrong> {
    let list = |text: &str| Some(List::Text(text.to_owned())).filter(|_| !text.is_empty());
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let written = Written {
        id: MAIN.to_owned(),
        name: text(&config.oidc_name),
        issuer: issuer.to_owned(),
        client_id: config.oidc_client_id.clone(),
        client_secret_file: None,
        scopes: text(&config.oidc_scopes).map(|scopes| List::Items(split(&scopes, ' '))),
        admit: list(&config.oidc_admit),
        link: text(&config.oidc_link),
        trust_email: config.oidc_trust_email,
        groups_claim: text(&config.oidc_groups_claim),
        admin_groups: list(&config.oidc_admin_groups),
        credits_claim: text(&config.oidc_credits_claim),
        storage_claim: text(&config.oidc_storage_claim),
        new_credits: config.oidc_new_credits,
        confirm_days: Some(config.oidc_confirm_days),
    };
    written.check(config.oidc_client_secret.clone())
}

/// Reads the file: a list of providers.
pub(crate) fn in_file(text: &str) -> Result<Vec<Settings>, String> {
    let written: Vec<Written> =
        serde_json::from_str(text).map_err(|error| format!("expected a list of providers: {error}"))?;
    if written.is_empty() || written.len() > PROVIDERS_MAX {
        return Err(format!("expected 1 to {PROVIDERS_MAX} providers"));
    }
    let mut providers: Vec<Settings> = Vec::new();
    for mut provider in written {
        let id = provider.id.clone();
        let name = |wrong: Wrong| format!("provider {id:?}: {}: {}", member(wrong.variable), wrong.problem);
        if providers.iter().any(|other| other.id == id) {
            return Err(format!("the id {id:?} is used by an earlier provider"));
        }
        provider.link.get_or_insert_with(|| "off".to_owned());
        let secret = provider.client_secret_file.take().map(|path| {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| wrong(SECRET_FILE, format!("expected a readable file: {error}")))?;
            let text = text.trim();
            if text.is_empty() {
                Err(wrong(SECRET_FILE, "the file is empty"))
            } else {
                Ok(Secret::new(text.to_owned()))
            }
        });
        let settings = secret.transpose().and_then(|secret| provider.check(secret)).map_err(name)?;
        // One answer of a provider must not be good at another.
        if let Some(other) = providers.iter().find(|other| other.issuer == settings.issuer) {
            return Err(format!("the providers {:?} and {id:?} have the same issuer", other.id));
        }
        providers.push(settings);
    }
    Ok(providers)
}

const SECRET_FILE: &str = "CANVAS_OIDC_CLIENT_SECRET_FILE";

/// The member of the file that is this variable of a single provider: `CANVAS_OIDC_CLIENT_ID` is `clientId`.
fn member(variable: &str) -> String {
    let mut name = String::new();
    for (place, part) in variable.trim_start_matches("CANVAS_OIDC_").split('_').enumerate() {
        let lower = part.to_ascii_lowercase();
        match lower.chars().next().filter(|_| place > 0) {
            Some(first) => name.extend([first.to_ascii_uppercase().to_string().as_str(), &lower[1..]]),
            None => name.push_str(&lower),
        }
    }
    name
}

impl Written {
    fn check(self, client_secret: Option<Secret>) -> Result<Settings, Wrong> {
        let is_id = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if self.id.is_empty() || self.id.len() > ID_MAX || !self.id.bytes().all(is_id) {
            return Err(wrong("CANVAS_OIDC_ID", "expected 1 to 32 characters of a-z, 0-9 and -"));
        }
        let name = self.name.unwrap_or_else(|| "Single sign-on".to_owned());
        if name.trim().is_empty() || name.chars().count() > NAME_MAX || name.chars().any(char::is_control) {
            return Err(wrong("CANVAS_OIDC_NAME", "expected 1 to 80 characters in one line"));
        }
        let issuer_url = issuer_url(&self.issuer).ok_or_else(|| {
            wrong("CANVAS_OIDC_ISSUER", "expected an https URL, or http on loopback, without query, fragment and user")
        })?;
        if self.client_id.is_empty() || self.client_id.len() > TEXT_MAX {
            return Err(wrong("CANVAS_OIDC_CLIENT_ID", "expected 1 to 512 characters"));
        }
        let mut scopes = self.scopes.map_or_else(|| split("openid email profile", ' '), List::items);
        let is_scope =
            |scope: &String| scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
        if !scopes.iter().all(is_scope) {
            return Err(wrong("CANVAS_OIDC_SCOPES", "expected names of scopes"));
        }
        if !scopes.iter().any(|scope| scope == "openid") {
            scopes.insert(0, "openid".to_owned());
        }
        let admit = self
            .admit
            .map_or_else(Vec::new, List::items)
            .iter()
            .map(|rule| rule.parse::<Rule>())
            .collect::<Result<Vec<_>, _>>();
        let admit = admit.map_err(|problem| wrong("CANVAS_OIDC_ADMIT", problem))?;
        let links_by_email = match self.link.as_deref() {
            None | Some("email") => true,
            Some("off") => false,
            Some(_) => return Err(wrong("CANVAS_OIDC_LINK", "expected email or off")),
        };
        let admin_groups = self.admin_groups.map_or_else(Vec::new, List::items);
        let needs_groups = !admin_groups.is_empty() || admit.iter().any(|rule| matches!(rule, Rule::Group(_)));
        let groups_claim = self.groups_claim.unwrap_or_else(|| "groups".to_owned());
        Ok(Settings {
            id: self.id,
            name,
            issuer: self.issuer,
            issuer_url,
            client_id: self.client_id,
            client_secret,
            scopes,
            admit,
            links_by_email,
            trust_email: self.trust_email,
            groups_claim: needs_groups.then_some(ClaimPath(groups_claim)),
            admin_groups,
            credits_claim: self.credits_claim.map(ClaimPath),
            storage_claim: self.storage_claim.map(ClaimPath),
            new_credits: self.new_credits.into(),
            confirm_days: match self.confirm_days.unwrap_or(90) {
                0 => None,
                days if days <= DAYS_MAX => Some(days),
                _ => return Err(wrong("CANVAS_OIDC_CONFIRM_DAYS", "expected 0 to 3650 days")),
            },
        })
    }
}

impl std::str::FromStr for Rule {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':').map(|(kind, value)| (kind, value.trim())) {
            None if text == "anyone" => Ok(Self::Anyone),
            Some(("group", group)) if !group.is_empty() => Ok(Self::Group(group.to_owned())),
            Some(("domain", domain)) if !domain.is_empty() && !domain.contains('@') => {
                Ok(Self::Domain(domain.to_owned()))
            }
            _ => Err("expected group:NAME, domain:DOMAIN or anyone, comma separated"),
        }
    }
}

/// The URL of an issuer: `https`, or `http` on loopback.
fn issuer_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_plain =
        url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
    (text.len() <= TEXT_MAX && is_plain && is_secure(text)).then_some(url)
}

/// Whether a URL is `https`, or `http` on loopback: there browsers keep a `Secure` cookie.
pub fn is_secure(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        let is_loopback = match url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        url.scheme() == "https" || (url.scheme() == "http" && is_loopback)
    })
}

#[cfg(test)]
mod tests;
