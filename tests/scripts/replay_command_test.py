#!/usr/bin/env python3
"""llmperf replay as a user sees it, on this machine's CPU. Nothing here says how long an op may take."""
import csv
import os
import signal
import subprocess
import time
import unittest

from program import FAILED, INFEASIBLE, PROGRAM, ROOT, SANITIZED, ProgramTest

MODEL = os.path.join(ROOT, "tests", "replay", "tiny.yaml")
RECURRENT = os.path.join(ROOT, "tests", "replay", "recurrent.yaml")
OPS = """hardware,op,dtype,batch,m,n,k,q_len,kv_len,heads,kv_heads,head_dim,ranks,bytes,latency_us
x,gemm,fp32,,4,32,64,,,,,,,,1
x,gemm,fp32,,4,32,64,,,,,,,,1
x,attention_decode,fp32,1,,,,1,16,4,2,32,,,1
x,vector:rms_norm,fp32,,3,64,,,,,,,,,1
x,gemm,fp8,,4,32,64,,,,,,,,1
"""
FP32 = ["--weights", "fp32", "--activations", "fp32"]


class Replay(ProgramTest):
    seconds = 600 if SANITIZED else 100
    memory = None  # of a library that multiplies, and of operands that no cache holds

    def rows(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return list(csv.DictReader(line for line in file if not line.startswith("#")))

    def replay(self, *words):
        return self.json("replay", "--hw", "epyc-9654", *words)


class Lists(Replay):
    def test_every_shape_of_a_file_is_measured_once(self):
        file = self.write("ops.csv", OPS)
        document = self.replay("--ops", file, "-o", "./timings.csv")
        self.assertEqual(document["schema"], "llmperf.replay")
        ops = document["phases"][0]["ops"]
        self.assertEqual([op["available"] for op in ops], [True, True, True, False])
        self.assertIn("fp8", ops[3]["reason"])
        for op in ops[:3]:
            self.assertGreater(op["time_s"], 0)
            self.assertGreaterEqual(op["repetitions"], op["samples"])
        rows = self.rows("timings.csv")
        self.assertEqual([row["op"] for row in rows], ["gemm", "attention_decode", "vector:rms_norm"])
        self.assertEqual({row["hardware"] for row in rows}, {"epyc-9654"})
        for row, op in zip(rows, ops):
            self.assertAlmostEqual(float(row["latency_us"]) * 1e-6, op["time_s"], delta=op["time_s"] * 1e-4)
            self.assertGreater(int(row["repetitions"]), 0)

    def test_the_file_says_what_the_device_said_of_itself(self):
        self.replay("--ops", self.write("ops.csv", OPS), "-o", "./timings.csv", "--threads", "1")
        with open(self.path("timings.csv"), encoding="utf-8") as file:
            comments = [line for line in file if line.startswith("# ")]
        self.assertIn("cpu backend", comments[0])
        self.assertTrue(any(line.startswith("# threads: 1") for line in comments), comments)

    def test_what_it_writes_is_what_validate_and_replay_read(self):
        self.replay("--ops", self.write("ops.csv", OPS), "-o", "./timings.csv")
        self.assertEqual(len(self.json("validate", "./timings.csv")["rows"]), 3)
        with open(self.path("timings.csv"), encoding="utf-8") as file:
            self.write("own.csv", file.read().replace("epyc-9654", "mine"))
        with open(os.path.join(ROOT, "hardware", "devices", "epyc-9654.yaml"), encoding="utf-8") as file:
            self.write("mine.yaml", file.read().replace("name: epyc-9654", "name: mine"))
        self.assertEqual(len(self.json("validate", "./own.csv", "--hw", "./mine.yaml")["rows"]), 3)
        self.assertEqual(len(self.replay("--ops", "./timings.csv")["phases"][0]["ops"]), 3)

    def test_predictions_are_the_profiles(self):
        document = self.replay("--ops", self.write("ops.csv", OPS), "-o", "./timings.csv")
        predicted = [row["predicted_s"] for row in self.json("validate", "./timings.csv", "--runtime", "replay")["rows"]]
        self.assertEqual([op["predicted_s"] for op in document["phases"][0]["ops"] if op["available"]], predicted)

    def test_a_file_of_which_nothing_runs_is_a_failure_that_says_why(self):
        file = self.write("ops.csv", "hardware,op,dtype,m,n,k,latency_us\nx,gemm,fp8,4,32,64,1\n")
        done = self.run_program("replay", "--hw", "epyc-9654", "--ops", file)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("no op could be replayed", done.stderr)
        self.assertIn("fp8", done.stdout)


# A Python that has PyTorch, as far as the command knows: it writes the rows it was given, 10 us and more each, and does as
# it is told.
FAKE = r"""#!/usr/bin/env python3
import csv, io, os, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
rows = list(csv.DictReader(io.StringIO(re.search(r'ROWS = \"""\\\n(.*?)\"""', text, re.S).group(1))))
out = sys.argv[sys.argv.index("-o") + 1]
print("arguments:", " ".join(sys.argv[2:]))
behaviour = os.environ.get("FAKE", "")
if behaviour == "nothing": sys.exit(1)
columns = [c for c in rows[0] if c != "value"] + ["latency_us", "spread_us", "repetitions", "kernel", "mode"]
with open(out, "w", encoding="utf-8") as file:
    file.write("# device: a fake\n")
    writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for i, row in enumerate(rows[:2] if behaviour else rows):
        size = float(row["m"] or row["batch"] or 64) * float(row["n"] or 64) * float(row["k"] if row["op"] == "gemm" else row["kv_len"] or 8)
        writer.writerow({**row, "latency_us": 10 + size / 1e6, "spread_us": 1, "repetitions": 5, "kernel": "fake", "mode": "eager"})
if behaviour == "sleep":
    import time
    open(out + ".there", "w").close()
    time.sleep(600)
if behaviour.isdigit(): sys.exit(int(behaviour))
"""


class Emitted(Replay):
    def emitted(self, *words):
        return self.output("replay", "-m", MODEL, "--hw", "h100-sxm", "--prompt", "16", *words)

    def test_rows_are_the_ops_that_estimate_names(self):
        rows = list(csv.DictReader(self.emitted("--emit", "rows").splitlines()))
        self.assertEqual({row["hardware"] for row in rows}, {"h100-sxm"})
        self.assertEqual(len({tuple(row[c] for c in row if c not in ("name", "count", "value")) for row in rows}), len(rows))
        words = ["-m", MODEL, "--hw", "h100-sxm", "--runtime", "replay", "--prompt", "16", "--gen", "2"]
        document = self.json("estimate", *words, "--detail", "ops")
        named = [op for phase in document["phases"] for op in phase["ops"] if op["kind"] != "overhead"]
        for op in named:
            said = {column: str(cell) for column, cell in op["row"].items()}
            same = [row for row in rows if all(row.get(c, "") == v for c, v in said.items() if v != "True")]
            self.assertEqual(len(same), 1, said)
            self.assertIn(op["name"], same[0]["name"].split("+"))
        self.assertNotIn("row", self.json("estimate", *words)["phases"][0]["ops"][0])

    def test_the_program_is_python_with_the_rows_in_it(self):
        text = self.emitted("--emit", "torch")
        names = {}
        exec(compile(text[:text.index("SHAPE = (")].replace("import torch", "import math"), "replay.py", "exec"), names)
        self.assertIn("prompt 16", names["WHAT"])
        rows = list(csv.DictReader(names["ROWS"].splitlines()))
        self.assertEqual(names["ROWS"], self.emitted("--emit", "rows"))
        steps = __import__("json").loads(names["STEPS"])
        self.assertEqual([step["columns"]["phase"] for step in steps], ["prefill", "decode"])
        executed = {}
        for times, places in steps[0]["blocks"] + steps[1]["blocks"]:
            for row, count in places:
                executed[row] = executed.get(row, 0) + times * count
        self.assertEqual(executed, {i: int(row["count"]) for i, row in enumerate(rows) if row["count"]})
        self.output("replay", "-m", MODEL, "--hw", "h100-sxm", "--prompt", "16", "--emit", "torch", "-o", "p.py")
        with open(self.path("p.py"), encoding="utf-8") as file:
            self.assertEqual(file.read(), text)

    def test_a_list_is_emitted_as_it_is(self):
        rows = self.output("replay", "--ops", self.write("ops.csv", OPS), "--hw", "h100-sxm", "--emit", "rows").splitlines()
        self.assertEqual([line.split(",")[1] for line in rows[1:]], ["gemm", "attention_decode", "vector:rms_norm", "gemm"])

    def test_every_op_of_the_campaign_is_one_that_can_be_replayed(self):
        script = os.path.join(ROOT, "scripts", "campaign.py")
        self.write("ops.csv", subprocess.run([script, "h100-sxm"], capture_output=True, encoding="utf-8", check=True).stdout)
        rows = list(csv.DictReader(self.output("replay", "--ops", "ops.csv", "--hw", "h100-sxm", "--emit", "rows").splitlines()))
        with open(os.path.join(ROOT, "docs", "replay.md"), encoding="utf-8") as file:
            self.assertIn(f"the ops that say most about one, {len(rows)} of them", file.read())
        self.assertEqual([row["m"] for row in rows if row["power"] == "sustained"], ["8192"])
        unknown = [row["op"] for row in rows if not row["value"]]  # the profile predicts all others
        self.assertLess(len(unknown), 10, unknown)

    def test_what_does_not_go_together_is_told(self):
        for words, said in ((["--emit", "rows"], "--hw"), (["--emit", "model", "--hw", "h100-sxm"], "--emit"),
                            (["--emit", "rows", "--hw", "h100-sxm", "--whole-step"], "--whole-step"),
                            (["--emit", "rows", "--hw", "h100-sxm", "--backend", "torch"], "--backend"),
                            (["--emit", "rows", "--hw", "h100-sxm", "--json"], "--json"),
                            (["--seconds", "5"], "--seconds"), (["--backend", "torch", "-o", "r.csv"], "--hw"),
                            (["--backend", "torch", "--hw", "h100-sxm", "--threads", "2"], "--threads"),
                            (["--backend", "torch", "--hw", "h100-sxm"], "-o rows.csv")):
            with self.subTest(words=words):
                self.assert_error(self.run_program("replay", "-m", MODEL, *words), 2, said)
        self.assert_error(self.run_program("replay", "--self-test", "--backend", "torch"), 2, "--self-test")


class ThroughPython(Replay):
    def setUp(self):
        super().setUp()
        self.python = os.path.join(self.folder, "python")
        self.write("python", FAKE)
        os.chmod(self.python, 0o755)

    def torch(self, *words, **environment):
        words = [PROGRAM, "replay", "-m", MODEL, "--hw", "h100-sxm", "--prompt", "16", "--backend", "torch", "--python", self.python,
                 *words]
        return subprocess.run(words, cwd=self.folder, env={**os.environ, **environment}, timeout=self.seconds,
                              stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)

    def test_what_it_measured_is_kept_and_predicted(self):
        done = self.torch("-o", "r.csv", "--seconds", "7", "--page", "16", "--device", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "arguments: --seconds 7 -o /.*/r.csv --device :2 --page 16")
        self.assertIn("Predicted against measured", done.stdout)
        self.assertGreater(len(self.rows("r.csv")), 20)
        self.assertEqual(sorted(os.listdir(self.folder)), ["python", "r.csv"])

    def test_a_profile_is_fitted_to_it(self):
        done = self.torch("-o", "r.csv", "--calibrate", "p.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("error, before", "error, left out", "eager.rms_norm"):
            self.assertIn(text, done.stdout)
        self.output("estimate", "-m", MODEL, "--hw", "h100-sxm", "--runtime", "./p.yaml", "--prompt", "16")
        with open(self.path("p.yaml"), encoding="utf-8") as file:
            self.assertIn("eager: true", file.read())

    def test_a_run_that_fails_or_is_ended_keeps_what_it_has(self):
        for behaviour, status in (("1", FAILED), ("130", FAILED)):
            with self.subTest(behaviour=behaviour):
                done = self.torch("-o", "r.csv", "--calibrate", "p.yaml", FAKE=behaviour)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertEqual(len(self.rows("r.csv")), 2)
                self.assertFalse(os.path.exists(self.path("p.yaml")))
                self.assertIn("Predicted against measured", done.stdout)
        done = self.torch("-o", "n.csv", FAKE="nothing")
        self.assertEqual((done.returncode, done.stdout), (FAILED, ""))
        self.assertIn("ended with status 1", done.stderr)

    def test_what_ends_the_command_ends_the_program(self):
        for sign, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with self.subTest(sign=sign):
                words = [PROGRAM, "replay", "-m", MODEL, "--hw", "h100-sxm", "--prompt", "16", "--backend", "torch", "--python",
                         self.python, "-o", f"{status}.csv"]
                with subprocess.Popen(words, cwd=self.folder, env={**os.environ, "FAKE": "sleep"}, stdout=-1, stderr=-1) as process:
                    while not os.path.exists(self.path(f"{status}.csv.there")):
                        time.sleep(0.01)
                    process.send_signal(sign)  # to it alone
                    said = process.communicate(timeout=self.seconds)
                self.assertEqual(process.returncode, status, said)
                self.assertEqual(len(self.rows(f"{status}.csv")), 2)

    def test_files_are_files_and_not_built_in(self):
        done = self.torch("-o", "rtx4090-ops", "--calibrate", "vllm")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("replay on h100-sxm", done.stdout)
        self.assertTrue({"rtx4090-ops", "vllm"} <= set(os.listdir(self.folder)))

    def test_no_such_python(self):
        done = self.run_program("replay", "-m", MODEL, "--hw", "h100-sxm", "--backend", "torch", "--python", "./nobody", "-o",
                                "r.csv")
        self.assert_error(done, FAILED, "cannot run './nobody'", "--python")


class Models(Replay):
    def test_a_step_is_replayed_op_by_op_and_as_a_whole(self):
        document = self.replay("-m", MODEL, *FP32, "--prompt", "16", "--whole-step", "-o", "./t.csv")
        self.assertEqual([phase["name"] for phase in document["phases"]], ["prefill", "decode"])
        for phase in document["phases"]:
            counts = {name: op["count"] for op in phase["ops"] for name in op["names"]}
            self.assertEqual(counts["qkv_proj"], 2)
            self.assertEqual(phase["whole_step"]["left_out"], [])
            self.assertGreater(phase["whole_step"]["time_s"], 0)
            self.assertGreater(phase["predicted_step_s"], 0)
            total = sum(op["time_s"] * op["count"] for op in phase["ops"])
            self.assertAlmostEqual(phase["ops_time_s"], total, delta=total * 1e-9)
        steps = self.rows("t.steps.csv")
        self.assertEqual([row["untrusted"] for row in steps], ["", ""])
        self.assertEqual([(row["phase"], row["new_tokens"], row["context"]) for row in steps],
                         [("prefill", "16", "0"), ("decode", "1", "16")])

    def test_recurrences_are_listed_and_timed(self):
        document = self.replay("-m", RECURRENT, *FP32, "--prompt", "16", "-o", "./t.csv")
        for phase, tokens in zip(document["phases"], (16, 1)):
            scans = {op["op"]: op for op in phase["ops"] if op.get("op", "").startswith("scan:")}
            self.assertEqual(set(scans), {"scan:gated_delta_net", "scan:mamba2"})
            self.assertEqual(scans["scan:gated_delta_net"]["count"], 2)
            self.assertEqual(scans["scan:mamba2"]["shape"], f"batch 1 q {tokens} heads 8/2 x 16 x 32")
            for op in scans.values():
                self.assertGreater(op["time_s"], 0)
        self.assertEqual(len([row for row in self.rows("t.csv") if row["op"].startswith("scan:")]), 4)

    def test_it_replays_the_ops_that_estimate_predicts(self):
        words = ["-m", MODEL, *FP32, "--batch", "2", "--prompt", "16"]
        phases = self.json("estimate", "--hw", "epyc-9654", "--runtime", "replay", "--gen", "2", *words)["phases"]
        replayed = self.replay(*words, "--phase", "decode")["phases"][0]
        estimated = {op["name"]: (op["count"], op["matrix_flops"]) for op in phases[1]["ops"] if op["kind"] != "overhead"}
        self.assertEqual({name for op in replayed["ops"] for name in op["names"]}, set(estimated))
        for op in replayed["ops"]:
            if op.get("op") == "gemm":
                self.assertEqual(op["flops"] * op["count"], sum(estimated[name][1] for name in op["names"]))

    def test_devices_of_a_plan_are_threads_that_exchange(self):
        ops = self.replay("-m", MODEL, *FP32, "--tp", "2", "--prompt", "16", "--phase", "prefill")["phases"][0]["ops"]
        exchanged = [op for op in ops if op.get("op") == "all_reduce"]
        self.assertEqual(exchanged[0]["shape"], "2 ranks 8192 B")  # 16 tokens x 128 x 4 B
        self.assertTrue(exchanged[0]["available"] or "thread" in exchanged[0]["reason"] or
                        "rank" in exchanged[0]["reason"])

    def test_a_profile_is_fitted_and_predicts(self):
        document = self.replay("-m", MODEL, *FP32, "--prompt", "64", "--calibrate", "./fitted.yaml")
        self.assertIn("replay", document["profile"])
        for op in document["phases"][0]["ops"]:
            self.assertGreater(op["predicted_s"], 0)
        estimate = self.json("estimate", "-m", MODEL, *FP32, "--hw", "epyc-9654", "--prompt", "64", "--runtime",
                             "./fitted.yaml")
        self.assertAlmostEqual(estimate["ttft_s"], document["phases"][0]["predicted_step_s"], delta=1e-5)

    def test_a_step_that_does_not_fit_is_no_step(self):
        done = self.run_program("replay", "-m", "llama-3.1-405b", "--hw", "ryzen-7950x", "--whole-step")
        self.assertEqual(done.returncode, INFEASIBLE)
        self.assertIn("a whole step of llama-3.1-405b does not fit on ryzen-7950x", done.stderr)


class Device(Replay):
    def test_the_machine_describes_itself_as_a_hardware_file(self):
        text = self.output("replay", "--describe-device", "--threads", "1")
        self.write("mine.yaml", text)
        device = self.json("show", "hardware", "./mine.yaml")
        self.assertEqual(device["kind"], "cpu")
        rates = [peak for peak in device["peaks"] if (peak["engine"], peak["dtype"]) == ("vector", "fp32")]
        self.assertEqual(rates[0]["provenance"], "measured")
        self.assertEqual(device["memory"][-1]["bandwidth_provenance"], "measured")
        estimate = self.json("estimate", "-m", "qwen1.5-0.5b", "--hw", "./mine.yaml", "--runtime", "replay", *FP32)
        self.assertGreater(estimate["tpot_s"], 0)

    def test_the_cpu_computes_what_it_should(self):
        document = self.json("replay", "--self-test", "--gemm", "eigen")
        self.assertTrue(document["passed"])
        self.assertGreater(len([op for op in document["ops"] if op["outcome"] == "passed"]), 10)


class Wrong(Replay):
    def test_what_to_replay_is_said_once(self):
        file = self.write("ops.csv", OPS)
        for words in ([], ["-m", "qwen1.5-0.5b", "--ops", file], ["--ops", file, "--sweep", "gemm"]):
            self.assert_bad_input(["replay", "--hw", "epyc-9654", *words], "give one of --model, --ops and --sweep")

    def test_wrong_names_are_answered_with_the_nearest(self):
        model = ["replay", "--hw", "epyc-9654", "-m", "qwen1.5-0.5b"]
        self.assert_bad_input([*model, "--backend", "ascent"], "--backend: there is no 'ascent'", "'ascend'")
        self.assert_bad_input([*model, "--phase", "prefil"], "--phase: there is no 'prefil'", "'prefill'")
        self.assert_bad_input([*model, "--gemm", "eigan"], "--gemm: there is no 'eigan'", "'eigen'")
        self.assert_bad_input(["replay", "--hw", "epyc-9654", "--sweep", "gem"], "there is no 'gem'", "'gemm'")
        self.assert_bad_input([*model, "--threads", "0"], "--threads")
        self.assert_bad_input([*model, "--device", "1"], "--device")
        self.assert_bad_input([*model, "--page", "128"], "--page is for --backend ascend")
        self.assert_bad_input([*model, "--page", "1024"], "--page")
        self.assert_bad_input(["replay", "-m", "qwen1.5-0.5b", "--hw", "epic"], "unknown hardware 'epic'")

    def test_steps_of_models_are_no_ops(self):
        steps = "hardware,runtime,model,weights,batch,phase,new_tokens,context,latency_ms\nx,y,z,bf16,1,decode,1,1,1\n"
        self.assert_bad_input(["replay", "--hw", "epyc-9654", "--ops", self.write("steps.csv", steps)], "not ops")
        self.assert_bad_input(["replay", "--hw", "epyc-9654", "--ops", "./steps.csv", "--whole-step"], "--whole-step")

    def test_flags_that_a_mode_has_no_use_for_are_refused(self):
        file = self.write("ops.csv", OPS)
        self.assert_bad_input(["replay", "--describe-device", "-m", "qwen1.5-0.5b"], "--model has no effect beside --describe-device")
        self.assert_bad_input(["replay", "--self-test", "--phase", "decode"], "--phase has no effect beside --self-test")
        self.assert_bad_input(["replay", "--hw", "epyc-9654", "--ops", file, "--tp", "3"], "--tp has no effect beside --ops")
        self.assert_bad_input(["replay", "--hw", "h100-sxm", "--ops", file], "h100-sxm is a gpu")
        same = ["-o", "./a.csv", "--calibrate", "a.csv"]
        self.assert_bad_input(["replay", "--hw", "epyc-9654", "--ops", file, *same], "two results are to be written to 'a.csv'")

    def test_a_file_is_replaced_only_by_measurements(self):
        self.write("keep.csv", OPS)
        file = self.write("ops.csv", "hardware,op,dtype,m,n,k,latency_us\nx,gemm,fp8,4,32,64,1\n")
        self.run_program("replay", "--hw", "epyc-9654", "--ops", file, "-o", "./keep.csv")
        with open(self.path("keep.csv"), encoding="utf-8") as kept:
            self.assertEqual(kept.read(), OPS)

    def test_a_path_that_cannot_be_written_costs_no_replay(self):
        done = self.run_program("replay", "--hw", "epyc-9654", "--sweep", "gemm", "-o", "./no/folder.csv")
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("cannot write", done.stderr)

    def test_without_cann_it_says_which_library_and_where_it_looked(self):
        for what in (["-m", "qwen1.5-0.5b"], ["--self-test"]):
            words = ["replay", "--backend", "ascend", *what]
            done = self.run_program(*words, ASCEND_HOME_PATH="/nowhere/cann")
            self.assertEqual(done.returncode, FAILED)
            self.assertIn("libascendcl.so", done.stderr)
            self.assertIn("/nowhere/cann/lib64", done.stderr)

    @unittest.skipIf(SANITIZED, "times nothing, but needs an op to be done within a second")
    def test_what_is_done_is_kept_when_it_is_interrupted(self):
        process = subprocess.Popen([PROGRAM, "replay", "--hw", "epyc-9654", "--sweep", "gemm", "--dtype", "fp32", "-o",
                                    "./part.csv"], cwd=self.folder, env=dict(os.environ, LLMPERF_PATH=""),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=self.seconds)
        self.assertEqual(process.returncode, 130, told)
        self.assertGreater(len(self.rows("part.csv")), 0)
        self.assertLess(len(self.rows("part.csv")), 77)


if __name__ == "__main__":
    unittest.main()
