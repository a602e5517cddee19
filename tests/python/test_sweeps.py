"""Sweeps are columns: those of the program's CSV, as arrays, as lists, and for other libraries."""
import ctypes
import gc
import math
import sys
import types
import unittest
import warnings

from common import document, rows
import llmperf
from llmperf import _arrow, _results
from test_results import same

try:
    import numpy
except ImportError:
    numpy = None

WORDS = "sweep -m qwen-7b,llama-3.1-8b --hw rtx4090 --batch 1,64 --weights bf16,w4a16 --prompt 512,2048".split()


def swept(**others):
    return llmperf.sweep(["qwen-7b", "llama-3.1-8b"], "rtx4090", batch=[1, 64], weights=["bf16", "w4a16"],
                         prompt="512,2048", **others)


def without_numpy(call):
    before, _results._numpy = _results._numpy, False
    try:
        return call()
    finally:
        _results._numpy = before


class Sweeps(unittest.TestCase):
    maxDiff = None

    def test_rows_are_those_of_the_csv(self):
        result, expected = swept(), rows(*WORDS)
        self.assertEqual(len(result), 16)
        self.assertEqual(result.columns, list(expected[0]))
        same(self, list(result), expected)
        self.assertEqual(result[3], list(result)[3])
        self.assertEqual(result[-1]["point"], 15)
        self.assertEqual(result.document, document(*WORDS))
        with self.assertRaises(IndexError):
            result[16]
        with self.assertRaises(KeyError):
            result["ttft"]
        with self.assertRaises(AttributeError):
            result.ttft

    def test_rows_are_chosen_as_by_the_flags(self):
        for words, keywords in ((["--where", "fits and batch == 64"], {"where": "fits and batch == 64"}),
                                (["--top", "3", "--by", "tokens_per_second"], {"top": 3, "by": "tokens_per_second"}),
                                (["--pareto", "tpot_s,tokens_per_second"], {"pareto": ["tpot_s", "tokens_per_second"]}),
                                (["--columns", "weights,batch,ttft_s"], {"columns": ["weights", "batch", "ttft_s"]})):
            with self.subTest(words):
                same(self, list(swept(**keywords)), rows(*WORDS, *words))

    def test_values_that_are_lists_stand_in_a_second_list(self):
        result = llmperf.sweep("qwen-7b", "rtx4090", options=[["all", "no_flash_attention"], "none"])
        self.assertEqual(len(result), 2)
        self.assertEqual(list(llmperf.sweep("stdit3-xl2", "h100", cfg=[True, False])["guidance"]), [True, False])
        self.assertEqual(len(llmperf.sweep("qwen-7b", "rtx4090", batch=range(1, 6), cpu_moe=None)), 5)

    def test_the_number_of_threads_changes_nothing(self):
        self.assertEqual(list(swept(threads=1)), list(swept(threads=4)))

    def test_nothing_that_meets_a_condition_is_no_rows(self):
        result = swept(where="batch == 5")
        self.assertEqual((len(result), list(result["ttft_s"]), list(result["model"]), list(result)), (0, [], [], []))

    def test_points_that_fail_warn_and_say_why(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = llmperf.sweep("qwen-7b", "rtx4090", tp=[1, 3])
        self.assertEqual(len(caught), 1)
        self.assertIn("1 points failed; the first: tp: 32 heads", str(caught[0].message))
        self.assertEqual(caught[0].filename, __file__)
        self.assertIn("divide by 3", result["error"][1])
        self.assertIsNone(result["error"][0])
        self.assertEqual(result.errors, [result["error"][1]])
        self.assertTrue(math.isnan(result["ttft_s"][1]))

    def test_without_numpy_columns_are_arrays_and_lists(self):
        result = without_numpy(swept)
        columns = without_numpy(lambda: {name: result[name] for name in result.columns})
        self.assertEqual(columns["ttft_s"].typecode, "d")
        self.assertEqual(columns["fits"], result.to_dict()["fits"])
        self.assertEqual(columns["weights"], result.to_dict()["weights"])
        with self.assertRaises(ImportError):
            without_numpy(result.to_numpy)

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_arrays_are_the_librarys_own_memory_and_keep_it(self):
        result = swept()
        column = result["ttft_s"]
        self.assertEqual(column.dtype, numpy.dtype(float))
        self.assertEqual((column.flags.owndata, column.flags.writeable), (False, False))
        self.assertIs(result["ttft_s"], column)
        self.assertEqual(result["fits"].dtype, bool)
        self.assertEqual(result["weights"].dtype, object)
        self.assertEqual(len(llmperf.sweep("qwen-7b", "rtx4090", batch=numpy.arange(1, 5))), 4)
        chosen = result["ttft_s"][result["fits"] & (result["weights"] == "bf16")]
        self.assertGreater(len(chosen), 0)
        before = column.tolist()
        del result
        gc.collect()
        swept()
        numpy.testing.assert_array_equal(column, before)

    def test_pandas_and_polars_get_columns(self):
        made = {}
        for name in ("pandas", "polars"):
            module = types.ModuleType(name)
            module.DataFrame = lambda data, name=name: made.setdefault(name, data)
            sys.modules.setdefault(name, module)
        try:
            result = swept()
            frame = result.to_pandas()
            self.assertEqual(list(frame), result.columns)
            result.to_polars()
        finally:
            for name in made:
                del sys.modules[name]

    def test_a_sweep_is_a_line_and_a_table(self):
        result = swept()
        self.assertRegex(repr(result), "^<Sweep: 16 rows of [0-9]+ columns: point, model")
        table = result._repr_html_()
        self.assertIn("<th>ttft_s</th>", table)
        self.assertNotIn("<th>hardware</th>", table, "the same in all rows")


pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))


