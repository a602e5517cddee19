#!/usr/bin/env python3
"""Makes the wheel of the Python module: the package of bindings/python, and libllmperf.so, for any Python 3.

    scripts/python_wheel.py [FOLDER]      # dist/llmperf-0.1.0-py3-none-manylinux_2_34_x86_64.whl

It is also what `pip install .` calls (PEP 517, pyproject.toml). LLMPERF_LIBRARY names a library that is built; else
CMake builds the target llmperf_c, in LLMPERF_BUILD_DIR, build/release or build/package. The same files make the same
bytes. The version is the library's. The tag says what it needs of a system: a version of glibc and nothing else, or
"linux" and more libraries.
"""
import base64
import ctypes
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
PACKAGE = os.path.join(ROOT, "bindings", "python")
LIBRARY = "libllmperf.so"
MADE = (1980, 1, 1, 0, 0, 0)  # the time of every file in the wheel
LEAST = 34                    # of glibc 2.x: what the oldest system that is tried has
ALLOWED = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s)\.so|ld-linux")


def _read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def _version(library):
    text = ctypes.CDLL(library).llmperf_version
    text.restype = ctypes.c_char_p
    return json.loads(text())["version"]


def _cmake(*words):
    subprocess.run(["cmake", *words], cwd=ROOT, check=True, stdout=sys.stderr)


def _library():
    """The path of a library that is up to date."""
    named = os.environ.get("LLMPERF_LIBRARY")
    if named:
        return os.path.abspath(named)
    builds = [os.path.join(ROOT, "build", preset) for preset in ("release", "package")]
    configured = [build for build in builds if os.path.exists(os.path.join(build, "CMakeCache.txt"))]
    build = os.environ.get("LLMPERF_BUILD_DIR") or (configured or builds[1:])[0]
    if not os.path.exists(os.path.join(build, "CMakeCache.txt")):
        _cmake("--preset", "package", "-B", build)
    _cmake("--build", build, "--target", "llmperf_c")
    return os.path.join(build, LIBRARY)


def _platform(library):
    """manylinux_2_34_x86_64 and the like."""
    machine = os.uname().machine
    text = subprocess.run(["objdump", "-p", library], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
    beyond = [name for name in re.findall(r"NEEDED\s+(\S+)", text) if not ALLOWED.match(name)]
    if beyond:
        print(f"python_wheel: {', '.join(beyond)} must be on the system: no manylinux wheel", file=sys.stderr)
        return f"linux_{machine}"
    versions = [int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", text)]
    return f"manylinux_2_{max([LEAST, *versions])}_{machine}"


def _metadata(version):
    summary = re.search(r'DESCRIPTION "(.*?)"', _read("CMakeLists.txt"))[1]
    return "\n".join(["Metadata-Version: 2.1", "Name: llmperf", f"Version: {version}", f"Summary: {summary}",
                      "License: Apache-2.0", "License-File: LICENSE", "Requires-Python: >=3.9",
                      "Description-Content-Type: text/markdown", "", _read("docs", "python.md")])


def _write(folder, version, tag, files):
    """files: (name in the wheel, bytes, mode)."""
    info = f"llmperf-{version}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: llmperf\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = sorted(files) + [(f"{info}/LICENSE", _read("LICENSE").encode(), 0o644),
                             (f"{info}/METADATA", _metadata(version).encode(), 0o644),
                             (f"{info}/WHEEL", wheel.encode(), 0o644)]
    record = ""
    for name, data, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    record += f"{info}/RECORD,,\n"
    name = f"llmperf-{version}-{tag}.whl"
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(os.path.join(folder, name), "w") as out:
        for path, data, mode in files + [(f"{info}/RECORD", record.encode(), 0o644)]:
            entry = zipfile.ZipInfo(path, MADE)
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix
            out.writestr(entry, data, compresslevel=9)
    return name


def _stripped(library):
    """The bytes of the library without what only debuggers read."""
    with tempfile.TemporaryDirectory() as folder:
        path = shutil.copy(library, os.path.join(folder, LIBRARY))
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", path], check=True)
        with open(path, "rb") as file:
            return file.read()


# ---- What pip calls.


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    library = _library()
    files = [(f"llmperf/{LIBRARY}", _stripped(library), 0o755)]
    for path in sorted(glob.glob(os.path.join(PACKAGE, "llmperf", "*"))):
        if path.endswith((".py", ".pyi", "py.typed")):
            with open(path, "rb") as file:
                files.append((f"llmperf/{os.path.basename(path)}", file.read(), 0o644))
    return _write(wheel_directory, _version(library), "py3-none-" + _platform(library), files)


def build_sdist(sdist_directory, config_settings=None):
    """The files of the repository as they were committed."""
    name = "llmperf-" + re.search(r"llmperf VERSION (\S+)", _read("CMakeLists.txt"))[1]
    subprocess.run(["git", "archive", "--format=tar.gz", f"--prefix={name}/", "-o",
                    os.path.join(os.path.abspath(sdist_directory), name + ".tar.gz"), "HEAD"], cwd=ROOT, check=True)
    return name + ".tar.gz"


if __name__ == "__main__":
    FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "dist")
    print(os.path.join(FOLDER, build_wheel(FOLDER)))
