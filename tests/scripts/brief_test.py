#!/usr/bin/env python3
"""A failing test prints at most a hundred lines, and its status is passed on."""
import os
import subprocess
import sys
import unittest

BRIEF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "brief.py")


def run(program, **variables):
    return subprocess.run([sys.executable, BRIEF, sys.executable, "-c", program], stdout=subprocess.PIPE, encoding="utf-8",
                          env=dict(os.environ, LLMPERF_WHOLE="", **variables), check=False)


class Brief(unittest.TestCase):
    def test_of_a_long_report_the_beginning_and_the_end_are_kept(self):
        done = run("for i in range(100_000): print('line', i)\nraise SystemExit(3)")
        lines = done.stdout.splitlines()
        self.assertEqual(done.returncode, 3)
        self.assertLess(len(lines), 100)
        self.assertEqual((lines[0], lines[-1]), ("line 0", "line 99999"))
        self.assertIn("99930 lines left out", lines[40])

    def test_a_failure_in_the_middle_is_kept(self):
        done = run("for i in range(1000): print(f'{\"not ok\" if i % 2 and i > 400 else \"ok\"} {i}')")
        lines = done.stdout.splitlines()
        self.assertLessEqual(len(lines), 100)
        self.assertEqual(lines[41:43], ["not ok 401", "not ok 403"])

    def test_a_line_of_megabytes_is_cut(self):
        done = run("print('x' * 32_000_000)")
        self.assertEqual(done.returncode, 0)
        self.assertLess(len(done.stdout), 600)
        self.assertIn("32000000 characters", done.stdout)

    def test_a_short_report_is_whole_with_both_streams_and_the_status_of_a_skip(self):
        done = run("import sys\nprint('to one', flush=True)\nprint('to the other', file=sys.stderr)\nsys.exit(77)")
        self.assertEqual((done.stdout, done.returncode), ("to one\nto the other\n", 77))

    def test_a_crash_is_a_failure_that_is_named(self):
        done = run("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
        self.assertEqual(done.returncode, 139)
        self.assertIn("ended by signal 11", done.stdout)


if __name__ == "__main__":
    unittest.main()
