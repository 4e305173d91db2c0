"""Holds what is written for operators against the code: `documents.py ROOT [--update | --expressions]`.

- The table of variables in deploy/README.md is the one of shared/service/src/config.rs, with who reads each.
- Every metric that rules, scaling and dashboard name is made by the code, and every metric of the code is shown or watched.
- What scaling asks is tried in deploy/observe/rules.test.yaml.
- Every alert has its row in deploy/RUNBOOK.md, and no row is without one.
- deploy/observe/prometheus-rule.yaml carries the rules of deploy/observe/rules.yaml.
- deploy/docker/env.example names what deploy/docker/compose.yaml asks for, and the image's build is given the whole workspace.

With --update what is generated is written; what people write is only judged. Every fault is a line on standard output. With
--expressions what dashboard and scaling ask Prometheus is printed as rules, for promtool to read.
"""

import json
import pathlib
import re
import sys

import yaml

ROOT, UPDATE = pathlib.Path(sys.argv[1]), "--update" in sys.argv
DEPLOY = ROOT / "deploy"
ROOMS = {"gateway": "gateway", "image-worker": "image", "video-worker": "video", "webhook-dispatcher": "webhook"}
BEGIN, END = "<!-- variables: written by deploy/check --update -->", "<!-- end of variables -->"
# Prometheus's own, and those of the engines and of kube-state-metrics.
FOREIGN = {
    "up", "cnpg_pg_stat_archiver_last_failed_time", "cnpg_pg_stat_archiver_last_archived_time",
    "barman_cloud_cloudnative_pg_io_last_available_backup_timestamp", "rabbitmq_alarms_memory_used_watermark",
    "rabbitmq_alarms_free_disk_space_watermark", "kube_job_failed",
}


def code(*rooms):
    """The text of the rooms' sources, tests aside."""
    paths = (path for room in rooms for path in sorted((ROOT / room).rglob("*.rs")) if "tests" not in path.parts)
    return "\n".join(path.read_text() for path in paths)


def variables():
    """The rows of the configuration table, each with the processes that read it."""
    text = (ROOT / "shared/service/src/config.rs").read_text()
    rows = re.findall(r'"((?:CANVAS|OTEL)_\w+)" => (\w+): .*? = (None|Some\("(.*?)"\)), parse::\w+,\s*"((?:\\.|[^"])*)";', text, re.S)
    # What both workers that make pictures and videos are told, they are told in the workshop; models, where they are set up.
    models = "shared/providers/src"
    shared = {"gateway": [models], "image": [models, "shared/workshop/src"], "video": [models, "shared/workshop/src"]}
    sources = {short: code(f"{room}/src", *shared.get(short, [])) for room, short in ROOMS.items()}
    spine = code("shared/spine/src")
    # The windows are for those who end jobs: not for the dispatcher.
    windows = re.search(r"pub fn windows.*?\n}", spine, re.S)[0]
    spine = spine.replace(windows, "")
    for short in ("gateway", "image", "video"):
        sources[short] += windows
    # What the spine's runners are told; the gateway has none. The lease reaches them as the heartbeat, too.
    runners = re.search(r"fn runner_options.*?\n    }", spine, re.S)[0]
    for name, field, required, default, meaning in rows:
        reads = re.compile(rf"config\s*\.{field}\b")
        readers = [short for short, source in sources.items() if reads.search(source)]
        if reads.search(runners):
            readers = [short for short in ROOMS.values() if short != "gateway"]
        elif reads.search(spine) or len(readers) == len(ROOMS):
            readers = ["all"]
        shown = "required" if required == "None" else f"`{default}`" if default else "none"
        meaning = meaning.replace('\\"', '"').replace("|", "\\|")
        yield f"| `{name}` | {shown} | {', '.join(readers)} | {meaning} |"


def table_faults():
    path = DEPLOY / "README.md"
    text = path.read_text()
    before, found, rest = text.partition(BEGIN)
    written, ended, after = rest.partition(END)
    if not found or not ended:
        yield "deploy/README.md: the marks of the table of variables are gone"
        return
    table = "\n| variable | default | read by | meaning |\n| --- | --- | --- | --- |\n" + "\n".join(variables()) + "\n"
    if written != table and UPDATE:
        path.write_text(before + BEGIN + table + END + after)
    elif written != table:
        yield "deploy/README.md: the table of variables is not that of the code: deploy/check --update"


def made():
    """The metrics that the code makes, as they are exposed."""
    text = code("shared", *(f"{room}/src" for room in ROOMS))
    # What the facade's own tests make is named test_….
    for kind, name in re.findall(r'\b(counter|gauge|histogram)!\(\s*"(?!test_)(\w+)"', text):
        yield name, [f"{name}_bucket", f"{name}_count", f"{name}_sum"] if kind == "histogram" else [name]


