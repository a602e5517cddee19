#!/usr/bin/env python3
"""HTML reports as files: complete without JavaScript, the same from saved JSON, in two languages, safe whatever a document
holds. What a browser makes of them is tested in tests/web."""
import html
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser

from golden_test import CALIBRATE, COLLECTIVE, ESTIMATE, GRAPH_LLAMA, MAP_GEMM, PARALLEL, SYMBOLIC, TRAINING, VALIDATE, VIDEO
from program import DONE, FAILED, INFEASIBLE, ROOT, USAGE, ProgramTest

STUDY = ["run", os.path.join(ROOT, "docs", "examples", "two-cards.yaml")]
LABELS = os.path.join(ROOT, "reports", "labels.csv")
VOID = {"meta", "img", "br"}
# A command for every kind of document.
KINDS = [ESTIMATE, ["estimate", "-m", "llama-3-70b", "--hw", "rtx4090"], VIDEO, TRAINING, PARALLEL, SYMBOLIC, MAP_GEMM, COLLECTIVE,
         GRAPH_LLAMA, VALIDATE, CALIBRATE, ["limits", "-m", "qwen-7b", "--hw", "rtx4090"], ["explain", "ttft_s", *ESTIMATE[1:]],
         ["explain", *ESTIMATE[1:]], ["show", "model", "mixtral-8x7b"], ["show", "hardware", "tx8"], ["show", "runtime", "rtx4090-vllm"],
         ["list", "models"], ["list", "hardware"], ["list", "runtimes"], ["list", "measurements"],
         ["compare", *VIDEO[1:], "--with", "fused_qk_norm"], ["compare", *ESTIMATE[1:], "--against", "--batch 2", "--against", "--batch 4"],
         ["limits", "-m", "qwen1.5-14b", "--hw", "rtx4090", "--weights", "all-gguf"],
         ["import", "torch-npu", os.path.join(ROOT, "tests", "import", "kernel_details.csv")], ["show", "model", "stdit3-xl2"],
         ["sweep", "-m", "qwen-7b", "--hw", "rtx4090", "--batch", "1-4*2"], [*STUDY, "--sections", "one-request"], ["list", "scenarios"], ["show", "scenario", "which-card"]]


def labels():
    with open(LABELS, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split(",") for line in file]
    assert rows[0] == ["key", "en", "zh"]
    return rows[1:]


