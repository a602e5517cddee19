#!/usr/bin/env python3
"""`llmperf graph`: programs in, the same numbers in every format out; what cannot be read is refused at its place."""
import csv
import io
import math
import os
import random
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor

from program import DONE, INFEASIBLE, PROGRAM, ROOT, SANITIZED, USAGE, ProgramTest

PROGRAMS = os.path.join(ROOT, "tests", "program", "programs")
FIXTURES = sorted(os.listdir(PROGRAMS))
HW = ["--hw", "h100-sxm"]
LLAMA = os.path.join(PROGRAMS, "llama_block.mlir")
DECODER = os.path.join(PROGRAMS, "llama_decoder_while.mlir")
SPMD = os.path.join(PROGRAMS, "mlp_spmd.mlir")

PRODUCT = """func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %0 = stablehlo.dot %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = stablehlo.tanh %0 : tensor<4x16xf32>
  %2 = stablehlo.negate %1 : tensor<4x16xf32>
  return %2 : tensor<4x16xf32>
}
"""

OPEN = """func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x?xf32>) -> tensor<?x?xf32> {
  %0 = stablehlo.dot %x, %w : (tensor<?x8xf32>, tensor<8x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
"""

# Runs until its input says stop.
LOOP = """func.func @main(%x: tensor<64xf32>, %n: tensor<i32>) -> tensor<64xf32> {
  %12:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<64xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %3 = stablehlo.tanh %y : tensor<64xf32>
    stablehlo.return %n, %3 : tensor<i32>, tensor<64xf32>
  }
  return %12#1 : tensor<64xf32>
}
"""

CUSTOM = """func.func @main(%x: tensor<16x32xbf16>, %w: tensor<32x64xbf16>) -> tensor<16x64xbf16> {
  %0 = stablehlo.custom_call @our_matmul(%x, %w) : (tensor<16x32xbf16>, tensor<32x64xbf16>) -> tensor<16x64xbf16>
  return %0 : tensor<16x64xbf16>
}
"""


