#!/usr/bin/env python3
"""llmperf import as a user sees it: a profile goes in, measurements that validate and calibrate take come out."""
import csv
import json
import os
import unittest

from program import FAILED, ROOT, USAGE, ProgramTest

# Files of real profilers are not part of the project; they are imported where they lie beside it.
SAMPLES = os.environ.get("LLMPERF_SAMPLES", os.path.join(ROOT, "..", "shared", "samples"))

KERNELS = """\
Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Block Dim,Input Shapes,Input Data Types,Input Formats,\
Output Shapes,Output Data Types,Output Formats
1,aclnnMatmul,MatMulV2,AI_CORE,"1736413971558972.912\t",100.5,20,\"""512,4096;4096,4096\""",DT_BF16;DT_BF16,ND;ND,\"""512,4096\""",DT_BF16,ND
1,aclnnMatmul,MatMulV2,AI_CORE,"1736413971558973.912\t",104.5,20,\"""512,4096;4096,4096\""",DT_BF16;DT_BF16,ND;ND,\"""512,4096\""",DT_BF16,ND
1,aclnnAdd,Add,AI_VECTOR_CORE,"1736413971558974.912\t",26.78,40,\"""512,2,4096;512,2,4096\""",DT_BF16;DT_BF16,NCL;NCL,\"""512,2,4096\""",DT_BF16,ND
1,aclnnAdd,Add,AI_CPU,"1736413971558975.912\t",1000,1,\"""512,2,4096;512,2,4096\""",DT_BF16;DT_BF16,NCL;NCL,\"""512,2,4096\""",DT_BF16,ND
1,hcom_allReduce__1,hcom_allReduce_,COMMUNICATION,"1736413971558976.912\t",321.25,0,N/A,N/A,N/A,N/A,N/A,N/A
"""
STATISTIC = """\
Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)
0,MatMulV3,AI_CORE,10,500.5,40,50.05,60,100
"""
HCCL = """\
data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:
1048576           | 40.00          | 26.21440             | success
2097152           | 60.00          | 34.95253             | success
"""


def classes_of(document):
    return {c["class"]: c for c in document["classes"]}


