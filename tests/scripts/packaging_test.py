#!/usr/bin/env python3
"""What is installed and packaged is complete: the example links it and computes what the program prints; the packages hold
the program, its pages and completions, ask little of a system, and work where they are unpacked. LLMPERF_BUILD_DIR names the build
folder: a release."""
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


def versions_needed(path):
    """The newest version of each of the system's libraries that an ELF file asks for, and the libraries it names."""
    text = run("objdump", "-p", path)
    newest = {}
    for name, version in re.findall(r"\b(GLIBC|GLIBCXX|CXXABI|GCC)_([0-9][0-9.]*)", text[text.index("Version References"):]):
        newest[name] = max(newest.get(name, []), [int(part) for part in version.split(".")])
    return newest, re.findall(r"NEEDED\s+(\S+)", text)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


@unittest.skipIf(shutil.which("dpkg-deb") is None, "no Debian tools here")
class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = os.path.join(cls.folder.name, "out")
        run(os.path.join(ROOT, "scripts", "package.sh"), "--build", BUILD, cls.out)
        cls.version = run(PROGRAM, "--version").split()[1]
        cls.packages = {os.path.basename(path).split("_")[0]: path for path in glob.glob(cls.out + "/*.deb")}
        cls.roots = {}
        for name, path in cls.packages.items():
            cls.roots[name] = os.path.join(cls.folder.name, name)
            run("dpkg-deb", "-x", path, cls.roots[name])
        (cls.archive,) = glob.glob(cls.out + "/*.tar.gz")
        run("tar", "-xf", cls.archive, "-C", cls.folder.name)
        cls.unpacked = os.path.join(cls.folder.name, os.path.basename(cls.archive)[:-len(".tar.gz")])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def field(self, package, name):
        return run("dpkg-deb", "-f", self.packages[package], name).strip()

    def test_the_program_and_the_library_are_packages_of_their_own(self):
        self.assertEqual(sorted(self.packages), ["llmperf", "llmperf-dev"])
        for package in self.packages:
            self.assertEqual(self.field(package, "Version"), self.version + "-1")
        self.assertIn("libdnnl2", self.field("llmperf", "Suggests"))
        self.assertEqual(self.field("llmperf-dev", "Depends"), "libyaml-cpp-dev")

    def test_the_package_wants_nothing_that_a_minimal_system_lacks(self):
        wanted = {entry.split()[0] for entry in self.field("llmperf", "Depends").split(", ")}
        self.assertEqual(wanted, {"libc6", "libgcc-s1"})

    def test_what_is_packed_asks_for_no_newer_system_than_ubuntu_22_04(self):
        files = [os.path.join(root, path) for root in (self.unpacked, self.roots["llmperf"]) for path in files_under(root)]
        elf = [path for path in files if not os.path.islink(path) and is_elf(path)]
        self.assertGreaterEqual({os.path.basename(path).split(".so")[0] for path in elf}, {"llmperf", "libllmperf"})
        built_on = [int(part) for part in os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")]
        for path in elf:
            newest, libraries = versions_needed(path)
            for library in libraries:
                self.assertRegex(library, r"^(libc|libm|libgcc_s|ld-linux-x86-64)\.so\.", path)
            self.assertEqual([name for name in newest if name in ("GLIBCXX", "CXXABI")], [], path)
            if built_on <= [2, 36]:  # packages are made on Debian 12
                self.assertLessEqual(newest["GLIBC"], [2, 34], path)

    def test_the_program_works_where_it_is_unpacked_and_with_an_empty_environment(self):
        words = ["estimate", "-m", "qwen-7b", "--hw", "rtx4090"]
        expected = run(PROGRAM, *words, cwd="/", env={})
        for root in (os.path.join(self.roots["llmperf"], "usr"), self.unpacked):
            self.assertEqual(run(os.path.join(root, "bin", "llmperf"), *words, cwd="/", env={}), expected)

    def test_the_shared_library_shows_the_interface_alone(self):
        library = os.path.join(self.unpacked, "lib", "libllmperf.so")
        shown = [line.split()[-1] for line in run("objdump", "-T", library).splitlines() if re.match(r"[0-9a-f]{16} ", line) and "*UND*" not in line]
        with open(os.path.join(self.unpacked, "include", "llmperf.h"), encoding="utf-8") as file:
            declared = re.findall(r"(?m)^LLMPERF_API .*?(llmperf_\w+)\(", file.read())
        self.assertEqual(sorted(shown), sorted(declared))

    def test_a_c_program_works_with_the_archive_alone(self):
        program = os.path.join(self.folder.name, "estimate")
        run(os.environ.get("CXX", "c++"), "-x", "c", os.path.join(self.unpacked, "share", "doc", "llmperf", "examples", "c", "estimate.c"),
            "-I", self.unpacked + "/include", "-L", self.unpacked + "/lib", "-lllmperf", "-o", program)
        self.assertIn("ttft", run(program, "qwen-7b", "rtx4090", env={"LD_LIBRARY_PATH": self.unpacked + "/lib"}))

    def test_pages_are_compressed_and_completions_where_debian_looks_for_them(self):
        files = files_under(self.roots["llmperf"])
        pages = [os.path.basename(path) for path in files if path.startswith("usr/share/man/man1/")]
        self.assertEqual(sorted(pages), sorted(["llmperf.1.gz"] + [f"llmperf-{name}.1.gz" for name in subcommands()]))
        for path in ("bash-completion/completions/llmperf", "zsh/vendor-completions/_llmperf",
                     "fish/vendor_completions.d/llmperf.fish", "doc/llmperf/copyright", "doc/llmperf/changelog.Debian.gz",
                     "doc/llmperf/licences/libyaml-cpp-dev", "doc/llmperf/llmperf.spdx.json"):
            self.assertIn("usr/share/" + path, files)
        self.assertEqual([path for path in files if path.endswith((".a", ".h", ".cmake"))], ["usr/include/llmperf.h"])

    def test_the_archive_has_what_the_package_has_and_the_licence(self):
        files = files_under(self.unpacked)
        for path in ("bin/llmperf", "lib/libllmperf.so", "include/llmperf.h", "share/man/man1/llmperf-estimate.1", "share/doc/llmperf/LICENSE",
                     "share/doc/llmperf/docs/guide.md", "share/doc/llmperf/llmperf.spdx.json", "share/bash-completion/completions/llmperf"):
            self.assertIn(path, files)

    def test_the_library_is_whole(self):
        files = files_under(self.roots["llmperf-dev"])
        for path in ("usr/include/llmperf/estimate/estimate.h", "usr/lib/libllmperf_estimate.a",
                     "usr/lib/cmake/llmperf/llmperf-config.cmake", "usr/lib/cmake/llmperf/llmperf-config-version.cmake"):
            self.assertIn(path, files)
        self.assertEqual([path for path in files if path.startswith("usr/bin/")], [])

    def test_nothing_in_them_names_the_folders_they_were_built_in(self):
        # The folder's own path may be as short as /src, which occurs in any program: one below it does not.
        folders = [name.encode() for name in os.listdir(ROOT) if os.path.isdir(os.path.join(ROOT, name))]
        below = re.compile(rb"(?<![\w.])" + re.escape(ROOT.encode()) + rb"/(" + b"|".join(map(re.escape, folders)) + rb")\b")
        for root in [*self.roots.values(), self.unpacked]:
            for path in files_under(root):
                with open(os.path.join(root, path), "rb") as file:
                    self.assertIsNone(below.search(file.read()), path)

    def test_the_package_is_small(self):
        self.assertLess(os.path.getsize(self.packages["llmperf"]), 6.2e6)

    def test_the_sums_are_those_of_the_files(self):
        run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=self.out)
        with open(os.path.join(self.out, "SHA256SUMS"), encoding="utf-8") as file:
            named = [line.split()[1] for line in file]
        self.assertEqual(sorted([*named, "SHA256SUMS"]), sorted(os.listdir(self.out)))

    def test_files_are_as_old_as_the_commit_and_of_nobody(self):
        for line in run("tar", "--numeric-owner", "--full-time", "--utc", "-tvf", self.archive).splitlines():
            self.assertEqual(line.split()[1], "0/0", line)
        ages = {" ".join(line.split()[3:5]) for line in run("tar", "--full-time", "--utc", "-tvf", self.archive).splitlines()}
        ages |= {" ".join(line.split()[3:5]) for line in run("/bin/sh", "-c", "dpkg-deb --fsys-tarfile \"$0\" | tar --full-time --utc -tvf -",
                                                             self.packages["llmperf"]).splitlines()}
        self.assertEqual(len(ages), 1, ages)

    def test_the_bill_of_materials_lists_what_is_linked(self):
        with open(os.path.join(self.out, f"llmperf-{self.version}.spdx.json"), encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        packages = {package["SPDXID"]: package for package in document["packages"]}
        names = {package["name"]: package for package in packages.values()}
        self.assertLessEqual({"llmperf", "yaml-cpp", "fmt", "nlohmann-json", "Eigen", "CLI11", "libstdc++", "libgcc", "glibc"}, set(names))
        self.assertEqual(names["llmperf"]["versionInfo"], self.version)
        commit = json.loads(run(PROGRAM, "--version", "--json"))["commit"] or "unknown"
        self.assertIn(f"commit {commit},", names["llmperf"]["comment"])
        with open(PROGRAM, "rb") as file:
            charts = b"zrender" in file.read()
        self.assertEqual({"echarts", "zrender"} <= set(names), charts)
        for package in packages.values():
            self.assertRegex(package["versionInfo"], r"^\d+(\.\d+)+", package["name"])
            self.assertNotIn(package["licenseDeclared"], ("", "NOASSERTION"))
        related = {relation["relatedSpdxElement"]: relation["relationshipType"] for relation in document["relationships"]}
        self.assertEqual(set(related), set(packages))
        libraries = versions_needed(PROGRAM)[1]
        for name, soname in (("fmt", "libfmt"), ("yaml-cpp", "libyaml-cpp"), ("libstdc++", "libstdc++"), ("libgcc", "libgcc_s"), ("glibc", "libc")):
            shared = any(library.startswith(soname + ".so") for library in libraries)
            self.assertEqual(related[names[name]["SPDXID"]], "DYNAMIC_LINK" if shared else "STATIC_LINK", name)

    @unittest.skipIf(shutil.which("lintian") is None, "lintian is not installed")
    def test_lintian_finds_no_error(self):
        for path in self.packages.values():
            done = subprocess.run(["lintian", "--allow-root", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  encoding="utf-8", check=False)
            self.assertEqual([line for line in done.stdout.splitlines() if line.startswith("E:")], [])


class Versions(unittest.TestCase):
    """What cmake/version.cmake makes of a repository."""
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "sources")
        os.makedirs(os.path.join(self.folder, "models"))
        self.write("models/a.yaml", "source: a table, 2024-01-31\nother: 2023-05-06\n")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def git(self, *words):
        env = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_AUTHOR_DATE="2025-02-03T23:30:00-0300", GIT_COMMITTER_DATE="2025-02-03T23:30:00-0300")
        return run("git", "-c", "user.name=a", "-c", "user.email=a@b.invalid", *words, cwd=self.folder, env=env).strip()

    def commit(self):
        self.git("add", ".")
        self.git("commit", "-qm", "x")
        return self.git("rev-parse", "HEAD")

    def build(self):
        """(version, commit, compiler, data date), and the file that says so."""
        path = os.path.join(self.folder, "..", "version.cpp")
        run(CMAKE, f"-DROOT={self.folder}", "-DVERSION=0.1.0", "-DCOMPILER=GNU 12.2.0", f"-DOUTPUT={path}", "-P",
            os.path.join(ROOT, "cmake", "version.cmake"))
        with open(path, encoding="utf-8") as file:
            return re.findall(r'"([^"]*)"', file.read())[1:], path

    def test_sources_without_a_repository_have_their_own_version_and_the_newest_date_of_the_data(self):
        self.assertEqual(self.build()[0], ["0.1.0", "", "GNU 12.2.0", "2024-01-31"])

    def test_sources_inside_of_another_repository_are_not_its_commit(self):
        run("git", "init", "-q", os.path.dirname(self.folder))
        self.assertEqual(self.build()[0][1], "")

    def test_a_tag_is_the_version_and_commits_behind_it_are_counted(self):
        self.git("init", "-q")
        commit = self.commit()
        self.assertEqual(self.build()[0], ["0.1.0+g" + commit[:7], commit, "GNU 12.2.0", "2025-02-04"])
        self.git("tag", "v0.2.0")
        self.assertEqual(self.build()[0][0], "0.2.0")
        self.write("other", "text")
        commit = self.commit()
        self.assertEqual(self.build()[0][:2], ["0.2.0+1.g" + commit[:7], commit])
        self.write("other", "changed")
        self.assertEqual(self.build()[0][0], f"0.2.0+1.g{commit[:7]}.dirty")

    def test_what_is_the_same_is_not_written_again(self):
        path = self.build()[1]
        before = os.stat(path).st_mtime_ns
        self.build()
        self.assertEqual(os.stat(path).st_mtime_ns, before)


if __name__ == "__main__":
    unittest.main()
