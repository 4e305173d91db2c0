"""Validates rendered Kubernetes manifests from standard input: `manifests.py NAME SCHEMAS [NAMESPACE]`.

Core kinds are validated strictly against the schemas of the Kubernetes version below, custom resources against the schemas in the
directory SCHEMAS. A kind without a schema is a fault. Then the rules of this repository that no schema expresses are checked. The chart is
rendered as the release `canvas`, by default in the namespace of the same name. Each fault is printed as one line on standard output, and the
exit status is 1 if there is any.
"""

import json
import pathlib
import re
import sys

import jsonschema
import kubernetes_validate
import yaml

import privileges

KUBERNETES = "1.34"
# The shutdown grace period of each process, in seconds: how long it may take to finish after SIGTERM.
GRACE_SECONDS = {"gateway": 60, "image-worker": 25, "video-worker": 25, "webhook-dispatcher": 25}
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "Pod")
README = pathlib.Path(__file__).parents[1] / "README.md"
# The keys of each secret that deploy/README.md creates.
CREATED = {
    (name, key)
    for name, rest in re.findall(r"create secret generic (\S+)((?:\\\n|[^\n])*)", README.read_text())
    for key in re.findall(r"--from-literal=([\w-]+)=", rest)
}


class Loader(yaml.SafeLoader):
    """Parses YAML as Kubernetes does: timestamps stay strings."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def schema_faults(document, schemas):
    """The violations of the schema of the document's kind."""
    group, _, version = document["apiVersion"].rpartition("/")
    if "." not in group or group.endswith(".k8s.io") and group != "gateway.networking.k8s.io":
        try:
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
        except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
            yield f"{'/'.join(map(str, getattr(error, 'path', []))) or '-'}: {getattr(error, 'message', error)}"
        return
    path = schemas / group / f"{document['kind'].lower()}_{version}.json"
    if not path.exists():
        yield f"there is no schema {path}"
        return
    validator = jsonschema.Draft7Validator(json.loads(path.read_text()))
    for error in validator.iter_errors(document):
        yield f"{error.json_path}: {error.message}"


def pod_faults(pod):
    """Violations of the restricted profile of the pod security standards, and of the additional rules of this repository."""
    context = pod.get("securityContext", {})
    if context.get("runAsNonRoot") is not True or not context.get("runAsUser"):
        yield "does not require a user that is not root"
    if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "has no seccomp profile"
    if pod.get("automountServiceAccountToken") is not False:
        yield "mounts a token for the Kubernetes API"
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(key):
            yield f"has {key}"
    for volume in pod.get("volumes", []):
        if "hostPath" in volume:
            yield f"mounts the host's {volume['hostPath']['path']}"
    for container in pod["containers"] + pod.get("initContainers", []):
        own = container.get("securityContext", {})
        if own.get("allowPrivilegeEscalation") is not False or own.get("capabilities", {}).get("drop") != ["ALL"]:
            yield "may gain privileges"
        resources = container.get("resources", {})
        if not {"cpu", "memory"} <= resources.get("requests", {}).keys() or "memory" not in resources.get("limits", {}):
            yield "has no resource requests, or no limit on memory"
        tag, _, digest = container["image"].rpartition("/")[2].partition(":")[2].partition("@")
        if not any(map(str.isdigit, tag)):
            yield f"the image {container['image']} has no version"
        if "@" in container["image"] and not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
            yield f"the image {container['image']} has no valid digest"
        for variable in container.get("env", []):
            # The libraries of the object stores read their keys from the environment alone.
            if "secretKeyRef" in variable.get("valueFrom", {}) and variable["name"] not in privileges.BLOBS:
                yield f"{variable['name']} is a secret in the environment"
            if "value" in variable and re.search(r"(PASSWORD|SECRET|KEY|KEYS)(?!.*_FILE$)", variable["name"]):
                yield f"{variable['name']} contains a literal secret"


def process_faults(name, spec, kind):
    """Violations of the rules for the processes of this service."""
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    if container["securityContext"].get("readOnlyRootFilesystem") is not True:
        yield "may write to its root file system"
    if "ephemeral-storage" not in container.get("resources", {}).get("limits", {}):
        yield "may fill the disk of its node"
    if kind == "Job":
        version = re.escape(container["image"].partition("@")[0].rpartition(":")[2])
        if not re.fullmatch(rf"migrate-{version}-[0-9a-f]{{8}}", name):
            yield f"is not named after the version of its image {container['image']}"
        if "ttlSecondsAfterFinished" in spec:
            yield "is deleted when it has finished, so that GitOps makes it again"
        if container.get("envFrom"):
            yield "has settings: the template of a Job is immutable, and every change of them would make a new one"
        return
    pause = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    if pod.get("terminationGracePeriodSeconds", 30) <= GRACE_SECONDS[name] + pause:
        yield f"is killed before its grace period of {GRACE_SECONDS[name]} s is over"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if probe not in container:
            yield f"has no {probe}"


