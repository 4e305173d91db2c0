"""Checks the documents for operators against the code: `documents.py ROOT MANIFESTS [--update | --expressions]`. MANIFESTS is the
directory to which deploy/manifests has rendered the Helm chart.

- The table of variables in deploy/README.md matches shared/service/src/config/mod.rs, and names the processes that read each variable.
- The code emits every metric that rules, scaling and dashboard use, and every metric of the code is used by one of them. Rules and
  dashboard exclude the same routes from the duration of requests.
- Every Prometheus query of the scaling configuration has a test in deploy/observe/rules.test.yaml.
- Every alert has a row in deploy/RUNBOOK.md, and every row with an anchor has an alert.
- A restore in deploy/README.md waits until the processes have stopped, and one that is a single block stops at the first failure.
- deploy/docker/env.example and deploy/docker/compose.yaml name the same variables, and the image build receives the whole workspace.
- Everything that names the version of this project names that of Cargo.toml.
- Compose file and chart run the same, maintained versions of the services, and docs/development.md lists them.
- Each process in deploy/docker/compose.yaml is given the secrets that it requires and no others.
- The table of sizes in deploy/README.md matches the rendered installations.
- The schema of the chart's values describes each value of values.yaml, and nothing else.

With --update the generated parts are written; handwritten parts are only checked. Each fault is printed as one line on standard
output. With --expressions the queries of dashboard and scaling are printed as rules, as input for promtool.
"""

import json
import pathlib
import re
import sys

import yaml

import privileges

ROOT, MANIFESTS, UPDATE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), "--update" in sys.argv
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm/canvas"
PROCESSES = {"gateway": "gateway", "image-worker": "image", "video-worker": "video", "webhook-dispatcher": "webhook"}
# Metrics of Prometheus itself, of PostgreSQL and RabbitMQ, and of kube-state-metrics.
FOREIGN = {
    "up", "cnpg_pg_stat_archiver_last_failed_time", "cnpg_pg_stat_archiver_last_archived_time",
    "barman_cloud_cloudnative_pg_io_last_available_backup_timestamp", "rabbitmq_alarms_memory_used_watermark",
    "rabbitmq_alarms_free_disk_space_watermark", "kube_job_failed",
}


def code(*directories):
    """The source text of the given directories, without tests."""
    paths = (path for directory in directories for path in sorted((ROOT / directory).rglob("*.rs")) if "tests" not in path.parts)
    return "\n".join(path.read_text() for path in paths)


def variables():
    """The rows of the configuration table, each with the processes that read the variable."""
    text = (ROOT / "shared/service/src/config/mod.rs").read_text()
    rows = re.findall(r'"((?:CANVAS|OTEL)_\w+)" => (\w+): .*? = (None|Some\("(.*?)"\)), parse::\w+,\s*"((?:\\.|[^"])*)";', text, re.S)
    # The image and video workers read their common settings in the crate worker, the model settings where models are loaded, and the
    # gateway the providers of sign-ins in the crate identity.
    models = "shared/providers/src"
    shared = {"gateway": [models, "shared/identity/src"], "image": [models, "shared/worker/src"], "video": [models, "shared/worker/src"]}
    sources = {short: code(f"{directory}/src", *shared.get(short, [])) for directory, short in PROCESSES.items()}
    taskqueue = code("shared/taskqueue/src")
    # Only processes that end jobs use the retention windows; the dispatcher does not.
    windows = re.search(r"pub fn windows.*?\n}", taskqueue, re.S)[0]
    taskqueue = taskqueue.replace(windows, "")
    for short in ("gateway", "image", "video"):
        sources[short] += windows
    # Options of the task runners; the gateway has none. The heartbeat interval also derives from the lease.
    runners = re.search(r"fn runner_options.*?\n    }", taskqueue, re.S)[0]
    for name, field, required, default, meaning in rows:
        reads = re.compile(rf"config\s*\.{field}\b")
        readers = [short for short, source in sources.items() if reads.search(source)]
        if reads.search(runners):
            readers = [short for short in PROCESSES.values() if short != "gateway"]
        elif reads.search(taskqueue) or len(readers) == len(PROCESSES):
            readers = ["all"]
        shown = "required" if name in privileges.required() else f"`{default}`" if default else "none"
        meaning = meaning.replace('\\"', '"').replace("|", "\\|")
        yield f"| `{name}` | {shown} | {', '.join(readers)} | {meaning} |"


