#!/usr/bin/env python3
"""A model over many devices: the flags of a plan, its errors, and the sums of what `estimate` prints."""
import csv
import io
import math
import re
import json
import unittest

from program import INFEASIBLE, ProgramTest

LLAMA = ["estimate", "-m", "llama-2-70b", "--hw", "atlas-800i-a2", "--runtime", "none", "--batch", "4", "--prompt", "1024", "--gen", "1024"]
QUANTIZED = LLAMA + ["--weights", "w4a16", "--tp", "2"]
PLANS = [
    LLAMA + ["--tp", "8"],
    LLAMA + ["--tp", "8", "--embedding", "replicated"],
    LLAMA + ["--tp", "2x4"],
    LLAMA + ["--tp", "4", "--pp", "2", "--megatron-sp"],
    QUANTIZED + ["--sp", "ulysses:4xring:2", "--megatron-sp"],
    QUANTIZED + ["--sp", "ring:8", "--options", "none"],
    LLAMA + ["--tp", "8", "--pp", "4", "--dp", "2", "--pipeline-batches", "2"],
    ["estimate", "-m", "mixtral-8x7b", "--hw", "atlas-800i-a2", "--ep", "8", "--dp", "8", "--batch", "16"],
    ["estimate", "-m", "mixtral-8x7b", "--hw", "h100-sxm", "--tp", "4", "--ep", "2", "--sp", "ring:2"],
    ["estimate", "-m", "deepseek-v3", "--hw", "b200-sxm", "--tp", "8", "--ep", "32", "--dp", "4", "--batch", "8"],
    ["estimate", "-m", "gemma-2-9b", "--hw", "h100-sxm", "--tp", "2", "--sp", "ulysses:2xring:2"],
]


def with_value(words, flag, value):
    """The words with another value of a flag."""
    if flag not in words:
        return words + [flag, str(value)]
    at = words.index(flag) + 1
    return words[:at] + [str(value)] + words[at + 1:]


