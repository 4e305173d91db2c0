"""Tests that manifests.py detects faults: `manifests_test.py RENDERED SCHEMAS` breaks the rendered production installation in one place at a
time and expects manifests.py to report a fault that names the place. The same for privileges.py and the Compose file."""

import copy
import functools
import json
import pathlib
import re
import sys

import yaml

import manifests
import privileges

DOCUMENTS = [document for document in yaml.load_all(pathlib.Path(sys.argv[1]).read_text(), manifests.Loader) if document]
SCHEMAS = pathlib.Path(sys.argv[2])


def found(documents, kind, name):
    """The document of this kind and name; that of a Job also has a hash."""
    return next(d for d in documents if d["kind"] == kind and re.fullmatch(rf"{re.escape(name)}(-[0-9a-f]{{8}})?", manifests.name_of(d)))


def at(path):
    """Resolves a path such as `Deployment/gateway spec.template.spec.containers.0` to the parent object and the last step."""
    place, _, steps = path.partition(" ")
    *steps, last = [int(step) if step.isdigit() else step for step in steps.split(".")]

    def lead(documents):
        target = found(documents, *place.split("/"))
        for step in steps:
            target = target[step]
        return target, last
    return lead


def put(path, value):
    def change(documents):
        target, last = at(path)(documents)
        target[last] = value
    return change


def drop(path):
    def change(documents):
        target, last = at(path)(documents)
        del target[last]
    return change


def without(kind, name):
    return lambda documents: documents.remove(found(documents, kind, name))


def give(place, name, value=None, secret=None):
    """Adds a variable to the environment of a workload."""
    source = {"value": value} if value else {"valueFrom": {"secretKeyRef": {"name": secret, "key": "x"}}}

    def change(documents):
        container = found(documents, *place.split("/"))["spec"]["template"]["spec"]["containers"][0]
        container.setdefault("env", []).append({"name": name} | source)
    return change


def give_settings(place):
    """Gives a workload the settings of the gateway."""
    def change(documents):
        settings = found(documents, "Deployment", "gateway")["spec"]["template"]["spec"]["containers"][0]["envFrom"]
        found(documents, *place.split("/"))["spec"]["template"]["spec"]["containers"][0]["envFrom"] = settings
    return change


def mount(place, secret):
    """Mounts a secret into a workload."""
    def change(documents):
        pod = found(documents, *place.split("/"))["spec"]["template"]["spec"]
        pod.setdefault("volumes", []).append({"name": "x", "secret": secret})
        pod["containers"][0].setdefault("volumeMounts", []).append({"name": "x", "mountPath": "/run/x"})
    return change


