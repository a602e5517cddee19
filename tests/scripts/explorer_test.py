"""The explorer in a browser: makes the page with the program and hands it to tests/web/explorer_checks.mjs, which holds what
the page says against what the program says. Exit status 77, a skip, where this build has no engine for pages.

usage: explorer_test.py WEB, the folder of npm's packages.

LLMPERF_SHOTS=FOLDER keeps screenshots, for people to look at.
"""
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

from gguf_command_test import QWEN_05B, header
from program import FAILED, PROGRAM, ROOT, USAGE

SKIP = 77
MOST_BYTES, MOST_PACKED = 1_600_000, 950_000
# Of a page that a reader drops: nothing that the program has built in.
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632,
          "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000, "rms_norm_eps": 1e-05,
          "max_position_embeddings": 2048, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu"}


def run(*words, status=0):
    env = dict(os.environ, LLMPERF_PATH="")
    done = subprocess.run([PROGRAM, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          check=False)
    if done.returncode != status:
        sys.exit(f"llmperf {' '.join(words)}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def write_gguf(path):
    shown = json.loads(run("show", "model", "qwen1.5-0.5b", "--weights", "q4_k_m", "--gguf-era", "2024-02", "--detail", "tensors",
                           "--json"))
    data, size = header(QWEN_05B, [(t["name"], t["type"], t["shape"]) for t in shown["tensors"]])
    with open(path, "wb") as file:
        file.write(data)
        file.truncate(len(data) + size)


def check_command(folder):
    def page(name):
        return os.path.join(folder, name)
    run("explore", "-o", page("page.pdf"), status=USAGE)
    run("explore", "-m", page("tiny.gguf"), "-o", page("x.html"), status=USAGE)
    run("explore", "-m", "qwen-7b", "--hw", "rtx4090", "--weights", "q9", "-o", page("x.html"), status=USAGE)
    if os.path.exists(page("x.html")):
        sys.exit("a page is left behind by what is refused")
    # What does not fit is for the page to say.
    text = run("explore", "-m", "llama-3-70b", "--hw", "rtx4090", "-o", "-")
    state = json.loads(text.split('id="state">')[1].split("</script>")[0])
    if state["request"] != {"model": "llama-3-70b", "hw": "rtx4090"}:
        sys.exit("the page does not open at the request")


def make(folder):
    page = os.path.join(folder, "explorer.html")
    run("explore", "-o", page)
    run("explore", "-m", "mistral-7b-v0.1", "--hw", os.path.join(ROOT, "docs", "examples", "my-npu.yaml"), "--batch", "8",
        "--lang", "zh", "-o", os.path.join(folder, "opened.html"))
    run("estimate", "-m", "qwen-7b", "--hw", "rtx4090", "--batch", "4", "--export", os.path.join(folder, "report.html"))
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(CONFIG, file)
    shutil.copy(os.path.join(ROOT, "docs", "examples", "my-npu.yaml"), folder)
    write_gguf(os.path.join(folder, "tiny.gguf"))
    with open(page, "rb") as file:
        text = file.read()
    packed = len(gzip.compress(text, 9))
    print(f"explorer: {len(text):,} bytes, {packed:,} gzipped")
    if len(text) > MOST_BYTES or packed > MOST_PACKED:
        sys.exit(f"the page is larger than {MOST_BYTES:,} bytes, or {MOST_PACKED:,} gzipped")


def main():
    web = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run([PROGRAM, "explore", "-o", os.path.join(folder, "tried.html")], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, encoding="utf-8", check=False)
        if tried.returncode == FAILED:
            print(f"skipped: {tried.stderr}")
            return SKIP
        make(folder)
        check_command(folder)
        chromium = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
        node = shutil.which("node")
        driver = os.path.isdir(os.path.join(web, "node_modules", "playwright-core"))
        for name, there in (("node", node), ("chromium-headless-shell (scripts/setup.sh test)", chromium), ("playwright-core", driver)):
            if not there:
                print(f"failed: {name} is missing")
                return 1
        shots = os.environ.get("LLMPERF_SHOTS", "")
        if shots:
            os.makedirs(shots, exist_ok=True)
        env = dict(os.environ, PAGES=folder, WEB=web, CHROMIUM=chromium, SHOTS=shots, SOURCE=ROOT, PROGRAM=PROGRAM, LLMPERF_PATH="")
        checks = os.path.join(ROOT, "tests", "web", "explorer_checks.mjs")
        return subprocess.run([node, "--test", checks], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