class Sums(ProgramTest):
    def close(self, a, b):
        self.assertTrue(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-18), (a, b))

    def test_redundant_and_shared_experts(self):
        words = ["estimate", "-m", "deepseek-v3", "--hw", "h200-sxm", "--runtime", "none", "--batch", "320", "--prompt", "512", "--gen", "2",
                 "--routing", "balanced"]
        held = lambda *plan: json.loads(self.output(*words, *plan, "--json"))["memory"]["weight_bytes"]
        # An expert: three matrices of 7168 x 2048 in fp8 with a scale of 4 bytes for each 128 x 128; 58 layers have them.
        expert = 58 * 3 * 7168 * 2048 * (1 + 4 / 128 / 128)
        plain = held("--dp", "64", "--ep", "64")  # 4 of 256 each
        self.assertAlmostEqual(held("--dp", "64", "--ep", "64", "--redundant-experts", "64") - plain, expert, delta=1e-6 * expert)
        # 288 places on as many devices, and 32 that hold the shared expert, which the others then do not.
        wide = held("--dp", "320", "--ep", "320", "--redundant-experts", "32", "--shared-expert-ranks", "32")
        self.assertAlmostEqual(plain - wide, (3 + 1) * expert, delta=1e-6 * expert)
        for plan, message in ((["--dp", "72", "--ep", "72"], "do not divide by 72"),
                              (["--dp", "16", "--ep", "16", "--shared-expert-ranks", "16"], "no device of --ep is left"),
                              (["--tp", "8", "--ep", "8", "--redundant-experts", "8"], "of an --ep beyond --tp")):
            self.assert_bad_input([*words, *plan], message)

    def test_experts_are_placed_by_measured_loads(self):
        words = ["estimate", "-m", "mixtral-8x7b", "--hw", "h100-sxm", "--dp", "4", "--ep", "4", "--batch", "256", "--gen", "2"]
        # As numbered 6 + 2 of 14 / 4 on the mean; packed 6 + 1, which none can be better than.
        loads = [6, 2, 1, 1, 1, 1, 1, 1]
        answers = {}
        for name, text in (("one.json", json.dumps(loads)), ("all.json", json.dumps([loads] * 32)),
                           ("sglang.json", json.dumps({"logical_count": [loads] * 32})),
                           ("one.csv", ",".join(map(str, loads)) + "\n")):
            answer = self.json(*words, "--expert-load", self.write(name, text))
            self.close(answer["inputs"]["expert_imbalance"], 7 / 3.5)
            self.close(answer["inputs"]["expert_imbalance_by_number"], 8 / 3.5)
            self.assertIn("the busiest of 4 devices has 2 x the mean", " ".join(answer["notes"]))
            answers[name] = answer["tpot_s"], answer["ttft_s"]
        for times in answers.values():
            for a, b in zip(times, answers["one.json"]):
                self.close(a, b)
        even = self.json(*words, "--routing", self.write("even.json", json.dumps([1] * 8)))
        plain = self.json(*words, "--routing", "power-law:0")
        for key in ("tpot_s", "ttft_s"):
            # Counts are means, which leave out what falls on a device by chance.
            self.assertLess(even[key], plain[key])
            self.assertLess(plain[key], 1.02 * even[key])
            self.assertGreater(answers["one.json"][key == "ttft_s"], 1.05 * plain[key])
        # 8 copies, two experts and two copies a device: four of the first at 6/5 and so on down.
        copies = self.json(*words, "--redundant-experts", "8", "--routing", self.write("one.json", json.dumps(loads)))
        self.assertLess(copies["inputs"]["expert_imbalance"], 1.1)
        self.assertLess(copies["ttft_s"], answers["one.json"][1])
        rows = self.output("sweep", *words[1:], "--routing", "balanced," + self.write("one.csv", "6,2,1,1,1,1,1,1"), "--format", "csv")
        self.assertEqual([row["expert_imbalance"] for row in csv.DictReader(io.StringIO(rows))], ["", "2"])
        for text, message in (("[]", "loads of 0 layers: mixtral-8x7b"), ("{}", "loads of 0 layers"), ("[1, 2, 3]", ":1:1: loads of 3 experts"),
                              ("[6, 2, 1, 1, 1, 1, -1, 1]", ":1:20: '-1' is no load"), ("[6, 0, 0, 0, 0, 0, 0, 0]", "1 experts have tokens"),
                              ("[[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1]]", "loads of 2 layers"), ("[", "")):
            self.assert_bad_input([*words, "--routing", self.write("bad.json", text)], message)
        self.assert_bad_input([*words, "--routing", self.write("bad.csv", "6,2,x,1,1,1,1,1\n")], ":1:5: 'x' is no load")
        self.assert_bad_input([*words, "--routing", "even"], "--routing: cannot read 'even'", "JSON or CSV")
        self.assert_bad_input([*words, "--routing", "nowhere/x.json"], "nowhere/x.json")
        self.assert_bad_input(["estimate", "-m", "qwen-7b", "--hw", "h100-sxm", "--routing", "x.json"], "has no routed experts")

    def test_network_bytes_and_times_of_ops_add_up_to_those_of_their_phase(self):
        for words in PLANS:
            with self.subTest(words=words):
                document = self.json(*words)
                self.assertGreater(document["inputs"]["devices"], 1)
                for phase in document["phases"]:
                    self.close(sum(op["network_bytes"] for op in phase["ops"]), phase["network_bytes"])
                    self.close(sum(op["collective"]["sent_bytes"] for op in phase["ops"] if op["collective"]),
                               phase["network_bytes"])
                    self.assertGreater(phase["network_bytes"], 0)
                    self.close(sum(op["time_s"] for op in phase["ops"]), phase["ops_time_s"])
                    self.close(phase["ops_time_s"] - phase["overlapped_s"] - phase["pipelined_s"], phase["time_s"])
                    self.assertEqual([op["place"] == "network" for op in phase["ops"]],
                                     [op["collective"] is not None for op in phase["ops"]])

    def test_the_csv_of_ops_holds_the_numbers_of_the_json(self):
        for words in PLANS:
            with self.subTest(words=words):
                rows = list(csv.DictReader(io.StringIO(self.output(*words, "--detail", "ops", "--format", "csv"))))
                ops = [(phase, op) for phase in self.json(*words)["phases"] for op in phase["ops"]]
                self.assertEqual(len(rows), len(ops))
                for row, (phase, op) in zip(rows, ops):
                    self.assertEqual((row["phase"], row["name"]), (phase["name"], op["name"]))
                    for key in ("network_bytes", "bytes", "flops", "time_s", "roof_s"):
                        self.close(float(row[key]), op[key])
                    self.assertEqual(row["axis"], op["collective"]["axis"] if op["collective"] else "")

    def test_the_time_per_token_grows_with_the_context_under_every_plan(self):
        for words in PLANS:
            with self.subTest(words=words):
                document = self.json(*words)
                self.assertLessEqual(document["tpot_first_s"], document["tpot_s"] * (1 + 1e-9))
                self.assertLessEqual(document["tpot_s"], document["tpot_last_s"] * (1 + 1e-9))
                self.close(document["total_s"], document["ttft_s"] + document["phases"][1]["total_s"])

    def test_stages_hold_all_layers_and_the_memory_shown_is_the_fullest_one_s(self):
        document = self.json(*LLAMA, "--tp", "4", "--pp", "4")
        stages = document["stages"]
        self.assertEqual([stage["layers"] for stage in stages], [20, 20, 20, 20])
        self.assertEqual(max(stage["weight_bytes"] for stage in stages), document["memory"]["weight_bytes"])

    def test_layers_that_stages_do_not_divide_are_balanced_and_the_split_is_told(self):
        llama = ["estimate", "-m", "llama-3.1-405b", "--hw", "h100-sxm", "--tp", "8", "--batch", "16"]
        for pp, layers in (("4", [31, 32, 32, 31]), ("8", [15] + 6 * [16] + [15]), ("16", [7] + 14 * [8] + [7])):
            with self.subTest(pp=pp):
                words = [*llama, "--pp", pp]
                document = self.json(*words)
                counts = [stage["layers"] for stage in document["stages"]]
                self.assertEqual(counts, layers)  # the ends have the embedding and a head that weighs two thirds of a layer
                self.assertEqual([stage["first_layer"] for stage in document["stages"]],
                                 [sum(counts[:i]) for i in range(len(counts))])
                text = " ".join(self.output(*words).split())
                self.assertIn(f"stages {'+'.join(map(str, counts))} layers", text)
                self.assertEqual(max(stage["total_bytes"] for stage in document["stages"]), document["memory"]["total_bytes"])
                self.close(sum(stage["kv_cache_bytes"] for stage in document["stages"]),
                           16 * 640 * 126 * 2 * 128 * 2)  # one KV head of 128 on each of the eight devices
                self.assertIn(f"{max(counts)} * 1 * 2048 * 16384", self.output("explain", *words[1:], "memory.weight_bytes"))

    def test_stages_that_divide_are_equal_and_not_listed(self):
        self.assertNotIn("stages ", self.output(*LLAMA, "--tp", "8", "--pp", "4").split("\n\n")[1])

    def test_stages_of_dense_and_expert_layers_hold_their_own(self):
        # Three dense layers of 583 M parameters, then experts of 11.5 billion: the first stage is the smallest.
        document = self.json("estimate", "-m", "deepseek-v3", "--hw", "b200-sxm", "--tp", "8", "--pp", "4", "--batch", "8")
        stages = document["stages"]
        self.assertEqual(sum(stage["layers"] for stage in stages), 61)
        self.assertEqual(max(stage["weight_bytes"] for stage in stages), document["memory"]["weight_bytes"])
        self.assertLess(stages[0]["weight_bytes"], stages[1]["weight_bytes"])

    def test_one_device_sends_nothing(self):
        document = self.json("estimate", "-m", "qwen-7b", "--hw", "h100-sxm")
        for phase in document["phases"]:
            self.assertEqual(phase["network_bytes"], 0)
            self.assertEqual(phase["time_s"], phase["ops_time_s"])


