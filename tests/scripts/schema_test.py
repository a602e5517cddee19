#!/usr/bin/env python3
"""What commands write is what docs/schema says of it: types, required keys, and no key that a schema does not know."""
import json
import os
import unittest

from golden_test import DOCUMENTS, ESTIMATE, VIDEO
from program import ROOT, ProgramTest

FOLDER = os.path.join(ROOT, "docs", "schema")
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}
# Keys that come with the request or the rows of a file, which are its own.
OPEN = {"request", "rows"}


def errors(value, schema, root, path, strict=True):
    """What of a value is not as the part of JSON Schema says that these schemas use."""
    if "$ref" in schema:
        return errors(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, path, strict)
    if "anyOf" in schema:
        found = [errors(value, one, root, path, strict) for one in schema["anyOf"]]
        return [] if [] in found else found[0]
    if "const" in schema and value != schema["const"]:
        return [f"{path}: {value!r} is not {schema['const']!r}"]
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(isinstance(value, TYPES[t]) and not (isinstance(value, bool) and t != "boolean") for t in types):
        return [f"{path}: {value!r} is no {' or '.join(types)}"]
    found = []
    if isinstance(value, dict) and "properties" in schema:
        found += [f"{path}: no {key}" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            if key in schema["properties"]:
                found += errors(item, schema["properties"][key], root, f"{path}.{key}", strict)
            elif strict and key not in OPEN:
                found.append(f"{path}: unknown key {key}")
    elif isinstance(value, dict) and "additionalProperties" in schema:
        for key, item in value.items():
            found += errors(item, schema["additionalProperties"], root, f"{path}.{key}", strict)
    elif isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            found += errors(item, schema["items"], root, f"{path}[{i}]", strict and path.rsplit(".", 1)[1] not in OPEN)
    return found


class Schemas(ProgramTest):
    seconds = 120
    memory = None  # replays load libraries that multiply

    def schemas(self):
        """All of them, by what their documents call themselves."""
        found = {}
        for name in sorted(os.listdir(FOLDER)):
            with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
                schema = json.load(file)
            found.setdefault(schema["properties"]["schema"]["const"], []).append(schema)
        return found

    def assert_valid(self, document):
        candidates = self.schemas()[document["schema"]]
        found = [errors(document, schema, schema, document["schema"]) for schema in candidates]
        self.assertIn([], found, min(found, key=len)[:5])

    def test_every_document_is_as_its_schema_says(self):
        seen = set()
        for words in DOCUMENTS:
            document = json.loads(self.run_program(*words, "--json").stdout)
            with self.subTest(words=words):
                self.assert_valid(document)
            seen.add(document["schema"])
        self.assertGreater(len(seen), 20)

    def test_a_schema_refuses_what_is_wrong(self):
        document = self.json(*ESTIMATE)
        for wrong in ({"ttft_s": "0.1"}, {"fits": 1}, {"phases": {}}, {"extrapolations": [1]}, {"memory": None}, {"new_key": 1}):
            with self.subTest(wrong=wrong), self.assertRaises(AssertionError):
                self.assert_valid(document | wrong)
        del document["fits"]
        with self.assertRaises(AssertionError):
            self.assert_valid(document)
        self.assert_valid(self.json(*VIDEO))


if __name__ == "__main__":
    unittest.main()