def quantity(text):
    """A quantity of Kubernetes as a number: cores, or bytes."""
    number, unit = re.fullmatch(r"([\d.]+)([a-zA-Z]*)", str(text)).groups()
    return float(number) * {"": 1, "m": 1e-3, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}[unit]


def sizes():
    """What the nodes must have for each installation when it is installed, and at the most that autoscaling makes of it."""
    gib = lambda number: f"{number / 2**30:.1f} GiB"
    for name in ("small", "managed", "production"):
        documents = [d for d in yaml.safe_load_all((MANIFESTS / f"canvas-{name}.yaml").read_text()) if d]
        scalers = {d["spec"]["scaleTargetRef"]["name"]: d["spec"] for d in documents if d["kind"] in ("HorizontalPodAutoscaler", "ScaledObject")}
        least, most, volumes = [0, 0, 0, 0], [0, 0, 0, 0], 0
        for document in documents:
            kind, spec = document["kind"], document["spec"] if "spec" in document else {}
            if kind in ("Deployment", "StatefulSet"):
                resources, scaler = spec["template"]["spec"]["containers"][0]["resources"], scalers.get(document["metadata"]["name"], {})
                counts = scaler.get("minReplicas", scaler.get("minReplicaCount", 1)), scaler.get("maxReplicas", scaler.get("maxReplicaCount", 1))
            elif kind in ("Cluster", "RabbitmqCluster"):
                resources, counts = spec["resources"], (spec.get("instances", spec.get("replicas")),) * 2
                storages = [spec[key]["size"] for key in ("storage", "walStorage") if key in spec] or [spec["persistence"]["storage"]]
                volumes += counts[0] * sum(map(quantity, storages))
            else:
                resources, counts = None, None
            claims = spec.get("volumeClaimTemplates", []) if kind == "StatefulSet" else [document] if kind == "PersistentVolumeClaim" else []
            volumes += sum(quantity(claim["spec"]["resources"]["requests"]["storage"]) for claim in claims)
            if resources:
                one = 1, quantity(resources["requests"]["cpu"]), quantity(resources["requests"]["memory"]), quantity(resources["limits"]["memory"])
                for total, count in ((least, counts[0]), (most, counts[1])):
                    total[:] = [sum_ + count * part for sum_, part in zip(total, one)]
        for label, (pods, cores, requested, limit) in {"": least, ", at the most": most}.items():
            if label and most == least:
                continue
            yield f"| {name}{label} | {pods} | {cores:.2g} cores | {gib(requested)} | {gib(limit)} | {gib(volumes)} |"


# The generated tables of deploy/README.md, each with its head.
TABLES = {
    "variables": ("| variable | default | read by | meaning |\n| --- | --- | --- | --- |", variables),
    "sizes": ("| installation | pods | CPU requested | memory requested | memory limit | volumes |\n| --- | --- | --- | --- | --- | --- |", sizes),
}


def table_faults():
    path = DEPLOY / "README.md"
    for name, (head, rows) in TABLES.items():
        begin, end = f"<!-- {name}: written by deploy/check --update -->", f"<!-- end of {name} -->"
        before, found, rest = path.read_text().partition(begin)
        written, ended, after = rest.partition(end)
        if not found or not ended:
            yield f"deploy/README.md: the markers of the table of {name} are missing"
            continue
        table = f"\n{head}\n" + "\n".join(rows()) + "\n"
        if written != table and UPDATE:
            path.write_text(before + begin + table + end + after)
        elif written != table:
            yield f"deploy/README.md: the table of {name} is out of date: run deploy/check --update"


