#!/usr/bin/env python3
"""GGUF as a user meets it: models from files, sizes of every type, layers on the host, and files that are wrong.

The files are written here from the specification alone (ggml's docs/gguf.md), independently of the C++ tests' writer. They are
sparse: headers are real, tensor data is a hole.
"""
import math
import os
import resource
import struct
import time
import unittest

from program import INFEASIBLE, SANITIZED, ProgramTest

TYPE_IDS = {"F32": 0, "F16": 1, "Q4_0": 2, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q2_K": 10, "Q3_K": 11, "Q4_K": 12, "Q5_K": 13,
            "Q6_K": 14, "IQ4_NL": 20}
BLOCKS = {"F32": (1, 4), "F16": (1, 2), "Q4_0": (32, 18), "Q5_0": (32, 22), "Q5_1": (32, 24), "Q8_0": (32, 34),
          "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210), "IQ4_NL": (32, 18)}
QWEN_05B = {"general.architecture": "qwen2", "general.name": "a tiny Qwen", "qwen2.block_count": 24, "qwen2.context_length": 32768,
            "qwen2.embedding_length": 1024, "qwen2.feed_forward_length": 2816, "qwen2.attention.head_count": 16,
            "qwen2.attention.head_count_kv": 16, "qwen2.attention.layer_norm_rms_epsilon": 1e-6, "general.file_type": 15,
            "tokenizer.ggml.tokens": [b"a"] * 151936}


class Short(int):
    """A value written as u16."""


class Int(int):
    """A value written as i32."""


def packer(order):
    def string(text):
        data = text if isinstance(text, bytes) else text.encode()
        return struct.pack(order + "Q", len(data)) + data

    def value(item):
        if isinstance(item, str):
            return struct.pack(order + "I", 8) + string(item)
        if isinstance(item, float):
            return struct.pack(order + "If", 6, item)
        if isinstance(item, list):
            return struct.pack(order + "IIQ", 9, 8, len(item)) + b"".join(map(string, item))
        if isinstance(item, Short):
            return struct.pack(order + "IH", 2, item)
        return struct.pack(order + "Ii", 5, item) if isinstance(item, Int) else struct.pack(order + "II", 4, item)
    return string, value


def header(metadata, tensors, version=3, order="<"):
    """tensors: [(name, type, shape outermost first)]. Returns the header, padded, and the bytes of data it announces."""
    string, value = packer(order)
    parts = [b"GGUF", struct.pack(order + "IQQ", version, len(tensors), len(metadata))]
    parts += [string(key) + value(item) for key, item in metadata.items()]
    offset = 0
    for name, kind, shape in tensors:
        parts.append(string(name) + struct.pack(order + "I", len(shape)))
        parts += [struct.pack(order + "Q", extent) for extent in reversed(shape)]
        parts.append(struct.pack(order + "IQ", TYPE_IDS[kind], offset))
        offset += -(-data_bytes(kind, shape) // 32) * 32
    data = b"".join(parts)
    return data + bytes(-len(data) % 32), offset


def data_bytes(kind, shape):
    elements = 1
    for extent in shape:
        elements *= extent
    block, size = BLOCKS[kind]
    return elements // block * size


class Gguf(ProgramTest):
    def write_gguf(self, name, metadata, tensors, **options):
        data, size = header(metadata, tensors, **options)
        with open(self.path(name), "wb") as file:
            file.write(data)
            file.truncate(len(data) + size)
        return "./" + name

    def tensors(self, weights="q4_k_m"):
        shown = self.json("show", "model", "qwen1.5-0.5b", "--weights", weights, "--gguf-era", "2024-02", "--detail", "tensors")
        return [(t["name"], t["type"], t["shape"]) for t in shown["tensors"]]


class Files(Gguf):
    def test_a_file_has_the_sizes_that_were_predicted_for_its_types(self):
        predicted = self.json("show", "model", "qwen1.5-0.5b", "--weights", "q4_k_m", "--gguf-era", "2024-02")
        for version, order in [(3, "<"), (2, "<"), (3, ">")]:
            path = self.write_gguf("m.gguf", QWEN_05B, self.tensors(), version=version, order=order)
            shown = self.json("show", "model", path)
            self.assertEqual(shown["weight_bytes"], predicted["weight_bytes"])
            self.assertEqual(shown["bits_per_weight"], predicted["bits_per_weight"])
            self.assertEqual(shown["gguf"]["types"], predicted["gguf"]["types"])
            self.assertEqual(shown["parameters"]["total"], predicted["parameters"]["total"])
            self.assertEqual(shown["gguf"]["file_bytes"], os.path.getsize(self.path("m.gguf")))
            self.assertFalse(shown["gguf"]["predicted"])
            self.assertEqual(shown["gguf"]["byte_order"], "big" if order == ">" else "little")

    def test_a_file_is_estimated_as_its_types_are(self):
        path = self.write_gguf("m.gguf", QWEN_05B, self.tensors())
        words = ["--hw", "rtx4090", "--gpu-layers", "9"]
        of_file = self.json("estimate", "-m", path, *words)
        of_type = self.json("estimate", "-m", "qwen1.5-0.5b", "--weights", "q4_k_m", "--gguf-era", "2024-02", *words)
        for key in ["ttft_s", "tpot_s", "memory", "host_memory", "phases"]:
            self.assertEqual(of_file[key], of_type[key], key)
        self.assertEqual(of_file["inputs"]["weights"], "m.gguf")

    def test_a_file_is_known_by_its_first_bytes_and_may_be_sized_in_another_type(self):
        path = self.write_gguf("model.bin", QWEN_05B, self.tensors())
        self.assertEqual(self.json("show", "model", path)["name"], "a tiny Qwen")
        other = self.json("show", "model", path, "--weights", "q8_0")
        self.assertTrue(other["gguf"]["predicted"])
        self.assertGreater(other["bits_per_weight"], 8.4)

    def test_a_split_model_is_one_model_whichever_part_is_named(self):
        tensors = self.tensors()
        parts = [tensors[:100], tensors[100:200], tensors[200:]]
        for number, part in enumerate(parts):
            split = {"split.no": Short(number), "split.count": Short(3), "split.tensors.count": Int(len(tensors))}
            self.write_gguf(f"m-{number + 1:05}-of-00003.gguf", (QWEN_05B if number == 0 else {}) | split, part)
        whole = self.write_gguf("whole.gguf", QWEN_05B, tensors)
        expected = self.json("show", "model", whole)["weight_bytes"]
        for number in (1, 2, 3):
            shown = self.json("show", "model", f"./m-{number:05}-of-00003.gguf")
            self.assertEqual(shown["weight_bytes"], expected)
            self.assertEqual(shown["gguf"]["shards"], 3)
        os.remove(self.path("m-00002-of-00003.gguf"))
        self.assert_bad_input(["show", "model", "./m-00001-of-00003.gguf"], "m-00002-of-00003.gguf")

    def test_only_the_header_of_a_huge_file_is_read(self):
        path = self.write_gguf("m.gguf", QWEN_05B, self.tensors())
        with open(self.path("m.gguf"), "r+b") as file:
            file.truncate(100_000_000_000)
        start = time.monotonic()
        self.json("show", "model", path)
        self.assertLess(time.monotonic() - start, 60 if SANITIZED else 5)  # reading it all would take minutes
        if not SANITIZED:
            self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 64 * 1024)  # KiB


class BadFiles(Gguf):
    def assert_refused(self, name, *fragments):
        self.assert_bad_input(["show", "model", name], name.removeprefix("./"), *fragments)

    def test_every_truncation_is_refused_with_its_place(self):
        data, _ = header(QWEN_05B | {"tokenizer.ggml.tokens": [b"a"] * 3}, self.tensors()[:4])
        for size in [4, 7, 20, 24, 60, 200, 500, len(data) - 40]:
            with open(self.path("m.gguf"), "wb") as file:
                file.write(data[:size])
            self.assert_refused("./m.gguf", "byte ")

    def test_absurd_counts_are_refused_before_anything_is_allocated(self):
        for tensors, entries in [(1, 10**9), (10**9, 1), (2**63, 0), (0, 2**64 - 1)]:
            with open(self.path("m.gguf"), "wb") as file:
                file.write(b"GGUF" + struct.pack("<IQQ", 3, tensors, entries) + bytes(100))
            self.assert_refused("./m.gguf", "byte ")

    def test_unknown_architectures_types_and_tensors_are_named(self):
        path = self.write_gguf("a.gguf", QWEN_05B | {"general.architecture": "qwen22"}, self.tensors())
        self.assert_refused(path, "qwen22", "qwen2")
        lacking = [tensor for tensor in self.tensors() if tensor[0] != "blk.7.ffn_down.weight"]
        self.assert_refused(self.write_gguf("b.gguf", QWEN_05B, lacking), "blk.7.ffn_down.weight")
        path = self.write_gguf("c.gguf", QWEN_05B, self.tensors() + [("blk.0.attn_z.weight", "F32", [64])])
        self.assert_refused(path, "blk.0.attn_z.weight")
        wrong = [(name, kind, [2048, 1024] if name == "blk.3.attn_q.weight" else shape) for name, kind, shape in self.tensors()]
        self.assert_refused(self.write_gguf("d.gguf", QWEN_05B, wrong), "blk.3.attn_q.weight")
        missing = {key: value for key, value in QWEN_05B.items() if key != "qwen2.block_count"}
        self.assert_refused(self.write_gguf("e.gguf", missing, self.tensors()), "qwen2.block_count")

    def test_what_is_no_gguf_file_is_refused(self):
        with open(self.path("m.gguf"), "wb") as file:
            file.write(b"PK\x03\x04" + bytes(100))
        self.assert_refused("./m.gguf")
        self.assert_refused("./missing.gguf")
        os.mkdir(self.path("folder.gguf"))
        self.assert_refused("./folder.gguf")


class Types(Gguf):
    def test_every_type_of_a_model_is_compared(self):
        study = self.json("limits", "-m", "qwen1.5-14b", "--hw", "rtx4090", "--weights", "all-gguf")
        rows = {row["weights"]: row for row in study["rows"]}
        self.assertGreater(len(rows), 30)
        self.assertTrue(rows["q8_0"]["fits"])
        self.assertFalse(rows["f16"]["fits"])
        self.assertLess(rows["f16"]["layers_on_device"], rows["f16"]["layers"])
        for row in study["rows"]:
            self.assertLess(row["device_weight_bytes"], row["tensor_bytes"])
            self.assertLess(row["tensor_bytes"], row["file_bytes"])

    def test_the_table_agrees_with_an_estimate(self):
        row = self.json("limits", "-m", "qwen1.5-7b", "--hw", "rtx4090", "--weights", "q4_k_m", "--context", "1000")["rows"][0]
        words = ["estimate", "-m", "qwen1.5-7b", "--hw", "rtx4090", "--runtime", "none", "--weights", "q4_k_m", "--kv", "fp16"]
        whole = self.json(*words, "--prompt", "999", "--gen", "1")
        self.assertEqual(row["total_bytes"], whole["memory"]["total_bytes"])
        prefill = self.json(*words, "--prompt", "512", "--gen", "1")
        self.assertAlmostEqual(row["prefill_tokens_per_second"] * prefill["ttft_s"], 512)
        decode = self.json(*words, "--prompt", "999", "--gen", "2")
        self.assertAlmostEqual(row["decode_tokens_per_second"] * decode["tpot_s"], 1)

    def test_the_prediction_is_that_of_an_estimate(self):
        words = ["-m", "qwen3-8b", "--hw", "rtx3090", "--weights", "q4_k_m"]
        for more, plan in (([], []), (["--tool", "ollama"], []), (["--runtime", "llama.cpp@b4000"], []), (["--devices", "2"], ["--pp", "2"])):
            with self.subTest(more=more):
                row = self.json("limits", *words, "--context", "1000", *more)["rows"][0]
                estimate = ["estimate", *words, *(plan or more)]
                decode = self.json(*estimate, "--prompt", "999", "--gen", "2")
                self.assertAlmostEqual(row["predicted_decode_tokens_per_second"] * decode["tpot_s"], 1)
                prefill = self.json(*estimate, "--prompt", "512", "--gen", "1")
                self.assertAlmostEqual(row["predicted_prefill_tokens_per_second"] * prefill["ttft_s"], 512)
                self.assertLess(row["predicted_decode_low"], row["predicted_decode_tokens_per_second"])
                self.assertLess(row["predicted_decode_tokens_per_second"], row["predicted_decode_high"])
                self.assertLess(row["predicted_decode_tokens_per_second"], row["decode_tokens_per_second"])

    def test_experts_off_the_device_are_those_of_an_estimate(self):
        words = ["-m", "qwen3-30b-a3b", "--hw", "rtx3060", "--weights", "q4_k_m"]
        row = self.json("limits", *words, "--context", "1000")["rows"][0]
        self.assertFalse(row["fits"])
        self.assertEqual(row["layers_on_device"], row["layers"])
        estimate = ["estimate", *words, "--prompt", "999", "--gen", "2", "--n-cpu-moe"]
        self.assertAlmostEqual(row["predicted_decode_tokens_per_second"] * self.json(*estimate, str(row["cpu_moe_layers"]))["tpot_s"], 1)
        self.assertFalse(self.json(*estimate, str(row["cpu_moe_layers"] - 1), status=3)["fits"])

    def test_types_and_precisions_of_the_closed_form_do_not_mix(self):
        self.assert_bad_input(["limits", "-m", "qwen-7b", "--hw", "rtx4090", "--weights", "q4_k_m,w4kv16"], "w4kv16")
        self.assert_bad_input(["limits", "-m", "qwen-7b", "--hw", "rtx4090", "--gguf-era", "2024"], "GGUF")
        self.assert_bad_input(["limits", "-m", "qwen-7b", "--hw", "rtx4090", "--devices", "2"], "GGUF")
        self.assert_bad_input(["limits", "-m", "qwen-7b", "--hw", "rtx4090", "--weights", "all-gguf", "--units", "article"], "--units")

    def test_eras_and_their_mistakes(self):
        words = ["show", "model", "qwen1.5-14b", "--weights", "q2_k"]
        old, new = (self.json(*words, "--gguf-era", era)["bits_per_weight"] for era in ("2024-02", "2024"))
        self.assertGreater(abs(old - new), 0.05)
        self.assertEqual(round(old, 2), 3.43)  # as llama.cpp printed for the file of February 2024
        self.assert_bad_input([*words, "--gguf-era", "2023"], "2024-02")
        self.assert_bad_input(["show", "model", "qwen1.5-14b", "--weights", "q4_k_x"], "q4_k_m")


class Offload(Gguf):
    WORDS = ["estimate", "-m", "llama-2-70b", "--hw", "rtx4090", "--weights", "q4_k_m"]

    def test_what_does_not_fit_runs_with_layers_on_the_host(self):
        done = self.run_program(*self.WORDS)
        self.assert_error(done, INFEASIBLE, "does not fit", "--gpu-layers")
        split = self.json(*self.WORDS, "--gpu-layers", "40")
        self.assertTrue(split["fits"])
        self.assertEqual(split["inputs"]["offload"]["layers_on_host"], list(range(41)))
        self.assertGreater(split["host_memory"]["weight_bytes"], 20e9)
        slower = self.json(*self.WORDS, "--gpu-layers", "20")
        self.assertGreater(slower["tpot_s"], split["tpot_s"])

    def test_a_faster_host_makes_a_split_faster(self):
        desktop = self.json(*self.WORDS, "--gpu-layers", "40")
        server = self.json(*self.WORDS, "--gpu-layers", "40", "--host", "epyc-9654")
        self.assertLess(server["tpot_s"], desktop["tpot_s"] / 3)

    def test_flags_that_do_not_apply_are_refused(self):
        self.assert_bad_input(["estimate", "-m", "qwen-7b", "--hw", "rtx4090", "--gpu-layers", "3"], "GGUF")
        self.assert_bad_input([*self.WORDS, "--gpu-layers", "many"], "--gpu-layers")
        self.assert_bad_input([*self.WORDS, "--gpu-layers", "-1"], "--gpu-layers")
        self.assert_bad_input([*self.WORDS, "--cache-type-k", "q9_0"], "q8_0")
        self.assert_bad_input([*self.WORDS, "--host", "ryzen-7950y"], "ryzen-7950x")
        self.assert_bad_input([*self.WORDS, "--ubatch", "0"], "--ubatch")


class LayerSplit(Gguf):
    """Layers dealt to several cards."""
    WORDS = ["estimate", "-m", "llama-3-70b", "--hw", "rtx3090", "--weights", "q4_k_m"]

    def close(self, a, b):
        self.assertTrue(math.isclose(a, b, rel_tol=1e-9), (a, b))

    def test_two_cards_hold_what_one_does_not_and_every_card_is_told_its_memory(self):
        self.assert_error(self.run_program(*self.WORDS), INFEASIBLE, "--gpu-layers", "2 devices with --pp 2")
        document = self.json(*self.WORDS, "--pp", "2")
        self.assertTrue(document["fits"])
        first, last = document["stages"]
        # Item i of 80 layers and the output is on the first card while i / 81 < 1 / 2.
        self.assertEqual((first["layers"], last["layers"], last["first_layer"]), (41, 39, 41))
        # 8 KV heads of 128, keys and values of 640 tokens in fp16.
        self.assertEqual(first["kv_cache_bytes"], 41 * 2 * 8 * 128 * 640 * 2)
        whole = self.json(*self.WORDS, "--gpu-layers", "0")["host_memory"]["weight_bytes"]
        embedding = document["host_memory"]["weight_bytes"]
        self.close(first["weight_bytes"] + last["weight_bytes"] + embedding, whole)
        self.assertEqual(document["memory"]["total_bytes"], max(first["total_bytes"], last["total_bytes"]))
        self.assertGreater(last["activation_bytes"], first["activation_bytes"])  # the head's buffer is the largest
        self.assertIn("stages 41+39 layers", " ".join(self.output(*self.WORDS, "--pp", "2").split()))

    def test_cards_decode_one_after_another_however_many_sequences(self):
        small = ["estimate", "-m", "qwen1.5-14b", "--hw", "rtx3090", "--weights", "q4_k_m", "--gen", "2", "--batch", "8"]
        for runtime in ("none", "llama.cpp"):
            with self.subTest(runtime=runtime):
                alone = self.json(*small, "--runtime", runtime)
                split = self.json(*small, "--runtime", runtime, "--pp", "2")
                sends = [op for op in split["phases"][1]["ops"] if op["name"] == "stage_send"]
                self.assertEqual([op["count"] for op in sends], [1])
                self.assertEqual(split["phases"][1]["pipelined_s"], 0)
                waited = split["tpot_s"] - alone["tpot_s"]
                self.assertGreater(waited, 0.9 * sends[0]["time_s"])
                self.assertLess(waited, 0.02 * alone["tpot_s"] + sends[0]["time_s"])

    def test_of_a_prompt_of_several_micro_batches_each_card_works_on_one(self):
        words = ["estimate", "-m", "qwen1.5-14b", "--hw", "rtx3090", "--weights", "q4_k_m", "--gen", "1", "--runtime", "none"]
        short = self.json(*words, "--prompt", "512", "--pp", "2")["phases"][0]
        self.assertEqual((short["micro_batches"], short["pipelined_s"]), (1, 0))
        phase = self.json(*words, "--prompt", "4096", "--pp", "2")["phases"][0]
        self.assertEqual(phase["micro_batches"], 8)
        self.close(phase["time_s"], phase["ops_time_s"] - phase["overlapped_s"] - phase["pipelined_s"])
        # Two even halves b take 2 b / 8 + 7 / 8 b instead of 2 b.
        self.assertAlmostEqual(phase["time_s"] / phase["ops_time_s"], 9 / 16, delta=0.03)
        self.assertEqual(sum(op["count"] for op in phase["ops"] if op["name"] == "stage_send"), 8)

    def test_shares_are_llama_cpp_s(self):
        larger = [word.replace("rtx3090", "a6000") for word in self.WORDS]
        stages = self.json(*larger, "--pp", "2", "--tensor-split", "3,2")["stages"]
        self.assertEqual([stage["layers"] for stage in stages], [49, 31])  # i / 81 < 3 / 5: 0 .. 48
        self.assertEqual(self.output(*self.WORDS, "--pp", "2"), self.output(*self.WORDS, "--pp", "2", "--tensor-split", "24,24"))
        self.assert_error(self.run_program(*self.WORDS, "--pp", "2", "--tensor-split", "4,1"), INFEASIBLE,
                          "2 devices with --pp 2 without --tensor-split")
        for shares, *fragments in (("3", "1 devices", "are 2"), ("3,2,1", "--pp 3"), ("3,x", "--tensor-split"), ("0,0", "all shares are 0"),
                                   ("-1,2", "--tensor-split"), ("0,1", "device 1 without a layer"),
                                   ("100,1", "device 2 without even the output")):
            with self.subTest(shares=shares):
                self.assert_bad_input([*self.WORDS, "--pp", "2", f"--tensor-split={shares}"], *fragments)
        self.assert_bad_input([*self.WORDS, "--tensor-split", "3,2"], "there is one", "--pp 2")
        self.assert_bad_input(["estimate", "-m", "llama-3-70b", "--hw", "h100-sxm", "--pp", "2", "--tensor-split", "3,2"], "GGUF")

    def test_every_number_is_explained_and_the_step_is_drawn(self):
        for words in ([*self.WORDS, "--pp", "2"], [*self.WORDS, "--pp", "4", "--prompt", "2048", "--tensor-split", "1,2,2,1"]):
            with self.subTest(words=words):
                self.assertIn("memory.weight_bytes", self.output("explain", *words[1:]))
                self.output(*words, "--export", self.path("split.trace.json"))
                self.assertTrue(os.path.exists(self.path("split.trace.json")))

    def test_what_llama_cpp_does_not_do_is_refused(self):
        self.assert_bad_input([*self.WORDS, "--pp", "2", "--dp", "2"], "does not go with GGUF formats")
        self.assert_bad_input([*self.WORDS, "--pp", "2", "--gpu-layers", "40"], "--gpu-layers", "not both")
        self.assert_bad_input([*self.WORDS, "--pp", "2", "--pipeline-batches", "2"], "--pipeline-batches")
        self.assert_bad_input([*self.WORDS, "--pp", "81"], "too few for 81 stages")
        self.assert_bad_input(["limits", "-m", "llama-3-8b", "--hw", "rtx4090", "--weights", "q4_k_m", "--devices", "100"],
                              "--devices: llama-3-8b has 32 layers, too few for 100", "at most 32")


if __name__ == "__main__":
    unittest.main()
