#!/usr/bin/env python3
"""`llmperf map`: what it prints about a mapping adds up, agrees with hand-made figures, and bad input is answered."""
import csv
import io
import math
import os
import xml.etree.ElementTree
import unittest

from program import INFEASIBLE, ROOT, ProgramTest

GEMM = ["map", "gemm", "--hw", "tx8", "--m", "4096", "--n", "12288", "--k", "4096"]
ATTENTION = ["map", "attention", "--hw", "tx8", "--queries", "4096", "--heads", "32"]
VECTOR = ["map", "vector", "--hw", "tx8", "--kind", "rms_norm", "--rows", "4096", "--width", "4096"]
SHAPES = [GEMM, ATTENTION, VECTOR, [*ATTENTION, "--causal", "--kv-heads", "8", "--batch", "2"],
          ["map", "gemm", "--hw", "tx8", "--m", "1", "--n", "11008", "--k", "4096"],
          ["map", "gemm", "--hw", "tx81", "--m", "300", "--n", "500", "--k", "700", "--batch", "7", "--dtype", "int8"],
          [*GEMM, "--then", "gated_activation"], [*GEMM, "--then", "add"],
          ["map", "attention", "--hw", "tx8", "--queries", "1", "--keys", "8192", "--heads", "32", "--kv-heads", "4"],
          ["map", "vector", "--hw", "tx8", "--kind", "silu_mul", "--rows", "4096", "--width", "11008"],
          ["map", "vector", "--hw", "tx8", "--kind", "add", "--rows", "1", "--width", "1"],
          ["map", "gemm", "--hw", "tx8", "--m", "65536", "--n", "65536", "--k", "65536"],
          ["map", "gemm", "--hw", "tx8", "--m", "1", "--n", "1", "--k", "1"],
          ["map", "gemm", "--hw", "tx8", "--m", "1073741824", "--n", "1", "--k", "1"]]


def close(a, b, tolerance=1e-9):
    return math.isclose(a, b, rel_tol=tolerance)


