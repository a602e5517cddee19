#!/usr/bin/env python3
"""A write error is reported before the work where it can be known, ends with exit status 1, and never leaves a half-written file
under the final name, nor a temporary one: for every command that writes, and for every way in which writing goes wrong."""
import itertools
import os
import resource
import signal
import stat
import subprocess
import time
import unittest

from program import DONE, FAILED, PROGRAM, USAGE, ProgramTest

ESTIMATE = ["estimate", "-m", "qwen-7b", "--hw", "rtx4090"]
MAP = ["map", "vector", "--hw", "tx8", "--kind", "add", "--rows", "64", "--width", "64"]
NCCL = """\
# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    50.00   20.97   36.70      0    50.00   20.97   36.70      0
"""
PROGRAM_TEXT = """\
module {
  func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %0 = stablehlo.add %a, %b : tensor<64x64xf32>
    return %0 : tensor<64x64xf32>
  }
}
"""
# Every command that prints a report takes --export; these write other files.
REPORTS = [
    ESTIMATE,
    ["estimate", "-m", "qwen-7b", "--hw", "rtx4090", "--training"],
    ["estimate", "-m", "stdit-xl2", "--hw", "h100-sxm"],
    ["compare", "-m", "qwen-7b", "--hw", "rtx4090", "--with", "none"],
    ["explain", "ttft_s", "-m", "qwen-7b", "--hw", "rtx4090"],
    ["graph", "program.mlir", "--hw", "rtx4090"],
    ["limits", "-m", "qwen-7b", "--hw", "rtx4090"],
    MAP,
    ["map-collective", "--hw", "a100-sxm-80gb", "--op", "all-reduce", "--ranks", "2", "--size", "1MiB"],
    ["parallel", "-m", "qwen-7b", "--hw", "a100-sxm-80gb", "--devices", "2"],
    ["calibrate", "rtx4090-ops", "--hw", "rtx4090"],
    ["validate", "rtx4090-ops"],
    ["import", "nccl-tests", "all_reduce_perf.txt", "--ranks", "8"],
    ["list", "models"],
    ["show", "hardware", "rtx4090"],
]
TEXTS = [["--help"], ["--version"], ["completion", "bash"], ["man"], ["completion", "candidates", "--", ""]]
# (command, flag of the file, name it may have)
FILES = [(words, "--export", name) for words in REPORTS for name in ("a.json", "a.csv", "a.html")] + [
    (["sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--batch", "1-8*2"], "--export", "a.csv"),
    (["sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--batch", "1-8*2"], "--export", "a.json"),
    (MAP, "--svg", "a.svg"),
    (["replay", "-m", "qwen1.5-0.5b", "--hw", "rtx4090", "--emit", "rows"], "-o", "a.csv"),
    (["calibrate", "rtx4090-ops", "--hw", "rtx4090"], "-o", "a.yaml"),
    (["import", "nccl-tests", "all_reduce_perf.txt", "--ranks", "8"], "-o", "a.csv"),
    (["replay", "--sweep", "gemm", "--dtype", "fp32", "--hw", "ryzen-7950x"], "-o", "a.csv"),
    (["replay", "--sweep", "gemm", "--dtype", "fp32", "--hw", "ryzen-7950x"], "--calibrate", "a.yaml"),
    (["replay", "--describe-device"], "-o", "a.yaml"),
]