class Page(HTMLParser):
    """Elements that open and close as they must, the text people see, and what stands in attributes."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.text, self.tags, self.tables, self.scripts, self.headings = [], "", [], {}, {}, []
        self.row = self.table = None
        self.feed(text)
        self.close()
        assert not self.open, f"still open: {self.open}"

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append((tag, given))
        if tag not in VOID:
            self.open.append((tag, given))
        if tag == "table":
            self.table = self.tables.setdefault(given["data-name"], [])
        elif tag == "tr":
            self.row = []
            self.table.append(self.row)
        elif tag in ("td", "th"):
            self.row.append(["", given])

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, f"</{tag}> where {self.open[-1:]} is open"
        self.open.pop()

    def handle_data(self, data):
        tag, given = self.open[-1] if self.open else ("", {})
        if tag in ("script", "style"):
            self.scripts[given.get("id", tag)] = data
            return
        self.text += data
        if tag in ("h1", "h2", "h3"):
            self.headings.append(data)
        if self.row and any(name in ("td", "th") for name, _ in self.open):
            self.row[-1][0] += data

    def values(self):
        return {given["data-value"] for _, given in self.tags if given.get("data-value")}

    def column(self, table, key):
        cells = []
        for row in self.tables[table]:  # of every table of the name, each with its own head
            keys = [given.get("data-key") for _, given in row]
            if keys[0] is not None:
                index = keys.index(key)
            else:
                cells.append(row[index])
        return cells


class HtmlTest(ProgramTest):
    seconds = 120
    memory = None

    def page(self, *words, language="en", status=DONE):
        done = self.run_program(*words, "--format", "html", "--lang", language)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def saved(self, text, *words, name="r.json"):
        return self.run_program("report", self.write(name, text if isinstance(text, str) else json.dumps(text)), "-o", "-", *words)

    def saved_page(self, document, *words):
        done = self.saved(document, *words)
        self.assertEqual(done.returncode, DONE, done.stderr)
        return Page(done.stdout)


class Everything(HtmlTest):
    def test_every_kind_of_document_is_a_well_formed_page_that_saved_json_makes_again(self):
        for words in KINDS:
            with self.subTest(words=words):
                done = self.run_program(*words, "--json", "--export", "r.html")
                self.assertIn(done.returncode, (DONE, INFEASIBLE), done.stderr)
                with open(self.path("r.html"), encoding="utf-8") as file:
                    text = file.read()
                again = self.saved(done.stdout)
                self.assertEqual(again.returncode, DONE, again.stderr)
                self.assertEqual(again.stdout, text)
                page = Page(text)
                self.assertEqual(json.loads(page.scripts["result"]), json.loads(done.stdout))
                self.assertIn("Reproduce", page.headings)
                self.assertNotRegex(text, r"https?://[^\s\"<]*\.(js|css)")
                self.assertNotRegex(page.text, r"\bnan\b|\binf\b|\{\}")

    def test_every_number_of_a_small_document_is_on_the_page(self):
        def numbers(value):
            if isinstance(value, dict):
                return [n for inner in value.values() for n in numbers(inner)]
            if isinstance(value, list):
                return [n for inner in value for n in numbers(inner)] if value and isinstance(value[0], dict) else []
            return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []

        for words in (COLLECTIVE, VALIDATE, ["show", "hardware", "tx8"], ["limits", "-m", "qwen-7b", "--hw", "rtx4090"], PARALLEL[:-2] + ["--batch", "8"]):
            document = self.json(*words)
            shown = {float(value) for value in self.saved_page(document).values()}
            hidden = {key: document.pop(key) for key in ("schema_version",)}
            self.assertEqual(hidden, {"schema_version": 1})
            for plan in document.get("plans", []):  # a plan says itself in words, its exchanges by name
                del plan["plan"], plan["collectives"]
            self.assertEqual([n for n in numbers(document) if float(n) not in shown], [], words)

    def test_without_charts_the_page_says_why(self):
        text = self.page(*ESTIMATE)
        page = Page(text)
        if "script" not in page.scripts:
            self.assertIn('class="no-charts"', text)
        for _, given in (tag for tag in page.tags if tag[0] == "figure"):
            self.assertIn("hidden", given)  # until they are drawn


class Estimates(HtmlTest):
    def test_the_headline_is_that_of_the_document(self):
        document = self.json("estimate", "-m", "qwen-7b", "--hw", "rtx4090")
        document["ttft_s"], document["tpot_s"] = 0.25, 0.0125
        document["error_band"]["prefill"].update(mean_error=0.05, p90_error=0.1, rows=7)
        document["memory"].update(total_bytes=12 * 2**30, capacity_bytes=24 * 2**30)
        text = self.saved_page(document).text
        for part in ("250 ms", "12.5 ms", "± 5.0 % (9 of 10 within 10.0 %); 7 rows", "needs 12 GiB of 24 GiB"):
            self.assertIn(part, text)

    def test_the_charts_have_their_numbers_in_tables(self):
        document = self.json(*ESTIMATE)
        page = Page(self.page(*ESTIMATE))
        charts = [(given["data-chart"], given.get("data-phase")) for tag, given in page.tags if tag == "figure"]
        both = [(chart, phase) for chart in ("roofline", "time-by-op", "timeline", "time-by-bound") for phase in ("prefill", "decode")]
        self.assertEqual(sorted(charts, key=str), sorted([*both, ("memory", None), ("context", None)], key=str))
        ops = [op for phase in document["phases"] for op in phase["ops"]]
        for key in ("time_s", "flops", "bytes", "roof_s"):
            self.assertEqual([float(given["data-value"]) for _, given in page.column("ops", key)], [op[key] for op in ops])
        self.assertEqual([float(given["data-value"]) for _, given in page.column("context_curve", "kv_cache_bytes")],
                         [point["kv_cache_bytes"] for point in document["context_curve"]])
        times = sum(float(given["data-value"]) for _, given in page.column("time-by-bound", "time_s"))
        self.assertAlmostEqual(times, sum(op["time_s"] for op in ops), delta=1e-9)

    def test_bounds_less_what_runs_at_the_same_time_are_the_phase(self):
        for words in (["estimate", "-m", "llama-2-70b", "--hw", "h100-sxm", "--tp", "2", "--pp", "4", "--batch", "16"],
                      [*TRAINING, "--dp", "2"], ["estimate", "-m", "llama-2-70b", "--hw", "atlas-800i-a2", "--tp", "8"]):
            document = self.json(*words)
            page = self.saved_page(document)
            rows = list(zip(page.column("time-by-bound", "phase"), page.column("time-by-bound", "time_s")))
            self.assertTrue(any(float(given["data-value"]) < 0 for _, (_, given) in rows), words)
            for phase in document["phases"]:
                times = [float(given["data-value"]) for (name, _), (_, given) in rows if name == phase["name"]]
                self.assertAlmostEqual(sum(times), phase["time_s"], delta=1e-9)

    def test_memory_is_in_powers_of_1024_wherever_it_stands(self):
        before, after = (self.write(f"{batch}.json", self.output(*ESTIMATE, "--batch", batch, "--json")) for batch in "12")
        for words in (["compare", before, after], ["sweep", *ESTIMATE[1:], "--batch", "1,2"], ["show", "model", "qwen-7b"]):
            text = Page(self.page(*words)).text
            self.assertIn("14.38 GiB", text, words)
            self.assertNotIn("15.44 GB", text, words)

    def test_a_long_count_is_short_on_its_card(self):
        text = self.page("show", "model", "mixtral-8x7b")
        self.assertIn('<div class="card-value">46.7 B</div><div class="card-note">46,702,792,704</div>', text)

    def test_cards_of_several_kinds_are_all_in_the_title(self):
        page = self.output("estimate", "-m", "llama-3-70b", "--hw", "rtx3090+rtx3060", "--weights", "q3_k_m", "--format", "html")
        self.assertIn("<title>Estimate: llama-3-70b on rtx3090+rtx3060</title>", page)

    def test_a_training_step_without_an_error_band_says_so(self):
        for words in ([*TRAINING, "--runtime", "none"], ESTIMATE):
            self.assertIn('data-tone="warn"><div class="card-label">Error band</div>', self.page(*words), words)

    def test_lines_of_a_note_are_one_text(self):
        document = self.json(*VALIDATE)
        document["files"][0]["notes"] = ["A sentence that goes", "on. Another."]
        self.assertIn("A sentence that goes on. Another.", self.saved_page(document).text)

    def test_assumptions_have_their_provenance(self):
        page = Page(self.page(*ESTIMATE))
        kinds = [given["data-kind"] for _, given in page.tags if given.get("class") == "provenance"]
        self.assertLessEqual({"datasheet", "assumed"}, set(kinds))

    def test_what_does_not_fit_says_so(self):
        text = self.page("estimate", "-m", "llama-3-70b", "--hw", "rtx4090", status=INFEASIBLE)
        self.assertIn("does not fit", Page(text).text)
        self.assertIn('data-tone="bad"', text)


class Comparisons(HtmlTest):
    def test_several_results_stand_beside_each_other_and_none_against_itself(self):
        words = ["compare", "-m", "qwen-7b", "--hw", "rtx4090,h100-sxm,l40s"]
        text = self.page(*words)
        page = Page(text)
        head, *rows = page.tables["headline"]
        self.assertEqual([cell[0] for cell in head][1:4], ["rtx4090", "h100-sxm", "l40s"])
        ttft = next(row for row in rows if row[0][0] == "TTFT")
        results = self.json(*words)["results"]
        for cell, result in zip(ttft[1:], results):
            self.assertEqual(float(cell[1]["data-value"]), result["headline"][0]["after"])
        titles = re.findall(r"<h[2-6][^>]*>([^<]*)", text)
        self.assertEqual([titles.count(name) for name in ("rtx4090", "h100-sxm", "l40s")], [0, 1, 1])


class Studies(HtmlTest):
    def test_a_study_is_its_words_its_commands_and_a_table_per_section(self):
        document = self.json(*STUDY)
        page = self.saved_page(document)
        self.assertEqual(page.headings, [document["title"], *(section["title"] for section in document["sections"]), "Reproduce"])
        commands = [given for tag, given in page.tags if given.get("class") == "command"]
        self.assertEqual(len(commands), 1 + sum(len(section["commands"]) for section in document["sections"]))
        for section in document["sections"]:
            for text in section["text"] + section["notes"]:
                self.assertIn(text.replace("`", ""), page.text)
            for index, column in enumerate(section["columns"]):
                cells = page.column(section["name"], column)
                self.assertEqual(len(cells), len(section["rows"]))
                for (text, given), row in zip(cells, section["rows"]):
                    if isinstance(row[index], float):
                        self.assertEqual(float(given["data-value"]), row[index])
                    elif row[index] is None:
                        self.assertEqual(text, "-")

    def test_a_study_may_hold_anything(self):
        document = self.json(*STUDY)
        for key in document["sections"][0]:
            for wrong in (None, 3, "text", [], [3], [[3]], [[[3]]], [{"a": 1}], {"a": [1]}):
                section = document["sections"][0] | {key: wrong}
                self.saved_page(document | {"sections": [section]})
                self.saved_page(document | {"sections": wrong, "description": wrong, "title": wrong})


class Languages(HtmlTest):
    def test_chinese_pages_have_chinese_headings_and_labels(self):
        text = self.page(*ESTIMATE, language="zh")
        page = Page(text)
        self.assertIn('<html lang="zh-CN">', text)
        for part in ("首字延迟 TTFT", "每 token 延迟 TPOT", "KV 缓存", "算术强度", "显存", "屋顶线"):
            self.assertIn(part, page.text)
        for heading in page.headings:
            self.assertRegex(heading, "[\u4e00-\u9fff]")
        self.assertEqual(json.loads(page.scripts["labels"])["lang"], "zh")
        self.assertIn('<html lang="en">', self.page(*ESTIMATE))

    def test_notes_in_a_row_have_chinese_separators(self):
        text = Page(self.page(*ESTIMATE, language="zh")).text
        self.assertRegex(text, "预填充：[^;；]*；解码：")

    def test_a_count_and_a_list_of_the_same_key_have_their_own_words(self):
        page = Page(self.page("compare", *VIDEO[1:], "--with", "fused_qk_norm", language="zh"))
        self.assertIn("步骤", page.headings)
        self.assertIn("步数", page.text)
        self.assertIn("数据行", Page(self.page(*VALIDATE, language="zh")).headings)

    def test_reasons_and_labels_are_sentences_of_the_language(self):
        extrapolated = ["estimate", "-m", "llama-3.3-70b", "--hw", "h100-sxm", "--tp", "4", "--batch", "300", "--prompt", "64"]
        for words, said, english in ((extrapolated, "批大小 300（拟合至 64）", "fitted up to"), (MAP_GEMM, "仅在仿真中", "in the simulation only"),
                                     (["compare", *ESTIMATE[1:], "--against", "--runtime vllm"], "不再运行|核函数效率 × ", "does not run any more"),
                                     (VIDEO, "门控与残差", "gates and residuals"), (ESTIMATE, "上界，未校准", "upper bound")):
            text = Page(self.page(*words, language="zh")).text
            self.assertRegex(text, said)
            self.assertNotIn(english, text)
        self.assertIn("fitted up to 64", Page(self.page(*extrapolated)).text)

    def test_every_schema_has_a_title(self):
        known, written = {row[0] for row in labels()}, set()
        for folder, _, names in [*os.walk(os.path.join(ROOT, "src", "report")), *os.walk(os.path.join(ROOT, "src", "result"))]:
            for name in names:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    written |= set(re.findall(r'(?:json_header|document|begin)\("llmperf\.(\w+)"|\{"llmperf\.(\w+)"', file.read()))
        written = {first or second for first, second in written}
        self.assertGreater(len(written), 20)
        self.assertEqual({schema for schema in written if f"schema={schema}" not in known}, set())
        self.assertEqual([key for key in known if key.startswith("schema=") and key[7:] not in written], [])

    def test_titles_say_what_is_compared_or_swept(self):
        before, after = (self.write(f"{batch}.json", self.output(*ESTIMATE, "--batch", batch, "--json")) for batch in "12")
        sweep = ["sweep", *ESTIMATE[1:], "--batch", "1,2", "--prompt", "256,512"]
        for words, language, title in ((["compare", before, after], "en", "Comparison: 1.json → 2.json"), (sweep, "en", "Sweep: prompt × batch"),
                                       (sweep, "zh", "扫描：提示长度 × 批大小"), (["list", "runtimes"], "zh", "运行时画像列表")):
            self.assertEqual(Page(self.page(*words, language=language)).headings[0], title)

    def test_every_key_of_every_document_has_a_chinese_label(self):
        known = {row[0] for row in labels()}
        missing = set()
        with open(os.path.join(ROOT, "tests", "golden", "json_keys.txt"), encoding="utf-8") as file:
            for line in file:
                path = line.split(": ", 1)[1].rsplit(" (", 1)[0].replace("[]", "")
                if path.startswith("request"):
                    continue  # what was asked for is on the page as the command that asks it
                missing |= {key for key in path.split(".") if key not in known and len(key) > 1}  # a, h, u: symbols
        self.assertEqual(missing, set(), "reports/labels.csv lacks them")

    def test_the_dictionary_is_one_row_per_key_with_both_languages(self):
        rows = labels()
        self.assertEqual([row for row in rows if len(row) != 3 or not row[0] or not row[2]], [])
        keys = [row[0] for row in rows]
        self.assertEqual(len(keys), len(set(keys)))
        said = [(row[0] if row[0].startswith("~") else row[1], row[2]) for row in rows]
        self.assertEqual([row for row in said if row[0].count("{}") != row[1].count("{}") and row[0]], [])


HOSTILE = ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</script><script>alert(1)//", "' onclick='alert(1)", "&lt;b>",
           "<!--", "\u2028\u2029", "{}", "a\x00b"]


class Hostile(HtmlTest):
    def everywhere(self, value, text, key=None):
        """The document with every text but its schema replaced, and one key more, which is not one of ours."""
        if isinstance(value, dict):
            texts = {name: inner if name in ("schema", "bound") else self.everywhere(inner, text, key or text) for name, inner in value.items()}
            return texts | {key or text: text}
        if isinstance(value, list):
            return [self.everywhere(inner, text, key or text) for inner in value]
        return text if isinstance(value, str) else value

    def test_no_text_of_a_document_becomes_markup(self):
        for words in (ESTIMATE, MAP_GEMM, VALIDATE):
            document = self.json(*words)
            plain = self.saved_page(self.everywhere(document, "plain"))
            for text in HOSTILE:
                with self.subTest(words=words, text=text):
                    done = self.saved(self.everywhere(document, text))
                    self.assertEqual(done.returncode, DONE, done.stderr)
                    page = Page(done.stdout)
                    self.assertEqual([tag for tag, _ in page.tags], [tag for tag, _ in plain.tags])
                    self.assertEqual({name for _, given in page.tags for name in given}, {name for _, given in plain.tags for name in given})
                    shown = re.sub("[\u2028\u2029]", "?", text)  # as in tables, for scripts write texts on the page as well
                    self.assertEqual(json.loads(page.scripts["result"]), self.everywhere(document, shown, text))
                    for script in ("result", "labels"):
                        self.assertNotRegex(page.scripts[script], "[<>&\u2028\u2029]")

    def test_a_drawing_is_an_image(self):
        document = self.json(*MAP_GEMM)
        document["drawing_svg"] = "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script></svg>"
        page = self.saved_page(document)
        self.assertNotIn("svg", [tag for tag, _ in page.tags])
        image, = (given for tag, given in page.tags if tag == "img")
        self.assertTrue(image["src"].startswith("data:image/svg+xml;base64,"))


class Command(HtmlTest):
    def test_wrong_results_are_answered_with_place_and_reason(self):
        cases = [("", "r.json: empty, not a result"), ("{\n \"a\": 1,\n}", "r.json:3:1: not JSON from here on"), ("[1]", "no 'schema'"),
                 ("{}", "no 'schema'"), ("{\"schema\": \"other\"}", "its schema is 'other'"), ("{\"a\": NaN}", "r.json:1:"),
                 ("{\"schema\": \"llmperf.estimate\", \"schema_version\": 2}", "reads version 1"),
                 ("{\"schema\": \"llmperf.estimate\"}", "without a version"), ("{\"a\": 1e999}", "out of range"), ("\x00", "r.json:1:1"),
                 ("[" * 100000, "deeper than"), ("{\"a\":" * 1000 + "1" + "}" * 1000, "deeper than")]
        for text, message in cases:
            with self.subTest(text=text[:40]):
                done = self.saved(text)
                self.assert_error(done, USAGE, message)

    def test_it_takes_one_result_and_one_page(self):
        file = self.write("r.json", self.output(*ESTIMATE, "--json"))
        self.assert_bad_input(["report", file, file, "-o", "a.html"], "a report is of one result", "llmperf compare")
        self.assert_bad_input(["report", file], "--output is required")
        self.assert_bad_input(["report", "-o", "a.html"], "RESULT is required")
        self.assert_bad_input(["report", "no.json", "-o", "a.html"], "no.json")
        self.assert_bad_input(["report", file, "-o", "a.pdf"], "a report is HTML", "end the name in .html")
        self.assert_bad_input(["report", file, "-o", "a.html", "--lang", "fr"], "--lang: there is no 'fr'")
        self.assertEqual([name for name in os.listdir(self.folder) if "html" in name or "pdf" in name], [])

    def test_an_unwritable_page_is_known_before_the_result_is_read(self):
        self.assert_error(self.run_program("report", "no-such-result.json", "-o", "no/such/folder/a.html"), FAILED, "cannot write no/such/folder/a.html")

    def test_the_page_goes_to_the_file_or_to_stdout(self):
        file = self.write("r.json", self.output(*ESTIMATE, "--json"))
        self.assertEqual(self.output("report", file, "-o", "a.html"), "")
        with open(self.path("a.html"), encoding="utf-8") as written:
            self.assertEqual(written.read(), self.output("report", file, "-o", "-"))

    def test_the_page_says_how_to_make_it_again(self):
        words = ["estimate", "-m", "qwen-7b", "--hw", "rtx4090", "--options", "all,no_fused_qkv", "--batch", "2"]
        text = self.output(*words, "--lang", "zh", "--export", "a.html", "--export", "b.json", "--format", "html")
        self.assertIn('<pre class="command">' + html.escape("llmperf " + " ".join(words)) + "</pre>", text)
        with open(self.path("a.html"), encoding="utf-8") as written:
            self.assertEqual(written.read(), text)


class Formats(HtmlTest):
    def test_every_command_prints_every_format(self):
        for words in KINDS:
            for form, start in (("table", ""), ("csv", ""), ("json", "{\n"), ("md", ("#", "|")), ("html", "<!DOCTYPE html>\n")):
                done = self.run_program(*words, "--format", form)
                self.assertIn(done.returncode, (DONE, INFEASIBLE), done.stderr)
                self.assertTrue(done.stdout.startswith(start), f"{words} {form}: {done.stdout[:60]}")
                self.assertGreater(len(done.stdout.splitlines()), 1, f"{words} {form}")


class Browser(unittest.TestCase):
    def test_a_build_that_npm_could_not_fetch_for_skips_the_browser_and_says_why(self):
        with tempfile.TemporaryDirectory() as web:
            with open(os.path.join(web, "failed"), "w", encoding="utf-8") as file:
                file.write("npm could not fetch")
            done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "scripts", "web_report_test.py"), web, "/usr/bin/npm"],
                                  stdout=subprocess.PIPE, encoding="utf-8", check=False)
        self.assertEqual((done.returncode, done.stdout), (77, "skipped: npm could not fetch\n"))


if __name__ == "__main__":
    unittest.main()