def value_faults():
    """Whether the schema of the chart's values describes each of them, and names none that values.yaml lacks."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    definitions = schema["definitions"]

    def resolved(part):
        for reference in [part, *part.get("allOf", [])]:
            if "$ref" in reference:
                part = definitions[reference["$ref"].rpartition("/")[2]] | part
        return part

    def walk(part, values, path):
        for name, inner in part.get("properties", {}).items():
            place = f"{path}{name}"
            inner = resolved(inner)
            if not inner.get("description"):
                yield f"values.schema.json: {place} has no description"
            if isinstance(values, dict) and values and name not in values and name not in ("global", "tls"):
                yield f"values.schema.json: {place} is not in values.yaml"
            yield from walk(inner, values.get(name) if isinstance(values, dict) else None, f"{place}.")

    yield from walk(schema, yaml.safe_load((CHART / "values.yaml").read_text()), "")


def made():
    """The metrics that the code emits, with the names of their exposed series."""
    text = code("shared", *(f"{directory}/src" for directory in PROCESSES))
    # Metrics of the metrics facade's own tests are named test_….
    for kind, name in re.findall(r'\b(counter|gauge|histogram)!\(\s*"(?!test_)(\w+)"', text):
        yield name, [f"{name}_bucket", f"{name}_count", f"{name}_sum"] if kind == "histogram" else [name]


def rules():
    """The rules of every group."""
    return [rule for group in yaml.safe_load((CHART / "files/rules.yaml").read_text())["groups"] for rule in group["rules"]]


def queries():
    """The Prometheus queries of dashboard and scaling, with the place of each."""
    for panel in json.loads((CHART / "files/dashboard.json").read_text())["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']!r}, {target['refId']}", target["expr"]
    for document in filter(None, yaml.safe_load_all((MANIFESTS / "canvas-production.yaml").read_text())):
        if document["kind"] == "ScaledObject":
            for number, trigger in enumerate(document["spec"]["triggers"]):
                if trigger["type"] == "prometheus":
                    yield f"ScaledObject {document['metadata']['name']}, trigger {number}", trigger["metadata"]["query"]


def metric_faults():
    expressions = {f"rule {rule.get('alert') or rule['record']}": rule["expr"] for rule in rules()} | dict(queries())
    metrics = dict(made())
    known = {series for all_of in metrics.values() for series in all_of} | FOREIGN
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    used = set()
    for place, expression in expressions.items():
        # Removes strings, matchers, groupings, durations and functions from the expression, so that only metric names remain.
        plain = re.sub(r'"[^"]*"', "", expression)
        plain = re.sub(r"\{[^}]*\}|\b(?:by|on|without|ignoring)\s*\([^)]*\)|\[[^\]]*\]|offset\s+\w+", " ", plain)
        for name in re.findall(r"(?<![\w:.])[a-zA-Z_][\w:]*(?!\s*\()\b(?!\s*\()", plain):
            if name in {"and", "or", "unless", "by"}:
                continue
            used.add(name)
            if name not in (recorded if ":" in name else known):
                yield f"{place}: the code emits no metric {name}"
    excluded = {matcher for expression in expressions.values() for matcher in re.findall(r'route!~"[^"]*"', expression)}
    if len(excluded) != 1:
        yield f"rules and dashboard exclude different routes from the duration of requests: {sorted(excluded)}"
    # Names that the next release drops. Rules and panels use the new ones.
    deprecated = set(re.findall(r"\| `(\w+)` \|[^\n]*\| deprecated name of ", (ROOT / "docs/reference/configuration.md").read_text()))
    for name, series in metrics.items():
        if name not in deprecated and not used.intersection(series):
            yield f"the metric {name} is used by no rule, dashboard panel or scaling query"


def namespace_faults():
    """Whether rules and dashboard are by namespace: no rule names one, none drops the label, and every selector of a panel has it."""
    for rule in rules():
        name, plain = rule.get("alert") or rule["record"], re.sub(r'"[^"]*"', "", rule["expr"])
        if re.search(r"\bnamespace\s*[=!]", plain):
            yield f"rule {name} names a namespace"
        for labels in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", plain):
            if "namespace" not in re.findall(r"\w+", labels):
                yield f"rule {name} drops the namespace: ({labels})"
        for aggregation in re.findall(r"\b(?:sum|min|max|avg|count|group|topk|quantile)\s*\(|\b(?:without|ignoring)\b", plain):
            yield f"rule {name} aggregates all namespaces: {aggregation}"
    for place, expression in queries():
        selectors = len(re.findall(r"\{", expression))
        if place.startswith("panel") and (not selectors or expression.count('{namespace=~"$namespace"') != selectors):
            yield f"{place}: the query is not by namespace"


def scaling_faults():
    tests = yaml.safe_load((DEPLOY / "observe/rules.test.yaml").read_text())["tests"]
    tried = {case["expr"] for test in tests for case in test.get("promql_expr_test", [])}
    for place, expression in queries():
        if place.startswith("ScaledObject") and expression not in tried:
            yield f"{place}: the query has no test in deploy/observe/rules.test.yaml"


def runbook_faults():
    alerts = [rule for rule in rules() if "alert" in rule]
    tests = yaml.safe_load((DEPLOY / "observe/rules.test.yaml").read_text())["tests"]
    fired = {case["alertname"] for test in tests for case in test.get("alert_rule_test", []) if case["exp_alerts"]}
    rows = re.findall(r'<a id="(\w+)"></a>(\w+)', (DEPLOY / "RUNBOOK.md").read_text())
    anchors = {anchor: name for anchor, name in rows}
    for rule in alerts:
        name, link = rule["alert"], rule["annotations"].get("runbook_url")
        if not rule["annotations"].get("description"):
            yield f"the alert {name} has no description"
        if name not in fired:
            yield f"the alert {name} fires in no test of deploy/observe/rules.test.yaml"
        if link != f"deploy/RUNBOOK.md#{name.lower()}" or anchors.pop(name.lower(), None) != name:
            yield f"the alert {name} does not link to a row of its own in deploy/RUNBOOK.md"
    for name in anchors.values():
        yield f"deploy/RUNBOOK.md: there is no alert {name}"


def restore_faults():
    """Whether a restore begins when no process uses the database any more: a process finishes its requests after it is told to stop."""
    for block in re.findall(r"^ *```sh\n(.*?)^ *```$", (DEPLOY / "README.md").read_text(), re.S | re.M):
        lines = [line.strip() for line in block.splitlines() if not line.strip().startswith("#")]
        for line, following in zip(lines, [*lines[1:], ""]):
            if "--replicas=0" in line and "wait --for=delete pod" not in following:
                yield "deploy/README.md: a restore does not wait until the processes have stopped"
        if any("kubectl" in line and "pg_restore" in line for line in lines):
            # `set -e` ignores a command before && that fails, and must not end the shell of the operator.
            if lines[1:3] != ["(", "set -euo pipefail"] or lines[-1] != ")" or any("&&" in line for line in lines):
                yield "deploy/README.md: a restore continues after a command that failed"


def managed_faults():
    """Whether managed services, and RabbitMQ and Redis in production, are reached by TLS."""
    created = re.search(r"create secret generic canvas-services(?:\\\n|[^\n])*", (DEPLOY / "README.md").read_text())[0]
    for url in ("?sslmode=verify-full'", "broker='amqps://", "cache='rediss://"):
        if url not in created:
            yield f"deploy/README.md: the URLs of the managed services have no {url.strip(chr(39))}"
    if "port: 5671 }" not in (CHART.parent / "example-bucket-values.yaml").read_text():
        yield "example-bucket-values.yaml: the policy does not permit AMQP by TLS"
    production = {(d["kind"], d["metadata"]["name"]): d for d in yaml.safe_load_all((MANIFESTS / "canvas-production.yaml").read_text()) if d}
    if "tls" not in production["RabbitmqCluster", "rabbitmq"]["spec"]:
        yield "values-production.yaml: RabbitMQ is not reached by TLS"
    if "--port 0 --tls-port" not in production["Deployment", "redis"]["spec"]["template"]["spec"]["containers"][0]["args"][0] or "url=\"rediss://" not in (DEPLOY / "README.md").read_text():
        yield "values-production.yaml: Redis is not reached by TLS"
    for name in ("broker-clients", "broker-servers"):
        if "'port': 5671" not in str(production["NetworkPolicy", f"canvas-{name}"]) or "'port': 5672" in str(production["NetworkPolicy", f"canvas-{name}"]):
            yield f"values-production.yaml: the policy {name} permits AMQP without TLS"


def image_faults():
    """Whether the build context contains every workspace member, and the Dockerfile a stage for every process."""
    members = re.search(r"^members = \[(.*?)\]", (ROOT / "Cargo.toml").read_text(), re.S | re.M)[1]
    let_in = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.M))
    for member in re.findall(r'"([^"/]+)[^"]*"', members):
        if member not in let_in:
            yield f".dockerignore excludes the workspace member {member} from the image build"
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", (DEPLOY / "docker/Dockerfile").read_text(), re.M))
    for name in sorted(set(PROCESSES) - stages):
        yield f"deploy/docker/Dockerfile: there is no stage {name}"
    served = re.findall(r'^ +"([^"]+\.md)"', (ROOT / "gateway/src/docs/guides/files.rs").read_text(), re.M)
    embedded = {"docs" if file.startswith("docs/") else file for file in served}
    for needed in sorted({"deploy/lib/notices.py", "deploy/licenses"} | embedded):
        if needed not in let_in:
            yield f".dockerignore excludes {needed} from the image build"
    stages = (DEPLOY / "docker/Dockerfile").read_text().split("\nFROM ")
    process = next((stage for stage in stages if re.match(r"\S+ AS process\n", stage)), "")
    for file in ("LICENSE", "OFL.txt", "/out/NOTICES"):
        if not re.search(rf"^COPY .*{re.escape(file)}.* /usr/share/doc/canvas-service/$", process, re.M):
            yield f"deploy/docker/Dockerfile: the images have no {file}"
    gateway = next((stage for stage in stages if re.match(r"process AS gateway\n", stage)), "")
    if "COPY --from=console /src/gateway/console/dist/licenses.txt /usr/share/doc/canvas-service/" not in gateway:
        yield "deploy/docker/Dockerfile: the image of the gateway has no licenses of the console"
    section = re.search(r"## Licenses in the images\n(.*?)\n## ", (DEPLOY / "README.md").read_text(), re.S)
    if 'name = "openh264"' in (ROOT / "Cargo.lock").read_text() and not (section and re.search(r"OpenH264.*patents", section[1], re.S)):
        yield "deploy/README.md: the licenses in the images do not mention OpenH264 and the patents on H.264"
    if "profile=local" not in (DEPLOY / "local/up").read_text() or not re.search(r"^\[profile\.local\][^\[]*^debug = false$", (ROOT / "Cargo.toml").read_text(), re.M):
        yield "deploy/local/up does not build with the profile `local` without debug information, and starts late"
    linter = json.loads((ROOT / "gateway/console/.oxlintrc.json").read_text())
    for name in sorted({"dist", "node_modules"} - set(linter["ignorePatterns"])):
        yield f"gateway/console/.oxlintrc.json does not ignore {name}, and the image is built without .gitignore"


def compose_faults():
    text = (DEPLOY / "docker/compose.yaml").read_text()
    example = set(re.findall(r"^(\w+)=", (DEPLOY / "docker/env.example").read_text(), re.M))
    asked = set(re.findall(r"\$\{(\w+)", text))
    for name in sorted(asked ^ example):
        yield f"{name} is in only one of deploy/docker/compose.yaml and env.example"
    for name, service in yaml.safe_load(text)["services"].items():
        if service.get("cap_drop") != ["ALL"] or "no-new-privileges:true" not in service.get("security_opt", []):
            yield f"compose.yaml: {name} may gain privileges"
        if not re.search(r":.*\d", service["image"]):
            yield f"compose.yaml: the image of {name} has no version"
        # Docker copies such a config into the container, which it refuses if the root file system is read-only.
        configs = yaml.safe_load(text)["configs"]
        if service.get("read_only") and any("content" in configs[use["source"]] for use in service.get("configs", [])):
            yield f"compose.yaml: {name} is read-only and cannot receive a config by content"
    services = yaml.safe_load(text)["services"]
    for profile, members in {"tls": {"tls"}, "observe": {"prometheus", "grafana"}}.items():
        if {name for name, service in services.items() if service.get("profiles") == [profile]} != members:
            yield f"compose.yaml: the profile {profile} does not start {sorted(members)}"
    for name, service in services.items():
        for volume in service.get("volumes", []):
            source, target = volume.split(":")[:2]
            if source.startswith(".") and not (DEPLOY / "docker" / source).is_file():
                yield f"compose.yaml: {name} mounts {source}, which does not exist"
    networks = {name: network or {} for name, network in yaml.safe_load(text)["networks"].items()}
    routed = {name: network.get("driver_opts", {}) for name, network in networks.items() if not network.get("internal")}
    closed = {name for name, options in routed.items() if options.get("com.docker.network.bridge.enable_ip_masquerade") == "false"}
    # Docker takes the default route of a container from the first of its networks by name that is not internal.
    last = max(routed.keys() - closed, default="")
    if closed and min(closed) < last:
        yield f"compose.yaml: the network {min(closed)} takes the default route from {last}"
    yield from privileges.compose_faults(yaml.safe_load(text)["services"])


# The oldest release of each service that its project still maintains.
MAINTAINED = {"postgres": 17, "rabbitmq": 4, "valkey": 8}


def version_faults():
    """Whether Compose file and chart run the same, maintained versions of the services, and docs/development.md names them."""
    found = {}
    for path in [DEPLOY / "docker/compose.yaml", *sorted(DEPLOY.glob("k8s/*.yaml")), *sorted(MANIFESTS.glob("canvas-*.yaml"))]:
        for image, version in re.findall(r"^\s*image(?:Name)?: (?:\S+/)?(postgres|postgresql|rabbitmq|valkey):([\d.]+)", path.read_text(), re.M):
            found.setdefault(image.replace("postgresql", "postgres"), {}).setdefault(version, path.name)
    section = re.search(r"## Versions\n(.*?)\n## ", (ROOT / "docs/development.md").read_text(), re.S)[1]
    for image, oldest in MAINTAINED.items():
        versions = found.get(image, {})
        if len(versions) != 1:
            yield f"not one version of {image} in the Compose file and the chart, but {sorted(versions)}"
        for version, path in versions.items():
            if int(version.split(".")[0]) < oldest:
                yield f"{path}: {image} {version} is older than {oldest}"
            if not re.search(rf"^\| (?:PostgreSQL|RabbitMQ|Valkey) \|.*\b{re.escape(version)}\b", section, re.M):
                yield f"docs/development.md: the table of versions does not name {image} {version}"
    bases = re.findall(r"^ARG (?:RUST|RUNTIME|NODE)_IMAGE=.*?(bookworm|trixie|debian\d+)", (DEPLOY / "docker/Dockerfile").read_text(), re.M)
    if {base.replace("debian13", "trixie") for base in bases} != {"trixie"}:
        yield f"deploy/docker/Dockerfile: the bases are of different releases of Debian, or of one before 13: {bases}"


def release_faults():
    """Whether everything that names the version of this project names that of Cargo.toml."""
    version = re.search(r'^\[workspace\.package\][^[]*?^version = "(.*?)"', (ROOT / "Cargo.toml").read_text(), re.S | re.M)[1]
    places = {
        "CHANGELOG.md": r"^## (\d\S*)",
        "deploy/README.md": r"^registry=\S+ version=(\S+)",
        "deploy/docker/Dockerfile": r"^ARG VERSION=(\S+)",
        "deploy/docker/compose.yaml": r"CANVAS_VERSION:-([\d.]+)",
        "deploy/docker/env.example": r"^CANVAS_VERSION=(\S+)",
        "deploy/helm/all-values.yaml": r"^  tag: (\S+)",
        "deploy/helm/canvas/Chart.yaml": r"^(?:version|appVersion): (\S+)",
    }
    for place, pattern in places.items():
        found = re.findall(pattern, (ROOT / place).read_text(), re.M)
        # The first heading of the changelog is that of the newest version.
        if set(found[:1] if place == "CHANGELOG.md" else found) != {version}:
            yield f"{place}: the version is not {version}, that of Cargo.toml"


if "--expressions" in sys.argv:
    asked = [{"record": f"asked:{number}", "expr": expression} for number, (_, expression) in enumerate(queries())]
    print(yaml.safe_dump({"groups": [{"name": "asked", "rules": asked}]}))
    sys.exit()
faults = [fault for faults in (table_faults, value_faults, metric_faults, namespace_faults, scaling_faults, runbook_faults, restore_faults, managed_faults, image_faults, compose_faults, version_faults, release_faults) for fault in faults()]
for fault in faults:
    print(fault)
sys.exit(bool(faults))
