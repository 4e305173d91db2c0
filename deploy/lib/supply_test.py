"""Tests that supply.py detects faults: `supply_test.py ROOT` changes the Dockerfile or the release workflow in one place at a time and
expects a fault that names the place."""

import sys

import supply

# A text of one of the two files, what takes its place, and a part of the fault that must be reported.
BREAKS = [
    ("FROM ${RUST_IMAGE} AS build", "FROM rust:1.95 AS build", "FROM rust:1.95 is neither"),
    ("ARG RUNTIME_IMAGE=", "ARG RUNTIME=", "FROM ${RUNTIME_IMAGE} is neither"),
    ("ARG NODE_IMAGE=docker.io/library/node:24-trixie-slim", "ARG NODE_IMAGE=node", "FROM ${NODE_IMAGE} is neither"),
    ("COPY --from=build /out/NOTICES", "COPY --from=busybox:1 /out/NOTICES", "from=busybox:1 is not a stage"),
    ("cargo auditable build", "cargo build", "does not build by cargo auditable"),
    ("cargo-auditable --version 0.7.7 --locked\n\nWORKDIR", "cargo-auditable --locked\n\nWORKDIR", "in a fixed version"),
    ("cargo-auditable --version 0.7.7 --locked\n          deploy", "cargo-auditable --locked\n          deploy", "a fixed version of cargo-auditable"),
    (".dep-v0", ".text", "list of their packages"),
    ("sbom: true", "sbom: false", "no SBOM"),
    ("provenance: mode=max", "provenance: false", "no full provenance"),
    ("            ${{ needs.bases.outputs.arguments }}\n", "", "one job resolved to digests"),
    ("deploy/lib/base-images.sh >base-images.txt", "touch base-images.txt", "one job resolved to digests"),
    ('exit-code: "1"', 'exit-code: "0"', "does not stop the release"),
    ('cosign sign --yes "$IMAGE"', "echo", "not signed by digest"),
    ("mv parts/base-images.txt release", "echo", "no base-images.txt"),
    ('pattern: "{base-images,digest-*,archive-*}", ', "", "artifacts that it cannot unpack"),
    ("{base-images,digest-*,archive-*}", "digest-*", "does not download what"),
    ("trivy-action@ed142fd0673e97e23eac54620cfb913e5ce36c25", "trivy-action@v0.36.0", "trivy-action@v0.36.0 is not fixed"),
    ("cosign-installer@7e8b541eb2e61bf99390e1afd4be13a184e9ebc5", "cosign-installer@7e8b541", "cosign-installer@7e8b541 is not fixed"),
    ("canvas-target-${TARGETPLATFORM}", "canvas-target", "share a target directory"),
    ("platforms: linux/amd64,linux/arm64", "platforms: linux/amd64", "for both platforms"),
    ("  bases:\n    needs: tests\n", "  bases:\n", "does not wait for the tests"),
    ("  archives:\n    needs: tests\n", "  archives:\n", "after the tests and before the release"),
    ("needs: [chart, archives]", "needs: chart", "after the tests and before the release"),
    ("runner: [ubuntu-24.04, ubuntu-24.04-arm]", "runner: [ubuntu-24.04]", "archives are not for both platforms"),
    ("    needs: tests\n    runs-on: ${{ matrix.runner }}\n    container: debian:12.11\n",
     "    needs: tests\n    runs-on: ${{ matrix.runner }}\n", "not built on Debian 12"),
    ("release-archive --auditable", "release-archive", "fixed version of cargo-auditable"),
    ("run: tests/release-archive archive/*.tar.gz", "run: echo", "no test starts the archives"),
    (" parts/canvas-*.tar.gz.sha256 release", " release", "no archives with checksums"),
    (",archive-*}", "}", "does not download what"),
    ("deploy/manifests release ", "echo ", "has no manifests"),
    ("          helm push ", "          echo ", "publishes no chart"),
    ('    - cron: "17 3 * * *"\n', "    []\n", "no schedule checks"),
    ("run: tests/smoke-kind", "run: echo", "no job cluster runs"),
    ("process: [gateway, ", "process: [", "four processes"),
]

files = supply.read(sys.argv[1])
missed = 0
for before, after, expected in BREAKS:
    assert sum(text.count(before) for text in files) == 1, f"{before!r} is not in one place"
    said = list(supply.faults(*(text.replace(before, after) for text in files)))
    if not any(expected in fault for fault in said):
        print(f"{before!r} -> {after!r}: expected {expected!r}, reported {said}")
        missed += 1
print(f"{len(BREAKS) - missed} of {len(BREAKS)} faults are reported as expected")
sys.exit(bool(missed))
