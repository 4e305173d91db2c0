"""Hooks that tests/contract adds to schemathesis for the document of the console, beside those of tests/contract.py.

Half of the valid requests are sent by a person of their own and about things that exist, so that they succeed instead of only being
rejected. Requests that end a session never end the one of the run.
"""

import base64
import functools
import hashlib
import itertools
import json
import os
import subprocess
import time
import urllib.parse
import uuid

import requests
import schemathesis

import contract
from contract import PNG, TURNS, is_right, operation_of

ORIGIN = os.environ["CONTRACT_BASE_URL"]
COOKIE = "__Host-canvas"


def admin(*arguments):
    environment = {**os.environ, **json.loads(os.environ["CONTRACT_ENVIRONMENT"])}
    command = [os.environ["CONTRACT_GATEWAY"], "admin", *arguments]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60).stdout)


class Person:
    """A person of a new account, who is signed in."""

    # Few enough for the limits on tokens, sessions and changes of members of one account.
    REQUESTS = 8

    def __init__(self):
        self.uid = "p-" + uuid.uuid4().hex
        admin("account", "create", "--email", self.email(), "--uid", self.uid)
        self.session = None
        reply = self.sign_in()
        # By hand, because the cookie is for secure origins.
        self.session = reply.headers["Set-Cookie"].split(";")[0].split("=", 1)[1]
        self.left = self.REQUESTS

    def email(self):
        return self.uid + "@example.com"

    def link(self):
        """The secret of a new sign-in link."""
        return admin("session", "link", "--account", self.uid)["url"].split("#")[1]

    def sign_in(self):
        """Begins one more session."""
        return self.send("POST", "/console/session", {"link": self.link()})

    def send(self, method, path, body=None, data=None, headers=None):
        headers = {"Origin": ORIGIN, "X-Canvas-Console": "1", **(headers or {})}
        if self.session:
            headers["Cookie"] = f"{COOKIE}={self.session}"
        reply = requests.request(method, ORIGIN + path, json=body, data=data, headers=headers, timeout=30)
        reply.raise_for_status()
        return reply

    def canvas(self):
        return self.send("POST", f"/console{contract.API}/canvases", {}).json()["canvas"]["id"]

    def token(self):
        return self.send("POST", "/console/tokens", {"label": "Contract", "scopes": ["canvas:read"]}).json()


PERSON = None


def person(is_used_up=False):
    """A person with room for one more request. One that is used up is given to nobody else."""
    global PERSON
    if PERSON is None or PERSON.left == 0:
        PERSON = Person()
    PERSON.left -= 1
    given = PERSON
    if is_used_up:
        PERSON = None
    return given


# -- Requests that succeed, by operation: each returns the person who sends it --

SIGNING_IN = itertools.cycle(["link", "token", "preview"])


def sign_in(case):
    who, way = person(), next(SIGNING_IN)
    case.body = {"token": who.token()["secret"]} if way == "token" else {"link": who.link()}
    if way == "preview":
        case.body["preview"] = True
    return who


def end_session(case):
    who = person()
    case.path_parameters["sessionId"] = who.sign_in().json()["session"]["id"]
    return who


SAVED = itertools.count()


def save_connection(case):
    """Every second request replaces the key of a connection."""
    who = person()
    case.body["name"] = str(uuid.uuid4())
    if next(SAVED) % 2:
        who.send("POST", "/console/connections", case.body)
    return who


def delete_connection(case):
    who = person()
    body = {"provider": "fal", "name": str(uuid.uuid4()), "apiKey": "sk-0123456789abcdef"}
    case.path_parameters["connectionId"] = who.send("POST", "/console/connections", body).json()["connection"]["id"]
    return who


def revoke_token(case):
    who = person()
    case.path_parameters["tokenId"] = who.token()["token"]["id"]
    return who


def create_token(case):
    # Scopes that need no others.
    case.body["scopes"] = ["canvas:read"]
    return person()


