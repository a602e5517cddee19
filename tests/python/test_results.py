"""What the module answers is what the program answers."""
import json
import os
import pathlib
import pickle
import tempfile
import unittest

from common import ROOT, document, program, rows
import llmperf


def same(test, ours, theirs):
    """Equal row by row: numbers as numbers, all else as text."""
    test.assertEqual(len(ours), len(theirs))
    for mine, row in zip(ours, theirs):
        test.assertEqual(list(mine), list(row))
        for name, text in row.items():
            value = mine[name]
            if value is None:
                test.assertEqual(text, "", name)
            elif isinstance(value, bool):
                test.assertEqual(text, str(value).lower(), name)
            elif isinstance(value, str):
                test.assertEqual(text.lstrip("'"), value, name)
            else:
                test.assertEqual(float(text), value, name)


class Estimates(unittest.TestCase):
    maxDiff = None

    def test_documents_are_those_of_the_program(self):
        for words, keywords in (
                ("-m llama-3.1-8b --hw h100 --batch 16 --weights fp8", {"batch": 16, "weights": "fp8"}),
                ("-m llama-3.1-8b --hw h100 --prompt 128k --gen 10 --tp 2", {"prompt": "128k", "gen": 10, "tp": 2}),
                ("-m llama-3.1-8b --hw h100 --runtime none --reserve 1GB", {"runtime": "none", "reserve_bytes": 1e9}),
                ("-m llama-3.1-8b --hw h100 --training --tp 8", {"training": True, "tp": 8}),
                ("-m llama-3.1-8b --hw 2xrtx3090 --weights q4_k_m --tensor-split 3,2",
                 {"hw": "2xrtx3090", "weights": "q4_k_m", "tensor_split": [3, 2]}),
                ("-m llama-3.1-8b --hw rtx3090 --weights q4_k_m --no-op-offload --gpu-layers 20",
                 {"hw": "rtx3090", "weights": "q4_k_m", "no_op_offload": True, "gpu_layers": 20, "no_mmap": False}),
                ("-m stdit3-xl2 --hw h100 --cfg off --seconds 2.5",
                 {"model": "stdit3-xl2", "cfg": False, "seconds": 2.5})):
            with self.subTest(words):
                expected = document("estimate", *words.split())
                asked = {"model": "llama-3.1-8b", "hw": "h100", **keywords}
                result = llmperf.estimate(**asked)
                self.assertEqual(result.to_dict(), expected)
                self.assertEqual(result.status, 0)
                again = llmperf.estimate(**result["request"])
                self.assertEqual(again.to_dict(), expected, "a request that is asked again")

    def test_attributes_are_the_columns_of_the_csv(self):
        for model, keywords in (("qwen-7b", {}), ("stdit3-xl2", {}), ("qwen-7b", {"training": True})):
            words = ["--training"] if keywords else []
            row, = rows("estimate", "-m", model, "--hw", "h100-sxm", *words, statuses=(0, 3))
            result = llmperf.estimate(model, "h100-sxm", must_fit=False, **keywords)
            same(self, [{name: getattr(result, name) for name in row}], [row])
            self.assertIsNone(result._document, "no document was parsed for them")
            for name, value in result.numbers.items():
                self.assertEqual(float(row[name]), value)

    def test_the_document_is_a_mapping(self):
        result = llmperf.estimate("qwen-7b", "rtx4090")
        self.assertEqual(result["phases"][0]["name"], "prefill")
        self.assertEqual(result.phases, result["phases"])
        self.assertEqual(result.get("nothing", 1), 1)
        self.assertIn("ttft_s", result)
        self.assertEqual(result["ttft_s"], result.ttft_s)
        with self.assertRaises(AttributeError):
            result.ttft
        with self.assertRaises(KeyError):
            result["ttft"]
        self.assertIn("tpot_s", dir(result))
        mine = result.to_dict()
        mine["ttft_s"] = 0
        self.assertNotEqual(result["ttft_s"], 0, "one's own copy")

    def test_a_result_is_a_line_and_a_table(self):
        result = llmperf.estimate("qwen-7b", "rtx4090", batch=4)
        self.assertRegex(repr(result), r"^<Estimate of qwen-7b on rtx4090: memory \S+ GiB of 23\.52 GiB, TTFT \S+ ms")
        self.assertEqual(repr(result).count("\n"), 0)
        self.assertIn("<td>prefill</td>", result._repr_html_())
        self.assertIn("&lt;b&gt;", llmperf.estimate("qwen-7b", device(name="<b>"), runtime="none")._repr_html_())

    def test_results_can_be_pickled_and_saved(self):
        result = llmperf.estimate("qwen-7b", "rtx4090")
        copy = pickle.loads(pickle.dumps(result))
        self.assertEqual((copy.to_dict(), copy.ttft_s, copy.status), (result.to_dict(), result.ttft_s, 0))
        self.assertEqual((copy.numbers, copy.weight_bytes), (result.numbers, result.weight_bytes))
        self.assertEqual(copy.label, result.label)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "result.json")
            result.save(path)
            self.assertEqual(document("estimate", "--request", path), result.to_dict())

    def test_what_does_not_fit_is_an_error_with_a_result_or_one_when_asked(self):
        with self.assertRaises(llmperf.DoesNotFit) as caught:
            llmperf.estimate("llama-3-70b", "rtx4090")
        self.assertIn("needs 132.2 GiB", str(caught.exception))
        self.assertIn("weights=2.7", caught.exception.hints[0])
        self.assertIn("tp=8", caught.exception.hints[0])
        result = llmperf.estimate("llama-3-70b", "rtx4090", must_fit=False)
        self.assertEqual(result.to_dict(), document("estimate", "-m", "llama-3-70b", "--hw", "rtx4090", statuses=(3,)))
        self.assertEqual(result.to_dict(), caught.exception.result.to_dict())
        self.assertIs(result.fits, False)
        self.assertIsNone(result.ttft_s)
        self.assertIn("does not fit", repr(result))
        result._repr_html_()

    def test_values_may_be_of_numpy_and_paths_of_pathlib(self):
        folder = os.path.join(ROOT, "tests", "model", "configs")
        path = next(p for p in sorted(pathlib.Path(folder).iterdir()) if p.suffix == ".json")
        self.assertEqual(llmperf.estimate(path, "h100-sxm", must_fit=False).to_dict()["memory"],
                         document("estimate", "-m", path, "--hw", "h100-sxm", statuses=(0, 3))["memory"])
        try:
            import numpy
        except ImportError:
            return
        self.assertEqual(llmperf.estimate("qwen-7b", "rtx4090", batch=numpy.int64(4)).batch, 4)