class AttentionAndExpertsApart(ProgramTest):
    WORDS = ["estimate", "-m", "deepseek-v3", "--hw", "h800-sxm", "--phase", "decode", "--dp", "64", "--ep", "64", "--afd", "--prompt", "4096",
             "--gen", "2", "--batch", str(64 * 96)]

    def test_devices_memory_and_what_binds_are_told(self):
        answer = self.json(*self.WORDS)
        self.assertEqual(answer["inputs"]["devices"], 128)
        # 4 of 256 experts in 58 layers, each of three matrices of 7168 x 2048 in fp8 with a scale for each 128 x 128.
        experts = 58 * 4 * 3 * 7168 * 2048 * (1 + 4 / 128 / 128)
        self.assertAlmostEqual(answer["expert_memory"]["weight_bytes"], experts, delta=1e-6 * experts)
        plain = self.json(*[word for word in self.WORDS if word != "--afd"])
        self.assertAlmostEqual(plain["memory"]["weight_bytes"] - answer["memory"]["weight_bytes"], experts, delta=1e-6 * experts)
        afd, decode = answer["afd"], answer["phases"][0]
        busy = {name: afd[name + "_s"] for name in ("attention", "experts", "dispatch", "return")}
        self.assertAlmostEqual(sum(busy.values()), decode["ops_time_s"], delta=1e-9)
        self.assertAlmostEqual(answer["tpot_s"], max(*busy.values(), decode["ops_time_s"] / afd["micro_batches"]), delta=1e-9)
        self.assertEqual(afd["bound"], max(busy, key=busy.get) if max(busy.values()) > answer["tpot_s"] - 1e-9 else "turns")
        self.assertAlmostEqual(afd["experts_idle"], 1 - busy["experts"] / answer["tpot_s"], delta=1e-9)
        shown = " ".join(self.output(*self.WORDS).split())
        self.assertIn("attention on 64 devices busy", shown)
        self.assertIn("of a device of experts", " ".join(self.output(*self.WORDS, "--detail", "full").split()))
        for path in ("tpot_s", "afd.experts_s", "expert_memory.total_bytes", "memory.weight_bytes", "largest_batch"):
            self.assertIn(path, self.output("explain", *self.WORDS[1:], path))
        # Devices count those of experts, too; what `devices` leaves becomes replicas of attention.
        devices = [word for word in self.WORDS if word != "--dp"]
        devices.remove("64")
        self.assertEqual(self.json(*devices, "--devices", "128")["tpot_s"], answer["tpot_s"])
        self.assert_bad_input([*devices, "--devices", "64"], "--devices: 64", "65 or more")
        self.assert_bad_input([*(word for word in with_value(self.WORDS, "--ep", 1)), "--devices", "128"], "--afd: --ep says how many")

    def test_experts_that_do_not_fit_are_told_first(self):
        words = with_value(self.WORDS, "--ep", 2)
        shown = self.run_program(*words)
        self.assertIn("on a device of experts; on one of attention", " ".join(shown.stdout.split()))
        row = self.run_program("sweep", *words[1:], "--format", "csv").stdout.splitlines()
        cells = dict(zip(row[0].split(","), next(csv.reader(row[1:2]))))
        self.assertEqual(cells["fits"], "false")
        self.assertGreater(float(cells["total_bytes"]), float(cells["capacity_bytes"]))

    # arXiv 2507.19427: up to 4,039 tokens/s a device under 50 ms per token on Hopper, in fp8 at a context of 4k.
    STEP_3 = """
name: step-3
architecture: step3
source: arXiv 2507.19427, but for the rank of its queries
default_weights: fp8
hidden_size: 7168
num_layers: 61
vocab_size: 128815
max_position: 65536
norm: rms
attention: {heads: 64, kv_heads: 1, head_dim: 256}
feed_forward: {activation: silu, gated: true, experts: {count: 48, per_token: 3, intermediate: 5120, shared_intermediate: 5120}}
kinds: {dense: {feed_forward: {intermediate: 18432, activation: silu, gated: true}}, experts: {}}
layers: [dense x4, experts x56, dense]
"""

    def test_the_published_rate_of_step_3_is_within_the_band(self):
        words = ["estimate", "-m", self.write("step-3.yaml", self.STEP_3), "--hw", "h800-sxm", "--phase", "decode", "--dp", "16", "--ep", "16",
                 "--shared-expert-ranks", "4", "--afd", "--prompt", "4095", "--gen", "2", "--kv", "fp8", "--routing", "balanced"]
        answer = self.json(*words, "--batch", "5520")
        self.assertAlmostEqual(answer["tpot_s"], 0.05, delta=0.0005)
        rate = answer["decode_tokens_per_second"] / 32
        self.assertLess(rate, 4039)
        self.assertGreater(rate * (1 + answer["error_band"]["decode"]["p90_error"]), 4039)
        self.assertEqual(answer["afd"]["micro_batches"], 3)
        self.assertGreater(self.json(*words, "--batch", "6144", "--runtime", "none")["decode_tokens_per_second"] / 32, 4039)

    def test_what_is_not_modelled_is_refused(self):
        for more, *fragments in ((["--phase", "both"], "--afd is of decode", "--phase decode"), (["--pp", "2"], "not modelled"),
                                 (["--draft", "mtp:1"], "--draft beside --afd"), (["--lora", "16"], "--lora beside --afd"),
                                 (["--ep", "1"], "--afd: --ep says how many"), (["--kv-utilisation", "0.9"], "--kv-utilisation beside"),
                                 (["--execution", "eager"], "no captured graph"), (["--ep", "48"], "256 experts of deepseek-v3 do not divide by 48")):
            words = self.WORDS
            for flag, value in zip(more[::2], more[1::2]):
                words = with_value(words, flag, value)
            self.assert_bad_input(words, *fragments)
        dense = ["estimate", "-m", "qwen-7b", "--hw", "h100-sxm", "--ep", "2", "--afd", "--phase", "decode"]
        self.assert_bad_input(dense, "the model has none")
        self.assert_bad_input([*self.WORDS[:5], "--afd", "--training"], "--afd has no effect on a training step")
        self.assertIn("on each of 2 that have experts", self.run_program(*with_value(self.WORDS, "--ep", 2)).stderr)


