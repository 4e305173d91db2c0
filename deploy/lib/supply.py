"""Checks what a release is made of: `supply.py ROOT`.

- Every external image of the Dockerfile is an ARG that a release sets to a tag with a digest. deploy/lib/base-images.sh is run with a
  stand-in for docker, which answers as a registry would.
- The released binaries are built by `cargo auditable`, in a fixed version, and the build fails if one has no list of packages.
- The release workflow builds all images on the same digests, with SBOM and provenance, scans and signs them by digest, and publishes the
  digests.
- The release has the manifests that deploy/manifests renders from the chart, with the images by digest.
- The release has an archive of the binaries for both platforms, built by cargo auditable on Debian 12, started by a test, with its checksum.
- It runs actions of third parties at a commit: a tag can be moved, or deleted. It downloads only artifacts that it uploads itself.

Each fault is printed as one line on standard output, and the exit status is 1 if there is any.
"""

import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

PROCESSES = ["gateway", "image-worker", "video-worker", "webhook-dispatcher"]
DIGEST = "sha256:" + 64 * "0"
DOCKER = f"""#!/bin/sh
test "$1 $2 $3 $4 $5" = "buildx imagetools inspect --format {{{{json .Manifest.Digest}}}}" && echo '"{DIGEST}"'
"""