def device(**others):
    """A description of one, as YAML has it."""
    return {"name": "mine", "vendor": "me", "family": "mine", "kind": "gpu", "source": "a guess", "peaks": [
        {"engine": "matrix", "dtype": "bf16", "accumulate": "fp32", "rate": "400 TFLOP/s", "provenance": "assumed"},
        {"engine": "vector", "dtype": "fp32", "rate": "6 TFLOP/s", "provenance": "assumed"}],
        "memory": [{"name": "L2", "capacity": "64 MiB", "provenance": "assumed"},
                   {"name": "HBM", "capacity": "96 GiB", "bandwidth": "3200 GB/s", "provenance": "assumed"}], **others}


# A config.json, as transformers writes it.
DESCRIPTION = """{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
"intermediate_size": 5632,
"num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000, "hidden_act": "silu",
"max_position_embeddings": 2048, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false,
"torch_dtype": "bfloat16"}"""


class Descriptions(unittest.TestCase):
    def test_a_model_may_be_the_content_of_its_config(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(DESCRIPTION)
            expected = document("estimate", "-m", path, "--hw", "rtx4090", "--batch", 2)
        ours = llmperf.estimate(json.loads(DESCRIPTION), "rtx4090", batch=2).to_dict()
        self.assertEqual(ours["phases"], expected["phases"])
        self.assertEqual(ours["memory"], expected["memory"])

    def test_a_device_may_be_a_dict(self):
        result = llmperf.estimate("qwen-7b", device(), runtime="none")
        self.assertEqual(result["memory"]["capacity_bytes"], 96 * 2**30)
        self.assertEqual(result["inputs"]["hardware"]["figures"]["memory_bandwidth_bytes_per_s"]["value"], 3.2e12)
        with self.assertRaises(llmperf.BadInput) as caught:
            llmperf.estimate("qwen-7b", device(peaks=[{"engine": "vector", "dtype": "fp32"}]), runtime="none")
        self.assertIn("rate", str(caught.exception))


class Others(unittest.TestCase):
    maxDiff = None

    def test_explanations(self):
        words = ("-m", "qwen-7b", "--hw", "rtx4090", "--batch", 2)
        self.assertEqual(llmperf.explain("qwen-7b", "rtx4090", "memory.kv_cache_bytes", batch=2).to_dict(),
                         document("explain", "memory.kv_cache_bytes", *words))
        self.assertEqual(llmperf.explain("qwen-7b", "rtx4090", batch=2).paths, document("explain", *words)["paths"])

    def test_serving(self):
        words = "-m llama-3.1-8b --hw h100 --rate 10 --requests 100 --slo ttft.p99=1s,tpot.p95=1ms".split()
        result = llmperf.serve("llama-3.1-8b", "h100", rate=10, requests=100, slo={"ttft.p99": "1s", "tpot.p95": "1ms"})
        self.assertEqual(result.to_dict(), document("serve", *words, statuses=(4,)))
        self.assertEqual(result.status, 4)
        self.assertEqual(result.ttft_s["p99"], result["ttft_s"]["p99"])
        self.assertEqual([bound["met"] for bound in result.slo], [True, False])
        self.assertIn("llmperf.serve", result._repr_html_())
        repr(result)

    def test_capacity(self):
        words = "-m llama-3.1-8b --hw h100,l40s --tp 1,2 --rate 20 --slo ttft.p99=1s,tpot.p95=50ms".split()
        result = llmperf.capacity("llama-3.1-8b", ["h100", "l40s"], tp=[1, 2], rate=20, threads=2,
                                  slo="ttft.p99=1s,tpot.p95=50ms")
        self.assertEqual(result.to_dict()["candidates"], document("capacity", *words)["candidates"])
        with self.assertRaises(llmperf.DoesNotFit) as caught:
            llmperf.capacity("llama-3.1-8b", "l40s", tp=1, rate=20, slo="tpot.p95=1ms")
        self.assertFalse(caught.exception.result.feasible)

    def test_validation_and_calibration(self):
        self.assertEqual(llmperf.validate("rtx4090-serving").to_dict(), document("validate", "rtx4090-serving"))
        fit = llmperf.calibrate(["rtx4090-qwen1.5"], "rtx4090")
        self.assertEqual(fit.to_dict(), document("calibrate", "rtx4090-qwen1.5", "--hw", "rtx4090"))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.yaml")
            program("calibrate", "rtx4090-qwen1.5", "--hw", "rtx4090", "-o", path)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(fit.profile, file.read())
            self.assertGreater(llmperf.estimate("qwen-7b", "rtx4090", runtime=pathlib.Path(path)).ttft_s, 0)

    def test_what_is_built_in(self):
        self.assertEqual(llmperf.models(), document("list", "models")["models"])
        self.assertEqual(llmperf.hardware(), document("list", "hardware")["hardware"])
        self.assertEqual(llmperf.runtimes(), document("list", "runtimes")["runtimes"])
        self.assertEqual(llmperf.measurements(), document("list", "measurements")["measurements"])
        self.assertEqual(llmperf.models("qwen-7b").to_dict(), document("show", "model", "qwen-7b"))
        self.assertEqual(llmperf.hardware("h100").to_dict(), document("show", "hardware", "h100"))
        self.assertEqual(llmperf.runtimes("rtx4090-vllm").to_dict(), document("show", "runtime", "rtx4090-vllm"))
        self.assertIn(llmperf.__version__, program("--version"))


if __name__ == "__main__":
    unittest.main()
