#!/usr/bin/env python3
"""CONTRIBUTING's recipes: those for data are followed as written, without building; of those for code every name that a reader is sent
to is still there."""
import os
import re
import shutil
import unittest

from program import ROOT, ProgramTest


def recipes():
    with open(os.path.join(ROOT, "CONTRIBUTING.md"), encoding="utf-8") as file:
        return file.read().split("## Recipes\n")[1].split("## Licence")[0]


def source_text():
    texts = []
    for top in ("src", "tests"):
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            for name in sorted(files):
                if name.endswith((".cpp", ".h", ".py")):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        texts.append(file.read())
    return "\n".join(texts)


class RecipesTest(ProgramTest):
    def added(self, folder, name, like):
        """A file of ours like a built-in one, where LLMPERF_PATH looks."""
        os.makedirs(self.path(folder))
        path = os.path.join(self.path(folder), name + ".yaml")
        shutil.copy(os.path.join(ROOT, folder, like + ".yaml"), path)
        return path

    def output_of(self, *words):
        return self.output(*words, search_path=self.folder)

    def test_a_model(self):
        self.added("models", "own-model", "llama-3.2-1b")
        own = self.output_of("show", "model", "own-model", "--json")
        self.assertIn("1235814400", own)  # of the published file
        self.output_of("estimate", "--model", "own-model", "--hw", "rtx4090")

    def test_a_device(self):
        path = self.added("hardware/devices", "own-device", "a10")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("provenance:", text)
        self.output_of("show", "hardware", "own-device")
        self.assertIn("own-device", self.output_of("estimate", "--model", "llama-3.2-1b", "--hw", "own-device", "--json"))

    def test_a_study(self):
        scenarios = os.path.join(ROOT, "scenarios")
        for name in sorted(os.listdir(scenarios))[:1]:
            shutil.copy(os.path.join(scenarios, name), self.path("own.yaml"))
            self.assertTrue(self.output("run", self.path("own.yaml")))

    def test_named_code_is_there(self):
        text = source_text()
        words = {word.rstrip("()") for word in re.findall(r"`([A-Za-z_:]+(?:\(\))?)`", recipes())}
        names = {word for word in words if re.fullmatch(r"k[A-Z]\w+|[A-Z]\w*[a-z]\w*(::\w+)?|[a-z]+(_[a-z]+)+", word)}
        self.assertGreater(len(names), 15)
        missing = [name for name in sorted(names) if not re.search(rf"\b{name.split('::')[-1]}\b", text)]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