class Graph(ProgramTest):
    def graph(self, text, *words, status=DONE):
        return self.json("graph", self.write("p.mlir", text), *HW, *words, status=status)

    def refused(self, text, fragment, *words):
        self.assert_bad_input(["graph", self.write("p.mlir", text), *HW, *words], fragment)

    def test_a_product_by_hand(self):
        document = self.graph(PRODUCT)
        self.assertEqual(document["schema"], "llmperf.graph")
        self.assertEqual(document["flops"], {"matrix": 1024, "vector": 128, "total": 1152})
        self.assertEqual([op["name"] for op in document["ops"]], ["stablehlo.dot", "stablehlo.tanh", "stablehlo.negate"])
        product = document["ops"][0]
        self.assertEqual((product["line"], product["class"], product["count"]), (2, "product", 1))
        self.assertEqual(product["operands"], ["f32[4,8]", "f32[8,16]"])
        self.assertEqual(product["results"], ["f32[4,16]"])
        self.assertEqual(product["matrix_dtype"], "tf32")
        self.assertEqual(document["memory"]["argument_bytes"], 4 * (4 * 8 + 8 * 16))
        self.assertEqual(document["unknown"], [])

    def test_every_fixture_adds_up(self):
        for name in FIXTURES:
            for fuse in ["none", "elementwise"]:
                with self.subTest(program=name, fuse=fuse):
                    document = self.json("graph", os.path.join(PROGRAMS, name), *HW, "--fuse", fuse)
                    ops = document["ops"]
                    self.assertTrue(ops)
                    for key, total in [("time_s", document["time_s"]), ("roof_s", document["roof_s"])]:
                        self.assertTrue(math.isclose(sum(op[key] for op in ops), total, rel_tol=1e-9), key)
                    for op in ops:
                        self.assertLessEqual(op["roof_s"], op["time_s"] * (1 + 1e-9))
                        self.assertGreater(op["line"], 0)
                    self.assertTrue(math.isclose(sum(g["time_s"] for g in document["kinds"]), document["time_s"]))
                    self.assertEqual(sum(g["count"] for g in document["kinds"]), sum(op["count"] for op in ops))
                    network = [op for op in ops if op["bound"] == "network"]
                    self.assertEqual(len(document["collectives"]), len(network))
                    unknown = [u["name"] for u in document["unknown"]]
                    self.assertEqual(unknown, ["custom call 'vendor.smooth<64>(row)'"] if name == "generic_mhlo.mlir" else [])
                    self.assertLessEqual(document["utilisation"], 1)
                    self.assertTrue(document["fits"])

    def test_collectives_have_groups_and_sizes(self):
        document = self.json("graph", SPMD, *HW)
        collectives = document["collectives"]
        self.assertEqual([c["name"].removeprefix("stablehlo.") for c in collectives],
                         ["all_gather", "reduce_scatter", "all_reduce", "all_reduce", "all_to_all", "collective_permute",
                          "collective_broadcast"])
        self.assertEqual(document["inputs"]["devices"], 4)
        gather = collectives[0]
        self.assertEqual(gather["groups"], "{0,1,2,3} x1")
        self.assertFalse(gather["inserted"])
        self.assertTrue(all(c["time_s"] > 0 for c in collectives))
        self.assertTrue(math.isclose(sum(c["time_s"] for c in collectives), document["network_time_s"]))
        inserted = self.json("graph", os.path.join(PROGRAMS, "mlp_gspmd.mlir"), *HW)["collectives"]
        self.assertTrue(inserted)
        self.assertTrue(all(c["inserted"] for c in inserted))

    def test_formats_say_the_same(self):
        document = self.json("graph", LLAMA, *HW)
        row, = csv.DictReader(io.StringIO(self.output("graph", LLAMA, *HW, "--format", "csv")))
        self.assertTrue(math.isclose(float(row["time_s"]), document["time_s"]))
        self.assertTrue(math.isclose(float(row["matrix_flops"]), document["flops"]["matrix"]))
        rows = list(csv.DictReader(io.StringIO(self.output("graph", LLAMA, *HW, "--format", "csv", "--detail", "ops"))))
        self.assertEqual(len(rows), len(document["ops"]))
        for one, op in zip(rows, document["ops"]):
            self.assertTrue(math.isclose(float(one["time_s"]), op["time_s"]))
        table = self.output("graph", LLAMA, *HW)
        for fragment in ["By kind of op", "dot_general", "Transformer blocks", "jit(forward)/layers_0/mlp", "Rests on"]:
            self.assertIn(fragment, table)
        self.assertLess(len(table), len(self.output("graph", LLAMA, *HW, "--detail", "ops")))
        self.assertTrue(self.output("graph", LLAMA, *HW, "--format", "md").startswith("#"))

    def test_exports_are_what_the_formats_print(self):
        self.output("graph", LLAMA, *HW, "--export", "out.json", "--export", "out.csv")
        for name, words in [("out.json", ["--json"]), ("out.csv", ["--format", "csv"])]:
            with open(self.path(name), encoding="utf-8") as file:
                self.assertEqual(file.read(), self.output("graph", LLAMA, *HW, *words), name)

    def test_fusing_saves_bytes_and_no_flops(self):
        apart = self.graph(PRODUCT)
        fused = self.graph(PRODUCT, "--fuse", "elementwise")
        self.assertEqual(fused["flops"], apart["flops"])
        self.assertEqual(apart["bytes"] - fused["bytes"], 2 * 256)  # one value less is written and read
        self.assertEqual([op["name"] for op in fused["ops"]], ["stablehlo.dot", "fusion of 2 (negate, tanh)"])
        self.assertEqual([f["line"] for f in fused["ops"][1]["fused"]], [3, 4])
        self.refused(PRODUCT, "did you mean 'elementwise'", "--fuse", "elementwis")

    def test_open_extents_are_refused_at_their_place_or_bound(self):
        self.refused(OPEN, "p.mlir:1:17: dimension 0 of %x (f32[?,8]) is dynamic")
        self.refused(OPEN, "p.mlir:1:38: dimension 1 of %w", "--dim", "x.0=4")
        self.assertEqual(self.graph(OPEN, "--dim", "x.0=4", "--dim", "%w.1=16")["flops"]["matrix"], 1024)
        self.assertEqual(self.graph(OPEN, "--dim", "16")["flops"]["matrix"], 2 * 16 * 8 * 16)
        for value in ["x=4", "x.=4", "x.0=", "x.0=-1", "x.0=a", "", ".0=4"]:
            with self.subTest(value=value):
                self.refused(OPEN, "--dim", "--dim", value)

    def test_loops_of_unknown_length(self):
        once = self.graph(LOOP)
        self.assertTrue(any("counted once" in note and "--trip-count %12=N" in note for note in once["notes"]))
        self.assertEqual(once["loops"], [{"name": "%12", "line": 2, "trips": 1, "known": False, "most": False}])
        given = self.graph(LOOP, "--trip-count", "%12=10")
        self.assertEqual(given["flops"]["vector"], 64 * 10 + 11)
        self.assertEqual(self.graph(LOOP, "--trip-count", "12=10")["flops"], given["flops"])
        self.refused(LOOP, "did you mean '%12'", "--trip-count", "%13=10")
        self.refused(PRODUCT, "the program has no loops", "--trip-count", "%13=10")
        for value in ["%12", "=3", "%12=", "%12=-1", "%12=1e99"]:
            with self.subTest(value=value):
                self.refused(LOOP, "--trip-count", "--trip-count", value)

    def test_a_loop_of_known_length_takes_its_passes_times_the_time(self):
        document = self.json("graph", DECODER, *HW)
        self.assertEqual([(loop["trips"], loop["known"]) for loop in document["loops"]], [(4, True)])
        longer = self.json("graph", DECODER, *HW, "--trip-count", document["loops"][0]["name"] + "=8")
        by_count = lambda d, n: sum(op["time_s"] for op in d["ops"] if op["count"] == n)
        self.assertGreater(by_count(document, 4), 0)
        self.assertTrue(math.isclose(by_count(longer, 8), 2 * by_count(document, 4)))
        self.assertTrue(math.isclose(by_count(longer, 1), by_count(document, 1)))

    def test_unknown_custom_calls_are_listed_until_a_table_knows_them(self):
        unknown = self.graph(CUSTOM)
        self.assertEqual(unknown["unknown"], [{"name": "custom call 'our_matmul'", "line": 2, "count": 1}])
        self.assertEqual(unknown["flops"]["matrix"], 0)
        self.assertIn("our_matmul", self.output("graph", "./p.mlir", *HW))
        self.write("calls.yaml", "custom_calls:\n  - {as: product, targets: [our_*]}\n")
        known = self.graph(CUSTOM, "--custom-calls", "calls.yaml")
        self.assertEqual(known["unknown"], [])
        self.assertEqual(known["flops"]["matrix"], 2 * 16 * 32 * 64)
        for text, fragment in [("custom_calls:\n  - {as: produkt, targets: [a]}\n", "calls.yaml:2:"),
                               ("custom_calls:\n  - {as: product}\n", "targets"),
                               ("calls: []\n", "calls.yaml")]:
            self.write("calls.yaml", text)
            self.refused(CUSTOM, fragment, "--custom-calls", "calls.yaml")
        self.refused(CUSTOM, "missing.yaml", "--custom-calls", "missing.yaml")

    def test_the_model_found_in_a_program_can_be_estimated(self):
        self.write("found.yaml", self.output("graph", DECODER, *HW, "--emit", "model"))
        estimate = self.json("estimate", "--model", "./found.yaml", *HW, "--runtime", "none", "--prompt", "128", "--gen", "1")
        self.assertTrue(estimate["schema"].startswith("llmperf."))
        shown = self.output("show", "model", "./found.yaml")
        self.assertIn("1024", shown)
        self.assert_error(self.run_program("graph", SPMD, *HW, "--emit", "model"), USAGE)
        self.assert_error(self.run_program("graph", SPMD, *HW, "--emit", "rows"), USAGE, "model")

    def test_what_does_not_fit_is_reported_and_exits_3(self):
        text = PRODUCT.replace("8x16", "8x160000000000").replace("4x16x", "4x160000000000x")
        done = self.run_program("graph", self.write("p.mlir", text), *HW)
        self.assert_error(done, INFEASIBLE, "does not fit on", "arguments and constants")
        self.assertIn("By kind of op", done.stdout)
        self.assertFalse(self.graph(text, status=INFEASIBLE)["fits"])

    def test_other_devices_and_choices(self):
        for hardware in ["rtx4090", "atlas-800i-a2", "tpu-v5e", "tx8"]:
            with self.subTest(hardware=hardware):
                document = self.json("graph", LLAMA, "--hw", hardware)
                self.assertGreaterEqual(document["time_s"], document["roof_s"] * (1 - 1e-9))
        self.assertEqual(self.graph(PRODUCT, "--entry", "@main")["flops"]["matrix"], 1024)
        self.refused(PRODUCT, "did you mean 'main'", "--entry", "mian")
        self.refused(PRODUCT, "--devices", "--devices", "0")
        self.refused(PRODUCT, "did you mean 'ops'", "--detail", "op")
        self.refused(PRODUCT, "give --runtime as well", "--execution", "eager")
        self.assert_bad_input(["graph", "missing.mlir", *HW], "missing.mlir")
        self.assert_bad_input(["graph", ".", *HW], "llmperf: error:")
        self.assert_bad_input(["graph", *HW])

    def test_what_a_flag_names_must_be_there(self):
        self.refused(PRODUCT, "dimension 0 of %arg9 is not dynamic, or there is none", "--dim", "arg9.0=7")
        self.refused(PRODUCT, "arg0.1=128", "--dim", "a.0")
        loop = ("  %{r} = stablehlo.while(%x = %a) : tensor<f32>\n   cond {{\n    %c = stablehlo.compare LT, %x, %x : (tensor<f32>, "
                "tensor<f32>) -> tensor<i1>\n    stablehlo.return %c : tensor<i1>\n  }} do {{\n    %y = stablehlo.tanh %x : tensor<f32>\n"
                "    stablehlo.return %y : tensor<f32>\n  }}\n")
        text = ("func.func @main(%a: tensor<f32>) -> tensor<f32> {\n" + loop.format(r=0) +
                "  %1 = func.call @g(%0) : (tensor<f32>) -> tensor<f32>\n  return %1 : tensor<f32>\n}\n"
                "func.func private @g(%a: tensor<f32>) -> tensor<f32> {\n" + loop.format(r=0) + "  return %0 : tensor<f32>\n}\n")
        self.refused(text, "%0 is the name of several loops, in lines 2 and 14", "--trip-count", "%0=3")
        loops = self.graph(text, "--trip-count", "line:14=5")["loops"]
        self.assertEqual([(l["trips"], l["known"]) for l in loops], [(1, False), (5, True)])

    def test_bad_programs_are_refused_with_line_and_column(self):
        cases = [
            (PRODUCT.replace("%0 : tensor<4x16xf32>", "%9 : tensor<4x16xf32>"), "p.mlir:3:23: %9 is not defined here"),
            (PRODUCT.replace("8x16xf32>) ->", "8x16xf99>) ->", 1), "p.mlir:1:54: unknown element type 'f99'"),
            (PRODUCT[:60], "p.mlir:1:"),
            (PRODUCT.replace("8x16", "9x16"), "p.mlir:2:8: the contracted dimensions"),
            ("", "p.mlir:1:1: there are no ops"),
            ("module {}", "there are no ops"),
            ("HloModule jit_f\n", "p.mlir:1:1: this is HLO text"),
            ("ML\u00efR", "p.mlir:1:"),
            ("\"vhlo.func_v1\"() : () -> ()", "this is VHLO"),
            ("\"a.b\"() ({\n" * 100000, "nested too deep"),
            ("\"a.b\"() {v = " + "[" * 1000000, "nested more than 1000 deep"),
            ("func.func @main() { call @main() : () -> () }", "@main calls itself"),
        ]
        for text, fragment in cases:
            with self.subTest(fragment=fragment):
                self.refused(text, fragment)
        with open(self.path("p.mlir"), "wb") as file:
            file.write(b"ML\xefR\x01StableHLO")
        self.assert_bad_input(["graph", "p.mlir", *HW], "bytecode")

    def test_prefixes_of_programs_are_read_or_refused_at_a_place(self):
        pieces = []  # few, as each starts the program: tests/program/parser_test.cpp reads many more
        for name in FIXTURES:
            with open(os.path.join(PROGRAMS, name), "rb") as file:
                text = file.read()
            pieces += [(name, text[:size]) for size in range(0, len(text), 997)]

        def check(piece):
            number, (name, text) = piece
            path = self.path(f"{number}.mlir")
            with open(path, "wb") as file:
                file.write(text)
            done = self.run_program("graph", path, *HW)
            os.remove(path)
            if done.returncode != DONE:
                self.assertEqual(done.returncode, USAGE, f"{name}, {len(text)} bytes")
                self.assertRegex(done.stderr, r"^llmperf: error: \S*\.mlir:\d+:\d+: ", f"{name}, {len(text)} bytes")
            return done.returncode

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            statuses = list(pool.map(check, enumerate(pieces)))
        self.assertGreater(statuses.count(USAGE), 0.9 * len(statuses))

    def test_changed_bytes_never_crash_it(self):
        chance = random.Random(7)
        for name in FIXTURES:
            with open(os.path.join(PROGRAMS, name), "rb") as file:
                text = bytearray(file.read())
            for _ in range(3 if SANITIZED else 12):
                changed = bytearray(text)
                for _ in range(chance.randint(1, 4)):
                    changed[chance.randrange(len(changed))] = chance.choice(b"<>(){}[]\"%x0?:,= \n-#@^")
                with open(self.path("p.mlir"), "wb") as file:
                    file.write(changed)
                done = self.run_program("graph", "p.mlir", *HW)
                if done.returncode == USAGE:
                    self.assertRegex(done.stderr, r"^llmperf: error: (\S*p\.mlir:\d+:\d+: |.)")

    def peak_memory(self, path):
        """Bytes; no less than those of this process, which a child begins with."""
        with open(os.devnull, "wb") as sink:
            process = subprocess.Popen([PROGRAM, "graph", path, *HW], stdout=sink, stderr=subprocess.PIPE)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, DONE, process.stderr.read())
        process.stderr.close()
        return usage.ru_maxrss * 1024

    def test_large_constants_take_no_memory(self):
        """32 MB in the three forms that constants have; text of MLIR is mapped and what was passed is given back."""
        megabytes = 32
        size = megabytes << 20
        small = self.peak_memory(LLAMA)
        forms = {
            "hex.mlir": ("%c = stablehlo.constant dense<\"0x", "3F800000", "\"> : tensor<4194304xf32>\n"),
            "list.mlir": ("%c = stablehlo.constant dense<[", "1.000000e+00, ", "1.0]> : tensor<2396746xf32>\n"),
            "resource.mlir": ("%c = stablehlo.constant dense_resource<w> : tensor<4194304xf32>\n{-#\n  dialect_resources: {\n"
                              "    builtin: {\n      w: \"0x04000000", "3F800000", "\"\n    }\n  }\n#-}\n"),
        }
        for name, (head, body, tail) in forms.items():
            with self.subTest(form=name):
                with open(self.path(name), "w", encoding="ascii") as file:
                    file.write(head)
                    for _ in range(size // len(body) // 1024):
                        file.write(body * 1024)
                    file.write(tail)
                memory = self.peak_memory(self.path(name))
                if not SANITIZED:
                    self.assertLess(memory - small, size // 2)


if __name__ == "__main__":
    unittest.main()