def set_faults(documents, namespace):
    """Faults that involve more than one document."""
    names = {(document["kind"], name_of(document)) for document in documents}
    for process in GRACE_SECONDS:
        for kind in ("Deployment", "PodDisruptionBudget", "ServiceAccount"):
            if (kind, process) not in names:
                yield f"there is no {kind} {process}"
    denied = next((d["spec"] for d in documents if d["kind"] == "NetworkPolicy" and name_of(d) == "default-deny"), {})
    # Without pods that operators make, those of the release are all.
    operated = any(d["kind"] in ("Cluster", "RabbitmqCluster") for d in documents)
    everyone = ({},) if operated else ({}, {"app.kubernetes.io/instance": "canvas"})
    if denied.get("podSelector", {"matchLabels": None}).get("matchLabels", {}) not in everyone or set(denied.get("policyTypes", [])) != {"Ingress", "Egress"} or {"ingress", "egress"} & denied.keys():
        yield "default-deny does not deny all traffic of all pods"
    for document in documents:
        for block in blocks(document.get("spec", {})) if document["kind"] == "NetworkPolicy" else ():
            policy, everywhere = name_of(document), block["cidr"].endswith("/0")
            if everywhere and policy not in ("internet-clients", "https-clients"):
                yield f"NetworkPolicy {policy} permits egress to any address"
            if policy == "https-clients" and document["spec"]["egress"][0].get("ports") != [{"port": 443, "protocol": "TCP"}]:
                yield "NetworkPolicy https-clients permits more than port 443"
            if everywhere and "169.254.0.0/16" not in block.get("except", []):
                yield f"NetworkPolicy {policy} permits egress to the metadata service"
    for document in documents:
        if document["kind"] == "PodDisruptionBudget" and document["spec"].get("unhealthyPodEvictionPolicy") != "AlwaysAllow":
            yield f"PodDisruptionBudget {name_of(document)} keeps pods that are not ready on a node that is drained"
        for trigger in document["spec"]["triggers"] if document["kind"] == "ScaledObject" else ():
            query, own = trigger["metadata"].get("query", ""), document["metadata"].get("namespace", namespace)
            if query and f'namespace="{own}"' not in query:
                yield f"ScaledObject {name_of(document)} asks for the queues of another namespace"
            if "vhostName" in trigger["metadata"]:
                yield f"ScaledObject {name_of(document)} overrides the virtual host in the URL of the broker"
    scaled = {d["spec"]["scaleTargetRef"]["name"] for d in documents if d["kind"] in ("ScaledObject", "HorizontalPodAutoscaler")}
    for document in documents:
        if document["kind"] == "Deployment" and "replicas" in document["spec"] and document["metadata"]["name"] in scaled:
            yield f"{name_of(document)} sets a number of replicas, which overrides its autoscaler"
    online = {name_of(d) for d in documents if d["kind"] == "Deployment"
              and d["spec"]["template"]["metadata"]["labels"].get("canvas/internet")}
    if online != {"image-worker", "video-worker", "webhook-dispatcher"}:
        yield f"only the three workers may reach the internet, not {sorted(online)}"
    keys = [(d["apiVersion"], d["kind"], d["metadata"].get("namespace"), name_of(d)) for d in documents]
    for key in {key for key in keys if keys.count(key) > 1}:
        yield f"{key} is defined twice"


def pod_of(document):
    """The specification of the pods of a workload."""
    return document["spec"] if document["kind"] == "Pod" else document["spec"]["template"]["spec"]


def secret_keys(pod):
    """The secrets that a pod uses, each with a key of it."""
    for container in pod["containers"]:
        for variable in container.get("env", []):
            if "secretKeyRef" in variable.get("valueFrom", {}):
                yield variable["valueFrom"]["secretKeyRef"]["name"], variable["valueFrom"]["secretKeyRef"]["key"]
    for volume in pod.get("volumes", []):
        for item in volume.get("secret", {}).get("items", []):
            yield volume["secret"]["secretName"], item["key"]


def trigger_faults(documents):
    """Whether the secrets that autoscaling reads exist. An installation has the secrets of its pods, with the keys that they use, and those
    that deploy/README.md or the operator of RabbitMQ adds."""
    used = {pair for document in documents if document["kind"] in WORKLOADS for pair in secret_keys(pod_of(document))}
    by_operator = {(f"{name_of(d)}-default-user", "connection_string") for d in documents if d["kind"] == "RabbitmqCluster"}
    names = {name for name, _ in used}
    for document in documents:
        for target in document["spec"]["secretTargetRef"] if document["kind"] == "TriggerAuthentication" else ():
            pair = target["name"], target["key"]
            if target["name"] not in names or pair not in used | by_operator | CREATED:
                yield f"TriggerAuthentication {name_of(document)} reads the key {target['key']} of the secret {target['name']}, which nothing creates"


def name_of(document):
    """The name of the document without that of the release, or the prefix of the name that the server generates."""
    return document["metadata"].get("name", "").removeprefix("canvas-") or document["metadata"]["generateName"]


def blocks(policy):
    """The address blocks of a network policy."""
    for rule in policy.get("egress", []):
        for peer in rule.get("to", []):
            if "ipBlock" in peer:
                yield peer["ipBlock"]


def faults(documents, schemas, namespace="canvas"):
    """All faults of an installation."""
    yield from set_faults(documents, namespace)
    yield from trigger_faults(documents)
    config_maps = {document["metadata"]["name"]: document.get("data", {}) for document in documents if document["kind"] == "ConfigMap"}
    for document in documents:
        name, kind = name_of(document), document["kind"]
        found = list(schema_faults(document, schemas))
        # A document that violates its schema is not checked further.
        if kind in WORKLOADS and not found:
            found += pod_faults(pod_of(document))
            if name in GRACE_SECONDS or kind == "Job":
                found += process_faults(name, document["spec"], kind)
                part = "migrate" if kind == "Job" else name
                found += privileges.pod_faults(part, document["spec"]["template"]["spec"], config_maps)
        yield from (f"{kind} {name}: {fault}" for fault in found)


def main():
    installation, schemas = sys.argv[1], pathlib.Path(sys.argv[2])
    documents = [document for document in yaml.load_all(sys.stdin, Loader) if document]
    found = list(faults(documents, schemas, *sys.argv[3:]))
    for fault in found:
        print(f"{installation}: {fault}")
    if not found:
        print(f"{installation}: {len(documents)} manifests")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
