"""Runs the built program for the behaviour tests: LLMPERF names it, LLMPERF_SOURCE_DIR the project."""
import json
import os
import resource
import signal
import subprocess
import tempfile
import unittest

ROOT = os.path.abspath(os.environ.get("LLMPERF_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "..", "..")))
PROGRAM = os.path.abspath(os.environ.get("LLMPERF", os.path.join(ROOT, "build", "release", "llmperf")))

DONE, FAILED, USAGE, INFEASIBLE = 0, 1, 2, 3


def sanitized():
    """A sanitizer reserves terabytes of address space and is several times slower."""
    if os.environ.get("LLMPERF_SANITIZED"):
        return True
    with open(PROGRAM, "rb") as program:
        text = program.read()
    return b"__asan_init" in text or b"__tsan_init" in text


SANITIZED = sanitized()
SECONDS = 300 if SANITIZED else 5  # nothing a user can type takes longer
LONG = max(60, SECONDS)            # but for several commands at once, and whole studies
MEMORY = 1 << 30


def limit_memory(most):
    """Of the programs that this process starts, and so its own: a hook that sets it in the child takes longer than most of
    them, as Python then copies its whole process for each (subprocess has no other way to call one)."""
    allowed = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (most if most and not SANITIZED else allowed, allowed))


class ProgramTest(unittest.TestCase):
    maxDiff = None
    seconds = SECONDS
    memory = MEMORY

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.addCleanup(limit_memory, None)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        """A file in the test's own folder; returns its name, which run() resolves there."""
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return "./" + name

    def run_program(self, *words, search_path="", stdout=subprocess.PIPE, **variables):
        """The finished process, whatever its status; never one that crashed, hung or spoke out of turn."""
        limit_memory(self.memory)
        env = dict(os.environ, LLMPERF_PATH=search_path, **variables)
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, env=env, timeout=self.seconds, stdin=subprocess.DEVNULL,
                              stdout=stdout, stderr=subprocess.PIPE, encoding="utf-8", check=False)
        self.assertIn(done.returncode, (DONE, FAILED, USAGE, INFEASIBLE), f"{words}: {done.stderr}")
        if done.returncode == DONE:
            self.assertEqual(done.stderr, "", words)
        return done

    def assert_closed_pipe_is_silent(self, *words):
        """Ends as SIGPIPE ends other programs, when nobody reads the pipe that stdout is: a shell shows 141."""
        ours, theirs = os.pipe()
        os.close(ours)
        try:
            done = subprocess.run([PROGRAM, *words], cwd=self.folder, timeout=self.seconds, stdin=subprocess.DEVNULL,
                                  stdout=theirs, stderr=subprocess.PIPE, encoding="utf-8", check=False)
        finally:
            os.close(theirs)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, ""), words)

    def output(self, *words, **options):
        """What a command that succeeds prints."""
        done = self.run_program(*words, **options)
        self.assertEqual(done.returncode, DONE, f"{words}: {done.stderr}")
        return done.stdout

    def json(self, *words, status=DONE, **options):
        """The document of a command with --json; NaN and Infinity, which JSON does not have, are errors."""
        done = self.run_program(*words, "--json", **options)
        self.assertEqual(done.returncode, status, f"{words}: {done.stderr}")

        def refuse(constant):
            raise AssertionError(f"{words}: {constant} in the JSON output")
        return json.loads(done.stdout, parse_constant=refuse)

    def assert_error(self, done, status, *fragments):
        """stderr starts as errors do and holds every fragment; stdout is empty unless the answer is "does not fit"."""
        self.assertEqual(done.returncode, status, f"{done.args[1:]}: {done.stderr}")
        self.assertTrue(done.stderr.startswith("llmperf: error: "), done.stderr)
        for line in done.stderr.splitlines():
            self.assertRegex(line, r"^(llmperf: error: |  hint: )")
        for fragment in fragments:
            self.assertIn(fragment, done.stderr, done.args[1:])
        if status != INFEASIBLE and done.stdout is not None:
            self.assertEqual(done.stdout, "", done.args[1:])

    def assert_bad_input(self, words, *fragments, **options):
        self.assert_error(self.run_program(*words, **options), USAGE, *fragments)
