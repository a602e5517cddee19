#!/usr/bin/env python3
"""What a built program consists of, as SPDX 2.3 JSON on stdout: sbom.py BUILD. The same build makes the same text; its date is
SOURCE_DATE_EPOCH, else 1970.

Versions are those of the CMake packages that the build found, of reports/web/package-lock.json, and of the compiler."""
import base64
import datetime
import glob
import hashlib
import json
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# name, its CMake package, Debian's package, licence
LIBRARIES = [("yaml-cpp", "yaml-cpp", "libyaml-cpp-dev", "MIT"), ("fmt", "fmt", "libfmt-dev", "MIT"),
             ("nlohmann-json", "nlohmann_json", "nlohmann-json3-dev", "MIT"), ("Eigen", "Eigen3", "libeigen3-dev", "MPL-2.0"),
             ("CLI11", "CLI11", "libcli11-dev", "BSD-3-Clause")]
RUNTIME = "GPL-3.0-or-later WITH GCC-exception-3.1"


def said(*words):
    """What a command prints; nothing where it fails or is not there."""
    try:
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def cache_of(build):
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        return dict(re.findall(r"(?m)^([^#/:\n]+):\w+=(.*)$", file.read()))


def version_of(folder):
    """Of a CMake package, by its version file."""
    for path in sorted(glob.glob(os.path.join(folder, "*[cC]onfig*[vV]ersion.cmake"))):
        with open(path, encoding="utf-8") as file:
            found = re.search(r'set\s*\(PACKAGE_VERSION "([^"]+)"\)', file.read())
        if found:
            return found.group(1)
    raise SystemExit(f"sbom.py: {folder} says no version")


def debian(package):
    version, architecture = (said("dpkg-query", "-W", "-f", "${Version} ${Architecture}", package).split() or ["", ""])[:2]
    return [f"pkg:deb/debian/{package}@{version.replace('+', '%2B')}?arch={architecture}"] if version else []


def package(name, version, licence, urls=(), **more):
    return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]", "-", name), "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
            "copyrightText": "NOASSERTION",
            **({"externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url} for url in urls]}
               if urls else {}), **more}


def parts(build, program):
    """(package, what the program has to do with it), of everything but the program."""
    cache = cache_of(build)

    def link(name):  # shared libraries are named in the program
        return "DYNAMIC_LINK" if f"\0lib{name.removeprefix('lib')}.so.".encode() in program else "STATIC_LINK"
    for name, cmake, deb, licence in LIBRARIES:
        yield package(name, version_of(cache[cmake + "_DIR"]), licence, debian(deb)), link(name)
    if b"zrender" in program:  # in the notice that goes before it
        with open(os.path.join(ROOT, "reports", "web", "package-lock.json"), encoding="utf-8") as file:
            locked = json.load(file)["packages"]
        for name in ("echarts", "zrender", "tslib"):
            entry = locked["node_modules/" + name]
            algorithm, digest = entry["integrity"].split("-", 1)
            yield package(name, entry["version"], entry["license"], [f"pkg:npm/{name}@{entry['version']}"],
                          checksums=[{"algorithm": algorithm.upper(), "checksumValue": base64.b64decode(digest).hex()}]), "CONTAINS"
    if os.path.exists(os.path.join(build, "engine", "engine.wasm")):  # of the explorer, with its C and C++ libraries
        version = said(cache["LLMPERF_EMCC"], "-dumpversion")
        yield package("emscripten", version, "MIT OR NCSA", debian("emscripten")), "CONTAINS"
    compiler = cache["CMAKE_CXX_COMPILER"]
    version = said(compiler, "-dumpfullversion") or said(compiler, "-dumpversion")
    yield package("libstdc++", version, RUNTIME, debian("libstdc++6")), link("libstdc++")
    yield package("libgcc", version, RUNTIME, debian("libgcc-s1")), link("libgcc_s")
    yield package("glibc", os.confstr("CS_GNU_LIBC_VERSION").split()[1], "LGPL-2.1-or-later", debian("libc6")), link("libc")


def main(build):
    path = os.path.join(build, "llmperf")
    with open(path, "rb") as file:
        program = file.read()
    about = json.loads(said(path, "--version", "--json"))
    # A released version is its tag's archive; any other is known by its commit.
    own = package("llmperf", about["version"], "Apache-2.0", comment=f"commit {about['commit'] or 'unknown'}, compiled by {about['compiler']}")
    found = sorted(parts(build, program), key=lambda part: part[0]["name"])
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])] + [(own["SPDXID"], how, part["SPDXID"]) for part, how in found]
    date = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"llmperf-{about['version']}",
                "creationInfo": {"created": date.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: llmperf-scripts/sbom.py"]},
                "packages": [own] + [part for part, _ in found],
                "relationships": [{"spdxElementId": a, "relationshipType": how, "relatedSpdxElement": b} for a, how, b in relations]}
    # Unique, as a namespace has to be: by what it says.
    digest = hashlib.sha256(json.dumps(document).encode()).hexdigest()
    document["documentNamespace"] = f"https://spdx.org/spdxdocs/llmperf-{about['version']}-{digest[:32]}"
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
