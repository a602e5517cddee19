#!/usr/bin/env python3
"""The PyTorch replay program: on the CPU as a user runs it, and on devices that are not here through stand-ins.

Stand-ins have the signatures that the libraries' documentation gives (cited at each) and compute what it says in the layout that it
says, so that a call with a wrong name, layout or mask fails or gives wrong results, which the program itself finds out. Needs a
Python that has torch (LLMPERF_TORCH_PYTHON, or Debian's python3-torch); skipped with a word where there is none.
"""
import ast
import contextlib
import csv
import importlib.util
import io
import math
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import tokenize
import types
import unittest
from unittest import mock

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
PROGRAM = os.path.join(ROOT, "src", "replay", "torch", "replay.py")
os.environ.setdefault("OMP_NUM_THREADS", "1")
if importlib.util.find_spec("torch") is None or importlib.util.find_spec("torch").origin is None:
    for other in (os.environ.get("LLMPERF_TORCH_PYTHON", ""), "/usr/bin/python3"):
        if other and other != sys.executable and subprocess.run([other, "-c", "import torch; torch.__version__"], stderr=-3,
                                                                check=False).returncode == 0:
            os.execv(other, [other, *sys.argv])
    print("skipped: there is no torch here (apt-get install python3-torch)")
    sys.exit(0)
import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402