class Same(ProgramTest):
    """Plans written differently that are the same plan."""

    def numbers(self, *words):
        document = self.json(*words)
        return {key: document[key] for key in ("phases", "memory", "stages", "largest_batch", "longest_context_tokens")}

    def test_degrees_of_one_are_no_plan(self):
        words = ["estimate", "-m", "mixtral-8x7b", "--hw", "b200-sxm"]
        ones = ["--tp", "1", "--pp", "1", "--dp", "1", "--ep", "1", "--sp", "ulysses:1xring:1", "--devices", "1"]
        self.assertEqual(self.output(*words), self.output(*words, *ones))
        self.assert_bad_input([*words, "--embedding", "replicated"], "--embedding: without --tp")

    def test_one_half_of_a_sequence_mesh_is_the_other_half_alone(self):
        self.assertEqual(self.output(*QUANTIZED, "--sp", "ulysses:4xring:1"),
                         self.output(*QUANTIZED, "--sp", "ulysses:4"))
        self.assertEqual(self.output(*QUANTIZED, "--sp", "ulysses:1xring:4"),
                         self.output(*QUANTIZED, "--sp", "ring:4"))
        self.assertEqual(self.output(*QUANTIZED, "--sp", "ring:2xulysses:4"),
                         self.output(*QUANTIZED, "--sp", "ulysses:4xring:2"))

    def test_devices_that_the_degrees_leave_become_replicas(self):
        self.assertEqual(self.output(*LLAMA, "--tp", "8", "--devices", "32"), self.output(*LLAMA, "--tp", "8", "--dp", "4"))
        self.assertEqual(self.output(*LLAMA, "--tp", "8", "--devices", "8"), self.output(*LLAMA, "--tp", "8"))


