"""A judge that finds nothing proves nothing: `manifests_test.py RENDERED SCHEMAS` breaks the rendered production overlay in one place at a
time and expects manifests.py to say so, in words that name the place."""

import copy
import functools
import json
import pathlib
import sys

import yaml

import manifests

DOCUMENTS = [document for document in yaml.load_all(pathlib.Path(sys.argv[1]).read_text(), manifests.Loader) if document]
SCHEMAS = pathlib.Path(sys.argv[2])


def found(documents, kind, name):
    return next(d for d in documents if (d["kind"], manifests.name_of(d)) == (kind, name))


def at(path):
    """Where a path leads, and its last step: `Deployment/gateway spec.template.spec.containers.0`."""
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


GATEWAY, WORKER = "Deployment/gateway spec.template.spec", "Deployment/image-worker spec.template.spec"
# What is broken, and a part of what is to be said of it; None: it may be so.
BREAKS = [
    (put(f"{GATEWAY}.containers.0.imge", "x"), "'imge' was unexpected"),
    (put("HorizontalPodAutoscaler/gateway spec.minReplicas", "3"), "spec/minReplicas"),
    (put("ScaledObject/image-worker spec.maxReplicaCount", "twelve"), "$.spec.maxReplicaCount"),
    (put("Cluster/postgres spec.instance", 3), "'instance' was unexpected"),
    (drop("RabbitmqCluster/rabbitmq spec.rabbitmq"), None),
    (put("RabbitmqCluster/rabbitmq spec.replicas", "3"), "$.spec.replicas"),
    (put("Redis/redis spec.kubernetesConfig", {}), "'image' is a required property"),
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
    (put(f"{WORKER}.containers.0.env", [{"name": "REDIS_PASSWORD", "value": "x"}]), "is written out"),
    (drop(f"{WORKER}.containers.0.readinessProbe"), "readinessProbe"),
    (put(f"{WORKER}.terminationGracePeriodSeconds", 25), "killed before its drain"),
    (put(f"{GATEWAY}.terminationGracePeriodSeconds", 70), "killed before its drain"),
    (put("Deployment/video-worker spec.replicas", 2), "undoes its autoscaler's"),
    (put("Pod/blobs spec.securityContext.runAsNonRoot", False), "not root"),
    (without("PodDisruptionBudget", "webhook-dispatcher"), "no PodDisruptionBudget webhook-dispatcher"),
    (without("ServiceAccount", "gateway"), "no ServiceAccount gateway"),
    (without("NetworkPolicy", "default-deny"), "default-deny"),
    (put("NetworkPolicy/default-deny spec.egress", [{}]), "default-deny"),
    (put("NetworkPolicy/internet-clients spec.egress.0.to.0.ipBlock.except", ["10.0.0.0/8"]), "metadata service"),
    (put("NetworkPolicy/postgres spec.egress.1.to.0.ipBlock", {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}), "postgres lets out to anywhere"),
    (put("NetworkPolicy/rabbitmq spec.egress.1.to.0.ipBlock.cidr", "::/0"), "rabbitmq lets out to anywhere"),
    (put("HTTPRoute/gateway spec.rules.0.timeout", {}), "'timeout' was unexpected"),
    (put("Cluster/postgres-look spec.bootstrap.recovery.sources", "x"), "'sources' was unexpected"),
    (put("Deployment/gateway spec.template.metadata.labels.canvas/internet", "client"), "internet is for the three workers"),
    (lambda documents: documents.append(documents[0]), "is there twice"),
]

# Most documents are the same in every round, and are held against their schemas once.
judge = manifests.schema_faults
once = functools.cache(lambda text: tuple(judge(json.loads(text), SCHEMAS)))
manifests.schema_faults = lambda document, _: once(json.dumps(document))

assert not list(manifests.faults(DOCUMENTS, SCHEMAS)), "the overlay itself is at fault"
missed = 0
for number, (change, expected) in enumerate(BREAKS):
    broken = copy.deepcopy(DOCUMENTS)
    change(broken)
    said = list(manifests.faults(broken, SCHEMAS))
    if expected is None and said or expected is not None and not any(expected in fault for fault in said):
        print(f"break {number}: expected {expected!r}, heard {said}")
        missed += 1
print(f"{len(BREAKS) - missed} of {len(BREAKS)} breaks are noticed as they should")
sys.exit(bool(missed))