class Import(ProgramTest):
    def rows(self, name):
        """The rows of a file of measurements, without its comments."""
        with open(self.path(name), encoding="utf-8") as file:
            return list(csv.DictReader(line for line in file if not line.startswith("#")))

    def types(self, document):
        return {(t["class"], t["type"]): t for t in document["types"]}

    def test_kernels_become_measurements_and_other_time_stays_apart(self):
        file = self.write("kernel_details.csv", KERNELS)
        document = self.json("import", "torch-npu", file, "--hw", "ascend-910b3", "-o", "./m.csv")
        self.assertEqual(document["schema"], "llmperf.import")
        self.assertEqual((document["source"], document["files"]), ("torch-npu", [file]))
        classes = classes_of(document)
        self.assertAlmostEqual(classes["kernel"]["time_s"], 231.78e-6, places=12)
        self.assertAlmostEqual(classes["communication"]["time_s"], 321.25e-6, places=12)
        self.assertAlmostEqual(classes["host"]["time_s"], 1000e-6, places=12)
        self.assertEqual([m["op"] for m in document["measurements"]], ["gemm bf16 512 x 4096 x 4096", "vector:add bf16 1024 x 4096"])
        gemm, add = self.rows("m.csv")
        self.assertEqual((gemm["hardware"], gemm["op"], gemm["dtype"]), ("ascend-910b3", "gemm", "bf16"))
        self.assertEqual((gemm["m"], gemm["n"], gemm["k"]), ("512", "4096", "4096"))
        self.assertEqual(float(gemm["latency_us"]), 102.5)
        self.assertEqual((gemm["spread_us"], gemm["repetitions"], gemm["type"], gemm["source"]), ("2", "2", "MatMulV2", "torch-npu"))
        self.assertEqual((add["op"], add["m"], add["n"], float(add["latency_us"])), ("vector:add", "1024", "4096", 26.78))
        with open(self.path("m.csv"), encoding="utf-8") as written:
            self.assertEqual(written.readline(), f"# imported from {file} (torch-npu)\n")
        self.assertEqual(sorted(os.listdir(self.folder)), ["kernel_details.csv", "m.csv"])

    def test_what_is_written_is_read(self):
        """The printed measurements are those of the file, and every reader of measurements takes them."""
        file = self.write("kernel_details.csv", KERNELS)
        words = ["import", "torch-npu", file, "--hw", "rtx4090"]
        self.output(*words, "-o", "./m.csv")
        with open(self.path("m.csv"), encoding="utf-8") as written:
            self.assertEqual(self.output(*words, "-o", "-"), written.read())
        validated = self.json("validate", "./m.csv")
        self.assertEqual(len(validated["rows"]), 2)

    def test_collectives_need_what_the_output_does_not_say(self):
        file = self.write("result.txt", HCCL)
        self.assert_bad_input(["import", "hccl-test", file], "result.txt:1:1", "--op all_reduce", "--ranks N")
        self.output("import", "hccl-test", file, "--op", "all_reduce", "--ranks", "8", "-o", "./m.csv")
        first, second = self.rows("m.csv")
        self.assertEqual((first["op"], first["ranks"], first["bytes"], first["latency_us"]), ("all_reduce", "8", "1048576", "40"))
        self.assertEqual((second["bytes"], second["dtype"]), ("2097152", "fp32"))

    def test_rows_of_a_card_improve_its_profile(self):
        """Tests of a card that is slower than llama.cpp's profile says: with them the profile is nearer to it."""
        tests = [(512, 0, 0, 2600), (512, 0, 4096, 2100), (2048, 0, 0, 2500), (0, 128, 0, 81), (0, 128, 4096, 72), (0, 256, 0, 80.5)]
        bench = self.write("bench.json", json.dumps([{
            "build_commit": "4ffc47cb", "build_number": 6421, "cpu_info": "AMD Ryzen 9 7950X", "gpu_info": "NVIDIA GeForce RTX 3090",
            "backends": "CUDA", "model_filename": "llama-3.1-8b.gguf", "model_type": "llama 8B Q4_K - Medium",
            "model_n_params": 8030261312, "n_batch": 2048, "n_ubatch": 512, "n_threads": 16, "n_gpu_layers": 99,
            "split_mode": "layer", "flash_attn": True, "n_prompt": prompt, "n_gen": generated, "n_depth": depth,
            "test_time": "2025-09-09T10:00:00Z", "avg_ns": round(1e9 * (prompt + generated) / rate), "avg_ts": rate}
            for prompt, generated, depth, rate in tests]))
        document = self.json("import", "llama-bench", bench, "-o", "./bench.csv")
        self.assertEqual([(c["class"], c["count"], c["imported"]) for c in document["classes"]], [("step", 6, 6)])
        self.assertEqual({(row["hardware"], row["model"], row["weights"], row["build"]) for row in self.rows("bench.csv")},
                         {("rtx3090", "llama-3.1-8b", "q4_k_m", "b6421")})
        before = self.json("validate", "./bench.csv")["summary"]["mape"]
        self.output("calibrate", "./bench.csv", "--hw", "rtx3090", "--from", "llama.cpp", "-o", "./mine.yaml")
        after = self.json("validate", "./bench.csv", "--runtime", "./mine.yaml")["summary"]["mape"]
        self.assertLess(after, 0.7 * before)

    def test_totals_are_a_summary_and_no_measurements(self):
        file = self.write("op_statistic.csv", STATISTIC)
        document = self.json("import", "msprof", file)
        self.assertEqual(document["measurements"], [])
        self.assertTrue(document["warnings"])
        self.assertEqual(self.types(document)["kernel", "MatMulV3"]["count"], 10)
        for out in ("./m.csv", "-"):
            self.assert_error(self.run_program("import", "msprof", file, "-o", out), USAGE, "no measurements", "totals only")
        self.assertEqual(os.listdir(self.folder), ["op_statistic.csv"])

    def test_tables_fit_the_page(self):
        file = self.write("kernel_details.csv", KERNELS)
        text = self.output("import", "torch-npu", file)
        self.assertIn("kernel time", text)
        self.assertIn("hcom_allReduce_", text)
        self.assertLessEqual(max(len(line) for line in text.splitlines()), 100)
        table = self.output("import", "torch-npu", file, "--format", "csv")
        self.assertEqual(len(list(csv.DictReader(table.splitlines()))), 4)

    def test_wrong_requests(self):
        file = self.write("kernel_details.csv", KERNELS)
        self.assert_bad_input(["import", "msprofs", file], "'msprofs'", "'msprof'")
        self.assert_bad_input(["import", "msprof"], "files")
        self.assert_bad_input(["import", "msprof", "./missing.csv"], "missing.csv")
        self.assert_bad_input(["import", "msprof", file, "--op", "all_reduce"], "--op")
        self.assert_bad_input(["import", "chrome-trace", file, "--kv-len", "8"], "--kv-len")
        self.assert_bad_input(["import", "hccl-test", file, "--ranks", "one"], "--ranks")
        self.assert_bad_input(["import", "hccl-test", file, "--dtype", "bf"], "'bf'")
        self.assert_bad_input(["import", "msprof", file, "-o", "-", "--json"], "-o -")
        self.assert_bad_input(["import", "chrome-trace", file], "kernel_details.csv:1:1", "not valid JSON")
        self.assert_bad_input(["import", "msprof", file, self.write("bad.csv", "OP Type,Task Duration(us)\nAdd,x\n")], "bad.csv:2:5")
        with open(self.path("trace.json"), "wb") as packed:
            packed.write(b"\x1f\x8b\x08\x00")
        self.assert_bad_input(["import", "chrome-trace", "./trace.json"], "is compressed", "gunzip")
        self.assert_error(self.run_program("import", "torch-npu", file, "-o", "./no/folder/m.csv"), FAILED, "cannot write")