def rules():
    """The rules of every group."""
    return [rule for group in yaml.safe_load((DEPLOY / "observe/rules.yaml").read_text())["groups"] for rule in group["rules"]]


def questions():
    """What dashboard and scaling ask Prometheus, by place."""
    for panel in json.loads((DEPLOY / "observe/dashboard.json").read_text())["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']!r}, {target['refId']}", target["expr"]
    for path in sorted(DEPLOY.glob("k8s/**/*.yaml")):
        for document in filter(None, yaml.safe_load_all(path.read_text())):
            if document.get("kind") == "ScaledObject":
                for number, trigger in enumerate(document["spec"]["triggers"]):
                    if trigger["type"] == "prometheus":
                        yield f"ScaledObject {document['metadata']['name']}, trigger {number}", trigger["metadata"]["query"]


def metric_faults():
    expressions = {f"rule {rule.get('alert') or rule['record']}": rule["expr"] for rule in rules()} | dict(questions())
    metrics = dict(made())
    known = {series for all_of in metrics.values() for series in all_of} | FOREIGN
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    used = set()
    for place, expression in expressions.items():
        # Names are what is left of an expression without its texts, matchers, groupings, durations and functions.
        plain = re.sub(r'"[^"]*"', "", expression)
        plain = re.sub(r"\{[^}]*\}|\b(?:by|on|without|ignoring)\s*\([^)]*\)|\[[^\]]*\]|offset\s+\w+", " ", plain)
        for name in re.findall(r"(?<![\w:.])[a-zA-Z_][\w:]*(?!\s*\()\b(?!\s*\()", plain):
            if name in {"and", "or", "unless", "by"}:
                continue
            used.add(name)
            if name not in (recorded if ":" in name else known):
                yield f"{place}: nothing makes the metric {name}"
    for name, series in metrics.items():
        if not used.intersection(series):
            yield f"the metric {name} is neither shown nor watched"


def scaling_faults():
    tests = yaml.safe_load((DEPLOY / "observe/rules.test.yaml").read_text())["tests"]
    tried = {case["expr"] for test in tests for case in test.get("promql_expr_test", [])}
    for place, expression in questions():
        if place.startswith("ScaledObject") and expression not in tried:
            yield f"{place}: what it asks is tried by no test of deploy/observe/rules.test.yaml"


def runbook_faults():
    alerts = [rule for rule in rules() if "alert" in rule]
    rows = re.findall(r'<a id="(\w+)"></a>(\w+)', (DEPLOY / "RUNBOOK.md").read_text())
    anchors = {anchor: name for anchor, name in rows}
    for rule in alerts:
        name, link = rule["alert"], rule["annotations"]["runbook"]
        if link != f"deploy/RUNBOOK.md#{name.lower()}" or anchors.pop(name.lower(), None) != name:
            yield f"the alert {name} leads to no row of its own in deploy/RUNBOOK.md"
    for name in anchors.values():
        yield f"deploy/RUNBOOK.md: there is no alert {name}"


def rule_faults():
    path = DEPLOY / "observe/prometheus-rule.yaml"
    text = "# Written by deploy/check --update from rules.yaml, which is the one to change.\n" + yaml.safe_dump(
        {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": {"name": "canvas"},
         "spec": yaml.safe_load((DEPLOY / "observe/rules.yaml").read_text())}, sort_keys=False, width=200)
    if not path.exists() or path.read_text() != text:
        if UPDATE:
            path.write_text(text)
        else:
            yield "deploy/observe/prometheus-rule.yaml is not what rules.yaml says: deploy/check --update"


def image_faults():
    """Whether what is built is what gets into the build."""
    members = re.search(r"^members = \[(.*?)\]", (ROOT / "Cargo.toml").read_text(), re.S | re.M)[1]
    let_in = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.M))
    for member in re.findall(r'"([^"/]+)[^"]*"', members):
        if member not in let_in:
            yield f".dockerignore keeps the member {member} of the workspace out of the image's build"
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", (DEPLOY / "docker/Dockerfile").read_text(), re.M))
    for name in sorted(set(ROOMS) - stages):
        yield f"deploy/docker/Dockerfile: there is no stage {name}"


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


if "--expressions" in sys.argv:
    asked = [{"record": f"asked:{number}", "expr": expression} for number, (_, expression) in enumerate(questions())]
    print(yaml.safe_dump({"groups": [{"name": "asked", "rules": asked}]}))
    sys.exit()
faults = [fault for faults in (table_faults, metric_faults, scaling_faults, runbook_faults, rule_faults, image_faults, compose_faults) for fault in faults()]
for fault in faults:
    print(fault)
sys.exit(bool(faults))