def loaded():
    spec = importlib.util.spec_from_file_location("torch_replay", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch_replay"] = module
    spec.loader.exec_module(module)
    module.Timer.SAMPLE, module.Timer.BUDGET, module.Timer.SUSTAINED = 2e-4, 2e-3, 0.01
    module.Timer.LOAD = {}
    return module


replay = loaded()


def row(op, dtype="bf16", **cells):
    return replay.Row({"op": op, "dtype": dtype, **{c: str(v) for c, v in cells.items()}})


def attention(q, k, v, scale, causal, window=0):
    """[batch, tokens, heads, d] of all, the mask aligned to the last query and key: one head after the other."""
    q, k, v = (x.float() for x in (q, k, v))
    result = torch.zeros(*q.shape[:3], v.shape[3])
    share = q.shape[2] // k.shape[2]
    for h in range(q.shape[2]):
        scores = q[:, :, h] @ k[:, :, h // share].transpose(1, 2) * scale
        at = torch.arange(k.shape[1] - q.shape[1], k.shape[1])[:, None]
        key = torch.arange(k.shape[1])[None]
        hidden = (key > at if causal else key > k.shape[1]) | ((key <= at - window) if window else (key < 0))
        result[:, :, h] = scores.masked_fill(hidden, -math.inf).softmax(-1) @ v[:, :, h // share]
    return result


def unpaged(pool, table, length):
    """Pools [pages, page, ...] and a table [batch, pages] as [batch, length, ...]."""
    return torch.stack([torch.cat([pool[int(p)] for p in pages])[:length] for pages in table])


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.output = os.path.join(self.folder, "rows.csv")

    def run_it(self, *words):
        said = io.StringIO()
        words = [*words, "--device", "cpu", "--cache-mb", "1", "-o", self.output]
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), mock.patch.object(sys, "argv", ["replay.py", *words]):
            status = self.status_of(words)
        return status, said.getvalue()

    @staticmethod
    def status_of(words):
        try:
            return replay.main(words)
        except SystemExit as error:  # of a text the status is 1, and it is printed
            print(error.code)
            return error.code if isinstance(error.code, int) else 1

    def rows(self, name="rows.csv"):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return list(csv.DictReader(line for line in file if not line.startswith("#")))

    def text(self):
        with open(self.output, encoding="utf-8") as file:
            return file.read()

    def write(self, text, name="given.csv"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path


class OnTheProcessor(Program):
    def test_every_kind_of_op_gives_a_row_whose_results_are_right(self):
        status, said = self.run_it()
        self.assertEqual(status, 0, said)
        rows = self.rows()
        found = {r["op"] for r in rows}
        _, examples, wrong = replay.parse(replay.ROWS)
        self.assertEqual(wrong, [])
        self.assertEqual({r.op for r in examples} - found, {"matmul_all_reduce", "copy_to_device", "copy_to_host",
                                                             *replay.COLLECTIVES})
        self.assertEqual({r.family for r in examples}, set(replay.FAMILIES))
        for r in rows:
            self.assertGreater(float(r["latency_us"]), 0, r)
            self.assertGreaterEqual(float(r["spread_us"]), 0, r)
            self.assertGreaterEqual(int(r["repetitions"]), 5, r)
            self.assertEqual((r["mode"], r["untrusted"], r["runtime"]), ("eager", "", ""), r)
            self.assertTrue(r["kernel"] and r["hardware"] and r["name"], r)
            self.assertNotIn("value", r)
        self.assertIn("# device: ", self.text())
        self.assertIn("# not run: gemm fp8", self.text())
        step, = self.rows("rows.steps.csv")
        self.assertEqual((step["model"], step["execution"], step["untrusted"]), ("example", "eager", ""))
        self.assertGreater(float(step["latency_ms"]), 0)
        self.assertIn(f"llmperf calibrate {self.output} --hw {rows[0]['hardware']} -o profile.yaml", said)
        self.assertIn("torchrun --nproc_per_node 2 ", said)

    def test_a_row_that_is_there_is_not_timed_again(self):
        self.run_it("--ops", "gather")
        first = self.rows()
        status, said = self.run_it("--ops", "gather,kv_write")
        self.assertEqual(status, 0)
        self.assertIn("1 of 2 rows are there already.", said)
        self.assertEqual([r["op"] for r in self.rows()], ["gather", "kv_write"])
        self.assertEqual(self.rows()[0], first[0])

    def test_what_was_measured_stays_after_an_interruption(self):
        real = replay.Timer.times
        for stop, status in ((KeyboardInterrupt, 130), (lambda: os.kill(os.getpid(), signal.SIGTERM), 143)):
            with self.subTest(status):
                times = mock.Mock(side_effect=[1, 2, 3])

                def interrupted(self, op, sustained=False, graph=True, stop=stop, times=times):
                    if times() == 2:
                        if stop is KeyboardInterrupt:
                            raise stop
                        stop()
                    return real(self, op, sustained, graph)
                with mock.patch.object(replay.Timer, "times", interrupted):
                    got, said = self.run_it("--ops", "vector:add,vector:multiply,vector:softmax")
                self.assertEqual(got, status)
                self.assertEqual([r["op"] for r in self.rows()], ["vector:add"])
                self.assertIn("the same command goes on", said)
                self.assertIn("llmperf calibrate", said)
                os.remove(self.output)

    def test_a_file_that_a_killed_program_left_is_read(self):
        self.run_it("--ops", "gather,kv_write,vector:add")
        lines = self.text().splitlines()
        self.write("\n".join(lines[:-1] + [lines[-1][:40], "x,\0,nan"]), "rows.csv")
        _, said = self.run_it("--ops", "gather,kv_write,vector:add")
        self.assertIn("2 of 3 rows are there already.", said)
        self.assertEqual(sorted(r["op"] for r in self.rows()), ["gather", "kv_write", "vector:add"])

    def test_no_row_starts_when_the_time_is_over(self):
        status, said = self.run_it("--seconds", "0")
        self.assertEqual((status, self.rows()), (0, []))
        self.assertIn("37 are left: the same command goes on with them.", said)

    def test_the_most_valuable_rows_come_first(self):
        path = self.write("op,dtype,m,n,value\nvector:add,fp32,4,8,\nvector:softmax,fp32,4,8,0.5\nvector:multiply,fp32,4,8,2\n")
        self.run_it("--rows", path)
        self.assertEqual([r["op"] for r in self.rows()], ["vector:multiply", "vector:softmax", "vector:add"])

    def test_hostile_lines_are_told_and_left_out(self):
        good = "gemm,fp32,4,8,16\n"
        bad = ["gemm,fp32,-4,8,16", "gemm,fp32,4,8", "gemm,fp32,1e999,8,16", "nonsense,fp32,4,8,16", "gemm,fp33,4,8,16", "gemm,fp32,,8,16",
               'gemm,"fp32,4,8,16', "gemm,\0,4,8,16", "gemm,fp32,0x10,8,16", "vector:nothing,fp32,4,8,", "=cmd|x,fp32,4,8,16",
               "gemm,fp32,4,8,16,17", "gemm,fp32,.,8,16", "gemm,fp32,.0,8,16", "gemm,fp32,\u0664,8,16",
               "gemm,fp32,4\u2028,8,16"]
        path = self.write("op,dtype,m,n,k\n" + good + "\n".join(bad) + "\n" + "gemm,fp32,999999999999,999999999999,999999999999\n" +
                          "gather,fp32,999999999999,8,9\n" + good)
        status, said = self.run_it("--rows", path)
        self.assertEqual(status, 0, said)
        self.assertEqual(said.count("left out: line "), 14, said)
        self.assertEqual([r["op"] for r in self.rows()], ["gemm"])
        self.assertIn("GiB at once", self.text())
        os.remove(self.output)
        self.assertEqual(self.run_it("--rows", self.write("\ufeffop,dtype,m,n,k\r\n" + good))[0], 0)  # as Excel writes it
        self.assertEqual([r["op"] for r in self.rows()], ["gemm"])
        for text in ("", "a,b\n1,2\n", b"\xff\xfe\0\0", "op,op\n"):
            status, said = self.run_it("--rows", self.write(text))
            self.assertEqual(status, 1, said)
            self.assertIn("This does not work", said)
        self.assertEqual(self.run_it("--rows", os.path.join(self.folder, "none.csv"))[0], 1)

    def test_other_files_are_not_overwritten(self):
        for text in ("some,table\n1,2\n", "# device: another\nop,latency_us\ngemm,1\n"):
            self.write(text, "rows.csv")
            status, said = self.run_it("--ops", "gather")
            self.assertEqual((status, self.text()), (1, text))
            self.assertIn("name another file", said)
        self.output = os.path.join(self.folder, "none", "rows.csv")
        self.assertEqual(self.run_it("--ops", "gather")[0], 1)

    def test_a_device_without_memory_and_one_that_fails_cost_a_row(self):
        real = replay.Gather.plain
        for error in (RuntimeError("CUDA out of memory. Tried"), MemoryError(), ValueError("no such shape"),
                      StopIteration("no such engine"), ZeroDivisionError("no such group"),
                      subprocess.CalledProcessError(1, "no such compiler")):
            with mock.patch.object(replay.Gather.kernels[0], "build", mock.Mock(side_effect=error)):
                status, said = self.run_it("--ops", "gather,kv_write")
            self.assertEqual(status, 0)
            self.assertIn("not run: torch embedding: " + ("out of memory" if "memory" in str(error) + type(error).__name__.lower() else
                                                          str(error)), said)
            self.assertEqual([r["op"] for r in self.rows()], ["kv_write"])
        self.assertIs(replay.Gather.plain, real)

    def test_a_device_that_does_not_answer_ends_the_run_with_what_is_there(self):
        with mock.patch.object(replay.Gather.kernels[0], "build", mock.Mock(side_effect=RuntimeError("illegal access"))), \
                mock.patch.object(replay.Lab, "full", mock.Mock(side_effect=RuntimeError("illegal access"))):
            status, said = self.run_it("--ops", "vector:add,gather,kv_write")
        self.assertEqual(status, 1)
        self.assertEqual([r["op"] for r in self.rows()], ["vector:add"])
        self.assertIn("does not answer any more", said)
        self.assertIn("llmperf calibrate", said)
        self.assertIn("# running: gather fp32 m=64 n=512 k=4096: torch embedding", self.text())
        for _ in range(2):  # what ended it is not tried again
            status, said = self.run_it("--ops", "vector:add,gather,kv_write")
            self.assertEqual((status, [r["op"] for r in self.rows()]), (0, ["vector:add", "kv_write"]))
            self.assertIn("not run: torch embedding: ended this program when it ran before", said)
            self.assertNotIn("# running", self.text())

    def test_an_interruption_is_no_kernel_that_ends_the_program(self):
        with mock.patch.object(replay.Timer, "times", mock.Mock(side_effect=KeyboardInterrupt)):
            self.assertEqual(self.run_it("--ops", "gather")[0], 130)
        self.assertNotIn("running", self.text())
        self.run_it("--ops", "gather")
        self.assertEqual(len(self.rows()), 1)

    def test_a_kernel_that_cannot_be_built_is_tried_once(self):
        rows = "op,dtype,m,n,k\ngemm,fp32,64,512,512\ngemm,fp32,96,512,512\n"
        build = mock.Mock(side_effect=ValueError("no compiler"))
        with mock.patch.object(replay.Gemm.kernels[0], "build", build):
            _, said = self.run_it("--rows", self.write(rows))
        self.assertEqual((build.call_count, said.count("no compiler")), (1, 2))

    def test_wrong_results_are_told(self):
        with mock.patch.dict(replay.Vector.functions, add=("xx", lambda x, y: x - y if x.dtype == torch.float32 else x + y)):
            _, said = self.run_it("--ops", "vector:add")
        self.assertIn("results differ from fp64 by", self.rows()[0]["untrusted"])
        self.assertIn("results differ", said)

    def test_a_clock_that_falls_is_told(self):
        for last, op, word in ((1700.0, "vector:add", "fell"), (2100.0, "gather", "rose")):
            readings = iter([[1980.0, 300.0, 50.0], [last, 690.0, 61.5]])
            path = self.write(f"op,dtype,m,n,k,power\n{op},fp32,4,8,16,{'sustained' if word == 'fell' else ''}\n")
            with mock.patch.object(replay.Device, "sensors", lambda self: next(readings)):
                self.run_it("--rows", path)
            r = self.rows()[-1]
            self.assertEqual(r["untrusted"], f"the clock {word} from 1980 to {last:.0f} MHz")
            # Power is the mean of a second: only of a row that loads the device for longer.
            self.assertEqual((r["clock_mhz"], r["power_w"], r["temperature_c"]), (f"{last:.0f}", "690" if word == "fell" else "", "61.5"))

    def test_one_row_does_not_take_all_the_time(self):
        timer = replay.Timer(replay.Device("cpu"), replay.Ranks("cpu"), replay.time.perf_counter() + 100)
        passes = []
        timing = timer.timing("eager", lambda n, meanwhile=bool: (passes.append(n), meanwhile(), 60.0)[2])
        self.assertEqual((passes, timing.median, timing.untrusted), ([1, 1, 1], 60.0, "2 samples for want of time"))

    def test_alike_samples_are_fewer(self):
        timer = replay.Timer(replay.Device("cpu"), replay.Ranks("cpu"))
        timer.BUDGET = 1.0

        def counted(spread):
            looks = iter(range(1 << 20))
            run = lambda n, meanwhile=bool: (meanwhile(), 0.005 * (1 + spread * (next(looks) % 3)))[1]  # noqa: E731
            return timer.timing("eager", run).passes
        self.assertEqual((counted(0.004), counted(0.02)), (timer.ENOUGH + 1, timer.MOST + 1))

    def test_operands_are_as_many_as_the_caches_cannot_hold(self):
        device = replay.Device("cpu")
        device.flushed = 1 << 20
        lab = replay.Lab(device)

        def family(r):
            made = replay.FAMILIES[r.family](lab, r)
            return made, made.plain()
        self.assertEqual(len(family(row("gemm", "fp32", m=4, n=64, k=64))[1].calls), 65)  # 16 KB each
        self.assertEqual(len(family(row("gemm", "fp32", m=4, n=8, k=8))[1].calls), 4096)
        table = family(row("gather", "fp32", m=4, n=64, k=8192))[1]  # 2 MB, of which 1 KB is read
        self.assertEqual(len(table.calls), 1025)
        self.assertEqual(len({c.args[1].data_ptr() for c in table.calls}), 1)
        self.assertEqual(len({tuple(c.args[0].tolist()) for c in table.calls}), 1025)
        experts = family(row("moe", "fp32", m=1, hidden=64, inter=64, topk=2, experts=32))[1]  # 2 of 32 times 48 KB
        self.assertEqual(len(experts.calls), 11)
        shared, _ = family(row("moe_products", "fp32", m=5, hidden=64, inter=64, topk=4, experts=32, ep=4))
        self.assertEqual(shared.counts, [1] * 5 + [0] * 3)  # a quarter of 20 rows
        written = family(row("kv_write", "fp32", m=1, kv_heads=2, head_dim=64))[1]  # 1 of 16 places
        self.assertEqual(len(written.calls), 1025)
        windowed = family(row("attention_decode", "fp32", batch=1, q_len=1, kv_len=512, heads=2, kv_heads=2, head_dim=64, window=64))[1]
        self.assertEqual(len(windowed.calls), 17)  # 64 KB of 512
        with mock.patch.object(replay.Device, "free", lambda self: 1 << 20):
            made, op = family(row("gemm", "fp32", m=4, n=64, k=64, copies=100))
        self.assertEqual((len(op.calls), made.fewer), (25, "memory holds 25 of 100 sets of operands"))

    def test_latents_are_read_once(self):
        device = replay.Device("cpu")
        device.flushed = 1 << 20
        r = row("mla_decode", "fp32", batch=1, q_len=1, kv_len=64, heads=4)
        op = replay.Latent(replay.Lab(device), r).plain()
        self.assertEqual(len(op.calls), (1 << 20) // (64 * 576 * 4) + 1)
        self.assertTrue(all(len(c.args) == 1 for c in op.calls))  # values are a view of the keys in every turn
        self.assertTrue(torch.equal(op.calls[0](), op.calls[-1]()))

    def test_steps_run_alone_and_are_told_apart(self):
        steps = [{"columns": {"model": "tiny", "weights": w, "batch": 1}, "blocks": [[1, [[i, 1] for i in ops]]]}
                 for w, ops in (("fp32", [0]), ("w8a8", [0, 2]), ("bf16", [0, -1]))]
        rows = "op,dtype,m,n\nvector:add,fp32,4,8\nvector:softmax,fp32,4,8\nvector:add,fp32,4,8\n"  # the last as the first
        with mock.patch.object(replay, "ROWS", rows), mock.patch.object(replay, "STEPS", replay.json.dumps(steps)):
            for _ in range(2):
                self.assertEqual(self.run_it("--ops", "steps")[0], 0)
                self.assertEqual([(r["weights"], r["kernel"], r["untrusted"]) for r in self.rows("rows.steps.csv")],
                                 [("fp32", "torch", ""), ("w8a8", "torch", ""), ("bf16", "torch", "without row -1")])
            self.assertEqual(self.rows(), [])
            os.remove(os.path.join(self.folder, "rows.steps.csv"))
            self.run_it("--kernel", "torch")
            self.assertEqual((len(self.rows()), os.path.exists(os.path.join(self.folder, "rows.steps.csv"))), (2, False))

    def test_what_a_step_makes_is_freed_as_it_goes(self):
        import weakref
        alive, most = weakref.WeakSet(), []

        class Result:
            pass

        def call():
            result = Result()
            alive.add(result)
            most.append(len(alive))
            return result
        session = replay.Session(replay.arguments().parse_args(["-o", os.devnull]), replay.Device("cpu"), replay.Ranks("cpu"), [])
        with mock.patch.object(replay.Chooser, "op", lambda *_: (replay.Op([call]), "kernel", "")):
            session.step([[3, [[0, 2]]]], {0: None})
        self.assertLessEqual(max(most), 2)

    def test_the_line_for_several_devices_goes_on_with_these_rows(self):
        path = self.write("op,dtype,ranks,bytes\nall_reduce,fp32,2,4096\n", "of me.csv")
        _, said = self.run_it("--rows", path, "--hardware", "mine", "--seconds", "7")
        line, = (line for line in said.splitlines() if "torchrun" in line)
        words = replay.shlex.split(line)
        for name, value in (("--rows", path), ("--hardware", "mine"), ("--seconds", "7"), ("--nproc_per_node", "2"), ("-o", self.output)):
            self.assertEqual(words[words.index(name) + 1], value)

    def test_what_a_scheduler_leaves_starts_no_group(self):
        with mock.patch.dict(os.environ, {"RANK": "0", "WORLD_SIZE": "8"}):
            self.assertEqual(replay.Ranks("cpu").size, 1)

    def test_notes_do_not_grow_and_another_torch_is_another_file(self):
        for _ in range(3):
            self.run_it("--ops", "gather")
        for name in ("date", "command", "device", "torch", "latency_us"):
            self.assertEqual(self.text().count(f"# {name}: "), 1)
        self.write(self.text().replace("# torch: ", "# torch: 0."), "rows.csv")
        status, said = self.run_it("--ops", "gather")
        self.assertEqual(status, 1)
        self.assertIn("another device or torch", said)

    def test_kernels_by_name(self):
        self.assertEqual(self.run_it("--ops", "gather,attention", "--kernel", "EMBEDDING")[0], 0)
        self.assertEqual([r["kernel"] for r in self.rows()], ["torch embedding"])

    def test_copies_need_a_link(self):
        status, said = self.run_it("--ops", "copy")
        self.assertEqual((status, self.rows()), (0, []), said)
        for op in ("copy_to_device", "copy_to_host"):
            self.assertIn(f"# not run: {op} fp16 bytes=65536 ", self.text())
        self.assertEqual(self.text().count("the device is the host: no link"), 2)

    def test_a_number_alone_is_of_the_device_that_torch_finds(self):
        with mock.patch.object(replay, "found_device", lambda: "cpu"), contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(self.status_of(["--device", ":0", "--ops", "kv_write", "--cache-mb", "1", "-o", self.output]), 0)
        self.assertEqual([r["op"] for r in self.rows()], ["kv_write"])

    def test_a_device_that_is_not_here_is_told(self):
        for kind in ("nonsense", "cuda:77", "npu", "cpu:x"):
            with self.subTest(kind), contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(self.status_of(["--device", kind, "-o", self.output]), 1)
                self.assertIn("This does not work", said.getvalue())

    def test_operands_are_those_of_the_other_backends(self):
        """fill_value(operand, index) of src/replay/operands.h, in Python's own numbers."""
        def expected(operand, index):
            h = (index * 0x9e3779b9 + (operand + 1) * 0x85ebca6b) & 0xffffffff
            for shift, factor in ((16, 0x85ebca6b), (13, 0xc2b2ae35)):
                h = ((h ^ h >> shift) * factor) & 0xffffffff
            return (((h ^ h >> 16) >> 8) - (1 << 23)) / (1 << 23)
        for operand in (0, 1, 5):
            values = replay.numbers_of(operand, 5000)
            for index in (0, 1, 7, 4095, 4999):
                self.assertEqual(float(values[index]), expected(operand, index))

    def test_two_ranks_exchange(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        words = [sys.executable, PROGRAM, "--device", "cpu", "--ops", "collective,gather", "-o", self.output, "--seconds", "20"]
        several = [subprocess.Popen(words, stdout=-1, stderr=-1, env={**os.environ, "RANK": str(r), "WORLD_SIZE": "2",
                                                                      "MASTER_ADDR": "127.0.0.1",
                                                                    "MASTER_PORT": port}) for r in range(2)]
        said = [p.communicate(timeout=60) for p in several]
        self.assertEqual([p.returncode for p in several], [0, 0], said)
        self.assertLessEqual({"all_reduce", "all_gather", "all_to_all"}, {r["op"] for r in self.rows()}, said)
        self.assertTrue(all(r["untrusted"] == "" for r in self.rows()))
        self.assertIn("is for 1 process, not 2", self.text())
        self.assertNotIn(b"examples", said[1][0])  # one of them speaks

    def test_a_model_put_between_the_quotes_is_what_runs(self):
        """As llmperf emits it: the lines of WHAT, ROWS and STEPS replaced, the rest untouched."""
        with open(PROGRAM, encoding="utf-8") as file:
            lines = file.read().splitlines()
        rows = ["hardware,op,dtype,m,n,name,count,value", "epyc-9654,vector:add,fp32,4,8,residual,2,1e-5",
                "epyc-9654,vector:softmax,fp32,4,8,router,1,"]
        steps = ['[{"columns": {"model": "tiny", "weights": "fp32", "batch": 1, "phase": "decode", "new_tokens": 1, "context": 7},',
                 ' "blocks": [[2, [[0, 1], [1, 3], [-1, 1]]]]}]']
        for name, data in (("ROWS", rows), ("STEPS", steps)):
            start = lines.index(f'{name} = """\\')
            lines[start + 1:lines.index('"""', start)] = data
        lines[lines.index('WHAT = "examples of every kind of op"')] = 'WHAT = "tiny, batch 1"'
        emitted = self.write("\n".join(lines) + "\n", "emitted.py")
        words = [sys.executable, emitted, "--device", "cpu", "--cache-mb", "1", "-o", self.output]
        done = subprocess.run(words, stdout=-1, stderr=-2, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(b"tiny, batch 1: 2 rows on ", done.stdout)
        self.assertEqual([(r["hardware"], r["op"], r["count"]) for r in self.rows()],
                         [("epyc-9654", "vector:add", "2"), ("epyc-9654", "vector:softmax", "1")])
        step, = self.rows("rows.steps.csv")
        self.assertEqual((step["model"], step["phase"], step["untrusted"]), ("tiny", "decode", "without row -1"))

    @unittest.skipUnless("LLMPERF" in os.environ, "there is no llmperf to emit it")
    def test_what_llmperf_emits_runs_here_and_gives_a_profile(self):
        def llmperf(*words):
            done = subprocess.run([os.environ["LLMPERF"], *words], cwd=self.folder, stdout=-1, stderr=-1, encoding="utf-8", check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout
        model = ["-m", os.path.join(ROOT, "tests", "replay", "tiny.yaml"), "--weights", "fp32", "--activations", "fp32", "--prompt", "16"]
        emitted = self.write(llmperf("replay", *model, "--hw", "epyc-9654", "--emit", "torch"), "emitted.py")
        asked = list(csv.DictReader(llmperf("replay", *model, "--hw", "epyc-9654", "--emit", "rows").splitlines()))
        words = [sys.executable, emitted, "--device", "cpu", "--cache-mb", "1", "--seconds", "60", "-o", self.output]
        done = subprocess.run(words, stdout=-1, stderr=-2, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        keys = [c for c in asked[0] if c not in ("name", "count", "value")]
        measured = {tuple(r[c] for c in keys) for r in self.rows()}
        self.assertEqual(measured, {tuple(r[c] for c in keys) for r in asked})  # every row ran, none is another
        self.assertEqual([(r["phase"], r["context"], r["untrusted"]) for r in self.rows("rows.steps.csv")],
                         [("prefill", "0", ""), ("decode", "16", "")])
        said = llmperf("calibrate", self.output, "--hw", "epyc-9654", "--runtime", "replay", "-o", "profile.yaml")
        for text in ("error, before", "error, left out", "eager.rms_norm_passes"):
            self.assertIn(text, said)
        self.assertIn("torch linear", llmperf("validate", self.output, "--runtime", "./profile.yaml"))

    def test_npus_are_asked_for_the_kernels_that_the_backend_in_cpp_calls(self):
        """The table of docs/ascend_replay.md names what both call, and nothing that one of them does not."""
        def content(*path):
            with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
                return file.read()
        folder = os.path.join("src", "replay", "ascend")
        backend = "".join(content(folder, name) for name in os.listdir(os.path.join(ROOT, folder)) if name.endswith((".h", ".cpp")))
        table = re.search(r"through torch_npu \|\n(.*?)\n\n", content("docs", "ascend_replay.md"), re.S).group(1)
        for text, pattern in ((backend, r"`(aclnn\w+)`"), (content("src", "replay", "torch", "replay.py"), r"`(npu_\w+)`")):
            named = set(re.findall(pattern, table))
            self.assertGreater(len(named), 10)
            for name in named:
                phases = name.replace("prompt", "{phase}").replace("incre", "{phase}")
                self.assertTrue(name in text or phases in text, name)

    def test_what_stands_in_for_a_kernel_is_called_as_llmperf_knows_it(self):
        with open(os.path.join(ROOT, "src", "measure", "op_row.cpp"), encoding="utf-8") as file:
            words = re.search(r"kWords\[\] = \{(.*?)\};", file.read(), re.S).group(1)
        with open(PROGRAM, encoding="utf-8") as file:
            text = file.read()
        for word in re.findall(r'"([^"]+)"', words):
            self.assertIn(word, text)

    def test_the_program_is_short_and_self_contained(self):
        with open(PROGRAM, encoding="utf-8") as file:
            lines = file.read().splitlines()
        for name in ("ROWS", "STEPS"):  # where llmperf puts a model's
            start = lines.index(f'{name} = """\\')
            del lines[start + 1:lines.index('"""', start)]
        self.assertLessEqual(len(lines), 900)
        self.assertLessEqual(max(len(line) for line in lines), 140)

    def test_the_program_is_typed_and_formatted(self):
        with open(PROGRAM, encoding="utf-8") as file:
            text = file.read()
        untyped = []
        for node in ast.walk(ast.parse(text, feature_version=(3, 8))):  # the oldest Python that it is for
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                a = node.args
                given = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
                untyped += [f"{node.name}({x.arg})" for x in given if x.annotation is None and x.arg != "self"]
                untyped += [f"{node.name}: what it returns"] if node.returns is None else []
        self.assertEqual(untyped, [])
        depths = [""]
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.INDENT:
                self.assertEqual(token.string, depths[-1] + "  ", f"line {token.start[0]}")
                depths.append(token.string)
            elif token.type == tokenize.DEDENT:
                depths.pop()
        self.assertEqual([line for line in text.splitlines() if line != line.rstrip() or "\t" in line], [])


class Api:
    """torch.cuda and its like: the calls that the program makes."""

    def __init__(self):
        self.captured = self.replayed = 0
        self.current, self.underway = "default", False
        api = self

        class Event:
            def __init__(self, enable_timing=False):
                assert enable_timing

            def record(self):
                pass

            def elapsed_time(self, end):
                assert isinstance(end, Event)
                return 0.5

        class Graph:
            def replay(self):
                api.replayed += 1
        self.Event, self.CUDAGraph, self.NPUGraph = Event, Graph, Graph

    @contextlib.contextmanager
    def stream(self, stream):
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    def current_stream(self):
        return self.current

    @contextlib.contextmanager
    def graph(self, made):
        """As torch.cuda.graph: where the capture fails, its exit raises before it restores the stream, and the allocator is not told."""
        assert isinstance(made, self.CUDAGraph) and not self.underway
        self.captured += 1
        before, self.current = self.current, "capture"
        try:
            yield
        except RuntimeError as error:
            self.underway = True
            raise RuntimeError("operation failed due to a previous error during capture") from error
        self.current = before

    def empty_cache(self):
        if self.underway:
            raise RuntimeError("captures_underway.empty() INTERNAL ASSERT FAILED")

    set_device = synchronize = init = staticmethod(lambda *_: None)
    is_available = staticmethod(lambda: True)
    get_device_name = staticmethod(lambda _: "Fake H100")
    get_device_capability = staticmethod(lambda _: (9, 0))
    get_device_properties = staticmethod(lambda _: types.SimpleNamespace(L2_cache_size=1 << 16))
    mem_get_info = staticmethod(lambda _: (1 << 33, 1 << 33))
    memory_reserved = memory_allocated = staticmethod(lambda: 0)


class Elsewhere(unittest.TestCase):
    """A device of `kind` that computes on the host, beside packages that are stand-ins."""
    kind = "cuda"

    def setUp(self):
        self.calls = []
        self.api = Api()
        here = torch.device
        self.patch(mock.patch.object(torch, self.kind, self.api, create=True))
        self.patch(mock.patch.object(torch, "device", lambda *_: here("cpu")))
        self.patch(mock.patch.object(torch.distributed.distributed_c10d, "_get_default_group", lambda: types.SimpleNamespace(
            get_hccl_comm_name=lambda rank: f"group of {rank}")))
        self.device = replay.Device(self.kind)
        self.device.flushed = 1 << 16
        self.chooser = replay.Chooser(replay.Lab(self.device), replay.Ranks("cpu"))
        replay.missing.cache_clear()
        self.addCleanup(replay.missing.cache_clear)

    def patch(self, patcher):
        patcher.start()
        self.addCleanup(patcher.stop)

    def package(self, name, **attributes):
        module = types.ModuleType(name)
        for attribute, value in attributes.items():
            setattr(module, attribute, self.recorded(attribute, value) if isinstance(value, types.FunctionType) else value)
        self.patch(mock.patch.dict(sys.modules, {name: module}))
        replay.missing.cache_clear()

    def recorded(self, name, function):
        def call(*arguments, **named):
            self.calls.append((name, arguments, named))
            return function(*arguments, **named)
        return call

    def of_torch(self, where=torch, **functions):
        for name, function in functions.items():
            self.patch(mock.patch.object(where, name, self.recorded(name, function) if isinstance(function,
                                                                                                  types.FunctionType) else function,
                                         create=True))

    def check_copies(self, pins=True):
        """Each copy is one call of copy_ that does not block, to or from memory that was asked to be pinned."""
        real, hosts = torch.empty, []

        def empty(*shape, pin_memory=False, **more):
            if pin_memory and not pins:
                raise RuntimeError("Cannot access accelerator device when none is available.")
            hosts.append((real(*shape, **more), pin_memory))
            return hosts[-1][0]
        self.patch(mock.patch.object(torch, "empty", empty))
        name = "torch copy_, pinned" if pins else "torch copy_"
        for op, dtype in (("copy_to_device", "fp16"), ("copy_to_host", "bf16"), ("copy_to_host", "int8")):
            r = row(op, dtype, bytes=10000)
            self.ran(r, name)
            hosts.clear()
            calls = self.chooser.op(r)[0].calls
            self.assertEqual((len(calls), len(hosts)), (self.device.flushed // 10000 + 1,) * 2)
            for call, (host, pinned) in zip(calls, hosts):
                to, (of,) = call.func.__self__, call.args
                self.assertEqual((call.func.__name__, call.keywords, pinned), ("copy_", {"non_blocking": True}, pins))
                self.assertIs(of if op == "copy_to_device" else to, host)
                self.assertEqual(to.numel() * to.element_size(), 10000)
                call()
                self.assertTrue(torch.equal(to, of) and of.any())
        with self.assertRaisesRegex(replay.Unavailable, "copy_to_nowhere"):
            self.chooser.op(row("copy_to_nowhere", bytes=4096))

    def ran(self, r, kernel, page=0):
        """The kernel that is chosen computes what it should; its last call."""
        r.cells.update({"page": str(page)} if page else {})
        self.assertEqual(r.problem(), "")
        op, name, wrong = self.chooser.op(r)
        self.assertEqual((name, wrong), (kernel, ""))
        self.assertGreaterEqual(len(op.calls), 1)
        return self.calls[-1] if self.calls else None


def rms(x, gamma, epsilon):
    return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + epsilon)).to(x.dtype) * gamma


class OnCuda(Elsewhere):
    decode = dict(batch=3, q_len=1, kv_len=50, heads=8, kv_heads=2, head_dim=64)
    prompt = dict(batch=2, q_len=40, kv_len=40, heads=8, kv_heads=2, head_dim=64)

    def flash2(self):
        """Arguments and layouts: docstrings of flash_attn_func and flash_attn_with_kvcache in
        https://github.com/Dao-AILab/flash-attention/blob/main/flash_attn/flash_attn_interface.py."""
        def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                            deterministic=False, return_attn_probs=False):
            return attention(q, k, v, softmax_scale, causal, window_size[0] + 1).to(q.dtype)

        def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None, cache_seqlens=None,
                                    cache_batch_idx=None,
                                    cache_leftpad=None, block_table=None, softmax_scale=None, causal=False, window_size=(-1, -1),
                                    softcap=0.0):
            assert cache_seqlens.dtype == torch.int32 and cache_seqlens.shape == (len(q),)
            if block_table is not None:
                assert k_cache.shape[1] % 256 == 0
                k_cache, v_cache = (unpaged(x, block_table, int(cache_seqlens[0])) for x in (k_cache, v_cache))
            return attention(q, k_cache, v_cache, softmax_scale, causal, window_size[0] + 1).to(q.dtype)
        self.package("flash_attn", flash_attn_func=flash_attn_func, flash_attn_with_kvcache=flash_attn_with_kvcache)

    def flash3(self):
        """https://github.com/Dao-AILab/flash-attention/blob/main/hopper/flash_attn_interface.py: pages are told by page_table."""
        def flash_attn_func(q, k, v, softmax_scale=None, causal=False, qv=None, q_descale=None, k_descale=None, v_descale=None,
                            window_size=(-1, -1),
                            attention_chunk=0, softcap=0.0, num_splits=1, pack_gqa=None, deterministic=False, sm_margin=0):
            return attention(q, k, v, softmax_scale, causal, window_size[0] + 1).to(q.dtype), None

        def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, qv=None, cache_seqlens=None, page_table=None, softmax_scale=None,
                                    causal=False,
                                    window_size=(-1, -1)):
            if page_table is not None:
                k_cache, v_cache = (unpaged(x, page_table, int(cache_seqlens[0])) for x in (k_cache, v_cache))
            return attention(q, k_cache, v_cache, softmax_scale, causal, window_size[0] + 1).to(q.dtype)
        self.package("flash_attn_interface", flash_attn_func=flash_attn_func, flash_attn_with_kvcache=flash_attn_with_kvcache)

    def flashinfer(self):
        """https://docs.flashinfer.ai/api/attention.html (layout NHD: [pages, page, kv heads, d], plan and run), …/api/norm.html,
        …/api/rope.html, …/api/activation.html."""
        calls = self.calls

        class Wrapper:
            def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False, use_tensor_cores=False):
                assert float_workspace_buffer.dtype == torch.uint8 and kv_layout == "NHD"

            def tables(self, indptr, indices, last, page):
                assert {x.dtype for x in (indptr, indices, last)} == {torch.int32}
                self.table = [indices[int(a):int(b)] for a, b in zip(indptr[:-1], indptr[1:])]
                self.length = (len(self.table[0]) - 1) * page + int(last[0])

            def attend(self, q, cache, queries, causal):
                k, v = (unpaged(x, self.table, self.length) for x in cache)
                y = attention(q.reshape(len(self.table), queries, *q.shape[1:]), k, v, self.scale, causal, self.window + 1)
                return y.reshape(q.shape).to(q.dtype)

        class Decode(Wrapper):
            def plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, pos_encoding_mode="NONE",
                     window_left=-1,
                     logits_soft_cap=None, q_data_type="float16", kv_data_type=None, sm_scale=None):
                calls.append(("decode", (num_qo_heads, num_kv_heads, head_dim, page_size), dict(kv=kv_data_type)))
                self.tables(indptr, indices, last_page_len, page_size)
                self.scale, self.window = sm_scale, window_left

            def run(self, q, paged_kv_cache):
                return self.attend(q, paged_kv_cache, 1, False)

        class Prefill(Wrapper):
            def plan(self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim_qk,
                     page_size,
                     head_dim_vo=None, custom_mask=None, causal=False, sm_scale=None, window_left=-1, q_data_type="float16",
                     kv_data_type=None):
                calls.append(("prefill", (num_qo_heads, num_kv_heads, head_dim_qk, page_size), dict(causal=causal)))
                self.tables(paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, page_size)
                self.scale, self.window, self.causal, self.queries = sm_scale, window_left, causal, int(qo_indptr[1])

            def run(self, q, paged_kv_cache):
                return self.attend(q, paged_kv_cache, self.queries, self.causal)

        def fused_add_rmsnorm(input, residual, weight, eps=1e-6):
            residual += input
            input.copy_(rms(residual, weight, eps))

        def apply_rope_pos_ids(q, k, pos_ids, rotary_dim=None, interleave=False, rope_scale=1, rope_theta=1e4):
            angle = pos_ids[:, None, None] * rope_theta ** (-2 * (torch.arange(q.shape[2]) % (q.shape[2] // 2)) / q.shape[2])
            return tuple(replay.rotated(x, angle.cos().to(x.dtype), angle.sin().to(x.dtype)) for x in (q, k))
        self.package("flashinfer", BatchDecodeWithPagedKVCacheWrapper=Decode, BatchPrefillWithPagedKVCacheWrapper=Prefill,
                     rmsnorm=lambda input, weight, eps=1e-6: rms(input, weight, eps), fused_add_rmsnorm=fused_add_rmsnorm,
                     silu_and_mul=lambda input: F.silu(input[:, :input.shape[1] // 2]) * input[:, input.shape[1] // 2:],
                     apply_rope_pos_ids=apply_rope_pos_ids)

    def torch2(self):
        """https://docs.pytorch.org/docs/2.8/generated/torch.nn.functional.scaled_dot_product_attention.html: [batch, heads, tokens, d],
        is_causal aligned to the first key; …/torch.nn.attention.sdpa_kernel.html."""
        def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
            assert enable_gqa or query.shape[1] == key.shape[1]
            key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
            shape = (query.shape[2], key.shape[2])
            mask = attn_mask if attn_mask is not None else torch.ones(shape).tril().bool() if is_causal else torch.ones(shape).bool()
            scores = (query.float() @ key.float().transpose(2, 3) * scale).masked_fill(~mask, -math.inf)
            return (scores.softmax(-1) @ value.float()).to(query.dtype)
        self.of_torch(F, scaled_dot_product_attention=scaled_dot_product_attention)

        @contextlib.contextmanager
        def sdpa_kernel(backends):
            self.calls.append(("sdpa_kernel", (backends,), {}))
            yield
        module = types.ModuleType("torch.nn.attention")
        module.sdpa_kernel, module.SDPBackend = sdpa_kernel, types.SimpleNamespace(CUDNN_ATTENTION="cudnn", FLASH_ATTENTION="flash")
        self.patch(mock.patch.dict(sys.modules, {"torch.nn.attention": module}))

    def test_attention_by_flash_attention_3_then_2(self):
        self.flash2()
        self.flash3()
        self.ran(row("attention_prefill", **self.prompt), "FlashAttention 3")
        self.assertEqual(self.calls[-1][0], "flash_attn_func")
        self.ran(row("attention_decode", **self.decode), "FlashAttention 3, pages of 16", page=16)
        self.assertIn("page_table", self.calls[-1][2])
        self.ran(row("mla_prefill", batch=1, q_len=20, kv_len=20, heads=4), "FlashAttention 3")
        self.device.capability, self.device.major = (8, 0), 8
        name, _, named = self.ran(row("attention_prefill", **{**self.prompt, "kv_len": 60, "window": 24}), "FlashAttention 2")
        self.assertEqual((name, named["window_size"], named["causal"]), ("flash_attn_func", (23, 0), True))
        name, arguments, named = self.ran(row("attention_decode", **self.decode), "FlashAttention 2, pages of 256", page=256)
        self.assertEqual((name, named["block_table"].dtype, arguments[0].shape), ("flash_attn_with_kvcache", torch.int32, (3, 1, 8, 64)))

    def test_attention_by_flashinfer(self):
        self.flashinfer()
        self.ran(row("attention_decode", **self.decode), "FlashInfer, pages of 16")
        self.assertIn(("decode", (8, 2, 64, 16), {"kv": torch.bfloat16}), self.calls)
        self.ran(row("attention_prefill", **{**self.prompt, "kv_len": 61, "window": 30}), "FlashInfer, pages of 8", page=8)
        self.assertIn(("prefill", (8, 2, 64, 8), {"causal": True}), self.calls)

    def test_attention_over_a_cache_in_fp8(self):
        self.flashinfer()
        self.of_torch(float8_e4m3fn=torch.float16)  # there is none before torch 2.1
        self.ran(row("attention_decode", kv_dtype="fp8", **self.decode), "FlashInfer, pages of 16")
        self.assertIn(("decode", (8, 2, 64, 16), {"kv": torch.float16}), self.calls)

    def test_attention_by_torch(self):
        self.torch2()
        self.ran(row("attention_decode", **self.decode), "torch cuDNN attention")
        self.assertEqual([name for name, _, _ in self.calls[-2:]], ["sdpa_kernel", "scaled_dot_product_attention"])
        self.assertIn(("sdpa_kernel", ("cudnn",), {}), self.calls)
        session = replay.Session(replay.arguments().parse_args(["-o", os.devnull]), self.device, replay.Ranks("cpu"), [])
        self.calls.clear()
        self.assertEqual(session.step([[1, [[0, 1]]]], {0: row("attention_decode", **self.decode)})[1], "torch cuDNN attention")
        self.assertEqual(sum(c[0] == "sdpa_kernel" for c in self.calls),  # a step's attention is by the row's kernel
                         sum(c[0] == "scaled_dot_product_attention" for c in self.calls))
        name, arguments, named = self.ran(row("attention_prefill", **self.prompt), "torch cuDNN attention")
        self.assertEqual((name, arguments[0].shape, named["is_causal"], named["enable_gqa"]),
                         ("scaled_dot_product_attention", (2, 8, 40, 64), True, True))
        self.patch(mock.patch.dict(sys.modules, {"torch.nn.attention.bias": None}))
        replay.missing.cache_clear()
        self.ran(row("attention_prefill", **{**self.prompt, "kv_len": 60}), "torch attention, with a mask")
        self.ran(row("attention_prefill", **{**self.prompt, "window": 20}), "torch attention, with a mask")
        bias = types.ModuleType("torch.nn.attention.bias")  # …/torch.nn.attention.bias.causal_lower_right.html
        bias.causal_lower_right = lambda q_len, kv_len: torch.ones((q_len, kv_len)).tril(kv_len - q_len).bool()
        self.patch(mock.patch.dict(sys.modules, {"torch.nn.attention.bias": bias}))
        replay.missing.cache_clear()
        arguments = self.ran(row("attention_prefill", **{**self.prompt, "kv_len": 60}),
                             "torch attention, causal_lower_right, keys repeated")[1]
        self.assertEqual([x.shape[1] for x in arguments], [8, 8, 8])  # it lets no heads share keys
        self.ran(row("attention_prefill", "fp32", **{**self.prompt, "causal": 0}), "torch attention")
        self.ran(row("mla_decode", batch=2, q_len=1, kv_len=30, heads=8), "torch attention")
        arguments, named = self.ran(row("attention_decode", window=20, **self.decode), "torch cuDNN attention")[1:]
        self.assertEqual((arguments[1].shape[2], named.get("attn_mask")), (20, None))
        self.chooser.named = "torch flash"
        self.ran(row("attention_decode", **self.decode), "torch flash attention")

    def test_latent_attention_by_flash_mla(self):
        """README of https://github.com/deepseek-ai/FlashMLA: get_mla_metadata(lengths, s_q h_q / h_kv, h_kv), pages of 64."""
        def flash_mla_with_kvcache(q, k_cache, block_table, cache_seqlens, head_dim_v, tile_scheduler_metadata, num_splits,
                                   softmax_scale=None, causal=False):
            assert (tile_scheduler_metadata, num_splits, k_cache.shape[1]) == ("plan", "splits", 64)
            k = unpaged(k_cache, block_table, int(cache_seqlens[0]))
            return attention(q, k, k[..., :head_dim_v], softmax_scale, causal).to(q.dtype), None

        def get_mla_metadata(cache_seqlens, num_heads_per_head_k, num_heads_k):
            assert (num_heads_per_head_k, num_heads_k) == (16, 1)
            return "plan", "splits"
        self.package("flash_mla", flash_mla_with_kvcache=flash_mla_with_kvcache, get_mla_metadata=get_mla_metadata)
        self.ran(row("mla_decode", batch=2, q_len=1, kv_len=70, heads=16), "FlashMLA, pages of 64")

    def test_products_in_five_types(self):
        """torch._scaled_mm, _int_mm and the packed ones take [m, k] and [n, k] or its transpose (ATen's native_functions.yaml; the second
        of _scaled_mm column by column)."""
        def scaled_mm(a, b, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False):
            """A scale of each operand, or of 128 of a row and of 128 x 128 (test/test_scaled_matmul_cuda.py of PyTorch), which are read in
            rows that are a multiple of four long (cuBLAS, "1D and 128x128 2D Block Scaling for FP8 Data Types"), of more than one row."""
            assert scale_a.dtype == scale_b.dtype == torch.float32
            assert b.stride(0) == 1 and a.dtype == b.dtype == torch.float8_e4m3fn
            if scale_a.numel() > 1:
                (m, k), n = a.shape, b.shape[1]
                assert m > 1 and not use_fast_accum and (k // 128) % 4 == 0
                assert (scale_a.shape, scale_a.stride()) == ((m, k // 128), (1, m))
                assert (scale_b.shape, scale_b.stride()) == ((k // 128, n // 128), (1, k // 128))
                scale_a, scale_b = scale_a.repeat_interleave(128, 1), scale_b.repeat_interleave(128, 0).repeat_interleave(128, 1)
                return ((a.float() * scale_a) @ (b.float() * scale_b)).to(out_dtype)
            assert scale_a.numel() == scale_b.numel() == 1
            return (a.float() @ b.float() * scale_a * scale_b).to(out_dtype)

        def int_mm(a, b):
            assert a.dtype == b.dtype == torch.int8
            return (a.double() @ b.double()).to(torch.int32)

        def int4pack_mm(x, w, group, scales):
            q = (w.float() - 8).reshape(len(w), -1, group)
            assert scales.shape == (q.shape[1], len(w), 2)
            return (x.float() @ (q * scales[..., 0].t()[..., None].float()).reshape(len(w), -1).t()).to(x.dtype)

        def pack(q, tiles):
            if q.dtype == torch.uint8:
                raise RuntimeError("int32 expected")  # as torch before 2.5
            return q
        self.of_torch(float8_e4m3fn=torch.float16, _scaled_mm=scaled_mm, _int_mm=int_mm, _weight_int4pack_mm=int4pack_mm,
                      _convert_weight_to_int4pack=pack)
        sizes = dict(m=40, n=64, k=128)
        self.ran(row("gemm", "bf16", **sizes), "torch linear")
        self.ran(row("gemm", "fp32", batch=3, **sizes), "torch linear")
        self.ran(row("gemm", "fp8", **sizes), "torch._scaled_mm, fast accumulation")
        self.assertTrue(self.calls[-1][2]["use_fast_accum"])
        self.ran(row("gemm", "bf16", weights="fp8", **sizes), "torch._scaled_mm, with a cast, fast accumulation")
        self.assertEqual(self.calls[-1][2]["out_dtype"], torch.bfloat16)
        self.device.major = 9
        for m, n, k in ((40, 384, 1024), (2, 128, 512)):
            self.ran(row("gemm", "fp8", weights="fp8-block128", m=m, n=n, k=k), "torch._scaled_mm")
        self.ran(row("gemm", "int8", **sizes), "torch._int_mm")
        self.ran(row("gemm", "bf16", weights="w4a16-g64", **sizes), "torch._weight_int4pack_mm")
        for r, why in ((row("gemm", "int8", m=4, n=64, k=128), "more than 16 rows"),
                       (row("gemm", "fp8", m=4, n=60, k=128), "multiples of 16"),
                       (row("gemm", "fp8", weights="fp8-block128", m=1, n=128, k=512), "more than 1 rows"),
                       (row("gemm", "fp8", weights="fp8-block128", m=4, n=128, k=640), "multiples of 512"),
                       (row("gemm", "bf16", weights="fp8-block128", m=4, n=128, k=512), "is for Hopper"),
                       (row("gemm", "bf16", weights="mxfp4", **sizes), "no kernel for gemm in bf16 mxfp4")):
            with self.assertRaisesRegex(replay.Unavailable, why):
                self.chooser.op(r)

    def test_experts_and_cache_writes_and_norms(self):
        """https://docs.pytorch.org/docs/main/generated/torch.nn.functional.grouped_mm.html: offs are the ends of groups in int32."""
        def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
            assert offs.dtype == torch.int32 and mat_b.dim() == 3 and mat_b.stride(1) == 1
            ends = [0] + offs.tolist()
            return torch.cat([mat_a[a:b] @ w for a, b, w in zip(ends, ends[1:], mat_b)])
        self.of_torch(_grouped_mm=grouped_mm)
        self.flashinfer()
        self.ran(row("moe", m=9, hidden=64, inter=32, topk=2, experts=6), "torch grouped_mm, routed by a chain")
        self.ran(row("moe_products", m=9, hidden=64, inter=64, topk=2, experts=6, tp=2, ep=2), "torch grouped_mm")
        self.ran(row("moe", m=9, hidden=64, inter=32, topk=2, experts=6, distribution="uniform"),
                 "torch grouped_mm, routed by a chain")
        self.ran(row("kv_write", m=37, kv_heads=2, head_dim=16), "torch index_copy_")
        for kind in ("rms_norm", "add_rms_norm", "gated_activation"):
            self.ran(row(f"vector:{kind}", m=9, n=64), "flashinfer")
        self.ran(row("vector:rope", m=50, n=64, heads=8, kv_heads=2), "flashinfer")
        self.ran(row("vector:softmax", m=9, n=64), "torch")

    def test_copies_over_the_link(self):
        self.check_copies()

    def test_copies_where_nothing_is_pinned(self):
        self.check_copies(pins=False)

    def test_norms_that_no_package_has_are_compiled(self):
        self.package("triton")
        self.of_torch(compile=lambda function, dynamic=None: function, _dynamo=types.SimpleNamespace(reset=lambda: None))
        for kind in ("rms_norm", "add_layer_norm"):
            self.ran(row(f"vector:{kind}", m=9, n=64), "torch.compile")
        self.ran(row("vector:add", m=9, n=64), "torch")

    def test_a_recurrence_by_flash_linear_attention(self):
        """README of https://github.com/fla-org/flash-linear-attention: [batch, tokens, heads, d], g the logarithm of the decay."""
        def delta(q, k, v, g, beta, scale, initial_state):
            assert g.dtype == torch.float32 and g.shape == beta.shape == v.shape[:3] and v.shape[2] % q.shape[2] == 0
            q, k = (x.repeat_interleave(v.shape[2] // q.shape[2], 2) for x in (q, k))
            state, results = initial_state, []
            for t in range(q.shape[1]):
                state = state * g[:, t].exp()[..., None, None]
                new = (v[:, t].float() - (state * k[:, t, :, :, None]).sum(2)) * beta[:, t, :, None]
                state = state + k[:, t, :, :, None] * new[:, :, None]
                results.append((state * q[:, t, :, :, None]).sum(2) * scale)
            return torch.stack(results, 1).to(v.dtype), state

        def chunk_gated_delta_rule(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False):
            assert q.shape[2] == v.shape[2]
            return delta(q, k, v, g, beta, scale, initial_state)

        def fused_recurrent_gated_delta_rule(q, k, v, g=None, gk=None, gv=None, beta=None, scale=None, initial_state=None,
                                             output_final_state=False):
            assert gk is None and gv is None
            return delta(q, k, v, g, beta, scale, initial_state)
        self.package("fla")
        self.package("fla.ops")
        self.package("fla.ops.gated_delta_rule", chunk_gated_delta_rule=chunk_gated_delta_rule,
                     fused_recurrent_gated_delta_rule=fused_recurrent_gated_delta_rule)
        for tokens, name in ((1, "fused_recurrent_gated_delta_rule"), (9, "chunk_gated_delta_rule")):
            self.assertEqual(self.ran(row("scan:gated_delta_net", batch=2, q_len=tokens, heads=4, kv_heads=2, k=16, n=8),
                                      "flash-linear-attention")[0], name)

    def test_captured_and_launched_one_by_one(self):
        timer = replay.Timer(self.device, replay.Ranks("cpu"))
        op, _, _ = self.chooser.op(row("gemm", "fp32", m=4, n=16, k=16))
        self.assertEqual([t.mode for t in timer.times(op)], ["graph", "eager"])
        self.assertEqual(self.api.captured, 1)
        self.assertGreater(self.api.replayed, 0)
        self.api.graph = mock.Mock(side_effect=RuntimeError("operation not permitted when stream is capturing"))
        self.assertEqual([t.mode for t in timer.times(op)], ["eager"])
        self.assertIn("not permitted", timer.note)
        self.assertFalse(timer.broken)

    def test_a_capture_that_fails_ends_the_run_and_is_not_tried_again(self):
        real = F.linear

        def synchronises(x, w):
            if self.api.current == "capture":
                raise RuntimeError("operation not permitted when stream is capturing")
            return real(x, w)
        self.of_torch(F, linear=synchronises)
        _, rows, _ = replay.parse("op,dtype,m,n,k\ngemm,fp32,4,16,16\ngemm,fp32,8,16,16\nvector:add,fp32,4,8,\n")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.csv")
            options = replay.arguments().parse_args(["-o", path])
            for status, count in ((1, 1), (0, 4)):  # the second run goes on, and asks no graph of that kernel
                self.api.underway = False
                session = replay.Session(options, self.device, replay.Ranks("cpu"), ["op", "dtype", "m", "n", "k"])
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    self.assertEqual(replay.whole(session, rows, [], rows), status, said.getvalue())
                self.assertEqual(self.api.current, "default")
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                made = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
                self.assertEqual(len(made), count, text)
        self.assertIn("# not to be captured: torch linear", text)
        self.assertNotIn("ended the program", text)
        self.assertEqual([r["mode"] for r in made], ["eager", "eager", "graph", "eager"])

    def test_sensors_are_read_while_the_device_works(self):
        said = []
        self.api.synchronize = lambda: said.append("waits")
        with mock.patch.object(replay.Device, "sensors", lambda _: said.append("senses") or [1.0, 2.0, 3.0]):
            timing = replay.Timer(self.device, replay.Ranks("cpu")).times(replay.Op([lambda: said.append("works")]), graph=False)[0]
        for at in (i for i, word in enumerate(said) if word == "senses"):
            self.assertEqual((said[at - 1], said[at + 1]), ("works", "waits"))
        self.assertEqual((said.count("senses"), timing.sensors), (2, [1.0, None, 3.0]))

    def test_what_amd_tells(self):
        self.patch(mock.patch.object(torch.version, "hip", "6.4", create=True))
        self.api.get_device_properties = lambda _: types.SimpleNamespace(L2_cache_size=4 << 20, gcnArchName="gfx942:sramecc+:xnack-")
        self.api.clock_rate, self.api.power_draw, self.api.temperature = (lambda _: 2100), (lambda _: 750), (lambda _: 0)
        device = replay.Device("cuda")
        self.assertEqual((device.flushed, device.fp8, device.major), (512 << 20, "float8_e4m3fnuz", 0))
        self.assertEqual(device.sensors(), [2100, 750, None])

    def test_an_fp8_that_the_device_has(self):
        self.of_torch(float8_e4m3fn=torch.float16, float8_e4m3fnuz=torch.bfloat16)
        self.device.fp8 = "float8_e4m3fnuz"
        self.assertEqual(replay.Lab(self.device).fill(0, (4,), dtype="fp8").dtype, torch.bfloat16)

    def test_a_package_that_is_broken_is_not_there(self):
        broken = mock.Mock()
        broken.find_spec.side_effect = OSError("libcudart.so.13: cannot open shared object file")
        self.patch(mock.patch.object(sys, "meta_path", [broken, *sys.meta_path]))
        own = hasattr(F, "scaled_dot_product_attention")
        self.ran(row("attention_decode", **self.decode), "torch flash attention" if own else "torch matmul and softmax")


class OnNpu(Elsewhere):
    """Signatures and layouts: https://www.hiascend.com/document/detail/zh/Pytorch/700/apiref/apilist/, pages ptaoplist_001232 (fused
    attention), 000171 (prompts), 000839 of 600 (new tokens), 000860 (rms norm), 001122 of 60RC2 (swiglu), 000141 (rotary), 000172
    (quantised products), 001256 (quantised weights), 001237 (grouped), 000783 and 000780 of 60RC3 and 000855 of 600 (experts), 000164
    (with all-reduce)."""
    kind = "npu"

    def setUp(self):
        super().setUp()
        most = 2147483647

        def masked(query, key, value, heads, kv_heads, scale, layout, mask, sparse_mode, pre_tokens, next_tokens):
            assert layout == "BSND" and query.shape[2] == heads and key.shape[2] == kv_heads
            assert sparse_mode == (0 if mask is None else 4 if pre_tokens < most else 3)
            if mask is not None:
                assert mask.shape == (2048, 2048) and mask.dtype == torch.bool and next_tokens == 0 and bool(mask[0,
                                                                                                                  1]) and not bool(mask[1,
                                                                                                                                        0])
            return attention(query, key, value, scale, mask is not None, pre_tokens + 1 if pre_tokens < most else 0).to(query.dtype)

        def npu_fused_infer_attention_score(query, key, value, *, atten_mask=None, actual_seq_lengths_kv=None, block_table=None,
                                            query_rope=None,
                                            key_rope=None, num_heads=1, scale=1.0, pre_tokens=most, next_tokens=most, input_layout="BSH",
                                            num_key_value_heads=0, sparse_mode=0, block_size=0):
            if block_table is not None:
                assert key.dim() == 3 and key.shape[1] == block_size
                key, value = (unpaged(x, block_table, actual_seq_lengths_kv[0]).unflatten(2, (num_key_value_heads, -1)) for x in (key,
                                                                                                                                  value))
            if query_rope is not None:
                query, key = torch.cat((query, query_rope), -1), torch.cat((key, key_rope), -1)
            return masked(query, key, value, num_heads, num_key_value_heads, scale, input_layout, atten_mask, sparse_mode, pre_tokens,
                          next_tokens), None

        def npu_prompt_flash_attention(query, key, value, *, atten_mask=None, num_heads=1, scale_value=1.0, pre_tokens=most, next_tokens=0,
                                       input_layout="BSH", num_key_value_heads=0, sparse_mode=0):
            return masked(query, key, value, num_heads, num_key_value_heads, scale_value, input_layout, atten_mask, sparse_mode,
                          pre_tokens, next_tokens)

        def npu_incre_flash_attention(query, key, value, *, atten_mask=None, num_heads=1, scale_value=1.0, input_layout="BSH",
                                      num_key_value_heads=0):
            return masked(query, key, value, num_heads, num_key_value_heads, scale_value, input_layout, atten_mask, 0, most, 0)

        def npu_quant_matmul(x1, x2, scale, *, offset=None, pertoken_scale=None, bias=None, output_dtype=None):
            assert x1.dtype == x2.dtype == torch.int8 and pertoken_scale.shape == (len(x1),) and scale.shape == (x2.shape[1],)
            assert scale.dtype == (torch.bfloat16 if output_dtype == torch.bfloat16 else torch.float32)
            return (x1.float() @ x2.float() * pertoken_scale[:, None] * scale.float()).to(output_dtype)

        def npu_dynamic_quant(x):
            scale = x.float().abs().amax(-1) / 127
            return (x.float() / scale[:, None]).round().to(torch.int8), scale

        def npu_weight_quant_batchmatmul(x, weight, antiquant_scale, antiquant_offset=None, quant_scale=None, quant_offset=None, bias=None,
                                         antiquant_group_size=0):
            assert antiquant_scale.dtype == x.dtype and len(weight) == x.shape[1]
            scale = antiquant_scale.float()
            scale = scale.repeat_interleave(antiquant_group_size, 0) if antiquant_group_size else scale
            return (x.float() @ (weight.float() * scale)).to(x.dtype)

        def npu_grouped_matmul(x, weight, *, group_list=None, split_item=0, group_type=-1, group_list_type=0):
            assert (split_item, group_type, group_list_type, group_list.dtype) == (2, 0, 0, torch.int64) and weight[0].dim() == 3
            ends = [0] + group_list.tolist()
            return [torch.cat([x[0][a:b] @ w for a, b, w in zip(ends, ends[1:], weight[0])])]

        def npu_moe_gating_top_k_softmax(x, finished=None, k=1):
            shares, picks = x.float().softmax(-1).topk(k)
            return shares.to(x.dtype), picks.int(), torch.arange(len(x) * k).reshape(k, len(x)).t().int()

        def npu_moe_init_routing(x, row_idx, expert_idx, active_num):
            assert active_num == len(x)
            expert, order = expert_idx.t().flatten().sort()  # by expert, then by pick and token, which is what row_idx numbers
            return x[order % len(x)], order.argsort().int(), expert.int()

        def npu_moe_finalize_routing(expanded_permuted_rows, skip1, skip2, bias, scales, expanded_src_to_dst_row, export_for_source_row):
            k = scales.shape[1]
            rows = expanded_permuted_rows[expanded_src_to_dst_row.long()].reshape(k, -1, expanded_permuted_rows.shape[1])
            return (rows * scales.t()[..., None]).sum(0)

        def npu_scatter_nd_update_(input, indices, updates):
            input[indices[:, 0].long()] = updates
            return input

        def npu_mm_all_reduce_base(x1, x2, hcom, *, reduce_op="sum", bias=None, comm_turn=0):
            assert (hcom, reduce_op) == ("group of 0", "sum")
            other = [self.lab_of(2, x1.shape), self.lab_of(3, x2.t().shape) / math.sqrt(x1.shape[1])]
            return (x1.float() @ x2.float() + other[0] @ other[1].t()).to(x1.dtype)
        self.package(
            "torch_npu", npu_fused_infer_attention_score=npu_fused_infer_attention_score,
            npu_prompt_flash_attention=npu_prompt_flash_attention,
            npu_incre_flash_attention=npu_incre_flash_attention, npu_quant_matmul=npu_quant_matmul, npu_dynamic_quant=npu_dynamic_quant,
            npu_weight_quant_batchmatmul=npu_weight_quant_batchmatmul, npu_convert_weight_to_int4pack=lambda weight,
            inner_k_tiles=0: weight,
            npu_grouped_matmul=npu_grouped_matmul, npu_moe_gating_top_k_softmax=npu_moe_gating_top_k_softmax,
            npu_moe_init_routing=npu_moe_init_routing,
            npu_moe_compute_expert_tokens=lambda sorted_experts, num_experts: torch.bincount(sorted_experts.long(),
                                                                                             minlength=num_experts).cumsum(0).int(),
            npu_moe_finalize_routing=npu_moe_finalize_routing, npu_scatter_nd_update_=npu_scatter_nd_update_,
            npu_mm_all_reduce_base=npu_mm_all_reduce_base, npu_rms_norm=lambda self, gamma, epsilon=1e-6: (rms(self, gamma, epsilon), None),
            npu_add_rms_norm=lambda x1, x2, gamma, epsilon=1e-6: (rms(x1 + x2, gamma, epsilon), None, x1 + x2),
            npu_swiglu=lambda self, dim=-1: F.silu(self.chunk(2, dim)[0]) * self.chunk(2, dim)[1],
            npu_rotary_mul=lambda input, r1, r2, rotary_mode="half": replay.rotated(input, r1,
                                                                                    r2) if input.dim() == r1.dim() == 4 else None)

    @staticmethod
    def lab_of(operand, shape):
        return replay.Lab(None).fill(operand, shape, dtype="bf16").float()

    def test_attention_by_the_fused_kernel(self):
        self.ran(row("attention_prefill", **OnCuda.prompt), "npu_fused_infer_attention_score")
        self.ran(row("attention_prefill", **{**OnCuda.prompt, "kv_len": 66, "window": 30}), "npu_fused_infer_attention_score")
        self.assertEqual(self.calls[-1][2]["pre_tokens"], 29)
        arguments = self.ran(row("attention_decode", window=20, **OnCuda.decode), "npu_fused_infer_attention_score")[1]
        self.assertEqual(arguments[1].shape[1], 20)
        self.ran(row("attention_decode", "fp16", **OnCuda.decode), "npu_fused_infer_attention_score")
        self.ran(row("attention_decode", **OnCuda.decode), "npu_fused_infer_attention_score, pages of 16", page=16)
        self.assertEqual(self.calls[-1][2]["block_size"], 16)
        self.ran(row("mla_prefill", batch=1, q_len=20, kv_len=20, heads=4), "npu_fused_infer_attention_score")
        name, arguments, named = self.ran(row("mla_decode", batch=2, q_len=1, kv_len=30, heads=8), "npu_fused_infer_attention_score")
        self.assertEqual((arguments[0].shape, named["query_rope"].shape, named["key_rope"].shape),
                         ((2, 1, 8, 512), (2, 1, 8, 64), (2, 30, 1, 64)))

    def test_latents_are_keys_and_values(self):
        op, _, _ = self.chooser.op(row("mla_decode", batch=1, q_len=1, kv_len=30, heads=8))
        for call in op.calls:
            call()
            self.assertIs(self.calls[-1][1][1], self.calls[-1][1][2])

    def test_the_fused_kernel_of_before_7(self):
        """…/Pytorch/600/…: `scale` was called scale_value."""
        new = sys.modules["torch_npu"].npu_fused_infer_attention_score

        def old(query, key, value, *, scale_value=1.0, **more):
            if "scale" in more:
                raise TypeError("npu_fused_infer_attention_score() got an unexpected keyword argument 'scale'")
            return new(query, key, value, scale=scale_value, **more)
        sys.modules["torch_npu"].npu_fused_infer_attention_score = old
        self.ran(row("attention_prefill", **OnCuda.prompt), "npu_fused_infer_attention_score before 7.0")

    def test_attention_by_the_kernels_of_a_phase_each(self):
        self.chooser.named = "npu flash"
        self.assertEqual(self.ran(row("attention_prefill", **OnCuda.prompt), "npu flash attention")[0], "npu_prompt_flash_attention")
        self.assertEqual(self.ran(row("attention_decode", **OnCuda.decode), "npu flash attention")[0], "npu_incre_flash_attention")

    def test_quantised_products(self):
        sizes = dict(m=40, n=64, k=128)
        self.ran(row("gemm", "bf16", weights="w8a8", **sizes), "npu_quant_matmul, with npu_dynamic_quant")
        self.ran(row("gemm", "int8", **sizes), "npu_quant_matmul")
        self.assertEqual(self.calls[-1][2]["output_dtype"], torch.float16)
        self.ran(row("gemm", "bf16", weights="int8", **sizes), "npu_weight_quant_batchmatmul")
        self.ran(row("gemm", "bf16", weights="w4a16-g32", **sizes), "npu_weight_quant_batchmatmul")
        self.assertEqual((self.calls[-1][1][2].shape, self.calls[-1][2]["antiquant_group_size"]), ((4, 64), 32))

    def test_experts_norms_rotation_and_cache_writes(self):
        self.ran(row("moe", m=9, hidden=64, inter=32, topk=2, experts=6), "npu_grouped_matmul")
        self.assertEqual([name for name, _, _ in self.calls][-7:], ["npu_moe_gating_top_k_softmax", "npu_moe_init_routing",
                                                                    "npu_moe_compute_expert_tokens",
                         "npu_grouped_matmul", "npu_swiglu", "npu_grouped_matmul", "npu_moe_finalize_routing"])
        for kind in ("rms_norm", "add_rms_norm", "gated_activation"):
            self.ran(row(f"vector:{kind}", m=9, n=64), "torch_npu")
        self.ran(row("vector:rope", m=50, n=64, heads=8, kv_heads=2), "torch_npu")
        self.ran(row("kv_write", m=37, kv_heads=2, head_dim=16), "npu_scatter_nd_update_")

    def test_copies_over_the_link(self):
        self.check_copies()

    def test_a_product_with_its_sum_over_ranks(self):
        self.ran(row("matmul_all_reduce", ranks=2, m=16, n=32, k=64), "npu_mm_all_reduce_base")


class OnXpu(Elsewhere):
    kind = "xpu"

    def test_caches_that_the_driver_does_not_tell_of(self):
        for fp64, size in ((True, 816), (False, 48)):
            self.api.get_device_properties = lambda _, fp64=fp64: types.SimpleNamespace(has_fp64=fp64)
            self.assertEqual(replay.Device("xpu").flushed, size << 20)


class OnMps(Elsewhere):
    """https://docs.pytorch.org/docs/stable/mps.html: events, no graphs, no set_device."""
    kind = "mps"

    def test_plain_kernels_and_no_graphs(self):
        self.assertIsNone(self.device.graph_class)
        self.ran(row("gemm", "fp32", m=4, n=16, k=16), "torch linear")
        self.ran(row("vector:rms_norm", "fp32", m=4, n=16), "torch chain")
        self.check_copies(pins=False)
        self.assertEqual([t.mode for t in replay.Timer(self.device, replay.Ranks("cpu")).times(replay.Op([lambda: None]))], ["eager"])


if __name__ == "__main__":
    unittest.main()