def resolved(dockerfile):
    """The build arguments that base-images.sh prints for a Dockerfile."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, text in (("bin/docker", DOCKER), ("docker/Dockerfile", dockerfile),
                           ("lib/base-images.sh", (pathlib.Path(__file__).parent / "base-images.sh").read_text())):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)
        (root / "bin/docker").chmod(0o755)
        ran = subprocess.run(["bash", root / "lib/base-images.sh"], env=os.environ | {"PATH": f"{root}/bin:{os.environ['PATH']}"},
                             capture_output=True, text=True)
        return dict(line.split("=", 1) for line in ran.stdout.splitlines()) if ran.returncode == 0 else {}


def dockerfile_faults(text):
    arguments = resolved(text)
    pinned = {name for name, image in arguments.items() if re.fullmatch(r"\S+/\S+:[\w.-]+@" + DIGEST, image)}
    if text.startswith("# syntax=") and not arguments.get("BUILDKIT_SYNTAX", "").endswith(DIGEST):
        yield "a release does not fix the image of the first line by digest"
    stages = set()
    for source, stage in re.findall(r"^FROM (?:--\S+ )*(\S+)(?: AS (\S+))?$", text, re.M | re.I):
        name = re.fullmatch(r"\$\{(\w+)\}", source)
        if source not in stages and not (name and name[1] in pinned):
            yield f"FROM {source} is neither a stage nor an image that a release fixes by digest"
        stages.add(stage)
    for source in re.findall(r"(?:--|[,=])from=([^\s,]+)", text):
        if source not in stages:
            yield f"from={source} is not a stage"
    for mount in re.findall(r"--mount=type=cache,(\S+)", text):
        if "target=/src/target" in mount and "${TARGETPLATFORM}" not in mount:
            yield "the builds of different platforms share a target directory"
    if not re.search(r"cargo install cargo-auditable --version \d+\.\d+\.\d+ --locked", text):
        yield "it does not install cargo-auditable in a fixed version"
    if re.findall(r"^[^#\n]*cargo (.*?)build", text, re.M) != ["auditable "]:
        yield "it does not build by cargo auditable"
    if not re.search(r"readelf .*\.dep-v0", text):
        yield "it does not check that the binaries contain the list of their packages"


def step_of(job, uses):
    return next((step for step in job["steps"] if step.get("uses", "").startswith(uses)), {"with": {}})


def release_faults(text):
    jobs = yaml.safe_load(text)["jobs"]
    images, release = jobs["images"], jobs["release"]
    run = {name: "\n".join(step.get("run", "") for step in job.get("steps", [])) for name, job in jobs.items()}
    build, scan = (step_of(images, uses) for uses in ("docker/build-push-action@", "aquasecurity/trivy-action@"))
    by_digest = "@${{ steps.build.outputs.digest }}"
    if images["strategy"]["matrix"]["process"] != PROCESSES:
        yield "the images are not those of the four processes"
    if build["with"].get("platforms") != "linux/amd64,linux/arm64":
        yield "the images are not built for both platforms"
    if jobs["tests"].get("uses") != "./.github/workflows/ci.yaml" or jobs["bases"].get("needs") != "tests":
        yield "a release does not wait for the tests"
    if 'helm push "canvas-' not in run["chart"]:
        yield "the release publishes no chart"
    if build["with"].get("sbom") is not True:
        yield "the images have no SBOM"
    if build["with"].get("provenance") != "mode=max":
        yield "the images have no full provenance"
    passed = re.search(r"\$\{\{ needs\.(\w+)\.outputs\.(\w+) \}\}", build["with"].get("build-args", ""))
    source = jobs.get(passed[1], {}) if passed else {}
    if not passed or images["needs"] != passed[1] or passed[2] not in source.get("outputs", {}) or "base-images.sh" not in run[passed[1]] \
            or "strategy" in source:
        yield "the images are not built on base images that one job resolved to digests"
    if not scan["with"].get("image-ref", "").endswith(by_digest) or scan["with"].get("exit-code") != "1":
        yield "a known vulnerability in an image does not stop the release"
    signed = next((step for step in images["steps"] if "cosign sign --yes \"$IMAGE\"" in step.get("run", "")), {"env": {"IMAGE": ""}})
    if not signed["env"]["IMAGE"].endswith(by_digest):
        yield "the images are not signed by digest"
    archives = jobs["archives"]
    if archives.get("needs") != "tests" or "archives" not in release["needs"]:
        yield "the archives are not built after the tests and before the release"
    if archives["strategy"]["matrix"]["runner"] != ["ubuntu-24.04", "ubuntu-24.04-arm"]:
        yield "the archives are not for both platforms"
    # Binaries need the C library of the machine that links them, or a newer one.
    if not str(archives.get("container")).startswith("debian:12."):
        yield "the archives are not built on Debian 12"
    if not re.search(r"cargo install cargo-auditable --version \d+\.\d+\.\d+ --locked", run["archives"]) \
            or not re.search(r"deploy/release-archive --auditable archive$", run["archives"], re.M):
        yield "the archives are not built by a fixed version of cargo-auditable"
    if "tests/release-archive archive/*.tar.gz" not in run["archives"]:
        yield "no test starts the archives"
    if not re.search(r"mv parts/canvas-\*\.tar\.gz parts/canvas-\*\.tar\.gz\.sha256 release", run["release"]):
        yield "the release has no archives with checksums"
    for file in ("release/image-digests.yaml", "cargo cyclonedx", "release/NOTICES", "base-images.txt release"):
        if file not in run["release"]:
            yield f"the release has no {file.removesuffix(' release').removeprefix('release/')}"
    if not re.search(r"deploy/manifests release .*--values release/image-digests.yaml", run["release"]):
        yield "the release has no manifests"
    if not re.search(r"gh release create .* release/\*", run["release"]):
        yield "the release publishes no files"
    # The build records of build-push-action are artifacts, too, and cannot be unpacked. Their names end in .dockerbuild.
    patterns = step_of(release, "actions/download-artifact@")["with"].get("pattern", "*").strip("{}").split(",")
    matched = [any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns) for name in
               ("owner~canvas~1A2B3C.dockerbuild", "base-images", "archive-ubuntu-24.04", *(f"digest-{process}" for process in PROCESSES))]
    if matched[0]:
        yield "the release downloads artifacts that it cannot unpack"
    if not all(matched[1:]):
        yield "the release does not download what the other jobs have found"
    for used in re.findall(r"\buses: (\S+)", text):
        if not re.match(r"(actions|docker)/|\./", used) and not re.search(r"@[0-9a-f]{40}$", used):
            yield f"{used} is not fixed by its commit"


def ci_faults(text):
    workflow = yaml.safe_load(text)
    run = {name: "\n".join(step.get("run", "") for step in job["steps"]) for name, job in workflow["jobs"].items()}
    for name, command in (("all", ".ci/run"), ("cluster", "tests/smoke-kind")):
        if command not in run.get(name, ""):
            yield f"no job {name} runs {command}"
    # YAML 1.1 reads the key `on` as true.
    if not workflow[True].get("schedule") or step_of(workflow["jobs"].get("advisories", {"steps": []}), "EmbarkStudios/cargo-deny-action@")["with"].get("command") != "check advisories":
        yield "no schedule checks the advisories"


def faults(dockerfile, release, ci):
    yield from (f".github/workflows/ci.yaml: {fault}" for fault in ci_faults(ci))
    yield from (f"deploy/docker/Dockerfile: {fault}" for fault in dockerfile_faults(dockerfile))
    yield from (f".github/workflows/release.yaml: {fault}" for fault in release_faults(release))


def read(root):
    return [(pathlib.Path(root) / path).read_text() for path in ("deploy/docker/Dockerfile", ".github/workflows/release.yaml", ".github/workflows/ci.yaml")]


if __name__ == "__main__":
    found = list(faults(*read(sys.argv[1])))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))