@unittest.skipUnless(os.path.isdir(SAMPLES), "skipped: no files of real profilers beside the project")
class RealFiles(ProgramTest):
    def sample(self, name):
        return os.path.abspath(os.path.join(SAMPLES, name))

    def test_kernel_details(self):
        document = self.json("import", "torch-npu", self.sample("kernel_details_910b3.csv"), "--hw", "ascend-910b3", "-o", "./m.csv")
        self.assertEqual(len(document["classes"]), 1)  # nothing but kernels
        types = {t["type"]: t for t in document["types"]}
        self.assertEqual({name: (t["count"], t["imported"]) for name, t in types.items()},
                         {"MatMulV2": (4, 0), "MatMulV3": (8, 0), "FlashAttentionScore": (5, 4),
                          "FlashAttentionScoreGrad": (4, 0), "Add": (8, 4)})
        for name, total in (("MatMulV2", 750.595), ("MatMulV3", 4122.342), ("FlashAttentionScore", 2033.78),
                            ("FlashAttentionScoreGrad", 3038.44), ("Add", 116.002)):
            self.assertAlmostEqual(types[name]["time_s"], total * 1e-6, delta=1e-9, msg=name)
        # All but one attention, whose keys are wider than its queries, is a row or in a group.
        kernel = classes_of(document)["kernel"]
        self.assertAlmostEqual(kernel["left_out_s"], types["FlashAttentionScore"]["left_out_s"], delta=1e-9)
        self.assertGreater((kernel["in_rows_s"] + kernel["in_groups_s"]) / kernel["time_s"], 0.9)
        self.assertEqual({g["group"] for g in document["groups"]},
                         {"contradictory shapes", "gradients, optimisers", "indices, masks, scalars"})
        # The inner dimensions of these products are 81920 and 8192.
        self.assertEqual(types["MatMulV2"]["remark"], "shapes do not multiply")
        with open(self.path("m.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        attention, add = rows
        self.assertEqual([attention[c] for c in ("op", "dtype", "batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim", "causal")],
                         ["attention_prefill", "bf16", "2", "4096", "4096", "4", "4", "128", "1"])
        # 405.228, 406.128, 407.008, 410.188 and 25.08, 26.78, 27.021, 31.201
        self.assertAlmostEqual(float(attention["latency_us"]), 406.568, delta=1e-3)
        self.assertAlmostEqual(float(add["latency_us"]), 26.9005, delta=1e-3)
        self.assertEqual([add[c] for c in ("op", "dtype", "m", "n", "repetitions")], ["vector:add", "bf16", "1024", "4096", "4"])

    def test_op_statistic(self):
        document = self.json("import", "msprof", self.sample("op_statistic.csv"))
        self.assertEqual([(t["type"], t["class"], t["count"]) for t in document["types"]],
                         [("Cast", "kernel", 240), ("BatchMatMulV3", "kernel", 45), ("MatMulV2", "kernel", 332)])
        for t, total in zip(document["types"], (23077.4, 19941.5, 17945.3)):
            self.assertAlmostEqual(t["time_s"], total * 1e-6, delta=1e-9)

    def test_hccl_test(self):
        document = self.json("import", "hccl-test", self.sample("hccl_test.txt"), "--op", "all_reduce", "--ranks", "8")
        self.assertEqual(document["measurements"][0]["op"], "all_reduce fp32 8 ranks 64 B")
        self.assertAlmostEqual(document["measurements"][0]["time_s"], 1e-3, delta=1e-9)
        self.assertEqual([c["class"] for c in document["classes"]], ["communication"])


if __name__ == "__main__":
    unittest.main()
