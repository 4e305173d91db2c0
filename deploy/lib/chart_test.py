"""Tests the Helm chart: `chart_test.py CHART MANAGED SCHEMAS`. CHART is the chart rendered as the release `zz` in the namespace `canvas`
with the values of MANAGED, the rendered overlay of that name. Both must describe the same installation, apart from the labels that Helm
adds and the names.
"""

import copy
import json
import pathlib
import re
import sys

import yaml

import manifests

HELM_LABELS = {"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"}
# Fields that differ on purpose: settings are found by another name.
SKIPPED = {"envFrom", "imagePullPolicy"}
# The names of the chart, and those of the components.
RENAMED = {r"zz-broker(?![\w-])": "rabbitmq", "zz-gateway-from-ingress": "gateway-from-route", "zz-dashboard": "canvas-dashboard", "zz-": ""}


def plain(value):
    """The value without what may differ, with lists of constraints and ports in one order."""
    if isinstance(value, dict):
        kept = {key: plain(each) for key, each in value.items() if key not in HELM_LABELS | SKIPPED}
        return {key: each for key, each in kept.items() if each not in ({}, None)}
    if isinstance(value, list):
        return sorted((plain(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value


def read(path):
    """The documents of a rendered file under the names of the overlay. The chart's policies for all pods select those of the release,
    because it may share its namespace."""
    text = pathlib.Path(path).read_text()
    for ours, theirs in RENAMED.items():
        text = re.sub(ours, theirs, text)
    text = re.sub(r"canvas-settings-[a-z0-9]+", "settings", text)
    documents = [document for document in yaml.load_all(text, manifests.Loader) if document]
    for document in documents:
        if document["kind"] == "NetworkPolicy" and document["metadata"]["name"] in ("default-deny", "dns"):
            document["spec"]["podSelector"] = {}
    return documents


def described(documents):
    """The documents by kind and name, reduced to what must be equal."""
    found = {}
    for document in copy.deepcopy(documents):
        name, kind = document["metadata"]["name"], document["kind"]
        if kind == "Namespace":
            continue
        # Those of an Ingress are limits of the proxy.
        annotations = document["metadata"].get("annotations") if kind == "Ingress" else None
        document["metadata"] = {"labels": document["metadata"].get("labels", {})}
        if kind in ("Deployment", "Job"):
            template = document["spec"]["template"]
            template["metadata"].pop("annotations", None)
        # The chart adds a hash of the template to the name of the Job; manifests.py checks it.
        name = re.sub(r"-[0-9a-f]{8}$", "", name) if kind == "Job" else name
        found[kind, name] = plain({key: each for key, each in document.items() if key != "metadata"}) | {
            "labels": plain(document["metadata"]["labels"]) if kind in ("Deployment",) else None, "annotations": annotations}
    return found


def main():
    chart = read(sys.argv[1])
    ours, theirs = described(chart), described(read(sys.argv[2]))
    faults = [f"{' '.join(key)} is only in {'the chart' if key in ours else 'the overlay'}" for key in sorted(ours.keys() ^ theirs.keys())]
    for key in sorted(ours.keys() & theirs.keys()):
        if ours[key] != theirs[key]:
            faults.append(f"{' '.join(key)} differs:\n  chart   {ours[key]}\n  overlay {theirs[key]}")
    faults += manifests.faults(chart, pathlib.Path(sys.argv[3]))
    for fault in faults:
        print(f"chart: {fault}")
    if not faults:
        print(f"chart: {len(ours)} manifests, equal to the overlay for managed services")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
