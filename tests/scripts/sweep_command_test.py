#!/usr/bin/env python3
"""llmperf sweep and llmperf merge: what is computed, in which order, what is kept, and that it goes on."""
import csv
import io
import itertools
import json
import os
import resource
import signal
import stat
import subprocess
import time
import unittest

from program import FAILED, PROGRAM, SANITIZED, USAGE, ProgramTest

SWEEP = ["sweep", "-m", "qwen-7b,qwen-14b", "--hw", "rtx4090,a10"]
SMALL = [*SWEEP, "--batch", "1-4*2", "--prompt", "128,1024"]
LARGE = [*SWEEP, "--batch", "1-512*2", "--prompt", "64-6400+640" if SANITIZED else "64-6400+64", "--weights", "bf16,int8,w4a16", "--tp", "1,2,4"]


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


class SweepTest(ProgramTest):
    def rows(self, *words, **options):
        return rows_of(self.output(*words, "--format", "csv", **options))

    def test_points_are_the_cross_product_in_the_order_of_the_help_batch_fastest(self):
        rows = self.rows("sweep", "--batch", "1-4*2", "--weights", "bf16,w4a16", "--hw", "rtx4090,a10", "-m", "qwen-7b", "--prompt", "256,128")
        expected = list(itertools.product(["rtx4090", "a10"], ["bf16", "w4a16-g128"], ["256", "128"], ["1", "2", "4"]))
        self.assertEqual([(r["hardware"], r["weights"], r["prompt_tokens"], r["batch"]) for r in rows], expected)
        self.assertEqual([int(r["point"]) for r in rows], list(range(len(expected))))

    def test_a_point_is_the_estimate_of_the_same_flags(self):
        for flags in (["--batch", "4", "--prompt", "1024", "--weights", "w4a16", "--gen", "64"], ["--tp", "2", "--runtime", "none"],
                      ["--batch", "3000"], ["--weights", "q4_k_m", "--gpu-layers", "20"], ["--options", "all,no_flash_attention"]):
            for model, device in itertools.product(("qwen-7b", "qwen-14b"), ("rtx4090", "a10")):
                words = ["-m", model, "--hw", device, *flags]
                done = self.run_program("estimate", *words, "--format", "csv")
                estimate = rows_of(done.stdout)[0]
                sweep = [r for r in self.rows("sweep", "-m", "qwen-7b,qwen-14b", "--hw", "rtx4090,a10", *flags)
                         if (r["model"], r["hardware"]) == (model, device)]
                self.assertEqual(len(sweep), 1)
                self.assertEqual({k: sweep[0][k] for k in estimate}, estimate, words)

    def test_a_point_of_a_video_or_a_training_sweep_is_its_estimate(self):
        for words, flag, values in ((["-m", "stdit3-xl2", "--hw", "h100-sxm", "--seconds", "2"], "--resolution", ["144p", "360p"]),
                                    (["-m", "llama-3-8b", "--hw", "a100-sxm-80gb", "--training", "--dp", "2"], "--zero", ["0", "1", "3"])):
            rows = self.rows("sweep", *words, flag, ",".join(values))
            for row, value in zip(rows, values):
                estimate = rows_of(self.run_program("estimate", *words, flag, value, "--format", "csv").stdout)[0]
                self.assertEqual({k: row[k] for k in estimate}, estimate)
                self.assertEqual(row["error"], "")

    def test_what_a_point_ignores_is_told(self):
        words = ["sweep", "-m", "llama-3.1-8b", "--hw", "rtx4090", "--runtime", "vllm,none"]
        told = "at 2 of 4 points a field says nothing: --options none: the stack of profile vllm does the same without it"
        both = [*words, "--options", "none", "--batch", "1,2"]
        self.assertIn(told, " ".join(self.output(*both).split()))
        self.assertEqual(json.loads(self.output(*both, "--json"))["notes"], [told])
        self.assertNotIn("notes", json.loads(self.output(*words, "--batch", "1,2", "--json")))

    def test_rows_are_kept_and_ordered_by_what_a_million_tokens_cost(self):
        words = ["sweep", "-m", "qwen-7b", "--hw", "rtx4090,h100-sxm,a10,ascend-910b4", "--runtime", "none", "--batch", "8"]
        cost = "cost_per_million_output_tokens"
        rows = {r["hardware"]: r for r in self.rows(*words)}
        self.assertEqual(rows["ascend-910b4"][cost], "")  # nobody's price is known
        self.assertEqual(rows["ascend-910b4"]["currency"], "")
        h100 = rows["h100-sxm"]
        self.assertAlmostEqual(float(h100["cost_per_hour"]) / 3600 * float(h100["tpot_s"]) / 8 * 1e6, float(h100[cost]), places=9)
        self.assertEqual((h100["price_basis"], h100["currency"]), ("rent", "USD"))
        bound = sorted(float(r[cost]) for r in rows.values() if r[cost])[1]
        kept = self.rows(*words, "--where", f"{cost}<={bound}")
        self.assertEqual(sorted(float(r[cost]) for r in kept)[-1], bound)
        self.assertEqual(len(kept), 2)
        best = self.rows(*words, "--top", "1", "--by", cost)
        self.assertEqual([float(r[cost]) for r in best], [min(float(r[cost]) for r in rows.values() if r[cost])])

    def test_a_price_is_an_axis_and_costs_are_in_proportion_to_it(self):
        rows = self.rows("sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--price", "1,2EUR", "--tp", "1,2")
        of = {(r["price"], r["devices"]): r for r in rows}
        self.assertEqual(float(of["1", "2"]["cost_per_hour"]), 2)
        self.assertEqual(float(of["2EUR", "2"]["cost_per_hour"]), 4)
        self.assertEqual(of["2EUR", "1"]["currency"], "EUR")
        self.assertEqual(of["1", "1"]["price_basis"], "given")
        for devices in ("1", "2"):
            self.assertAlmostEqual(2 * float(of["1", devices]["cost_per_million_input_tokens"]),
                                   float(of["2EUR", devices]["cost_per_million_input_tokens"]), places=12)

    def test_every_number_of_threads_writes_the_same_bytes(self):
        outputs = {self.output(*LARGE[:-2], "--tp", "1,2", "--threads", n, "--format", "csv") for n in ("1", "2", "5")}
        self.assertEqual(len(outputs), 1)

    def test_a_point_does_not_hang_on_the_point_before_it(self):
        # Arrays of tiles prefetch weights, GPUs do not; options change it from one setup to the next.
        words = ["sweep", "-m", "qwen-7b", "--hw", "tx8,rtx4090,tx81", "--options", "all,joined_vectors,prefetch_weights;all", "--runtime", "none",
                 "--prompt", "512,64", "--batch", "1"]
        one = self.output(*words, "--threads", "1", "--format", "csv")
        self.assertEqual(self.output(*words, "--threads", "3", "--format", "csv"), one)
        for row in rows_of(one):
            alone = self.rows("sweep", "-m", "qwen-7b", "--hw", row["hardware"], "--options", row["options"], "--runtime", "none", "--prompt",
                              row["prompt_tokens"], "--batch", "1")[0]
            self.assertEqual((row["ttft_s"], row["tpot_s"]), (alone["ttft_s"], alone["tpot_s"]), row["point"])

    def test_every_built_in_model_on_five_devices(self):
        models = [m["model"] for m in rows_of(self.output("list", "models", "--format", "csv")) if not m["model"].startswith("stdit")]
        self.assertGreater(len(models), 160)
        devices = ["h100-sxm", "rtx4090", "atlas-800i-a2", "apple-m3-max", "epyc-9654"]
        rows = self.rows("sweep", "-m", ",".join(models), "--hw", ",".join(devices))
        self.assertEqual(len(rows), len(models) * len(devices))
        for row in rows:
            self.assertEqual(row["error"], "", row)
            self.assertFalse([v for v in row.values() if v.lower() in ("nan", "inf", "-nan", "-inf")], row)
            self.assertEqual(row["fits"] == "true", float(row["total_bytes"]) <= float(row["capacity_bytes"]), row)
            self.assertEqual(row["fits"] == "true", row["ttft_s"] != "", row)

    def test_csv_and_json_lines_hold_the_same(self):
        table = self.rows(*SMALL)
        lines = [json.loads(line) for line in self.output(*SMALL, "--format", "jsonl").splitlines()]
        self.assertEqual([list(line) for line in lines], [list(row) for row in table])
        for line, row in zip(lines, table):
            for key, value in line.items():
                text = "" if value is None else str(value).lower() if isinstance(value, bool) else value
                self.assertEqual(float(row[key]) if isinstance(text, float) else row[key], text if isinstance(text, float) else str(text))

    def test_merged_shards_are_the_bytes_of_the_whole(self):
        for ending in ("csv", "jsonl"):
            whole = self.output(*SMALL, "--format", ending)
            for count in (3, 20):
                names = []
                for i in range(1, count + 1):
                    names.append(f"part-{count}-{i}.{ending}")
                    self.output(*SMALL, "--shard", f"{i}/{count}", "--export", names[-1])
                self.assertEqual(self.output("merge", *reversed(names), "--format", ending), whole)

    def test_a_selection_of_merged_selections_is_that_of_the_whole(self):
        for keep in (["--top", "5", "--by", "tokens_per_second"], ["--pareto", "ttft_s,tokens_per_second_per_device"],
                     ["--top", "4", "--by", "ttft_s", "--where", "fits and batch > 1"]):
            whole = self.output(*SMALL, *keep, "--format", "csv")
            for i in (1, 2, 3):
                self.output(*SMALL, *keep, "--shard", f"{i}/3", "--export", f"part{i}.csv")
            self.assertEqual(self.output("merge", "part1.csv", "part2.csv", "part3.csv", *keep, "--format", "csv"), whole)
            for i in (1, 2, 3):
                os.remove(self.path(f"part{i}.csv"))

    def test_where_keeps_what_holds(self):
        everything = self.rows(*SMALL)
        kept = self.rows(*SMALL, "--where", "ttft_s < 100ms and fits and model == 'qwen-7b'")
        self.assertEqual(kept, [r for r in everything if r["fits"] == "true" and float(r["ttft_s"]) < 0.1 and r["model"] == "qwen-7b"])
        self.assertTrue(0 < len(kept) < len(everything))

    def test_the_best_and_the_front(self):
        everything = [r for r in self.rows(*SMALL) if r["ttft_s"]]
        best = self.rows(*SMALL, "--top", "3", "--by", "tokens_per_second")
        self.assertEqual(best, sorted(everything, key=lambda r: -float(r["tokens_per_second"]))[:3])
        front = self.rows(*SMALL, "--pareto", "ttft_s,tokens_per_second")

        def beats(a, b):
            x, y = ((float(r["ttft_s"]), -float(r["tokens_per_second"])) for r in (a, b))
            return x != y and x[0] <= y[0] and x[1] <= y[1]
        self.assertEqual({r["point"] for r in front}, {r["point"] for r in everything if not any(beats(o, r) for o in everything)})

    def test_points_that_fail_are_rows_with_a_reason(self):
        done = self.run_program("sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--tp", "1,3", "--batch", "1,2", "--dp", "2", "--format", "csv")
        self.assertEqual(done.returncode, FAILED)
        rows = rows_of(done.stdout)
        self.assertEqual([(r["tp"], r["batch"], r["fits"]) for r in rows], [("1", "1", ""), ("1", "2", "true"), ("3", "1", ""), ("3", "2", "")])
        self.assertIn("1 do not divide into 2 replicas", rows[0]["error"])
        self.assertEqual(rows[1]["error"], "")
        self.assertIn("32 heads of qwen-7b do not divide by 3", rows[2]["error"])
        self.assertIn("3 of 4 points failed", done.stderr)

    def test_what_does_not_fit_is_an_answer_and_no_failure(self):
        rows = self.rows("sweep", "-m", "qwen-72b", "--hw", "rtx4090", "--batch", "1")
        self.assertEqual((rows[0]["fits"], rows[0]["ttft_s"], rows[0]["error"]), ("false", "", ""))

    def test_points_of_a_file_go_together(self):
        self.write("points.csv", "model,hw,batch\nqwen-7b,rtx4090,1\nqwen-14b,a100-sxm-80gb,8\n")
        rows = self.rows("sweep", "--points", "points.csv", "--prompt", "128,256")
        self.assertEqual([(r["model"], r["hardware"], r["batch"], r["prompt_tokens"]) for r in rows],
                         [("qwen-7b", "rtx4090", "1", "128"), ("qwen-7b", "rtx4090", "1", "256"),
                          ("qwen-14b", "a100-sxm-80gb", "8", "128"), ("qwen-14b", "a100-sxm-80gb", "8", "256")])
        self.write("bad.csv", "model,hv\nqwen-7b,rtx4090\n")
        self.assert_bad_input(["sweep", "--points", "bad.csv"], "bad.csv:1:7: unknown flag 'hv'", "--hw")
        self.write("short.csv", "model,hw\nqwen-7b\n")
        self.assert_bad_input(["sweep", "--points", "short.csv"], "short.csv:2: 1 cells, and the header has 2")
        self.write("switch.csv", "model,hw,training\nqwen-7b,rtx4090,true\n")
        self.assert_bad_input(["sweep", "--points", "switch.csv"], "unknown flag 'training'")
        self.assert_bad_input(["sweep", "--points", "points.csv", "--batch", "2"], "--batch is in the file of points, too")

    def test_bad_input_is_said_before_the_work(self):
        sweep = ["sweep", "-m", "qwen-7b", "--hw", "rtx4090"]
        self.assert_bad_input(["sweep", "-m", "qwen-7b,qwen-7c", "--hw", "rtx4090,rtx4091"], "qwen-7c", "rtx4091")
        self.assert_bad_input(["sweep", "-m", "qwen-7b"], "--hw is required")
        self.assert_bad_input([*sweep, "--batch", "1,x"], "--batch: 'x'")
        self.assert_bad_input([*sweep, "--batch", "4-1*2"], "does not go up")
        self.assert_bad_input([*sweep, "--where", "ttft < 1"], "unknown column", "ttft_s")
        self.assert_bad_input([*sweep, "--top", "3"], "--by")
        self.assert_bad_input([*sweep, "--top", "3", "--by", "speed"], "unknown column 'speed'")
        self.assert_bad_input([*sweep, "--pareto", "ttft_s"], "two columns or more")
        self.assert_bad_input([*sweep, "--columns", "point,ttft"], "unknown column 'ttft'")
        self.assert_bad_input([*sweep, "--shard", "4/3"], "--shard")
        self.assert_bad_input([*sweep, "--shard", "3"], "--shard 3/16")
        self.assert_bad_input([*sweep, "--threads", "0"], "--threads")
        self.assert_bad_input([*sweep, "--resume"], "--resume goes with one output of rows")
        self.assert_bad_input(["sweep", "-m", "qwen-7b,stdit3-xl2", "--hw", "rtx4090"], "different results")
        self.assert_bad_input([*LARGE, "--gen", "2-100+1"], "too many for a table")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_table_fits_the_page_and_json_says_what_the_axes_are(self):
        for line in self.output(*SMALL).splitlines():
            self.assertLessEqual(len(line), 100)
        document = self.json(*SMALL)
        self.assertEqual(document["schema"], "llmperf.sweep")
        self.assertEqual([(a["flag"], a["column"], len(a["values"])) for a in document["axes"]],
                         [("--model", "model", 2), ("--hw", "hardware", 2), ("--prompt", "prompt_tokens", 2), ("--batch", "batch", 3)])
        self.assertEqual((document["points"], document["failed"], len(document["rows"])), (24, 0, 24))

    def test_columns_choose_and_order(self):
        rows = self.output(*SMALL, "--columns", "ttft_s,model", "--top", "1", "--by", "ttft_s", "--format", "csv").splitlines()
        self.assertEqual(rows[0], "ttft_s,model")
        self.assertEqual(len(rows), 2)

    def start(self, *words):
        process = subprocess.Popen([PROGRAM, *words], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                   stdin=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        return process

    def wait_until(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.002)

    def first_to_end(self, pair):
        """It, and the other."""
        self.wait_until(lambda: any(process.poll() is not None for process in pair))
        return pair if pair[0].poll() is not None else pair[::-1]

    def interrupt(self, words, name, sig):
        """Stops a sweep in the middle; returns its status and message."""
        process = self.start(*words)
        partial = self.path(name + ".partial")
        deadline = time.monotonic() + self.seconds
        while not (os.path.exists(partial) and os.path.getsize(partial) > 20000) and time.monotonic() < deadline:
            if process.poll() is not None:
                break
            time.sleep(0.01)
        process.send_signal(sig)
        _, stderr = process.communicate(timeout=self.seconds)
        self.assertFalse(os.path.exists(self.path(name)), "a file under its final name is complete")
        self.assertTrue(os.path.exists(partial))
        return process.returncode, stderr

    def test_an_interrupted_sweep_keeps_its_rows_and_goes_on(self):
        words = [*LARGE, "--gen", "2-200+1"]  # some minutes
        expected = LARGE + ["--gen", "2"]
        whole = self.output(*expected, "--format", "csv")
        for sig, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -signal.SIGKILL)):
            code, stderr = self.interrupt([*words, "--export", "rows.csv"], "rows.csv", sig)
            self.assertEqual(code, status)
            if sig != signal.SIGKILL:
                self.assertRegex(stderr, r"^llmperf: interrupted after \d\S* of \d\S* points; rows are in \S*rows.csv.partial; --resume goes on\n$")
            self.assert_bad_input([*words, "--export", "rows.csv"], "has rows of an interrupted sweep", "--resume")
            os.remove(self.path("rows.csv.partial"))
        # What any interruption leaves: a beginning of the rows, the last one perhaps not whole.
        for kept in (0, 100, len(whole) // 2, len(whole) - 1, len(whole)):
            self.write("rows.csv.partial", whole[:kept])
            self.output(*expected, "--export", "rows.csv", "--resume")
            with open(self.path("rows.csv"), encoding="utf-8") as file:
                self.assertTrue(file.read() == whole, f"{kept} bytes were kept")
            self.assertFalse(os.path.exists(self.path("rows.csv.partial")))
            os.remove(self.path("rows.csv"))

    def test_a_signal_ends_a_sweep_that_keeps_the_best_without_a_file(self):
        words = [*LARGE, "--gen", "2-200+1", "--top", "3", "--by", "ttft_s", "--threads", "4", "--export", "rows.csv"]
        for sig, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            process = self.start(*words)
            self.wait_until(lambda: self.threads(process.pid) >= 5)  # by then it has opened its files and is at work
            process.send_signal(sig)
            _, stderr = process.communicate(timeout=self.seconds)
            self.assertEqual(process.returncode, status)
            self.assertRegex(stderr, r"^llmperf: interrupted after \d\S* of \d\S* points\n$")
            self.assertEqual(os.listdir(self.folder), [])

    @staticmethod
    def threads(pid):
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("Threads"))

    def test_of_two_sweeps_into_one_file_one_writes_it_and_the_other_says_so(self):
        words = [*SWEEP, "--batch", "1-64*2", "--prompt", "128-1280+128"]  # more than a pipe holds
        expected = self.output(*words, "--format", "csv")
        self.assertGreater(len(expected), 1 << 16)
        for _ in range(5 if SANITIZED else 25):
            # Rows go to stdout, too, which nobody reads for now: whoever has the file is not done before the other comes.
            pair = [self.start(*words, "--export", "rows.csv", "--format", "csv") for _ in range(2)]
            loser, winner = self.first_to_end(pair)
            _, stderr = loser.communicate(timeout=self.seconds)
            self.assertEqual(loser.returncode, USAGE)
            self.assertIn("llmperf: error: another process is writing 'rows.csv'", stderr)
            self.assertEqual(winner.communicate(timeout=self.seconds), (expected, ""))
            self.assertEqual(winner.returncode, 0)
            self.assertEqual(os.listdir(self.folder), ["rows.csv"])
            with open(self.path("rows.csv"), encoding="utf-8") as file:
                self.assertTrue(file.read() == expected)
            os.remove(self.path("rows.csv"))

    def test_only_one_of_two_goes_on_with_an_interrupted_sweep(self):
        words = [*LARGE, "--gen", "2-200+1", "--export", "rows.csv"]  # some minutes
        self.interrupt(words, "rows.csv", signal.SIGTERM)
        left = os.path.getsize(self.path("rows.csv.partial"))
        pair = [self.start(*words, "--resume") for _ in range(2)]
        loser, winner = self.first_to_end(pair)
        _, stderr = loser.communicate(timeout=self.seconds)
        self.assertEqual(loser.returncode, USAGE)
        self.assertIn("another process is writing 'rows.csv'", stderr)
        self.assert_bad_input(words, "another process is writing 'rows.csv'")  # one that would start anew, too
        self.wait_until(lambda: os.path.getsize(self.path("rows.csv.partial")) > left + 20000)
        winner.send_signal(signal.SIGTERM)
        _, stderr = winner.communicate(timeout=self.seconds)
        self.assertEqual(winner.returncode, 143, stderr)
        with open(self.path("rows.csv.partial"), encoding="utf-8") as file:
            points = [int(row["point"]) for row in csv.DictReader(file)]
        self.assertEqual(points, list(range(len(points))))

    def test_a_reader_that_has_enough_ends_a_sweep_silently(self):
        for more in ([], ["--export", "rows.csv"]):
            words = " ".join(f"'{word}'" for word in [*LARGE, "--gen", "2-200+1", "--format", "csv", *more])
            done = subprocess.run(["bash", "-c", f"'{PROGRAM}' {words} | head -n 1; echo ${{PIPESTATUS[0]}}"], cwd=self.folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", check=False, timeout=self.seconds)
            self.assertEqual((done.stdout.splitlines()[1:], done.stderr), (["141"], ""))
            self.assertEqual(os.listdir(self.folder), [])

    def test_a_device_is_written_in_place_and_stays_one(self):
        os.symlink("/dev/null", self.path("rows.csv"))
        self.output(*SMALL, "--export", "rows.csv")
        self.output(*SMALL, "--export", "rows.csv", "--resume")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        os.symlink("/dev/full", self.path("full.csv"))
        self.assert_error(self.run_program(*SMALL, "--export", "full.csv"), FAILED, "cannot write full.csv: No space left on device")
        self.assertEqual(sorted(os.listdir(self.folder)), ["full.csv", "rows.csv"])

    def run_limited(self, limits, *words):
        def limit():
            for what, most in limits:
                resource.setrlimit(what, (most, most))
        return subprocess.run([PROGRAM, *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", preexec_fn=limit, check=False, timeout=60)

    @unittest.skipIf(SANITIZED, "a sanitizer reserves terabytes of address space")
    def test_running_out_of_memory_is_an_error_on_every_thread(self):
        words = ["sweep", "-m", "llama-3.2-1b", "--hw", "rtx4090", "--batch", "1-1000+1", "--format", "json", "--export", "rows.csv"]
        failed = 0
        # The least runs out over the rows, more over their JSON, and the most is enough.
        for megabytes, threads in itertools.product(range(28, 60, 9), ("1", "2")):
            done = self.run_limited([(resource.RLIMIT_AS, megabytes << 20), (resource.RLIMIT_STACK, 1 << 20)], *words, "--threads", threads)
            if done.returncode == 0:
                self.assertEqual(len(json.loads(done.stdout)["rows"]), 1000)
                os.remove(self.path("rows.csv"))
                continue
            self.assert_error(done, FAILED)
            self.assertIn(done.stderr, ("llmperf: error: out of memory\n", "llmperf: error: cannot start a thread: Resource temporarily unavailable\n"))
            failed += "memory" in done.stderr
            for name in os.listdir(self.folder):
                self.assertIn(name, ("rows.csv.partial", "rows.csv"))  # JSON comes behind the complete file
                os.remove(self.path(name))
        self.assertGreater(failed, 0)

    @unittest.skipIf(SANITIZED, "a sanitizer reserves terabytes of address space")
    def test_as_many_threads_as_can_be_started_do_the_work(self):
        self.memory = None  # a hundred stacks and their heaps do not fit in what other tests get
        words = [*LARGE[:-2], "--format", "csv", "--threads", "100"]
        done = self.run_program(*words)
        with open("/proc/meminfo", encoding="ascii") as meminfo:
            self.assertEqual(done.returncode, 0, (done.stderr, resource.getrlimit(resource.RLIMIT_AS), meminfo.read()))
        expected = done.stdout
        # Of every thread's stack two fit, or none.
        done = self.run_limited([(resource.RLIMIT_AS, 3 << 30), (resource.RLIMIT_STACK, 1 << 30)], *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout == expected)
        done = self.run_limited([(resource.RLIMIT_AS, 1 << 30), (resource.RLIMIT_STACK, 2 << 30)], *LARGE, "--export", "a.csv")
        self.assert_error(done, FAILED, "cannot start a thread: Resource temporarily unavailable")

    def test_resuming_what_is_complete_does_nothing_and_keeps_its_status(self):
        self.output(*SMALL, "--export", "rows.jsonl")
        before = os.stat(self.path("rows.jsonl")).st_mtime_ns
        self.output(*SMALL, "--export", "rows.jsonl", "--resume")
        self.assertEqual(os.stat(self.path("rows.jsonl")).st_mtime_ns, before)
        self.assert_bad_input([*SMALL[:-1], "128", "--export", "rows.jsonl", "--resume"], "not of this sweep")
        for name in ("failing.csv", "failing.jsonl"):
            failing = ["sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--tp", "3,1,5", "--export", name]
            for more in ([], ["--resume"]):
                done = self.run_program(*failing, *more)
                self.assert_error(done, FAILED, "2 of 3 points failed")

    def test_rows_that_resume_refuses_stay(self):
        other = self.output(*SWEEP, "--batch", "2-16*2", "--prompt", "128,1024", "--format", "csv")
        rows = "".join(other.splitlines(True)[:5])
        for words, fragment in ((["--export", "rows.csv", "--resume"], "not of this sweep"),
                                (["--export", "rows.csv", "--resume", "--shard", "2/2"], "not of this sweep"),
                                (["--export", "rows.csv", "--export", "rows.jsonl", "--resume"], "one output of rows"),
                                (["--export", "rows.csv", "--format", "csv", "--resume"], "one output of rows"),
                                (["--export", "rows.csv", "--columns", "batch", "--resume"], "one output of rows"),
                                (["--export", "rows.csv"], "has rows of an interrupted sweep")):
            self.write("rows.csv.partial", rows)
            self.assert_bad_input([*SMALL, *words], fragment)
            with open(self.path("rows.csv.partial"), encoding="utf-8") as file:
                self.assertEqual(file.read(), rows, words)
        self.write("rows.csv.partial", "a,b\n1,2\n")
        self.assert_bad_input([*SMALL, "--export", "rows.csv", "--resume"], "other columns")

    def test_rows_that_cannot_be_read_are_reported_under_the_name_of_the_file_they_are_in(self):
        whole = self.output(*SMALL, "--format", "csv").splitlines(True)
        lines = self.output(*SMALL, "--format", "jsonl").splitlines(True)
        for name, text, what in (("rows.csv", "".join(whole[:3]) + "1,2\n", ":4: 2 cells"),
                                 ("rows.csv", "".join(whole[:2]) + '"a\n', ":3:1: a quoted field"),
                                 ("rows.jsonl", "".join(lines[:2]) + '{"point": 3}\n', "' are not of this sweep"),
                                 ("rows.jsonl", lines[0] + "x\n", ":2: no JSON object")):
            self.write(name + ".partial", text)
            done = self.run_program(*SMALL, "--export", name, "--resume")
            self.assert_error(done, USAGE, f"/{name}.partial{what}")
            with open(self.path(name + ".partial"), encoding="utf-8") as file:
                self.assertEqual(file.read(), text)

    def test_one_file_is_written_once_and_a_link_leads_to_it(self):
        self.assert_bad_input([*SMALL, "--export", "a.csv", "--export", "./a.csv"], "given more than once")
        os.symlink("real.csv", self.path("link.csv"))
        self.output(*SMALL, "--export", "link.csv")
        self.assertTrue(os.path.islink(self.path("link.csv")) and os.path.getsize(self.path("real.csv")) > 1000)

    def test_a_full_disk_ends_with_a_message_and_no_file(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = self.run_program(*LARGE, "--format", "csv", stdout=full)
        self.assert_error(done, FAILED, "cannot write stdout")
        self.assert_error(self.run_program(*SMALL, "--export", "missing/rows.csv"), FAILED, "cannot write missing/rows.csv")

    def test_merge_refuses_what_is_no_part_of_one_sweep(self):
        self.output(*SMALL, "--shard", "1/2", "--export", "a.csv")
        self.output(*SMALL, "--shard", "2/2", "--export", "b.csv")
        self.assert_bad_input(["merge", "a.csv", "a.csv"], "point 0 is in 'a.csv' and in 'a.csv'")
        self.output(*SMALL, "--columns", "point,ttft_s", "--export", "c.csv")
        self.assert_bad_input(["merge", "a.csv", "c.csv"], "different columns")
        self.write("d.csv", "x,y\n1,2\n")
        self.assert_bad_input(["merge", "d.csv"], "no column 'point'")
        with open(self.path("a.csv"), encoding="utf-8") as file:
            self.write("e.csv", file.read()[:-5])
        self.assert_bad_input(["merge", "e.csv", "b.csv"], "not complete")
        self.assert_bad_input(["merge", "a.csv", "b.txt"], "cannot tell the format")
        self.assert_bad_input(["merge", "missing.csv"], "cannot read")
        self.assert_error(self.run_program("merge", "b.csv", "--export", "all.csv"), FAILED, "are in none of the files", "--gaps")
        self.assertFalse(os.path.exists(self.path("all.csv")) or os.path.exists(self.path("all.csv.partial")))
        self.output("merge", "b.csv", "--gaps", "--export", "all.csv")
        self.assert_bad_input(["merge", "a.csv", "a.csv", "--top", "2", "--by", "ttft_s"], "point 0 is in 'a.csv' and in 'a.csv'")

    def test_merge_counts_failures_and_undoes_what_guards_spreadsheets(self):
        words = ["sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--tp", "1,3"]
        whole = self.run_program(*words, "--format", "jsonl").stdout
        self.run_program(*words, "--export", "rows.csv")
        self.assertEqual(self.output("merge", "rows.csv", "--format", "jsonl"), whole)
        document = self.json("merge", "rows.csv")
        self.assertEqual((document["points"], document["failed"]), (2, 1))

    def test_shards_without_rows_merge_to_nothing(self):
        for i in ("1", "2"):
            self.output(*SMALL, "--where", "batch > 100", "--shard", i + "/2", "--export", f"none{i}.jsonl")
        self.assertEqual(self.output("merge", "none1.jsonl", "none2.jsonl", "--format", "jsonl"), "")


if __name__ == "__main__":
    unittest.main()
