#!/usr/bin/env python3
"""--export x.trace.json: the file keeps the format's rules, and what it draws is what the estimate adds up."""
import json
import os
import unittest

from program import ROOT, ProgramTest
from trace_events import check_trace, slices_of

QWEN = ["-m", "qwen-7b", "--hw", "rtx4090"]
ATLAS = ["-m", "llama-2-70b", "--hw", "atlas-800i-a2", "--tp", "8", "--batch", "4", "--prompt", "1024"]
TRAINING = ["-m", "llama-3-8b", "--hw", "a100-sxm-80gb", "--training", "--tp", "4"]
VIDEO = ["-m", "stdit3-xl2", "--hw", "h100-sxm", "--resolution", "480p", "--seconds", "4"]
PROGRAM = os.path.join(ROOT, "tests", "program", "programs", "llama_decoder_while.mlir")
# A nanosecond for each end of a phase.
NANOSECONDS = 2


def seconds(nanoseconds):
    return nanoseconds * 1e-9


class Trace(ProgramTest):
    def traced(self, *words, command="estimate"):
        """The trace and the JSON of the same run; the trace keeps the rules."""
        document = json.loads(self.output(command, *words, "--json", "--export", "x.trace.json"))
        with open(self.path("x.trace.json"), encoding="utf-8") as file:
            def refuse(constant):
                raise AssertionError(f"{constant} in a trace")
            trace = json.loads(file.read(), parse_constant=refuse)
        check_trace(self, trace)
        return trace, document

    def phases(self, trace):
        return [(start, end) for start, end, _ in slices_of(trace, "phases")]

    def inside(self, trace, phase, *where):
        begin, end = self.phases(trace)[phase]
        return [s for s in slices_of(trace, *where) if begin <= s[0] and s[1] <= end]

    def assert_counts(self, trace, document):
        """Every op is drawn as often as it runs, in all phases together."""
        drawn = {}
        for _, _, event in slices_of(trace):
            if event["cat"] in ("op", "runtime"):
                drawn[event["name"]] = drawn.get(event["name"], 0) + 1
        expected = {}
        for phase in document["phases"]:
            for op in phase["ops"]:
                expected[op["name"]] = expected.get(op["name"], 0) + op["count"]
        self.assertEqual(drawn, expected)

    def assert_phases_last(self, trace, document):
        """A phase ends when the estimate says, and so does the last slice in it."""
        self.assertEqual(len(self.phases(trace)), len(document["phases"]))
        for index, phase in enumerate(document["phases"]):
            begin, end = self.phases(trace)[index]
            self.assertAlmostEqual(seconds(end - begin), phase["time_s"], delta=NANOSECONDS * 1e-9)
            last = max(s[1] for s in self.inside(trace, index) if s[2]["cat"] in ("op", "runtime", "launch"))
            self.assertLessEqual(end - last, NANOSECONDS)

    def assert_times_add_up(self, trace, document):
        """Times of the ops less what was hidden are the phase, without a host that is waited for."""
        for index, phase in enumerate(document["phases"]):
            ops = [s for s in self.inside(trace, index) if s[2]["cat"] == "op"]
            total = sum(event["args"]["time_us"] for _, _, event in ops) * 1e-6
            hidden = sum(event["args"].get("hidden_us", 0) for _, _, event in ops) * 1e-6
            self.assertAlmostEqual(total, phase["ops_time_s"], delta=1e-9 * phase["ops_time_s"])
            self.assertAlmostEqual(hidden, phase["overlapped_s"], delta=1e-9 * phase["ops_time_s"])
            self.assertAlmostEqual(total - hidden, phase["time_s"], delta=1e-9 * phase["ops_time_s"])

    def test_at_the_speed_of_light_the_kernels_fill_the_step(self):
        trace, document = self.traced(*QWEN, "--runtime", "none")
        self.assert_counts(trace, document)
        self.assert_phases_last(trace, document)
        self.assert_times_add_up(trace, document)
        self.assertEqual(slices_of(trace, process="host"), [])
        for index in range(2):
            kernels = self.inside(trace, index, "kernels")
            begin, end = self.phases(trace)[index]
            self.assertEqual((kernels[0][0], kernels[-1][1]), (begin, end))
            self.assertTrue(all(a[1] == b[0] for a, b in zip(kernels, kernels[1:])))

    def test_layers_are_unrolled_in_the_order_of_the_graph(self):
        trace, document = self.traced(*QWEN, "--runtime", "none", "--gen", "1")
        ops = [op["name"] for op in document["phases"][0]["ops"]]
        body = [op["name"] for op in document["phases"][0]["ops"] if op["count"] == 32]
        first, last = ops.index(body[0]), ops.index(body[-1])
        drawn = [event["name"] for _, _, event in slices_of(trace, "kernels")]
        self.assertEqual(drawn, ops[:first] + body * 32 + ops[last + 1:])
        layers = [event["args"].get("layer") for _, _, event in slices_of(trace, "kernels")]
        self.assertEqual([layer for layer in layers if layer is not None], [n for n in range(32) for _ in body])
        self.assertEqual([event["name"] for _, _, event in slices_of(trace, "layers")], [f"layer {n}" for n in range(32)])

    def test_kinds_of_layers_that_take_turns_are_drawn_so(self):
        trace, document = self.traced("-m", "gemma-2-2b", "--hw", "rtx4090", "--runtime", "none")
        self.assert_counts(trace, document)
        self.assert_phases_last(trace, document)
        layers = [event["name"] for _, _, event in self.inside(trace, 0, "layers")]
        self.assertEqual(layers, [f"layer {n}" for n in range(26)])

    def test_kernels_launched_one_by_one_have_a_launch_each(self):
        trace, document = self.traced(*QWEN, "--execution", "eager")
        self.assert_counts(trace, document)
        self.assert_phases_last(trace, document)
        launches = [s for s in slices_of(trace, "launches") if s[2]["cat"] == "launch"]
        self.assertEqual([event["name"] for _, _, event in launches],
                         [event["name"] for _, _, event in slices_of(trace, "kernels")])
        arrows = [event for event in trace["traceEvents"] if event["ph"] == "s"]
        self.assertEqual(len(arrows), len(launches))

    def test_a_step_bound_by_launches_is_as_long_as_the_launches(self):
        trace, document = self.traced("-m", "qwen1.5-0.5b", "--hw", "rtx4090", "--execution", "eager")
        self.assert_phases_last(trace, document)
        begin, end = self.phases(trace)[1]
        launches = slices_of(trace, "launches")[len(slices_of(trace, "launches")) // 2:]
        busy = sum(s[1] - s[0] for s in launches)
        kernels = sum(s[1] - s[0] for s in self.inside(trace, 1, "kernels"))
        self.assertGreater(busy, kernels)  # the host takes longer than the device: the device waits
        self.assertLess(busy, end - begin)
        self.assertTrue(all(a[1] == b[0] for a, b in zip(launches, launches[1:])))

    def test_a_graph_is_launched_once(self):
        trace, document = self.traced(*ATLAS, "--runtime", "torchair", "--execution", "static-graph")
        self.assertEqual(document["inputs"]["runtime"]["prefill_dispatch"], "graph")
        self.assert_counts(trace, document)
        self.assert_phases_last(trace, document)
        self.assertEqual([event["name"] for _, _, event in slices_of(trace, "launches")], ["graph launch"] * 2)

    def test_collectives_run_beside_the_op_before_them(self):
        trace, document = self.traced(*ATLAS, "--runtime", "none", "--options", "all,overlap_collectives")
        self.assertGreater(document["phases"][0]["overlapped_s"], 0)
        self.assert_counts(trace, document)
        self.assert_phases_last(trace, document)
        self.assert_times_add_up(trace, document)
        both = 0
        kernels = self.inside(trace, 0, "kernels")
        for start, end, _ in self.inside(trace, 0, "network"):
            both += sum(max(0, min(end, k[1]) - max(start, k[0])) for k in kernels)
        self.assertAlmostEqual(seconds(both), document["phases"][0]["overlapped_s"], delta=160 * NANOSECONDS * 1e-9)

    def test_the_area_below_the_memory_bandwidth_is_what_the_phases_move(self):
        for words in (QWEN, ["-m", "llama-2-70b", "--hw", "h100-sxm", "--tp", "2", "--pp", "4", "--batch", "16"]):
            trace, document = self.traced(*words, "--runtime", "none", "--gen", "1")
            moved = 0
            for process in {e["pid"] for e in trace["traceEvents"] if e["ph"] == "C"}:
                counts = [(e["ts"] * 1e-6, *e["args"].values()) for e in trace["traceEvents"] if e["ph"] == "C" and e["pid"] == process]
                self.assertEqual(counts, sorted(counts, key=lambda c: c[0]))
                self.assertEqual(counts[-1][1], 0)
                moved += sum((b[0] - a[0]) * a[1] * 1e9 for a, b in zip(counts, counts[1:]))
            expected = sum(op["bytes"] for phase in document["phases"] for op in phase["ops"] if op["place"] == "device")
            self.assertAlmostEqual(moved, expected, delta=1e-3 * expected)

    def test_stages_of_a_pipeline_work_on_different_micro_batches(self):
        trace, document = self.traced("-m", "llama-2-70b", "--hw", "atlas-800i-a2", "--tp", "4", "--pp", "2", "--batch", "4",
                                      "--prompt", "1024", "--gen", "2", "--runtime", "none", "--pipeline-batches", "4")
        self.assert_counts(trace, document)
        begin, end = self.phases(trace)[0]
        self.assertAlmostEqual(seconds(end - begin), document["ttft_s"], delta=NANOSECONDS * 1e-9)
        stages = [self.inside(trace, 0, "kernels", f"device of stage {n}") for n in (1, 2)]
        beside = [a for a in stages[0] for b in stages[1] if a[0] < b[1] and b[0] < a[1]]
        self.assertTrue(beside)
        batches = [event["args"]["micro_batch"] for _, _, event in stages[0]]
        self.assertEqual(sorted(set(batches)), [0, 1, 2, 3])
        self.assertEqual(batches, sorted(batches))
        self.assertIn("full pipeline", " ".join(trace["otherData"]["notes"]))

    def test_many_micro_batches_are_drawn_in_one_piece(self):
        trace, document = self.traced("-m", "llama-2-70b", "--hw", "atlas-800i-a2", "--tp", "4", "--pp", "2", "--batch", "400",
                                      "--prompt", "16", "--gen", "1", "--runtime", "none", "--pipeline-batches", "400")
        phase = trace["otherData"]["phases"][0]
        self.assertEqual(phase["micro_batches"], 400)
        self.assertLess(phase["micro_batches_drawn"], 400)
        self.assertIn("in one piece", " ".join(trace["otherData"]["notes"]))
        begin, end = self.phases(trace)[0]
        self.assertAlmostEqual(seconds(end - begin), document["ttft_s"], delta=NANOSECONDS * 1e-9)
        self.assertEqual(max(s[1] for s in slices_of(trace)), end)

    def test_layers_on_the_host_run_there(self):
        trace, document = self.traced("-m", "qwen1.5-14b", "--hw", "rtx4090", "--runtime", "none", "--weights", "q8_0",
                                      "--gpu-layers", "20", "--prompt", "16")
        self.assert_counts(trace, document)
        self.assert_phases_last(trace, document)
        self.assert_times_add_up(trace, document)
        self.assertTrue(slices_of(trace, "ops", "host"))

    def test_weights_that_come_early_are_drawn_ahead(self):
        trace, document = self.traced("-m", "llama-2-7b", "--hw", "tx8", "--weights", "w4a16", "--prompt", "256", "--gen", "2")
        self.assert_phases_last(trace, document)
        self.assert_times_add_up(trace, document)
        if document["phases"][0]["overlapped_s"] > 0:
            self.assertTrue(slices_of(trace, "weights ahead"))

    def test_video_training_and_programs_have_traces(self):
        trace, document = self.traced(*VIDEO, "--runtime", "none")
        self.assert_counts(trace, document)
        self.assert_phases_last(trace, document)
        trace, document = self.traced(*VIDEO)
        self.assert_phases_last(trace, document)
        trace, document = self.traced(*TRAINING)
        self.assert_counts(trace, document)
        self.assert_phases_last(trace, document)
        self.assertIn("busiest stage", " ".join(trace["otherData"]["notes"]))
        trace, document = self.traced(PROGRAM, "--hw", "rtx4090", command="graph")
        begin, end = self.phases(trace)[0]
        self.assertAlmostEqual(seconds(end - begin), document["time_s"], delta=NANOSECONDS * 1e-9)

    def test_the_file_says_what_made_it(self):
        trace, document = self.traced(*QWEN)
        data = trace["otherData"]
        self.assertEqual(data["tool"], document["tool"])
        self.assertEqual(data["command"], document["command"])
        self.assertEqual((data["model"], data["hardware"], data["label"]), ("qwen-7b", "rtx4090", document["label"]))
        self.assertEqual([phase["time_s"] for phase in data["phases"]], [document["ttft_s"], document["tpot_s"]])

    def test_a_hostile_model_name_is_text(self):
        with open(os.path.join(ROOT, "tests", "replay", "tiny.yaml"), encoding="utf-8") as file:
            text = file.read()
        name = self.write("evil.yaml", text.replace("name: tiny", "name: '<script>\"}]'", 1))
        trace, _ = self.traced("-m", name, "--hw", "rtx4090", "--runtime", "none")
        self.assertIn("<script>", json.dumps(trace["otherData"]))

    def test_commands_without_a_step_have_no_trace(self):
        self.assert_bad_input(["limits", *QWEN, "--export", "x.trace.json"], "no step to trace", "llmperf estimate")


if __name__ == "__main__":
    unittest.main()