GATEWAY, WORKER = "Deployment/gateway spec.template.spec", "Deployment/image-worker spec.template.spec"
# A change, and a part of the fault that must be reported; None: the change is permitted.
BREAKS = [
    (put(f"{GATEWAY}.containers.0.imge", "x"), "'imge' was unexpected"),
    (put("HorizontalPodAutoscaler/gateway spec.minReplicas", "3"), "spec/minReplicas"),
    (put("ScaledObject/image-worker spec.maxReplicaCount", "twelve"), "$.spec.maxReplicaCount"),
    (put("Cluster/postgres spec.instance", 3), "'instance' was unexpected"),
    (drop("RabbitmqCluster/rabbitmq spec.rabbitmq"), None),
    (put("RabbitmqCluster/rabbitmq spec.replicas", "3"), "$.spec.replicas"),
    (put("PodMonitor/canvas spec.podMetricsEndpoints.0.intervall", "15s"), "'intervall' was unexpected"),
    (put("PrometheusRule/canvas kind", "PrometheusRules"), "there is no schema"),
    (put(f"{GATEWAY}.securityContext.runAsNonRoot", False), "not root"),
    (drop(f"{GATEWAY}.securityContext.seccompProfile"), "seccomp"),
    (drop(f"{GATEWAY}.automountServiceAccountToken"), "token"),
    (put(f"{WORKER}.hostNetwork", True), "hostNetwork"),
    (put(f"{WORKER}.volumes", [{"name": "x", "hostPath": {"path": "/"}}]), "mounts the host's /"),
    (drop(f"{WORKER}.containers.0.securityContext.capabilities"), "may gain privileges"),
    (put(f"{WORKER}.containers.0.securityContext.readOnlyRootFilesystem", False), "may write to its root"),
    (drop(f"{WORKER}.containers.0.resources.limits"), "limit on memory"),
    (put(f"{WORKER}.containers.0.image", "canvas-image-worker:latest"), "has no version"),
    (put(f"{WORKER}.containers.0.image", f"canvas-image-worker:0.2.0@sha256:{64 * 'a'}"), None),
    (put(f"{WORKER}.containers.0.image", "canvas-image-worker:0.2.0@sha256:a"), "no valid digest"),
    (put(f"{WORKER}.containers.0.image", f"canvas-image-worker@sha256:{64 * 'a'}"), "has no version"),
    (put("Job/migrate-0.2.0 spec.template.spec.containers.0.image", f"canvas-gateway:0.2.0@sha256:{64 * 'a'}"), None),
    (put(f"{WORKER}.containers.0.env", [{"name": "REDIS_PASSWORD", "value": "x"}]), "literal secret"),
    (drop(f"{WORKER}.containers.0.readinessProbe"), "readinessProbe"),
    (put(f"{WORKER}.terminationGracePeriodSeconds", 25), "killed before its grace period"),
    (put(f"{GATEWAY}.terminationGracePeriodSeconds", 70), "killed before its grace period"),
    (put("Deployment/video-worker spec.replicas", 2), "overrides its autoscaler"),
    (put("Pod/blobs spec.securityContext.runAsNonRoot", False), "not root"),
    (drop(f"{WORKER}.containers.0.resources.limits.ephemeral-storage"), "may fill the disk"),
    (put("Job/migrate-0.2.0 spec.template.spec.containers.0.image", "canvas-gateway:0.2.1"), "not named after the version"),
    (give_settings("Job/migrate-0.2.0"), "has settings: the template"),
    (put("Job/migrate-0.2.0 metadata.name", "canvas-migrate-0.2.0-0a1b2c3d"), None),
    (put("Job/migrate-0.2.0 metadata.name", "canvas-migrate-0.2.0-x"), "not named after the version"),
    (put("TriggerAuthentication/broker spec.secretTargetRef.0.name", "canvas-services"), "of the secret canvas-services, which nothing"),
    (put("TriggerAuthentication/broker spec.secretTargetRef.0.key", "uri"), "reads the key uri of the secret rabbitmq-default-user"),
    (put("Job/migrate-0.2.0 metadata.name", "migrate"), "not named after the version"),
    (put("Job/migrate-0.2.0 spec.ttlSecondsAfterFinished", 600), "is deleted when it has finished"),
    (give("Deployment/gateway", "CANVAS_MANAGED_KEY", secret="inference"), "CANVAS_MANAGED_KEY is a secret in the environment"),
    (put("Deployment/redis spec.template.spec.containers.0.env", [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}}]),
     "X is a secret in the environment"),
    (put("Certificate/redis spec.dnsName", "redis"), "'dnsName' was unexpected"),
    (put("Deployment/webhook-dispatcher spec.template.spec.containers.0.env", []), "as /run/canvas/ca/ca.pem, which nothing reads"),
    (drop("PodDisruptionBudget/gateway spec.unhealthyPodEvictionPolicy"), "PodDisruptionBudget gateway keeps pods"),
    (put("ScaledObject/video-worker metadata.namespace", "second"), "asks for the queues of another namespace"),
    (put("ScaledObject/video-worker spec.triggers.0.metadata.vhostName", "/"), "video-worker overrides the virtual host"),
    (without("PodDisruptionBudget", "webhook-dispatcher"), "no PodDisruptionBudget webhook-dispatcher"),
    (without("ServiceAccount", "gateway"), "no ServiceAccount gateway"),
    (without("NetworkPolicy", "default-deny"), "default-deny"),
    (put("NetworkPolicy/default-deny spec.egress", [{}]), "default-deny"),
    (put("NetworkPolicy/default-deny spec.podSelector", {"matchLabels": {"app.kubernetes.io/instance": "canvas"}}), "default-deny"),
    (put("NetworkPolicy/internet-clients spec.egress.0.to.0.ipBlock.except", ["10.0.0.0/8"]), "metadata service"),
    (put("NetworkPolicy/https-clients spec.egress.0.ports", [{"port": 1, "endPort": 65535, "protocol": "TCP"}]), "more than port 443"),
    (put("NetworkPolicy/postgres spec.egress.1.to.0.ipBlock", {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}), "postgres permits egress to any address"),
    (put("NetworkPolicy/rabbitmq spec.egress.1.to.0.ipBlock.cidr", "::/0"), "rabbitmq permits egress to any address"),
    (put("HTTPRoute/gateway spec.rules.0.timeout", {}), "'timeout' was unexpected"),
    (put("Cluster/postgres-look spec.bootstrap.recovery.sources", "x"), "'sources' was unexpected"),
    (put("Deployment/gateway spec.template.metadata.labels.canvas/internet", "client"), "only the three workers may reach the internet"),
    (lambda documents: documents.append(documents[0]), "is defined twice"),
    # Secrets: no more and no less than a process requires.
    (give("Deployment/webhook-dispatcher", "CANVAS_REDIS_URL", value="redis://redis:6379/0"), "dispatcher: is given CANVAS_REDIS_URL, which"),
    (give("Deployment/webhook-dispatcher", "REDIS_PASSWORD", secret="redis"), "is given the secret redis as REDIS_PASSWORD, which nothing uses"),
    (give("Deployment/webhook-dispatcher", "AWS_SECRET_ACCESS_KEY", secret="canvas-s3"), "is given AWS_SECRET_ACCESS_KEY, which"),
    (give("Deployment/webhook-dispatcher", "AZURE_STORAGE_ACCOUNT_KEY", secret="canvas-azure"), "is given AZURE_STORAGE_ACCOUNT_KEY, which"),
    (give("Deployment/gateway", "GOOGLE_APPLICATION_CREDENTIALS", value="/run/key.json"), "reads /run/key.json, which is not mounted"),
    (give("Deployment/gateway", "CANVAS_MANAGED_KEY", secret="inference"), "gateway: is given CANVAS_MANAGED_KEY, which"),
    (give("Job/migrate-0.2.0", "CANVAS_AMQP_URL", value="amqp://rabbitmq"), "Job migrate-0.2.0-"),
    (give("Deployment/image-worker", "CANVAS_INSTALLATION_KEYS", secret="canvas-master-keys"), "image-worker: is given CANVAS_INSTALLATION_KEYS, which"),
    (put("Deployment/gateway spec.template.spec.containers.0.env", []), "gateway: is not given CANVAS_INSTALLATION_KEYS, which"),
    (give("Deployment/gateway", "CANVAS_MASTER_KEYS", secret="canvas-master-keys"), "is given CANVAS_MASTER_KEYS twice"),
    (put("Deployment/video-worker spec.template.spec.containers.0.env", []), "is not given CANVAS_MASTER_KEYS, which it requires"),
    (put(f"{GATEWAY}.containers.0.envFrom", [{"secretRef": {"name": "redis"}}]), "is given all of the secret redis"),
    (mount("Deployment/webhook-dispatcher", {"secretName": "redis"}), "is given all keys of the secret redis"),
    (mount("Deployment/webhook-dispatcher", {"secretName": "redis", "items": [{"key": "password", "path": "value"}]}),
     "is given the secret redis as /run/x/value, which nothing reads"),
]