class Errors(ProgramTest):
    def test_a_degree_that_does_not_divide_is_named_with_its_neighbours(self):
        self.assert_bad_input(LLAMA + ["--tp", "7"], "--tp: 64 heads, 8 KV heads of llama-2-70b do not divide by 7", "nearest legal: 4 or 8")
        self.assert_bad_input(LLAMA + ["--pp", "81"], "--pp: llama-2-70b has 80 layers, too few for 81 stages", "at most 80")
        self.assert_bad_input(LLAMA + ["--tp", "8", "--sp", "ulysses:2"], "--sp ulysses: 1 KV heads of a device")
        self.assert_bad_input(["estimate", "-m", "mixtral-8x7b", "--hw", "h100-sxm", "--ep", "3", "--dp", "12", "--batch", "12"],
                              "--ep: 8 experts of mixtral-8x7b do not divide by 3", "nearest legal: 2 or 4")

    def test_axes_that_do_not_fit_the_model_or_one_another(self):
        for flags, *fragments in [
                (["--ep", "8"], "--ep divides routed experts, and the model has none"),
                (["--megatron-sp"], "--megatron-sp", "needs --tp"),
                (["--tp", "2x4", "--megatron-sp"], "--tp ROWSxCOLUMNS"),
        ]:
            with self.subTest(flags=flags):
                self.assert_bad_input(LLAMA + flags, *fragments)
        self.assert_bad_input(["estimate", "-m", "deepseek-v2-lite", "--hw", "h100-sxm", "--sp", "ring:2"], "--sp", "latent")
        routed = ["estimate", "-m", "deepseek-v2-lite", "--hw", "h100-sxm", "--dp", "8", "--batch", "8"]
        self.assert_bad_input(routed + ["--ep-combine", "fp8"], "--ep-dispatch and --ep-combine", "an --ep beyond --tp")
        self.assert_bad_input(routed + ["--ep", "8", "--ep-dispatch", "fp9"], "--ep-dispatch", "'fp8'")
        self.assert_bad_input(["estimate", "-m", "mixtral-8x7b", "--hw", "h100-sxm", "--tp", "2x2"], "dense models")
        self.assert_bad_input(LLAMA + ["--routing", "balanced"], "--routing", "no routed experts")
        self.assert_bad_input(routed + ["--routing", "zipf"], "--routing: cannot read 'zipf'", "power-law:0.8")
        self.assert_bad_input(["estimate", "-m", "mixtral-8x7b", "--hw", "h100-sxm", "--ep", "8"], "--ep")

    def test_flags_that_cannot_be_read(self):
        for flags, *fragments in [
                (["--sp", "nonsense"], "--sp: cannot read", "ulysses:4"),
                (["--sp", "ulysses"], "--sp: cannot read"),
                (["--sp", "ulysses:"], "--sp"),
                (["--sp", "ulysses:four"], "--sp"),
                (["--sp", "ulysses:0"], "--sp"),
                (["--sp", "ulysses:2x"], "--sp: cannot read"),
                (["--sp", "ring:2xring:2"], "--sp: ring is given twice"),
                (["--sp", "ring:1xring:2"], "--sp: ring is given twice"),
                (["--sp", "ring:2xall-gather:2"], "--sp: ring and all-gather both bring keys"),
                (["--tp", "0"], "--tp"),
                (["--tp", "-2"], "--tp"),
                (["--tp", "eight"], "--tp"),
                (["--tp", "2x"], "--tp"),
                (["--tp", "x4"], "--tp"),
                (["--tp", "2x2x2"], "--tp"),
                (["--pp", "1.5"], "--pp"),
                (["--dp", "99999999999999999999"], "--dp"),
                (["--tp", "1000000", "--dp", "1000000", "--pp", "1000000"], "devices"),
                (["--tp", "1048576x1048576"], "devices"),
                (["--embedding", "shared"], "--embedding", "sharded"),
                (["--devices", "0"], "--devices"),
                (["--devices-per-node", "0"], "--devices-per-node"),
                (["--pipeline-batches", "0"], "--pipeline-batches"),
        ]:
            with self.subTest(flags=flags):
                self.assert_bad_input(LLAMA + flags, *fragments)

    def test_devices_that_do_not_match_the_plan(self):
        self.assert_bad_input(LLAMA + ["--tp", "8", "--devices", "12"], "--devices: 12", "a multiple of 8")
        self.assert_bad_input(LLAMA + ["--tp", "8", "--dp", "2", "--devices", "8"], "--devices: 8", "--devices 16")

    def test_batches_and_prompts_that_do_not_divide(self):
        self.assert_bad_input(LLAMA + ["--tp", "8", "--dp", "3"], "--batch: 4 do not divide into 3", "--batch 3 or 6")
        self.assert_bad_input(LLAMA + ["--dp", "8"], "--batch: 4 do not divide into 8", "hint: --batch 8\n")
        self.assert_bad_input(LLAMA + ["--tp", "8", "--pp", "2", "--pipeline-batches", "3"], "--batch: 4", "--batch 3 or 6")
        self.assert_bad_input(LLAMA + ["--sp", "ring:3"], "--prompt: 1024 do not divide into 6", "--prompt 1020 or 1026")
        self.assert_bad_input(with_value(LLAMA, "--prompt", 1001) + ["--tp", "8", "--megatron-sp"], "--prompt: 1001", "--prompt 1000 or 1008")

    def test_flags_of_training_without_it_and_formulas_for_one_device(self):
        parallel = ["parallel", "-m", "llama-2-7b", "--hw", "h100-sxm", "--devices"]
        self.assert_bad_input([*parallel, "4", "--micro-batch", "2"], "--micro-batch requires --training")
        self.assert_bad_input([*parallel, "4", "--recompute", "full"], "--recompute requires --training")
        self.assert_bad_input([*parallel, "1", "--symbolic"], "several devices", "--devices 8")

    def test_rows_of_a_gguf_format_are_divided_in_whole_blocks(self):
        self.assert_bad_input(["estimate", "-m", "llama-2-7b", "--hw", "rtx4090", "--weights", "q4_k_m", "--tp", "2"],
                              "5504 of a row", "--pp")

    def test_every_command_that_takes_the_flags_checks_them(self):
        for command in ("estimate", "explain"):
            with self.subTest(command=command):
                self.assert_bad_input([command, *LLAMA[1:], "--tp", "7"], "nearest legal")


