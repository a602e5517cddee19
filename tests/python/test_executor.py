"""A sweep that an executor computes in parts, in threads, in processes or on a cluster, is byte for byte that of one
process; and the example of the page runs."""
import contextlib
import importlib.util
import multiprocessing
import os
import re
import tempfile
import unittest
import unittest.mock
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

from common import ROOT
import llmperf
from llmperf import _arrow, _parts
from llmperf._library import TEXTS
from test_sweeps import pointer_of, read

MODELS, DEVICES = ["qwen-7b", "llama-3.1-8b"], ["h100", "rtx4090", "l40s"]
TINY = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "intermediate_size": 5632,
        "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000,
        "hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
        "torch_dtype": "bfloat16"}

DIVIDED = (  # into more parts than one
    {"model": MODELS, "hw": DEVICES, "batch": "1-128*2"},
    {"model": MODELS, "hw": DEVICES, "batch": "1-64*4", "where": "fits and tpot_s < 20ms", "columns": "batch,ttft_s"},
    {"hw": DEVICES, "batch": "1,2-8+2", "prompt": "1k-4k*2", "top": 9, "by": "tokens_per_second"},
    {"hw": DEVICES, "batch": [1, 4, 4096], "top": 6, "by": "fits", "columns": ["hardware"]},
    {"model": MODELS, "weights": ["bf16", "fp8", "w4a16", "int8"], "batch": [1, 8], "tp": "1,2",
     "pareto": "tpot_s, tokens_per_second,batch:low"},
    {"hw": DEVICES, "batch": "1-64*2", "where": "fits", "pareto": ["fits", "weight_bytes"]},
    {"tp": [1, 2, 3, 4, 5], "pp": "1,2,3,5"},  # most of them fail
    {"tp": [1, 2, 3, 4, 5], "where": "fits"},  # and they are left out
    {"model": ["qwen-7b", TINY], "options": [["all", "no_flash_attention"], "none"], "batch": range(1, 4)},
    {"reserve_bytes": [1e9, 2e9, 3e9, 4e9], "batch": (1, 2)},
    {"gpu_layers": [10, 20, "all", "5", 30], "hw": ["rtx3090", "rtx4090"], "weights": "q4_k_m", "threads": 2},
    {"hw": DEVICES, "batch": 5, "where": "batch == 6"},  # no rows at all
    {"training": True, "tp": [1, 2, 4, 8], "micro_batch": [1, 2, 4, 8], "top": 5, "by": "step_s"},
    {"model": "stdit3-xl2", "resolution": ["240p", "360p", "480p", "720p"], "cfg": [True, False]},
)
WHOLE = (  # what parts could not tell, and single points
    {},
    {"tp": [1, 2, 4]},
    {"batch": ["1k", 1000, 2]},
    {"batch": "1k,1000,1-2+1"},
    {"batch": "1-32*2", "where": "point > 2", "pareto": "tpot_s,batch:high"},
    {"hw": DEVICES, "top": 3, "by": "point:high"},
    {"gpu_layers": [10, 20, "all", "5"], "hw": ["rtx3090", "rtx4090"], "weights": "q4_k_m", "top": 3,
     "by": "gpu_layers:low"},
)
WRONG = (
    {"model": ["qwen-7c", "llama-3.1-9b"], "hw": ["h100", "h1000"]},
    {"batch": [1, 0]},
    {"batch": [1, 1]},
    {"batch": "1-8"},
    {"hw": DEVICES, "where": "ttft < 3"},
    {"hw": DEVICES, "top": 3},
    {"hw": DEVICES, "columns": "batch,,fits"},
    {"hw": DEVICES, "batches": [1, 2]},
)
NOTHING_LEFT = {"tp": [5, 3, 1, 2], "pp": [1, 2, 3, 5], "batch": "1-4*2", "where": "batch > 9", "top": 3, "by": "ttft_s"}


def swept(asked, **more):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = llmperf.sweep(**{"model": "qwen-7b", "hw": "h100", **asked}, **more)
    return result, [str(warning.message) for warning in caught]


def every_byte(result):
    """Of all that a sweep is read by."""
    if not len(result):
        return result.status, result._kinds, result.to_dict(), result._handle.json()
    numbers = [bytes(result._handle.buffer(i)) for i, (_, kind) in enumerate(result._kinds) if kind != TEXTS]
    capsules = result.__arrow_c_array__()
    schema = _arrow.Schema.from_address(pointer_of(capsules[0], b"arrow_schema"))
    array = _arrow.Array.from_address(pointer_of(capsules[1], b"arrow_array"))
    arrow = [(read(schema, array, i), array.children[i].contents.null_count) for i in range(schema.n_children)]
    return (result.status, result._kinds, numbers, list(map(repr, result)), repr(arrow), repr(result),
            result._repr_html_(), result.errors, result._handle.json())


class Counting(ThreadPoolExecutor):
    submitted = 0

    def submit(self, function, /, *arguments, **keywords):
        self.submitted += 1
        return super().submit(function, *arguments, **keywords)


class Compared(unittest.TestCase):
    maxDiff = None

    def same(self, asked, executor):
        (alone, said), (divided, said_too) = swept(asked), swept(asked, executor=executor)
        self.assertEqual(every_byte(divided), every_byte(alone))
        self.assertEqual(said_too, said)