def of_canvas(case):
    who = person()
    case.path_parameters.update(ownerUid=who.uid, canvasId=who.canvas())
    return who


def set_member(case):
    who = of_canvas(case)
    case.path_parameters["email"] = OTHER.email()
    return who


def remove_member(case):
    who = set_member(case)
    path = "/console/canvases/{ownerUid}/{canvasId}/members/{email}".format(**case.path_parameters)
    who.send("PUT", path, {"role": "viewer"})
    return who


def delete_asset(case):
    who = person()
    upload = who.send("POST", f"/console{contract.API}/assets", data=PNG, headers={"Content-Type": "image/png"})
    case.path_parameters.update(ownerUid=who.uid, assetId=upload.json()["asset"]["id"])
    return who


def replay(case):
    """The delivery of the run, which belongs to its own person, once it is over."""
    headers = {"Cookie": f"{COOKIE}={os.environ['CONTRACT_SESSION']}"}
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        listed = requests.get(ORIGIN + "/console/deliveries?status=delivered", headers=headers, timeout=30).json()
        if listed["deliveries"]:
            break
        time.sleep(0.05)


def link_identity(case):
    case.path_parameters["providerId"] = "main"
    return person()


def unlink_identity(case):
    who = person()
    admin("identity", "link", "--account", who.uid, "--subject", str(uuid.uuid4()))
    case.path_parameters["identityId"] = who.send("GET", "/console/identities").json()["identities"][0]["id"]
    return who


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def log_out(case, kwargs):
    """What the provider sends when a person has signed out of it."""
    claims = {
        "iss": os.environ["CONTRACT_ISSUER"], "aud": "canvas", "sub": "somebody", "iat": int(time.time()), "jti": str(uuid.uuid4()),
        "exp": int(time.time()) + 60, "events": {"http://schemas.openid.net/event/backchannel-logout": {}},
    }
    parts = {"alg": "RS256", "kid": "k1", "typ": "logout+jwt"}, claims
    message = b".".join(base64url(json.dumps(part).encode()) for part in parts)
    sign = ["openssl", "dgst", "-sha256", "-keyform", "DER", "-sign", "shared/testkit/src/rsa.pk8"]
    signature = subprocess.run(sign, input=message, check=True, capture_output=True, timeout=60).stdout
    case.path_parameters["providerId"] = "main"
    kwargs["data"] = {"logout_token": message + b"." + base64url(signature)}
    kwargs.pop("json", None)


REDIRECT = "https://app.example/callback"
VERIFIER = "v" * 43


@functools.cache
def app_client():
    """The id of a client, and a query with which it asks for authorization."""
    metadata = {"client_name": "Contract", "redirect_uris": [REDIRECT]}
    client = requests.post(ORIGIN + "/oauth/register", json=metadata, timeout=30).json()["client_id"]
    return client, urllib.parse.urlencode({
        "client_id": client, "redirect_uri": REDIRECT, "response_type": "code", "scope": "canvas:read",
        "code_challenge": base64url(hashlib.sha256(VERIFIER.encode()).digest()), "code_challenge_method": "S256",
    })


def preview_authorization(case):
    case.body["query"] = app_client()[1]
    return person()


def decide_authorization(case):
    case.body["scopes"] = ["canvas:read"]
    return preview_authorization(case)


def of_app(case):
    who, (client, query) = person(), app_client()
    decided = who.send("POST", "/console/authorizations", {"query": query, "decision": "allow", "expiresDays": 1}).json()
    code = urllib.parse.parse_qs(urllib.parse.urlsplit(decided["redirectTo"]).query)["code"][0]
    form = {"grant_type": "authorization_code", "client_id": client, "code": code, "redirect_uri": REDIRECT, "code_verifier": VERIFIER}
    requests.post(ORIGIN + "/oauth/token", data=form, timeout=30).raise_for_status()
    case.path_parameters["appId"] = who.send("GET", "/console/apps").json()["apps"][0]["id"]
    return who


