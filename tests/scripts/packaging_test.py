#!/usr/bin/env python3
"""What is installed and packaged is complete: the example links it and computes what the program prints; the Debian packages hold
the program, its pages and completions, and work where they are unpacked. LLMPERF_BUILD_DIR names the build folder."""
import csv
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from program import PROGRAM, ROOT

BUILD = os.environ["LLMPERF_BUILD_DIR"]
CMAKE = os.environ.get("CMAKE_COMMAND", "cmake")
HEAVY = re.compile(r"/(nlohmann|CLI|Eigen|fmt|yaml-cpp)/|/dnnl")
SUBPROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
enable_testing()
add_subdirectory("{root}" llmperf)
add_executable(consumer main.cpp)
target_link_libraries(consumer PRIVATE llmperf::llmperf)
"""


def run(*words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def files_under(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


def subcommands():
    text = run(PROGRAM, "--help")
    return re.findall(r"(?m)^  ([a-z-]+) ", text[text.index("Subcommands:"):])


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = os.path.join(cls.folder.name, "prefix")
        run(CMAKE, "--install", BUILD, "--prefix", cls.prefix)
        cls.files = files_under(cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_program_runs_from_where_it_is_installed(self):
        program = os.path.join(self.prefix, "bin", "llmperf")
        self.assertEqual(run(program, "--version"), run(PROGRAM, "--version"))

    def test_every_subcommand_has_its_page_and_every_shell_its_completion(self):
        pages = [os.path.basename(path) for path in self.files if path.startswith("share/man/man1/")]
        self.assertEqual(sorted(pages), sorted(["llmperf.1"] + [f"llmperf-{name}.1" for name in subcommands()]))
        for shell, path in (("bash", "share/bash-completion/completions/llmperf"), ("zsh", "share/zsh/site-functions/_llmperf"),
                            ("fish", "share/fish/vendor_completions.d/llmperf.fish")):
            with open(os.path.join(self.prefix, path), encoding="utf-8") as file:
                self.assertEqual(file.read(), run(PROGRAM, "completion", shell))

    def test_documents_and_licence_are_there(self):
        for name in ("LICENSE", "README.md", "CHANGELOG.md", "docs/guide.md", "docs/schema/llmperf.estimate.schema.json",
                     "examples/estimate/main.cpp"):
            self.assertIn("share/doc/llmperf/" + name, self.files)

    def test_public_headers_need_no_header_of_another_library(self):
        include = os.path.join(self.prefix, "include", "llmperf")
        headers = [path for path in files_under(include) if path.endswith(".h")]
        self.assertGreater(len(headers), 100)
        self.assertEqual([path for path in headers if path.startswith("cli/")], [])
        source = os.path.join(self.folder.name, "all.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.writelines(f'#include "{path}"\n' for path in headers)
        used = run(os.environ.get("CXX", "c++"), "-std=c++20", "-I", include, "-M", source)
        self.assertEqual([path for path in used.split() if HEAVY.search(path)], [])

    def test_the_example_links_the_library_and_computes_what_the_program_prints(self):
        source = os.path.join(self.prefix, "share", "doc", "llmperf", "examples", "estimate")
        build = os.path.join(self.folder.name, "example")
        run(CMAKE, "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run(CMAKE, "--build", build)
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
            self.assertIn(self.prefix, re.search(r"llmperf_DIR:PATH=(.*)", cache.read()).group(1))
        rows = list(csv.DictReader(run(os.path.join(build, "estimate"), "qwen-7b", "rtx4090").splitlines()))
        self.assertEqual([row["batch"] for row in rows], ["1", "2", "4", "8"])
        for row in rows:
            expected = json.loads(run(PROGRAM, "estimate", "-m", "qwen-7b", "--hw", "rtx4090", "--batch", row["batch"], "--json"))
            self.assertEqual(float(row["ttft_s"]), expected["ttft_s"])
            self.assertEqual(float(row["tpot_s"]), expected["tpot_s"])

    def test_an_unsuitable_version_is_refused(self):
        source = os.path.join(self.folder.name, "version")
        os.makedirs(source, exist_ok=True)
        with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write("cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\nfind_package(llmperf 99 REQUIRED)\n")
        done = subprocess.run([CMAKE, "-S", source, "-B", source + "/b", f"-DCMAKE_PREFIX_PATH={self.prefix}"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('compatible with requested version "99"', done.stdout)


class Subproject(unittest.TestCase):
    def test_as_a_part_of_another_project_it_brings_no_tests_and_no_warnings_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
                file.write(SUBPROJECT.format(root=ROOT))
            shutil.copy(os.path.join(ROOT, "examples", "estimate", "main.cpp"), folder)
            build = os.path.join(folder, "build")
            run(CMAKE, "-S", folder, "-B", build)
            self.assertIn("Total Tests: 0", run("ctest", "-N", cwd=build))
            with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
                commands = {os.path.relpath(entry["file"], folder): entry["command"] for entry in json.load(file)}
            self.assertNotIn("-Wconversion", commands["main.cpp"])
            run(CMAKE, "--build", build, "--target", "llmperf_base")  # all of it would take minutes
            run("/bin/sh", "-c", commands["main.cpp"] + " -fsyntax-only", cwd=build)


@unittest.skipIf(shutil.which("dpkg-deb") is None, "no Debian tools here")
class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        run("cpack", "-G", "DEB", "-B", cls.folder.name, cwd=BUILD)
        cls.packages = {os.path.basename(path).split("_")[0]: path for path in glob.glob(cls.folder.name + "/*.deb")}
        cls.roots = {}
        for name, path in cls.packages.items():
            cls.roots[name] = os.path.join(cls.folder.name, name)
            run("dpkg-deb", "-x", path, cls.roots[name])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def field(self, package, name):
        return run("dpkg-deb", "-f", self.packages[package], name).strip()

    def test_the_program_and_the_library_are_packages_of_their_own(self):
        self.assertEqual(sorted(self.packages), ["llmperf", "llmperf-dev"])
        version = run(PROGRAM, "--version").split()[1]
        for package in self.packages:
            self.assertEqual(self.field(package, "Version"), version + "-1")
        self.assertIn("libyaml-cpp", self.field("llmperf", "Depends"))
        self.assertIn("libopenblas0", self.field("llmperf", "Suggests"))
        self.assertIn("libfmt-dev", self.field("llmperf-dev", "Depends"))

    def test_the_program_works_where_it_is_unpacked(self):
        program = os.path.join(self.roots["llmperf"], "usr", "bin", "llmperf")
        words = ["estimate", "-m", "qwen-7b", "--hw", "rtx4090"]
        self.assertEqual(run(program, *words, cwd="/", env={}), run(PROGRAM, *words, cwd="/", env={}))

    def test_pages_are_compressed_and_completions_where_debian_looks_for_them(self):
        files = files_under(self.roots["llmperf"])
        pages = [os.path.basename(path) for path in files if path.startswith("usr/share/man/man1/")]
        self.assertEqual(sorted(pages), sorted(["llmperf.1.gz"] + [f"llmperf-{name}.1.gz" for name in subcommands()]))
        for path in ("bash-completion/completions/llmperf", "zsh/vendor-completions/_llmperf",
                     "fish/vendor_completions.d/llmperf.fish", "doc/llmperf/copyright", "doc/llmperf/changelog.Debian.gz"):
            self.assertIn("usr/share/" + path, files)
        self.assertEqual([path for path in files if path.endswith((".a", ".h", ".cmake"))], [])

    def test_the_library_is_whole(self):
        files = files_under(self.roots["llmperf-dev"])
        for path in ("usr/include/llmperf/estimate/estimate.h", "usr/lib/libllmperf_estimate.a",
                     "usr/lib/cmake/llmperf/llmperf-config.cmake", "usr/lib/cmake/llmperf/llmperf-config-version.cmake"):
            self.assertIn(path, files)
        self.assertEqual([path for path in files if path.startswith("usr/bin/")], [])

    def test_nothing_in_them_names_the_folders_they_were_built_in(self):
        for root in self.roots.values():
            for path in files_under(root):
                if not path.endswith((".cmake", ".1.gz", ".fish", "llmperf")):
                    continue
                with open(os.path.join(root, path), "rb") as file:
                    self.assertNotIn(ROOT.encode(), file.read(), path)

    @unittest.skipIf(shutil.which("lintian") is None, "lintian is not installed")
    def test_lintian_finds_no_error(self):
        for path in self.packages.values():
            done = subprocess.run(["lintian", "--allow-root", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  encoding="utf-8", check=False)
            self.assertEqual([line for line in done.stdout.splitlines() if line.startswith("E:")], [])


if __name__ == "__main__":
    unittest.main()