class Executors(Compared):
    def test_threads(self):
        for cases, least, most in ((DIVIDED, 2, 64), (WHOLE, 1, 1)):
            for asked in cases:
                with self.subTest(asked), Counting(2) as executor:
                    self.same(asked, executor)
                    self.assertTrue(least <= executor.submitted <= most, executor.submitted)
        self.assertEqual((len(_arrow._kept), len(_arrow._filled)), (0, 0), "what Arrow's structures needed is released")

    def test_processes(self):
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
            for asked in DIVIDED[:6] + WHOLE[:1]:
                with self.subTest(asked):
                    self.same(asked, executor)

    def test_large_sweeps_have_more_parts_and_parts_are_alike(self):
        divided = list(_parts._divided({}, [("batch", list(range(1000))), ("prompt", list(range(1000)))]))
        self.assertEqual(len(divided), 488)
        sizes = {len(request["batch"]) * len(request["prompt"]) for request, _ in divided}
        self.assertLessEqual(max(sizes), 2 * min(sizes))

    def test_what_is_wrong_is_told_before_anything_is_computed(self):
        for asked in WRONG:
            with self.subTest(asked), Counting(2) as executor:
                with self.assertRaises(llmperf.BadInput) as alone:
                    swept(asked)
                with self.assertRaises(type(alone.exception)) as divided:
                    swept(asked, executor=executor)
                self.assertEqual(divided.exception.errors, alone.exception.errors)
                self.assertEqual(executor.submitted, 0)

    def test_points_that_fail_where_no_row_is_left(self):
        with self.assertRaises(llmperf.Failed) as alone:
            swept(NOTHING_LEFT)
        with Counting(2) as executor, self.assertRaises(llmperf.Failed) as divided:
            swept(NOTHING_LEFT, executor=executor)
        self.assertGreater(executor.submitted, 2)
        self.assertEqual(divided.exception.errors, alone.exception.errors)

    def test_ctrl_c_cancels_what_has_not_begun(self):
        class Interrupted(Executor):
            futures = []

            def submit(self, function, /, *arguments, **keywords):
                self.futures.append(Future())
                if len(self.futures) == 1:
                    self.futures[0].set_exception(KeyboardInterrupt())
                return self.futures[-1]
        executor = Interrupted()
        with self.assertRaises(KeyboardInterrupt):
            swept(DIVIDED[0], executor=executor)
        self.assertGreater(len(executor.futures), 2)
        self.assertTrue(all(future.cancelled() for future in executor.futures[1:]))

    def test_a_worker_with_another_llmperf_is_refused(self):
        class Other(ThreadPoolExecutor):
            def submit(self, function, /, *arguments, **keywords):
                def older():
                    (_, kinds), *others = function(*arguments, **keywords)
                    return (b'{"version":"0.0.9"}', kinds), *others
                return super().submit(older)
        with Other(2) as executor, self.assertRaisesRegex(llmperf.Failed, "another llmperf .*0.0.9"):
            swept(DIVIDED[0], executor=executor)

    def test_what_is_wrong_on_a_worker_alone_is_told(self):
        class Elsewhere(ThreadPoolExecutor):
            def submit(self, function, /, text, places):
                return super().submit(function, text.replace(b"qwen-7b", b"/nowhere/model.yaml"), places)
        with Elsewhere(2) as executor, self.assertRaisesRegex(llmperf.Error, "/nowhere/model.yaml"):
            swept(DIVIDED[2], executor=executor)

    def test_searches_are_those_of_one_process(self):
        studies = [{"model": "qwen-7b", "hw": hw, "tp": 1, "rate": 5, "slo": "ttft.p99=2s", "requests": 100} for hw in DEVICES]
        studies.append({**studies[0], "slo": "ttft.p99=1ms"})  # which nothing meets
        alone = llmperf.capacities(studies)
        self.assertEqual([one.feasible for one in alone], [True] * len(DEVICES) + [False])
        with Counting(2) as threads, ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
            for executor in (threads, processes):
                divided = llmperf.capacities(studies, executor=executor)
                self.assertEqual([one.json for one in divided], [one.json for one in alone])
            self.assertEqual(threads.submitted, len(studies))
            with self.assertRaises(llmperf.BadInput):
                llmperf.capacities([{**studies[0], "hw": "nothing"}, *studies], executor=threads)

    def test_other_answers_are_submitted_as_they_are(self):
        asked = {"rate": 5, "slo": "ttft.p99=2s", "requests": 100, "threads": 1}
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
            futures = [executor.submit(llmperf.capacity, "qwen-7b", hw, tp=1, **asked) for hw in DEVICES]
            texts = [future.result().json for future in futures]
        self.assertEqual(texts, [llmperf.capacity("qwen-7b", hw, tp=1, **asked).json for hw in DEVICES])


@unittest.skipIf(importlib.util.find_spec("distributed") is None,
                 "Dask's distributed is not installed (scripts/setup.sh test)")
class Dask(Compared):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        from dask.distributed import LocalCluster
        cls.cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                                   local_directory=cls.folder.name)
        cls.client = cls.cluster.get_client()

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.cluster.close()
        cls.folder.cleanup()

    def test_a_cluster_of_processes(self):
        for asked in DIVIDED[::2] + WHOLE[:1]:
            with self.subTest(asked):
                self.same(asked, self.client.get_executor())

    def test_the_example_of_the_page(self):
        with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
            example, = re.findall(r"^```py\n(.*?dask.*?)^```$", file.read(), flags=re.M | re.S)
        names = {"llmperf": llmperf}
        with unittest.mock.patch("dask.distributed.Client", lambda address: contextlib.nullcontext(self.client)):
            exec(example, names)
        alone = example.replace("executor=client.get_executor()", "executor=None")
        self.assertNotEqual(alone, example)
        expected = dict(names, rows=None)
        with unittest.mock.patch("dask.distributed.Client", lambda address: contextlib.nullcontext()):
            exec(alone, expected)
        self.assertEqual(every_byte(names["rows"]), every_byte(expected["rows"]))


if __name__ == "__main__":
    unittest.main()