class Limits(ProgramTest):
    def test_the_largest_batch_and_the_longest_context_are_what_the_plan_takes_and_what_fits(self):
        for words in PLANS:
            with self.subTest(words=words):
                document = self.json(*words)
                batch, context = document["largest_batch"], document["longest_context_tokens"]
                generated = document["inputs"]["generate_tokens"]
                self.assertTrue(self.json(*with_value(words, "--batch", batch))["fits"])
                if context < 10_000_000:
                    self.assertTrue(self.json(*with_value(words, "--prompt", context - generated))["fits"])

    def test_too_little_memory_is_said_with_what_would_fit(self):
        done = self.run_program("estimate", "-m", "llama-2-70b", "--hw", "atlas-800i-a2", "--tp", "2")
        self.assert_error(done, INFEASIBLE, "does not fit", "it fits with --weights w4a16")

    def test_the_bits_per_weight_that_would_fit_are_those_of_one_device(self):
        words = ["estimate", "-m", "deepseek-v3", "--hw", "rtx4090", "--tp", "8"]
        done = self.run_program(*words)
        self.assert_error(done, INFEASIBLE, "bits per weight")
        bits = re.search(r"--weights ([0-9.]+)", done.stderr).group(1)
        self.assertTrue(self.json(*words, "--weights", bits)["fits"])
        self.json(*words, "--weights", str(float(bits) + 0.2), status=INFEASIBLE)

    def test_kv_heads_fewer_than_the_devices_that_share_them_are_said_to_be_replicated(self):
        notes = self.json(*LLAMA, "--tp", "16")["notes"]
        self.assertIn("8 KV heads on 16 devices: each is held by 2", notes)
        self.assertNotIn("KV heads", " ".join(self.json(*LLAMA, "--tp", "8")["notes"]))


if __name__ == "__main__":
    unittest.main()
