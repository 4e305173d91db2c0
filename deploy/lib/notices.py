"""Prints the notices of the third-party code in the binaries: `notices.py ROOT [--check]`.

For every package that is linked into the four processes, `canvas` and `canvas-demo`, on any of the platforms of a release: name, version, license and
source, and the text of every license and notice file that the package has, also of the C and C++ sources in it. Packages with the same
text share it. `cargo metadata` names the packages, so that nothing is missed and build tools are left out. The image build writes the
output into every image.

A package without such a file gets the standard text of its license from deploy/licenses. A package for which there is none is reported,
and the exit status is 1. With --check nothing else is printed.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
BINARIES = {"canvas-gateway", "canvas-image-worker", "canvas-video-worker", "canvas-webhook-dispatcher", "canvas-cli", "canvas-demo"}
PLATFORMS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
TEXT = re.compile(r"(?i)^(un)?licen[cs]e|^copying|^copyright|^notices?\b|^readme\.ijg$")
# Directories of a package that are not compiled.
UNUSED = {"tests", "test", "benches", "examples", "fuzz", "testdata", "fixtures", ".git", "target"}
SIZE_MAX = 64 * 1024


def linked():
    """The packages that are linked into a binary, by name and version, without those of this workspace."""
    found = {}
    for platform in PLATFORMS:
        metadata = json.loads(subprocess.run(
            ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", platform],
            cwd=ROOT, check=True, capture_output=True).stdout)
        packages = {package["id"]: package for package in metadata["packages"]}
        nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        waiting = [id for id, package in packages.items() if package["name"] in BINARIES and package["source"] is None]
        if len(waiting) != len(BINARIES):
            sys.exit(f"notices: not all of {sorted(BINARIES)} are in the workspace")
        reached = set(waiting)
        while waiting:
            for dependency in nodes[waiting.pop()]["deps"]:
                # A procedural macro runs in the compiler, as a build dependency does, and is in no binary.
                is_macro = any("proc-macro" in target["kind"] for target in packages[dependency["pkg"]]["targets"])
                is_linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
                if is_linked and not is_macro and dependency["pkg"] not in reached:
                    reached.add(dependency["pkg"])
                    waiting.append(dependency["pkg"])
        for id in reached:
            package = packages[id]
            if package["source"] is not None:
                found[package["name"], package["version"]] = package
    return [found[key] for key in sorted(found)]


def texts(package):
    """The texts of the licenses and notices of a package, without duplicates."""
    directory = pathlib.Path(package["manifest_path"]).parent
    paths = [path for path in sorted(directory.rglob("*")) if TEXT.search(path.name)
             and path.suffix not in {".rs", ".c", ".h", ".py", ".toml", ".html"} and not UNUSED & set(path.relative_to(directory).parts[:-1])]
    if package["license_file"]:
        paths.append(directory / package["license_file"])
    found = {}
    for path in paths:
        if path.is_file() and path.stat().st_size <= SIZE_MAX:
            text = "\n".join(line.rstrip() for line in path.read_text(errors="replace").strip().splitlines())
            if text:
                found.setdefault(" ".join(text.split()), text)
    return list(found.values())


def standard(package):
    """The standard text of the license of a package that has no file with it, with its authors: the first alternative for which there is
    a text."""
    for name in re.split(r" OR |/", package["license"] or ""):
        if name == "Apache-2.0":
            return [(ROOT / "LICENSE").read_text().strip()]
        path = ROOT / "deploy/licenses" / f"{name}.txt"
        if path.exists():
            holder = ", ".join(package["authors"]) or f"the authors of {package['name']}"
            return [f"Copyright (c) {holder}\n\n{path.read_text().strip()}"]
    return []


def main():
    holders, faults = {}, []
    packages = linked()
    for package in packages:
        found = texts(package) or standard(package)
        name = f"{package['name']} {package['version']}"
        if not found or not (package["license"] or package["license_file"]):
            faults.append(f"notices: {name} ({package['license']}) has no text of its license: add the text to deploy/licenses")
        for text in found:
            holders.setdefault(" ".join(text.split()), (text, []))[1].append(name)
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(1)
    if "--check" in sys.argv:
        print(f"notices: {len(packages)} packages, {len(holders)} texts")
        return
    print("Third-party code in Canvas Service\n")
    print("The binaries contain the packages below and the Rust standard library (https://www.rust-lang.org), which is licensed under MIT or")
    print("Apache-2.0. The texts of the licenses follow the list; each names the packages to which it applies.\n")
    for package in packages:
        license, source = package["license"] or "see its text", package["repository"] or f"https://crates.io/crates/{package['name']}"
        print(f"{package['name']} {package['version']}: {license}, {source}")
    for text, names in holders.values():
        print(f"\n{'=' * 100}\n{', '.join(names)}\n{'=' * 100}\n\n{text}")


if __name__ == "__main__":
    main()
