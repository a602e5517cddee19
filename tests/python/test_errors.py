"""What is wrong is an exception that says where and what to do, in the words of the module."""
import os
import pickle
import tempfile
import unittest

import common  # where the module is
import llmperf


class Errors(unittest.TestCase):
    def bad(self, *fragments, call=llmperf.estimate, kind=llmperf.BadInput, **keywords):
        with self.assertRaises(kind) as caught:
            call(**{"model": "qwen-7b", "hw": "rtx4090", **keywords})
        for fragment in fragments:
            self.assertIn(fragment, str(caught.exception))
        self.assertNotIn("--", str(caught.exception), "no flags")
        return caught.exception

    def test_they_are_those_of_python(self):
        self.assertTrue(issubclass(llmperf.BadInput, ValueError))
        self.assertTrue(issubclass(llmperf.Failed, RuntimeError))
        self.assertTrue(issubclass(llmperf.UnknownKeyword, TypeError))
        for kind in (llmperf.BadInput, llmperf.DoesNotFit, llmperf.Failed):
            self.assertTrue(issubclass(kind, llmperf.Error))

    def test_names_get_the_nearest_ones(self):
        error = self.bad("unknown model 'qwen-7c'", "'qwen-7b'", model="qwen-7c")
        self.assertEqual(error.errors[0]["message"], "unknown model 'qwen-7c'")
        self.assertIn("qwen-7b", error.hints[0])

    def test_unknown_keywords_too(self):
        error = self.bad("estimate() has no keyword bach=", "batch=", bach=4, kind=TypeError)
        self.assertIsInstance(error, llmperf.BadInput)
        self.bad("sweep() has no keyword prompts=", "prompt=", call=llmperf.sweep, prompts=[1])
        self.bad("serve() has no keyword rat=", "rate=", call=llmperf.serve, rat=3)

    def test_fields_are_keywords(self):
        self.bad("batch: '0' is not a whole number", batch=0)
        self.bad("gpu_layers: ", gpu_layers="some", weights="q4_k_m")
        self.bad("tensor_split: ", tensor_split=[0, 0], hw="2xrtx3090", weights="q4_k_m")
        self.bad("model= is required", model=None)
        self.bad("batch: 'nan'", batch=float("nan"))
        self.bad("where: ", call=llmperf.sweep, where="ttft < 3")
        self.bad("trace= FILE", "rate=4 (per second)", call=llmperf.serve)

    def test_values_of_other_types_are_refused(self):
        with self.assertRaises(TypeError):
            llmperf.estimate("qwen-7b", "rtx4090", batch=object())

    def test_all_problems_of_a_file_come_at_once_with_their_places(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("name: mine\nvendor: me\nfamily: mine\nkind: gpu\nsource: x\nclok: 3\npeaks: []\n")
            error = self.bad("mine.yaml:6:1: ", hw=path)
        self.assertGreater(len(error.errors), 1)
        self.assertIn((path, 6, 1), [(e.get("file"), e.get("line"), e.get("column")) for e in error.errors])

    def test_a_list_where_one_value_belongs_is_joined_not_swept(self):
        self.bad("batch: '1,2'", batch=[1, 2])

    def test_what_fails_outside_the_input_is_not_the_inputs_fault(self):
        self.bad(model="/nowhere/model.yaml", kind=(llmperf.BadInput, llmperf.Failed))

    def test_errors_can_be_pickled(self):
        error = pickle.loads(pickle.dumps(self.bad(model="qwen-7c")))
        self.assertEqual(error.hints, self.bad(model="qwen-7c").hints)
        with self.assertRaises(llmperf.DoesNotFit) as caught:
            llmperf.estimate("llama-3-70b", "rtx4090")
        self.assertIs(pickle.loads(pickle.dumps(caught.exception)).result.fits, False)


if __name__ == "__main__":
    unittest.main()