def read(schema, array, index):
    """A column of an imported struct array, by the specification."""
    field, data = schema.children[index].contents, array.children[index].contents
    valid = None if not data.buffers[0] else (ctypes.c_uint8 * ((data.length + 7) // 8)).from_address(data.buffers[0])
    def there(i):
        return valid is None or valid[i // 8] >> i % 8 & 1
    form = field.format.decode()
    if form == "g":
        values = (ctypes.c_double * data.length).from_address(data.buffers[1])
        get = values.__getitem__
    elif form == "b":
        bits = (ctypes.c_uint8 * ((data.length + 7) // 8)).from_address(data.buffers[1])
        get = lambda i: bool(bits[i // 8] >> i % 8 & 1)
    else:
        kind = {"u": ctypes.c_int32, "U": ctypes.c_int64}[form]
        ends = (kind * (data.length + 1)).from_address(data.buffers[1])
        get = lambda i: ctypes.string_at(data.buffers[2] + ends[i], ends[i + 1] - ends[i]).decode()
    return field.name.decode(), [get(i) if there(i) else None for i in range(data.length)]


class Arrow(unittest.TestCase):
    def check(self, schema, array, result):
        self.assertEqual(schema.format, b"+s")
        self.assertEqual(array.length, len(result))
        expected = result.to_dict()
        ours = dict(read(schema, array, i) for i in range(schema.n_children))
        self.assertEqual(list(ours), result.columns)
        for name, values in ours.items():
            self.assertEqual([None if v is None or v != v or v == "" else v for v in values], expected[name], name)

    def test_the_array_is_the_columns_and_outlives_the_sweep(self):
        result = swept()
        schema_capsule, array_capsule = result.__arrow_c_array__()
        schema = _arrow.Schema.from_address(pointer_of(schema_capsule, b"arrow_schema"))
        array = _arrow.Array.from_address(pointer_of(array_capsule, b"arrow_array"))
        self.check(schema, array, result)
        again = result.__arrow_c_array__()  # as often as one likes
        copy = result
        del result
        gc.collect()
        self.check(schema, array, copy)
        del schema_capsule, array_capsule, again
        gc.collect()
        self.assertEqual(len(_arrow._kept), 0, "what nobody took is released with its capsule")

    def test_the_stream_has_one_array(self):
        result = swept()
        capsule = result.__arrow_c_stream__()
        source = _arrow.Stream.from_address(pointer_of(capsule, b"arrow_array_stream"))
        taken = _arrow.Stream()  # whoever imports it moves it
        ctypes.memmove(ctypes.addressof(taken), ctypes.addressof(source), ctypes.sizeof(taken))
        source.release = None
        del capsule, source
        gc.collect()
        at = ctypes.addressof
        schema, array, end = _arrow.Schema(), _arrow.Array(), _arrow.Array()
        self.assertEqual(taken.get_schema(at(taken), at(schema)), 0)
        self.assertEqual(taken.get_next(at(taken), at(array)), 0)
        self.assertEqual(taken.get_next(at(taken), at(end)), 0)
        self.assertIsNone(end.release)
        self.check(schema, array, result)
        for structure in (schema, array, taken):
            _arrow._release_at(structure)
            self.assertIsNone(structure.release)
        self.assertEqual((len(_arrow._kept), len(_arrow._reading)), (0, 0))


if __name__ == "__main__":
    unittest.main()
