"""Tests the provider simulators with the vendors' SDKs; see tests/sdk. Prints one line per check, and exits with 1 if one fails or is
missing."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import traceback

# The SDK module for each simulator. The key is also the name of the provider in the catalog.
SDKS = {
    "openai": "openai_sdk",
    "google": "google_sdk",
    "replicate": "replicate_sdk",
    "runway": "runway_sdk",
    "fal": "fal_sdk",
}
# These clients require HTTPS: fal's always builds https URLs, and Google's recognizes the URI of a file by its scheme.
HTTPS = ("google", "fal")
CATALOGUE = pathlib.Path(__file__).parent.parent / "shared" / "providers" / "catalogue"


def start(command, authorities):
    """Starts the simulators. Returns the process, which ends when its standard input is closed, and the URLs by variable name."""
    arguments = ["--until-eof", "--https", ",".join(HTTPS), "--authorities", authorities]
    process = subprocess.Popen([command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    variables = {}
    for line in process.stdout:
        if line.startswith("# ready"):
            return process, variables
        if exported := re.fullmatch(r"export (\w+)='(.*)'\n", line):
            variables[exported[1]] = exported[2]
    sys.exit("the simulators did not start")


def declared(provider):
    """Every (capability, outcome) that needs a check: a success and a failure of each capability of the models in the catalog."""
    models = json.loads((CATALOGUE / f"{provider}.json").read_text())["models"]
    capabilities = {capability for model in models for capability in model.get("capabilities", [model["type"]])}
    return {(capability, outcome) for capability in capabilities for outcome in ("success", "failure")}


def passes(provider, check):
    began = time.monotonic()
    try:
        check.run()
    except Exception:
        print(f"FAILED  {provider}: {check.what}\n{traceback.format_exc()}", flush=True)
        return False
    print(f"ok      {provider}: {check.what} ({time.monotonic() - began:.1f} s)", flush=True)
    return True


def drive(provider, checks):
    """Runs the checks. Returns their verdicts, and a negative one for each missing check."""
    missing, verdicts = declared(provider), []
    for check in checks:
        missing.discard((check.capability, check.outcome))
        verdicts.append(passes(provider, check))
    for capability, outcome in sorted(missing):
        print(f"FAILED  {provider}: no check of a {outcome} of {capability}", flush=True)
        verdicts.append(False)
    return verdicts


def main():
    verdicts = []
    with tempfile.TemporaryDirectory() as authorities:
        simulators, variables = start(sys.argv[1], authorities)
        try:
            for provider, module in SDKS.items():
                if provider in HTTPS:
                    # One authority at a time: they have the same name, and OpenSSL uses only the first one of a name.
                    os.environ["SSL_CERT_FILE"] = os.path.join(authorities, f"{provider}.pem")
                sdk = __import__(f"sdks.{module}", fromlist=["checks"])
                verdicts += drive(provider, sdk.checks(variables[f"SIMULATOR_{provider.upper()}_URL"]))
        finally:
            simulators.stdin.close()
            simulators.wait(timeout=30)
    print(f"{verdicts.count(True)} passed, {verdicts.count(False)} failed")
    sys.exit(0 if all(verdicts) else 1)


main()