# Most documents are the same in every round, so each distinct document is validated against its schema only once.
judge = manifests.schema_faults
once = functools.cache(lambda text: tuple(judge(json.loads(text), SCHEMAS)))
manifests.schema_faults = lambda document, _: once(json.dumps(document))

assert not list(manifests.faults(DOCUMENTS, SCHEMAS)), "the unchanged installation has faults"
missed = 0
for number, (change, expected) in enumerate(BREAKS):
    broken = copy.deepcopy(DOCUMENTS)
    change(broken)
    said = list(manifests.faults(broken, SCHEMAS))
    if expected is None and said or expected is not None and not any(expected in fault for fault in said):
        print(f"change {number}: expected {expected!r}, reported {said}")
        missed += 1
# The same for the Compose file: a change of one service, and a part of the fault.
COMPOSE = yaml.safe_load((pathlib.Path(__file__).parents[1] / "docker/compose.yaml").read_text())["services"]
COMPOSE_BREAKS = [
    (lambda services: services["webhook-dispatcher"]["environment"].update(CANVAS_REDIS_URL="x"), "webhook-dispatcher is given CANVAS_REDIS_URL, which"),
    (lambda services: services["migrate"]["environment"].update(CANVAS_AMQP_URL="x"), "migrate is given CANVAS_AMQP_URL, which"),
    (lambda services: services["gateway"]["environment"].pop("CANVAS_BLOB_URL"), "gateway is not given CANVAS_BLOB_URL, which"),
    (lambda services: services["image-worker"]["environment"].update(CANVAS_INSTALLATION_KEYS="x"), "image-worker is given CANVAS_INSTALLATION_KEYS, which"),
    (lambda services: services["image-worker"].update(env_file=[{"path": ".env"}]), "image-worker is given everything in .env"),
]
for number, (change, expected) in enumerate(COMPOSE_BREAKS):
    broken = {name: copy.deepcopy(service) for name, service in COMPOSE.items()}
    change(broken)
    said = list(privileges.compose_faults(broken))
    if [expected in fault for fault in said] != [True]:
        print(f"change {number} of the Compose file: expected {expected!r}, reported {said}")
        missed += 1
tried = len(BREAKS) + len(COMPOSE_BREAKS)
print(f"{tried - missed} of {tried} faults are reported as expected")
sys.exit(bool(missed))
