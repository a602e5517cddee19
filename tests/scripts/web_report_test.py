"""HTML reports in a browser: makes the pages with the program and hands them to tests/web (node's own test runner,
playwright-core, Debian's Chromium). Exit status 77, a skip, only where the build had no npm or npm could not fetch.

usage: web_report_test.py WEB NPM [speed], the last for the test that states a time and for no other.

LLMPERF_SHOTS=FOLDER keeps the screenshots, for people to look at.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from program import PROGRAM, ROOT

SKIP = 77
HOSTILE = '</script><script>window.hit = 1</script>'
HOSTILE_OP = '"><img src=x onerror="window.hit=1"> & \u2028 \'`${window.hit=1}'


def run(*words):
    env = dict(os.environ, LLMPERF_PATH="")
    done = subprocess.run([PROGRAM, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          check=False)
    if done.returncode:
        sys.exit(f"llmperf {' '.join(words)}: exit {done.returncode}: {done.stderr}")
    return done.stdout


class Pages:
    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def export(self, name, *words):
        run(*words, "--export", self.path(name))

    def report(self, name, document):
        """The page of a saved result."""
        saved = self.path(name + ".json")
        with open(saved, "w", encoding="utf-8") as file:
            json.dump(document, file)
        run("report", saved, "-o", self.path(name))


ESTIMATE = ("estimate", "-m", "qwen1.5-7b", "--hw", "rtx4090", "--batch", "4", "--prompt", "1024")


SWEEP = ("sweep", "-m", "qwen1.5-7b,qwen1.5-14b", "--hw", "rtx4090,h100-sxm", "--batch", "1-64*2", "--weights", "bf16,w4a16")


def write_devices(pages):
    """An estimate on every built-in device, for the roofs of each."""
    names = [device["name"] for device in json.loads(run("list", "hardware", "--json"))["hardware"]]
    words = ("estimate", "-m", "llama-3.2-1b", "--batch", "4", "--prompt", "512", "--runtime", "none", "--json")
    with open(pages.path("devices.json"), "w", encoding="utf-8") as file:
        json.dump([json.loads(run(*words, "--hw", name)) for name in names], file)


def sweep():
    """Numbers that charts_test.mjs expects: TTFT is batch * tp seconds, and a second more on the second device."""
    rows = []
    for hardware, slower in (("h100-sxm", 0), ("a100-sxm-80gb", 1)):
        for batch in (1, 4, 16):
            for tp in (1, 2, 4):
                ttft = batch * tp + slower
                rows.append({"point": len(rows), "hardware": hardware, "batch": batch, "tp": tp, "ttft_s": ttft,
                             "tokens_per_second": 100 * batch / (1 + slower), "fits": True, "error": ""})
    rows.append({"point": len(rows), "hardware": "h100-sxm", "batch": 16, "tp": 1, "ttft_s": None,
                 "tokens_per_second": None, "fits": False, "error": "does not fit"})
    names = list(rows[0])
    better = {"ttft_s": "lower", "tokens_per_second": "higher"}
    axes = [{"flag": flag, "column": column, "values": list(dict.fromkeys(str(row[column]) for row in rows))}
            for flag, column in (("--batch", "batch"), ("--tp", "tp"), ("--hw", "hardware"))]
    return {"schema": "llmperf.sweep", "schema_version": 1, "tool": {"name": "llmperf", "version": "0"},
            "columns": [{"name": name, "better": better.get(name)} for name in names], "axes": axes,
            "points": len(rows), "failed": 0, "rows": rows, "command": "llmperf sweep"}


def difference(estimate):
    phase = estimate["phases"][1]
    ops = [{"name": op["name"], "before_s": op["time_s"], "after_s": op["time_s"] * factor,
            "change_s": op["time_s"] * (factor - 1)} for op, factor in zip(phase["ops"], (0.5, 1.5) * len(phase["ops"]))]
    return {"schema": "llmperf.difference", "schema_version": 1, "tool": estimate["tool"],
            "phases": [{"name": phase["name"], "ops": ops}], "command": "llmperf compare"}


def write_large(pages, estimate):
    large = json.loads(json.dumps(estimate))
    ops = large["phases"][0]["ops"]
    large["phases"] = [dict(large["phases"][0], ops=[
        dict(ops[i % len(ops)], name=f"{ops[i % len(ops)]['name']}_{i}", time_s=ops[i % len(ops)]["time_s"] * (1 + i * 7919 % 5000))
        for i in range(5000)])]
    pages.report("large.html", large)


def make(pages, estimate):
    pages.export("estimate.html", *ESTIMATE)
    pages.export("estimate-zh.html", *ESTIMATE, "--lang", "zh")
    pages.export("video.html", "estimate", "-m", "stdit3-3b", "--hw", "a100-sxm-80gb")
    pages.export("training.html", "estimate", "--training", "-m", "llama-2-7b", "--hw", "a100-sxm-80gb", "--tp", "4",
                 "--global-batch", "8")
    pages.export("validate.html", "validate", "rtx4090-qwen1.5")
    pages.export("sweep.html", *SWEEP)
    pages.export("pareto.html", *SWEEP, "--pareto", "tpot_s,tokens_per_second")
    pages.export("map.html", "map", "gemm", "--m", "8192", "--n", "256", "--k", "64", "--hw", "tx8")
    pages.export("parallel.html", "parallel", "-m", "llama-2-70b", "--hw", "h100-sxm", "--devices", "8")
    pages.export("graph.html", "graph", os.path.join(ROOT, "tests", "program", "programs", "llama_decoder_while.mlir"), "--hw", "rtx4090")
    pages.export("calibrate.html", "calibrate", "atlas-800i-a2-llama-2-70b", "--hw", "atlas-800i-a2")
    pages.export("serve.html", "serve", "-m", "llama-3.1-8b", "--hw", "h100-sxm", "--rate", "8", "--requests", "200", "--slo", "ttft=10s")
    pages.export("capacity.html", "capacity", "-m", "llama-3.1-8b", "--hw", "h100-sxm,a100-sxm-80gb", "--tp", "1,2", "--weights", "bf16", "--rate", "40", "--slo", "ttft=1s,tpot=50ms")
    pages.export("study.html", "run", os.path.join(ROOT, "docs", "examples", "two-cards.yaml"))
    pages.export("h100.html", "estimate", "-m", "llama-3.1-8b", "--hw", "h100-sxm", "--batch", "16", "--prompt", "2048")
    write_devices(pages)
    pages.report("points.html", sweep())
    pages.report("compare.html", difference(estimate))
    pages.export("devices.html", "compare", "-m", "llama-3.1-8b", "--hw", "all", "--runtime", "none")

    write_large(pages, estimate)
    hostile = json.loads(json.dumps(estimate))
    hostile["inputs"]["model"]["name"] = HOSTILE
    hostile["command"] = HOSTILE
    hostile["label"] = HOSTILE_OP
    for phase in hostile["phases"]:
        for op in phase["ops"]:
            op["name"] = f"{HOSTILE_OP} {op['name']}"
            op["shape"] = HOSTILE
    pages.report("hostile.html", hostile)


def main():
    web, npm, speed = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["speed"]
    if not npm:
        print("skipped: this build had no npm, so its reports have no charts")
        return SKIP
    if os.path.exists(web + "/failed"):
        with open(web + "/failed", encoding="utf-8") as reason:
            print(f"skipped: {reason.read()}")
        return SKIP
    node = shutil.which("node")
    # The one without windows opens a page in less than half the time.
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    driver = os.path.join(web, "node_modules", "playwright-core")
    for name, there in (("node", node), ("chromium-headless-shell (scripts/setup.sh test)", chromium), (driver, os.path.isdir(driver))):
        if not there:
            print(f"failed: {name} is missing")
            return 1
    with tempfile.TemporaryDirectory() as folder:
        estimate = json.loads(run(*ESTIMATE, "--json"))
        (write_large if speed else make)(Pages(folder), estimate)
        shots = os.environ.get("LLMPERF_SHOTS", "")
        if shots:
            os.makedirs(shots, exist_ok=True)
        env = dict(os.environ, PAGES=folder, WEB=web, CHROMIUM=chromium, SHOTS=shots, SOURCE=ROOT)
        tests = os.path.join(ROOT, "tests", "web")
        files = [os.path.join(tests, name) for name in sorted(os.listdir(tests)) if name.endswith("_test.mjs") and (name == "speed_test.mjs") == speed]
        # One after the other: side by side they would slow each other down.
        return max([subprocess.run([node, "--test", file], env=env, check=False).returncode for file in files])


if __name__ == "__main__":
    sys.exit(main())