def set_app_budgets(case):
    # Each unit and period once.
    case.body["budgets"] = case.body["budgets"][:1]
    return of_app(case)


def device_code():
    form = {"client_id": "canvas-cli", "scope": "canvas:read"}
    reply = requests.post(ORIGIN + "/oauth/device", data=form, timeout=30)
    reply.raise_for_status()
    return reply.json()["user_code"]


@functools.cache
def waiting_device(minute):
    """A code that waits for a decision, and goes on to."""
    return device_code()


def preview_device(case):
    case.body["userCode"] = waiting_device(int(time.monotonic() / 60))
    return person()


def decide_device(case):
    case.body.update(userCode=device_code(), scopes=["canvas:read"])
    # Each unit and period once.
    if case.body.get("budgets"):
        case.body["budgets"] = case.body["budgets"][:1]
    return person()


OTHER = Person()

ARRANGE = {
    "linkIdentity": link_identity, "unlinkIdentity": unlink_identity, "endApp": of_app, "setAppBudgets": set_app_budgets,
    "previewAuthorization": preview_authorization, "decideAuthorization": decide_authorization,
    "previewDevice": preview_device, "decideDevice": decide_device,
    "signIn": sign_in, "endSession": end_session, "saveConnection": save_connection, "deleteConnection": delete_connection,
    "createToken": create_token, "revokeToken": revoke_token, "listMembers": of_canvas, "setMember": set_member,
    "removeMember": remove_member, "showPointer": of_canvas, "deleteCanvas": of_canvas, "deleteAsset": delete_asset, "replayDelivery": replay,
}
# Always sent by a person who sends nothing else, because they may end the session in which they are sent: schemathesis also takes the ids
# of sessions from responses.
ENDING = {"signOut", "endAllSessions", "endSession"}


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = operation_of(case)
    if operation not in ("signIn", "logOutFromProvider") and (case.cookies or {}).get(COOKIE) != os.environ["CONTRACT_SESSION"]:
        # Sent without a credential, or with one that is invalid on purpose.
        return
    owner = next((OWNERS[str(value)] for value in (case.path_parameters or {}).values() if str(value) in OWNERS), None)
    if owner:
        case.cookies[COOKIE] = owner
        return
    if operation in ENDING:
        case.cookies[COOKIE] = person(is_used_up=True).session
    if not is_right(case) or case.meta.phase.name.value == "coverage" or next(TURNS[operation, "console"]) % 2:
        return
    if operation in ("listTokens", "listDeliveries", "getCredit", "listMembers"):
        # Cursors are authenticated.
        contract.without(case.query or {}, "cursor")
    if operation == "logOutFromProvider":
        log_out(case, kwargs)
    if operation in ARRANGE:
        who = ARRANGE[operation](case)
        if who is not None:
            SENDERS[case.id] = who.session
            if operation != "signIn":
                case.cookies[COOKIE] = who.session


# The session of the person who sends a request, by the id of the request, and of the person to whom something belongs, by its id: a later
# request about it is theirs, too.
SENDERS, OWNERS = {}, {}


@schemathesis.hook
def after_call(context, case, response):
    sender = SENDERS.pop(case.id, None)
    if sender and response.status_code in (200, 201):
        for made in response.json().values():
            if isinstance(made, dict) and "id" in made:
                OWNERS[made["id"]] = sender


# Rules that no schema can express, as in tests/contract.py.
contract.BEYOND += [
    # Which fields exclude each other depends on which are sent.
    ("signIn", "link|token|preview", "`link` or `token` is required|must be absent when `link` is given|is for links"),
    ("createToken", "scopes", "[a-z:]+ requires "),
    # Cursors are authenticated.
    ("getCredit", "cursor", "is invalid or belongs to a different list"),
    ("saveConnection", "name", "must have 1 to 80 characters, not all white space"),
    ("setMember|removeMember", "email", "must be an email address"),
    # The schema describes all items of the list alike.
    ("showPointer", r"view\[[23]\]", "must be greater than 0"),
]