class Map(ProgramTest):
    def tx8(self, **changes):
        """A device file like tx8 with some text replaced."""
        with open(os.path.join(ROOT, "hardware", "devices", "tx8.yaml"), encoding="utf-8") as file:
            text = file.read()
        for old, new in changes.values():
            self.assertIn(old, text)
            text = text.replace(old, new)
        return self.write("device.yaml", text)

    def test_a_product_by_hand(self):
        document = self.json(*GEMM)
        # 2 * 4096 * 12288 * 4096 FLOP at 16 * 8 TFLOP/s; 4096^2 + 2 * 4096 * 12288 elements of two bytes at 100 GB/s.
        self.assertTrue(close(document["bound"]["matrix_s"], 3.2212254720e-3))
        self.assertTrue(close(document["bound"]["dram_s"], 2.34881024e-3))
        self.assertEqual((document["bound"]["resource"], document["bound"]["vector_s"]), ("matrix", 0))
        self.assertEqual([o["least_dram_bytes"] for o in document["mapping"]["operands"]], [33554432, 100663296, 100663296])
        self.assertGreater(document["of_bound"], 0.92)

    def test_an_attention_and_a_norm_by_hand(self):
        bound = self.json(*ATTENTION)["bound"]
        # 4 * 32 * 4096^2 * 128 FLOP; 5 operations per score and one per element of O; four tensors of 4096 x 4096.
        self.assertTrue(close(bound["matrix_s"], 4 * 32 * 4096**2 * 128 / 128e12))
        self.assertTrue(close(bound["vector_s"], (5 * 32 * 4096**2 + 4096**2) / 1e12))
        self.assertTrue(close(bound["dram_s"], 4 * 4096**2 * 2 / 100e9))
        bound = self.json(*VECTOR)["bound"]
        self.assertTrue(close(bound["vector_s"], 4 * 4096**2 / 1e12))
        self.assertTrue(close(bound["dram_s"], (2 * 4096**2 + 4096) * 2 / 100e9))

    def test_what_is_said_adds_up(self):
        for words in SHAPES:
            with self.subTest(words=words):
                document = self.json(*words)
                mapping, best = document["mapping"], document["mappings"][0]
                self.assertEqual(document["bound_s"], max(document["bound"][key] for key in ["matrix_s", "vector_s", "dram_s"]))
                self.assertLessEqual(document["bound_s"], document["time_s"] * (1 + 1e-9))
                self.assertTrue(close(document["of_bound"], document["bound_s"] / document["time_s"]))
                self.assertTrue(close(sum(p["time_s"] for p in mapping["phases"]), document["closed_form_s"], 1e-6))
                operands = mapping["operands"]
                self.assertTrue(close(sum(o["sram_bytes"] for o in operands) + mapping["scores_sram_bytes"], mapping["sram_bytes"]))
                self.assertLessEqual(mapping["sram_bytes"], mapping["sram_capacity_bytes"])
                self.assertTrue(close(sum(o["dram_bytes"] for o in operands), best["dram_bytes"]))
                self.assertTrue(math.isclose(sum(o["noc_bytes"] for o in operands), best["noc_bytes"], rel_tol=1e-9))
                for operand in operands:
                    self.assertGreaterEqual(operand["dram_bytes"], operand["least_dram_bytes"] * (1 - 1e-9))
                    self.assertGreaterEqual(operand["noc_link_bytes"], operand["noc_bytes"] * (1 - 1e-9))
                tiles = math.prod(d["tiles"] for d in mapping["dimensions"])
                self.assertEqual(16 % tiles, 0)
                for d in mapping["dimensions"]:
                    self.assertGreaterEqual(d["tiles"] * d["per_tile"], d["extent"])
                    self.assertGreaterEqual(d["block"] * d["blocks_per_tile"], d["per_tile"])
                times = [m["time_s"] for m in document["mappings"]]
                self.assertEqual(times, sorted(times))
                self.assertEqual(times[0], document["time_s"])
                for lane in document["schedule"]["lanes"]:
                    for bar in lane["bars"]:
                        self.assertLess(bar["begin_s"], bar["end_s"])

    def test_lines_fit_the_page_and_say_what_binds(self):
        for words in SHAPES:
            with self.subTest(words=words):
                text = self.output(*words)
                for line in text.splitlines():
                    self.assertLessEqual(len(line), 100)
                for fragment in ["lower bound", "Split and blocks", "Operands", "fill", "steady", "drain", "Schedule", "Mappings",
                                 "Rests on", "uncalibrated"]:
                    self.assertIn(fragment, text)

    def test_top_is_the_number_of_mappings(self):
        for top in ["1", "2", "8"]:
            self.assertEqual(len(self.json(*GEMM, "--top", top)["mappings"]), int(top))
        rows = self.json(*GEMM, "--top", "8")["mappings"]
        self.assertEqual([row["rank"] for row in rows], list(range(1, 9)))
        self.assertEqual(len({(row["split"], row["block"], row["stays"], row["feeds"]) for row in rows}), 8)

    def test_the_whole_simulation_is_near_the_brief_one(self):
        for words in [GEMM, ATTENTION, VECTOR]:
            brief, whole = self.json(*words), self.json(*words, "--simulate")
            self.assertEqual((brief["simulation"], whole["simulation"]), ("brief", "whole"))
            self.assertEqual(brief["mapping"], whole["mapping"])
            self.assertTrue(close(brief["time_s"], whole["time_s"], 0.02))
            self.assertIn("step by step", self.output(*words, "--simulate"))
        self.assert_bad_input(["map", "gemm", "--hw", "tx8", "--m", "65536", "--n", "65536", "--k", "65536", "--simulate"],
                              "requests", "without it")

    def test_the_published_mapper_beside_it(self):
        # Its own tables: 3.301525 ms, n1 n2 nk = 1 1 64; 2.200923 ms; 0.332650 ms.
        for words, seconds, splits in [(GEMM, 3.301525e-3, [1, 1, 64]), (ATTENTION, 2.200923e-3, [64, 64]), (VECTOR, 0.332650e-3, [1024])]:
            with self.subTest(words=words):
                document = self.json(*words, "--tile-model", "published")
                published = document["published"]
                self.assertTrue(close(published["time_s"], seconds, 1e-6))
                self.assertEqual(published["splits"], splits)
                self.assertEqual(published["below_bound"], seconds < document["bound_s"])
                self.assertTrue(close(published["utilisation"], published["compute_s"] / published["time_s"]))
                self.assertIsNone(self.json(*words)["published"])
        text = self.output(*VECTOR, "--tile-model", "published")
        self.assertIn("Published mapper", text)
        self.assertIn("below the lower bound", text)
        self.assertNotIn("below the lower bound", self.output(*GEMM, "--tile-model", "published"))
        self.assertIn("no formula", self.output("map", "attention", "--hw", "tx8", "--queries", "1", "--keys", "64", "--heads", "1",
                                                "--tile-model", "published"))

    def test_csv_and_json_hold_the_same_mappings(self):
        rows = list(csv.DictReader(io.StringIO(self.output(*GEMM, "--format", "csv"))))
        expected = self.json(*GEMM)["mappings"]
        self.assertEqual(len(rows), 3)
        for row, entry in zip(rows, expected):
            self.assertEqual(list(row), list(entry))
            self.assertTrue(close(float(row["time_s"]), entry["time_s"]))
            self.assertEqual(row["split"], entry["split"])

    def test_the_drawing_is_a_file_of_its_own(self):
        self.output(*GEMM, "--svg", "schedule.svg")
        root = xml.etree.ElementTree.parse(self.path("schedule.svg")).getroot()
        bars = root.findall("{http://www.w3.org/2000/svg}rect")
        drawn = [lane["bars"] for lane in self.json(*GEMM)["schedule"]["lanes"]]
        self.assertGreaterEqual(len(bars), sum(map(len, drawn)))
        self.assertEqual(os.listdir(self.folder), ["schedule.svg"])
        done = self.run_program(*GEMM, "--svg", "no/such/folder.svg")
        self.assert_error(done, 1, "cannot write no/such/folder.svg")

    def test_other_arrays(self):
        for tiles, mesh in [(1, "1x1"), (7, "7x1"), (6, "3x2"), (64, "8x8")]:
            device = self.tx8(tiles=("tiles: 16", f"tiles: {tiles}"), mesh=("mesh: 4x4", f"mesh: {mesh}"))
            document = self.json("map", "gemm", "--hw", device, "--m", "1000", "--n", "1000", "--k", "1000")
            self.assertLessEqual(document["bound_s"], document["time_s"])

    def test_what_does_not_fit(self):
        device = self.tx8(sram=("capacity: 3 MiB", "capacity: 1 KiB"))
        done = self.run_program("map", "gemm", "--hw", device, "--m", "4096", "--n", "4096", "--k", "4096")
        self.assert_error(done, INFEASIBLE, "no mapping fits into the 1 KiB of a tile", "the least that one needs is 2 KiB")
        device = self.tx8(sram=("capacity: 3 MiB", "capacity: 2 KiB"))
        self.output("map", "gemm", "--hw", device, "--m", "4096", "--n", "4096", "--k", "4096")
        done = self.run_program("map", "gemm", "--hw", "tx8", "--m", "1073741824", "--n", "1073741824", "--k", "1")
        self.assert_error(done, INFEASIBLE, "the operands and the result take", "tx8 has 64 GiB")

    def test_types_and_places_of_operands(self):
        plain = self.json(*GEMM)
        # A quarter of the bytes of B: 4096 x 12288 elements of 4.5 bits; and of C those of fp32.
        mixed = self.json(*GEMM, "--b-dtype", "bfp4", "--out-dtype", "fp32")
        self.assertEqual([o["least_dram_bytes"] for o in mixed["mapping"]["operands"]],
                         [33554432, 4096 * 12288 * 4.5 / 8, 2 * 100663296])
        op = mixed["op"]
        self.assertEqual([op[key] for key in ["dtype", "b_dtype", "out_dtype", "rate_dtype"]], ["bf16", "bfp4", "fp32", "bf16"])
        # Less memory for the mapping, and exactly the bytes of A less to move.
        small = ["map", "gemm", "--hw", "tx8", "--m", "1024", "--n", "2048", "--k", "1024"]
        local = self.json(*small, "--local", "a")
        self.assertEqual(local["op"]["local"], "a")
        self.assertTrue(close(self.json(*small)["bound"]["dram_s"] - local["bound"]["dram_s"], 1024 * 1024 * 2 / 100e9))
        a = local["mapping"]["operands"][0]
        self.assertEqual((a["local"], a["dram_bytes"], a["least_dram_bytes"]), (True, 0, 0))
        self.assertGreaterEqual(a["sram_bytes"], 1024 * 1024 * 2 / 16)
        self.assertIn("a, c in the tiles' memory", self.output(*small, "--local", "c,a"))
        self.assert_error(self.run_program(*GEMM, "--local", "c"), INFEASIBLE, "no mapping fits into the 3 MiB of a tile")
        self.assertEqual((plain["runtime"], plain["grid"], plain["label"]), (None, "4x4", "mapped, uncalibrated"))

    def test_a_part_of_the_mesh(self):
        part = self.json(*GEMM, "--grid", "2x4")
        self.assertEqual(part["grid"], "2x4")
        # Half of the tiles are half of the matrix units.
        self.assertTrue(close(part["bound"]["matrix_s"], 2 * 3.2212254720e-3))

    def test_a_given_mapping(self):
        best = self.json(*GEMM)["mappings"][0]
        given = self.json(*GEMM, "--mapping", best["text"])["given"]
        self.assertEqual((given["times_best"], given["row"]["time_s"], given["row"]["text"]), (1, best["time_s"], best["text"]))
        document = self.json(*GEMM, "--mapping", "grid=m16 block=256x256x64 results=in_place")
        given = document["given"]
        self.assertGreater(given["times_best"], 1)
        self.assertTrue(close(given["times_best"], given["row"]["time_s"] / document["time_s"]))
        self.assertTrue(given["row"]["text"].startswith("grid=m16 block=256x256x64 "))
        self.assertEqual([d["tiles"] for d in given["mapping"]["dimensions"]], [16, 1, 1])
        self.assertEqual(list(given["mapping"]), list(document["mapping"]))
        text = self.output(*GEMM, "--mapping", "grid=m16 block=256x256x64 results=in_place")
        for fragment in ["Given mapping", "times the best", "bound by", "from tile to tile", "Operands of the given mapping"]:
            self.assertIn(fragment, text)
        self.assertIn("none that was found is faster", self.output(*GEMM, "--mapping", best["text"]))
        done = self.run_program(*GEMM, "--mapping", "grid=m4n4 block=1024x1024x64 a=multicast:2 b=multicast:2 results=staged")
        self.assert_error(done, INFEASIBLE, "--mapping: it needs 6.5 MiB of a tile, and there are 3 MiB")

    def test_passes_and_runtimes(self):
        device = self.tx8(peak=("rate: 128 TFLOP/s", "rate: 128 TFLOP/s, passes: 2"))
        bound = lambda *words: self.json("map", "gemm", "--hw", device, *GEMM[4:], *words)["bound"]["matrix_s"]
        self.assertTrue(close(bound("--passes", "4"), 2 * bound()))
        self.assertTrue(close(bound("--passes", "1"), bound() / 2))
        self.assert_bad_input([*GEMM, "--passes", "4"], "says of bf16 products not how many passes")
        self.assert_bad_input([*GEMM, "--runtime", "vllm"], "--runtime", "says nothing of mappings on tiles")
        self.assertEqual(self.json(*GEMM, "--runtime", "none")["mappings"], self.json(*GEMM)["mappings"])

    def test_a_step_with_results_that_stay(self):
        words = ["map", "model", "--model", "qwen3-0.6b", "--hw", "tx8"]
        for more in [["--prompt", "256"], ["--phase", "decode", "--batch", "4"], ["--prompt", "256", "--options", "none"]]:
            with self.subTest(more=more):
                document = self.json(*words, *more)
                ops = document["ops"]
                self.assertLessEqual(document["time_s"], document["apart_s"])
                self.assertLessEqual(document["dram_bytes"], document["apart_dram_bytes"] * (1 + 1e-9))
                self.assertTrue(close(document["time_s"], sum(op["count"] * op["time_s"] for op in ops)))
                self.assertTrue(close(document["apart_s"], sum(op["count"] * op["apart_s"] for op in ops)))
                self.assertTrue(close(document["gain"], 1 - document["time_s"] / document["apart_s"], 1e-6))
                for op in ops:
                    if op["sram_bytes"] is not None:
                        self.assertLessEqual(op["sram_bytes"] + op["resident_sram_bytes"], document["sram_capacity_bytes"])
                self.assertTrue(any(op["from"] for op in ops))
                apart = self.json(*words, *more, "--apart")
                self.assertEqual((apart["time_s"], apart["gain"]), (apart["apart_s"], 0))
                self.assertTrue(close(apart["apart_s"], document["apart_s"]))
                for line in self.output(*words, *more).splitlines():
                    self.assertLessEqual(len(line), 100)
        # The ops are those of the estimate, and take as long.
        prefill = self.json("estimate", "--model", "qwen3-0.6b", "--hw", "tx8", "--prompt", "256", "--gen", "1")["phases"][0]
        apart = self.json(*words, "--prompt", "256", "--apart")
        self.assertEqual([op["name"] for op in apart["ops"]], [op["name"] for op in prefill["ops"]])
        for op, same in zip(apart["ops"], prefill["ops"]):
            self.assertTrue(close(op["count"] * op["time_s"], same["time_s"], 1e-6))
        self.assert_bad_input([*words[:4], "--hw", "rtx4090"], "is no array of tiles")
        self.assert_bad_input([*words, "--tile-model", "roofline"], "timed by something else")
        self.assert_bad_input([*words, "--phase", "decode", "--prompt", "4"], "--prompt")
        self.assert_bad_input([*words, "--phase", "decode", "--context", "0"], "--context: a decode step comes after")
        self.assert_error(self.run_program("map", "model", "--model", "llama-3-70b", "--hw", "tx8"), INFEASIBLE, "does not fit on tx8")

    def test_bad_devices(self):
        cases = [
            ({"dram": ("bandwidth: 100 GB/s", "bandwidth: 0 GB/s")}, "'bandwidth' must be a positive number"),
            ({"dram": ("bandwidth: 100 GB/s", "bandwidth: -1 GB/s")}, "'bandwidth' must be a positive number"),
            ({"noc": ("noc_link: 128 GB/s", "noc_link: 0 GB/s")}, "'noc_link' must be a positive number"),
            ({"rate": ("rate: 1 TFLOP/s", "rate: 0 TFLOP/s")}, "'rate' must be a positive number"),
            ({"sram": ("capacity: 3 MiB", "capacity: 0 MiB")}, "'capacity' must be a positive number"),
            ({"mesh": ("mesh: 4x4", "mesh: 4x5")}, "a mesh of 4x5 has 20 tiles, not 16"),
            ({"tiles": ("tiles: 16", "tiles: 0"), "mesh": ("mesh: 4x4", "mesh: 0x0")}, "'tiles' must be an integer between 1"),
            ({"tiles": ("tiles: 16", "tiles: 4160"), "mesh": ("mesh: 4x4", "mesh: 65x64")}, "at most 4096 tiles"),
            ({"level": ("  - {name: SRAM, capacity: 3 MiB, per_tile: true, provenance: datasheet}\n", "")}, "no memory per tile"),
        ]
        for changes, fragment in cases:
            with self.subTest(changes=changes):
                self.assert_bad_input(["map", "gemm", "--hw", self.tx8(**changes), "--m", "64", "--n", "64", "--k", "64"], fragment)

    def test_bad_input(self):
        cases = [
            (["map"], "subcommand is required"),
            (["map", "gem"], "unknown subcommand 'gem'", "'gemm'"),
            (["map", "gemm", "--hw", "tx8", "--m", "64", "--n", "64"], "--k is required", "llmperf map gemm --help"),
            (["map", "gemm", "--hw", "tx8", "--mm", "64"], "unknown flag '--mm'", "'--m'"),
            ([*GEMM[:4], "--m", "0", *GEMM[6:]], "--m: '0' is not a whole number between 1 and"),
            ([*GEMM[:4], "--m", "-4", *GEMM[6:]], "--m: '-4' is not a whole number"),
            ([*GEMM[:4], "--m", "9999999999999999999", *GEMM[6:]], "--m"),
            ([*GEMM[:4], "--m", "2147483648", *GEMM[6:]], "--m"),
            ([*GEMM, "--dtype", "bf17"], "--dtype: there is no 'bf17'", "'bf16'"),
            ([*GEMM, "--dtype", "int8"], "tx8 has no rate of matrix products on int8"),
            ([*GEMM, "--then", "silu"], "--then: there is no 'silu'"),
            ([*GEMM, "--top", "0"], "--top"),
            ([*GEMM, "--tile-model", "publisht"], "--tile-model: there is no 'publisht'"),
            ([*GEMM, "--tile-model", "roofline"], "--tile-model: there is no 'roofline'"),
            (["map", "gemm", "--hw", "tx81", "--m", "64", "--n", "64", "--k", "64", "--dtype", "int8", "--tile-model", "published"],
             "16 tiles and elements of 16 bits"),
            ([*GEMM, "--grid", "8x8"], "--grid: 8x8 has more tiles than the mesh of tx8, 4x4"),
            ([*GEMM, "--grid", "4"], "--grid: '4' is not columns x rows"),
            ([*GEMM, "--grid", "0x4"], "--grid: '0x4' is not columns x rows"),
            ([*GEMM, "--local", "a,d"], "--local: 'd' is none of a, b and c"),
            ([*GEMM, "--near", "--local", "b"], "--near has no effect beside --local b"),
            ([*GEMM, "--near"], "--near: tx8 does not say where its channels are"),
            ([*GEMM, "--b-dtype", "bf17"], "--b-dtype: there is no 'bf17'"),
            ([*GEMM, "--dtype", "bfp8", "--b-dtype", "bfp4"], "tx8 has no rate of matrix products on bfp8"),
            ([*GEMM, "--passes", "0"], "--passes"),
            ([*GEMM, "--mapping", "grid=m8n4"], "--mapping: grid: 8 x 4 are 32 tiles, and there are 16"),
            ([*GEMM, "--mapping", "grid=m4n4 blocks=64x64x64"], "--mapping: 'blocks=64x64x64' is not known", "'block'"),
            ([*GEMM, "--mapping", "block=0x64x64"], "--mapping: block: 0 is not between 1 and"),
            ([*ATTENTION, "--mapping", "grid=m16"], "unknown flag '--mapping'"),
            (["map", "gemm", "--hw", "rtx4090", "--m", "64", "--n", "64", "--k", "64"], "no array of tiles"),
            ([*ATTENTION, "--kv-heads", "5"], "--kv-heads: 5 do not divide 32 heads"),
            ([*ATTENTION, "--keys", "64", "--causal"], "fewer keys than queries"),
            ([*ATTENTION, "--head-dim", "0"], "--head-dim"),
            ([*VECTOR[:4], "--kind", "rmsnorm", *VECTOR[6:]], "--kind: there is no 'rmsnorm'", "'rms_norm'"),
            ([*VECTOR, "--width", "4"], "--width is given more than once"),
        ]
        for words, *fragments in cases:
            with self.subTest(words=words):
                self.assert_bad_input(words, *fragments)


if __name__ == "__main__":
    unittest.main()