class WriteErrors(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("program.mlir", PROGRAM_TEXT)
        self.write("all_reduce_perf.txt", NCCL)
        self.inputs = sorted(os.listdir(self.folder))

    def assert_nothing_left(self, *more):
        self.assertEqual(sorted(os.listdir(self.folder)), sorted([*self.inputs, *more]))

    def test_a_path_that_cannot_be_written_is_told_before_the_work(self):
        os.mkdir(self.path("folder.json"))
        for words, flag, name in FILES:
            # A missing folder, a file where a folder should be, and a link to nowhere.
            for path in (f"missing/{name}", f"program.mlir/{name}"):
                with self.subTest(words=words, path=path):
                    done = self.run_program(*words, flag, path)
                    self.assert_error(done, FAILED, f"cannot write {path}: ")  # and nothing on stdout: no work was done
        self.assert_error(self.run_program(*ESTIMATE, "--export", "folder.json"), FAILED, "cannot write folder.json: Is a directory")
        self.assert_nothing_left("folder.json")

    def test_a_stdout_that_nobody_reads_ends_the_program_silently_and_before_the_work(self):
        for words in [*REPORTS, *TEXTS]:
            with self.subTest(words=words):
                # Exports come before stdout, so none there: it stopped earlier.
                self.assert_closed_pipe_is_silent(*words, *(["--export", "a.json"] if words in REPORTS else []))
                self.assert_nothing_left()

    def test_an_export_into_a_pipe_that_nobody_reads_any_more_is_an_error(self):
        os.mkfifo(self.path("pipe.html"))
        process = subprocess.Popen([PROGRAM, *ESTIMATE, "--export", "pipe.html"], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, encoding="utf-8")
        with open(self.path("pipe.html"), "rb") as pipe:  # larger than what a pipe holds
            pipe.read(1)
        _, stderr = process.communicate(timeout=60)
        self.assertEqual((process.returncode, stderr), (FAILED, "llmperf: error: cannot write pipe.html: Broken pipe\n"))

    def test_a_stdout_on_a_full_disk_ends_with_exit_1(self):
        for words in [*REPORTS, *TEXTS]:
            with self.subTest(words=words), open("/dev/full", "w", encoding="utf-8") as full:
                self.assert_error(self.run_program(*words, stdout=full), FAILED, "cannot write stdout: No space left on device")

    def closed(self, streams, *words):
        command = f'exec "{PROGRAM}" {" ".join(words)} {streams}'
        return subprocess.run(["sh", "-c", command], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", check=False, timeout=self.seconds)

    def test_a_closed_stream_is_an_error_and_its_text_goes_into_no_file(self):
        done = self.closed(">&-", *ESTIMATE, "--export", "a.json")
        self.assert_error(done, FAILED, "cannot write stdout: Bad file descriptor")
        self.assert_nothing_left()
        # Messages to a closed stderr are lost; they do not land in what happens to be opened next.
        done = self.closed("2>&-", "estimate", "-m", "llama-3-70b", "--hw", "rtx4090", "--export", "a.json")
        self.assertEqual(done.returncode, 3)
        with open(self.path("a.json"), encoding="utf-8") as file:
            self.assertNotIn("llmperf: error", file.read())

    def test_a_disk_that_is_full_in_the_middle_leaves_the_old_file(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        for words, flag, name in FILES:
            if words[0] == "replay" or name == "a.csv" or flag != "--export":
                continue  # they take long, or what they write is smaller than the limit
            with self.subTest(words=words, name=name):
                self.write(name, "old")
                done = subprocess.run([PROGRAM, *words, flag, name], cwd=self.folder, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, encoding="utf-8", preexec_fn=small_files, check=False)
                with open(self.path(name), encoding="utf-8") as file:
                    kept = file.read()
                if done.returncode == DONE:
                    self.assertLessEqual(len(kept.encode()), 1000)
                else:
                    self.assert_error(done, FAILED, f"cannot write {name}: File too large")
                    self.assertEqual(kept, "old")
                os.remove(self.path(name))
                self.assert_nothing_left()

    def test_a_device_is_written_in_place_and_stays_one(self):
        os.symlink("/dev/full", self.path("full.json"))
        self.assert_error(self.run_program(*ESTIMATE, "--export", "full.json"), FAILED,
                          "cannot write full.json: No space left on device")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))
        self.assert_error(self.run_program(*MAP, "--svg", "/dev/full"), FAILED, "cannot write /dev/full: No space left on device")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))
        self.assert_nothing_left("full.json")
        self.output("calibrate", "rtx4090-ops", "--hw", "rtx4090", "-o", "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_a_replaced_file_keeps_its_permissions_and_a_link_its_place(self):
        os.mkdir(self.path("there"))
        self.write("there/a.json", "old")
        os.chmod(self.path("there/a.json"), 0o600)
        os.symlink("there/a.json", self.path("link.json"))
        self.output(*ESTIMATE, "--export", "link.json")
        self.assertTrue(os.path.islink(self.path("link.json")))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("there/a.json")).st_mode), 0o600)
        with open(self.path("there/a.json"), encoding="utf-8") as file:
            self.assertIn("llmperf.estimate", file.read())
        self.assertEqual(os.listdir(self.path("there")), ["a.json"])

    @unittest.skipIf(os.geteuid() == 0, "the superuser may write everything")
    def test_a_file_that_may_not_be_written_is_not_replaced(self):
        self.write("a.json", "old")
        os.chmod(self.path("a.json"), 0o400)
        self.assert_error(self.run_program(*ESTIMATE, "--export", "a.json"), FAILED, "cannot write a.json: Permission denied")

    def test_two_results_do_not_go_into_one_file(self):
        for one, other in (("a.json", "./a.json"), ("a.json", os.path.join(self.folder, "a.json"))):
            done = self.run_program("calibrate", "rtx4090-ops", "--hw", "rtx4090", "-o", one, "--export", other)
            self.assert_error(done, USAGE, "two results are to be written to")
        self.assert_nothing_left()

    def start_waiting(self, *words, **options):
        """An export into a pipe waits for its reader: by then the other file is open."""
        process = subprocess.Popen([PROGRAM, *words, "--export", "pipe.json"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
        self.addCleanup(process.kill)
        while not any(name.endswith(".partial") for name in os.listdir(self.folder)):
            self.assertIsNone(process.poll(), "it ended before it opened its file")
            time.sleep(0.01)
        return process

    def test_a_signal_leaves_no_file_behind(self):
        os.mkfifo(self.path("pipe.json"))
        self.output("sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--export", "rows.csv")
        self.inputs.append("rows.csv")
        writers = ([*ESTIMATE, "--export", "a.json"], ["merge", "rows.csv", "--export", "all.csv"],
                   ["sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--export", "a.csv"])
        for words, number in itertools.product(writers, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
            with self.subTest(words=words, signal=number):
                process = self.start_waiting(*words)
                process.send_signal(number)
                # As any program that such a signal ends: a shell shows 130 for Ctrl-C, and a script stops.
                self.assertEqual(process.wait(timeout=60), -number)
                self.assert_nothing_left("pipe.json")

    def test_a_signal_that_is_ignored_stays_so(self):
        os.mkfifo(self.path("pipe.json"))
        process = self.start_waiting(*ESTIMATE, "--export", "a.json",
                                     preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))  # nohup
        process.send_signal(signal.SIGHUP)
        with open(self.path("pipe.json"), encoding="utf-8") as pipe:
            self.assertIn("llmperf.estimate", pipe.read())
        self.assertEqual(process.wait(timeout=60), DONE)
        self.assert_nothing_left("pipe.json", "a.json")

    def test_two_processes_do_not_write_one_file(self):
        os.mkfifo(self.path("pipe.json"))
        sweep = ["sweep", "-m", "qwen-7b", "--hw", "rtx4090"]
        for words, name in ((ESTIMATE, "a.json"), (sweep, "a.csv"), (sweep, "a.md")):
            with self.subTest(words=words, name=name):
                process = self.start_waiting(*words, "--export", name)
                self.assert_bad_input([*words, "--export", name], f"another process is writing '{name}'", "hint: wait until it is done")
                self.assert_nothing_left("pipe.json", f"{name}.partial" if name == "a.csv" else f"{name}.new.partial")
                with open(self.path("pipe.json"), encoding="utf-8") as pipe:
                    self.assertIn("llmperf", pipe.read())
                self.assertEqual(process.wait(timeout=60), DONE)
                with open(self.path(name), encoding="utf-8") as file:
                    self.assertIn("qwen-7b", file.read())
                os.remove(self.path(name))

    def test_what_a_killed_process_left_is_in_nobodys_way(self):
        os.mkfifo(self.path("pipe.json"))
        process = self.start_waiting(*ESTIMATE, "--export", "a.json")
        process.kill()
        process.wait(timeout=60)
        self.assert_nothing_left("pipe.json", "a.json.new.partial")
        self.output(*ESTIMATE, "--export", "a.json")
        self.assert_nothing_left("pipe.json", "a.json")

    def test_a_loop_of_links_is_called_one(self):
        for name in ("a.csv", "a.json"):
            os.symlink(name, self.path("b" + name[1:]))
            os.symlink("b" + name[1:], self.path(name))
        for words in ([*ESTIMATE, "--export", "a.json"], ["sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--export", "a.csv"],
                      ["sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--export", "a.csv", "--resume"]):
            self.assert_error(self.run_program(*words), FAILED, f"cannot write a{words[words.index('--export') + 1][1:]}: Too many levels")
            self.assert_nothing_left("a.csv", "a.json", "b.csv", "b.json")
        for words in (["merge", "a.csv"], ["validate", "a.csv"], ["report", "a.json", "-o", "x.html"], ["graph", "a.json", "--hw", "rtx4090"]):
            self.assert_bad_input(words, "Too many levels of symbolic links")

    def test_manual_pages_are_written_like_any_file(self):
        self.assert_error(self.run_program("man", "-o", "program.mlir"), FAILED, "cannot write program.mlir")
        self.assert_error(self.run_program("man", "-o", "program.mlir/pages"), FAILED, "cannot write program.mlir/pages")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
