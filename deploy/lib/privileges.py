"""Which secrets each process is given, compared with what it requires.

The code declares the required variables and the parts that need each of them (shared/service/src/config/part.rs), and which variables
hold secrets (shared/service/src/config/mod.rs). `manifests.py` and `documents.py` hold the chart and the Compose file to
it: a process is given every secret that it requires and no other one.
"""

import pathlib
import re

CONFIG = pathlib.Path(__file__).parents[2] / "shared/service/src/config"
# Secrets that are not required, and the parts that use them. The gateway checks the key of the inference server and never calls it.
OPTIONAL = {
    "CANVAS_DATABASE_PASSWORDS": {"migrate"},
    "CANVAS_MANAGED_KEY": {"image-worker", "video-worker"},
    "CANVAS_OIDC_CLIENT_SECRET": {"gateway", "admin"},
    "OTEL_EXPORTER_OTLP_HEADERS": {"gateway", "image-worker", "video-worker", "webhook-dispatcher"},
}
# Secrets that the code can do without, and the parts that must be given them here: without its own ring, the installation key would be
# encrypted under the ring that all processes have.
GIVEN = {"CANVAS_INSTALLATION_KEYS": {"gateway", "migrate", "admin"}}
# Secrets of the object store, for the parts that need CANVAS_BLOB_URL.
BLOBS = {
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT_KEY",
    "GOOGLE_BEARER_TOKEN", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_CLIENT_SECRET", "AZURE_STORAGE_SAS_KEY",
}
# The variables whose value is the path of a file with a secret, in addition to those that end in _FILE.
PATHS = {"GOOGLE_APPLICATION_CREDENTIALS"}


def kebab(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def required():
    """The required variables, each with the parts that need it."""
    table = re.search(r"const REQUIRED: .*?= \[\n(.*?)\n\];", (CONFIG / "part.rs").read_text(), re.S)[1]
    rows = re.findall(r'\("(\w+)", &\[([\w, ]+)\]\)', table)
    return {variable: {kebab(part) for part in parts.split(", ")} for variable, parts in rows}


def secrets():
    """The variables that hold secrets, each with the parts that use it."""
    names = re.search(r"const SECRETS: .*?= \[(.*?)\];", (CONFIG / "mod.rs").read_text(), re.S)[1]
    users = REQUIRED | OPTIONAL | {name: REQUIRED["CANVAS_BLOB_URL"] for name in BLOBS}
    return {name: users[name] for name in [*re.findall(r'"(\w+)"', names), *sorted(BLOBS)]}


REQUIRED = required() | GIVEN
SECRETS = secrets()


def given_faults(part, given):
    """Whether a part is given the variables with these names, as it should be. A variable with _FILE gives the one without."""
    plain = {name.removesuffix("_FILE") if name.removesuffix("_FILE") in SECRETS else name for name in given}
    for name in sorted(SECRETS.keys() & plain):
        if part not in SECRETS[name]:
            yield f"is given {name}, which it does not use"
        if {name, f"{name}_FILE"} <= set(given):
            yield f"is given {name} twice"
    for name, parts in REQUIRED.items():
        if part in parts and name not in plain:
            yield f"is not given {name}, which it requires"


def pod_faults(part, pod, config_maps):
    """Faults of the secrets of a pod of this part. `config_maps` has the data of the ConfigMaps by name."""
    container = pod["containers"][0]
    values = {}
    for source in container.get("envFrom", []):
        if "secretRef" in source:
            yield f"is given all of the secret {source['secretRef']['name']}"
        else:
            values |= config_maps[source["configMapRef"]["name"]]
    values |= {variable["name"]: variable.get("value", "") for variable in container.get("env", [])}
    yield from given_faults(part, values)
    # A secret has a use if it is a variable of the part, or a part of the value of one.
    for variable in container.get("env", []):
        name = variable["name"]
        if "secretKeyRef" in variable.get("valueFrom", {}) and name not in SECRETS:
            if not any(f"$({name})" in value for value in values.values()):
                yield f"is given the secret {variable['valueFrom']['secretKeyRef']['name']} as {name}, which nothing uses"
    paths = {}
    for mount in container.get("volumeMounts", []):
        for volume in pod.get("volumes", []):
            if volume["name"] == mount["name"] and "secret" in volume:
                if "items" not in volume["secret"]:
                    yield f"is given all keys of the secret {volume['secret']['secretName']}"
                for item in volume["secret"].get("items", []):
                    paths[f"{mount['mountPath']}/{item['path']}"] = volume["secret"]["secretName"]
    files = {value for name, value in values.items()
             if name in PATHS or name.endswith("_FILE") and name.removesuffix("_FILE") in SECRETS}
    # Every file in the directory of certificate authorities is read.
    files |= {path for path in paths if path.rpartition("/")[0] == values.get("SSL_CERT_DIR")}
    yield from (f"is given the secret {paths[path]} as {path}, which nothing reads" for path in sorted(paths.keys() - files))
    yield from (f"reads {path}, which is not mounted" for path in sorted(files - paths.keys()))
    mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
    for volume in pod.get("volumes", []):
        if "secret" in volume and volume["name"] not in mounted:
            yield f"has the volume {volume['name']}, which is not mounted"


def compose_faults(services):
    """Faults of the environment of the processes in a Compose file."""
    parts = {part for parts in REQUIRED.values() for part in parts} - {"admin"}
    for part in sorted(parts):
        service = services.get(part, {})
        for fault in given_faults(part, service.get("environment", {})):
            yield f"compose.yaml: {part} {fault}"
        role = "canvas" if part == "migrate" else "canvas_" + part.replace("-", "_")
        if f"//{role}:" not in service.get("environment", {}).get("CANVAS_DATABASE_URL", ""):
            yield f"compose.yaml: {part} does not connect to the database as {role}"
        for entry in service.get("env_file", []):
            # The file of Compose itself has the passwords of all services.
            if entry["path"] != "settings.env":
                yield f"compose.yaml: {part} is given everything in {entry['path']}"
