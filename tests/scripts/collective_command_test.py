#!/usr/bin/env python3
"""`llmperf map-collective`: its tables and documents say the same, and its sizes, ranks and algorithms are checked."""
import csv
import io
import math
import unittest

from program import ProgramTest

A2 = ["map-collective", "--hw", "atlas-800i-a2", "--op", "all-reduce"]
OPS = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send", "ring-pass", "broadcast"]


class Collective(ProgramTest):
    def test_two_shots_over_seven_links_by_hand(self):
        document = self.json(*A2, "--size", "112MB", "--ranks", "8")
        self.assertEqual(document["rows"][0]["algorithm"], "two-shot")
        chosen, = [row for row in document["rows"] if row["chosen"]]
        self.assertEqual(chosen, document["rows"][0])
        self.assertEqual(chosen["sent_bytes"], 2 * 7 / 8 * 112e6)
        self.assertEqual(chosen["busiest_link_bytes"], 2 / 8 * 112e6)  # 28 MB over 28 GB/s
        self.assertTrue(math.isclose(chosen["transfer_s"], 1e-3))
        self.assertTrue(math.isclose(chosen["latency_s"], 2e-6))
        self.assertTrue(math.isclose(chosen["time_s"], 1.002e-3))
        self.assertEqual(chosen["bound"], "bandwidth")
        self.assertTrue(math.isclose(chosen["algorithm_bandwidth_bytes_per_s"], 112e6 / 1.002e-3))
        self.assertTrue(math.isclose(chosen["bus_bandwidth_bytes_per_s"], 196e6 / 1.002e-3))
        self.assertEqual(document["inside"]["provenance"], "datasheet")
        self.assertEqual(document["inside"]["latency_provenance"], "assumed")

    def test_the_fastest_comes_first_and_the_sizes_where_that_changes_are_right(self):
        for hardware in ["atlas-800i-a2", "h100-sxm", "rtx4090", "tpu-v5e", "tx81", "gb200"]:
            for op in OPS:
                for ranks in ["2", "8", "64"]:
                    words = ["map-collective", "--hw", hardware, "--op", op, "--ranks", ranks]
                    with self.subTest(words=words):
                        document = self.json(*words, "--size", "1MiB")
                        times = [row["time_s"] for row in document["rows"]]
                        self.assertEqual(times, sorted(times))
                        self.assertEqual(document["fastest"][0]["from_bytes"], 1)
                        for before, after in zip(document["fastest"], document["fastest"][1:]):
                            edge = after["from_bytes"]
                            rows = self.json(*words, "--size", f"{edge - 1}B,{edge + 1}B")["rows"]
                            self.assertEqual([row["algorithm"] for row in rows], [before["algorithm"], after["algorithm"]])

    def test_a_list_of_sizes_is_a_row_each(self):
        rows = self.json(*A2, "--size", "1KiB,1MiB,1GiB", "--ranks", "8")["rows"]
        self.assertEqual([row["size_bytes"] for row in rows], [2**10, 2**20, 2**30])
        self.assertEqual([row["algorithm"] for row in rows], ["one-shot", "two-shot", "two-shot"])
        rows = self.json(*A2, "--sweep", "--ranks", "8")["rows"]
        self.assertEqual([row["size_bytes"] for row in rows], [4**n for n in range(5, 16)])
        times = [row["time_s"] for row in rows]
        self.assertEqual(times, sorted(times))

    def test_nodes(self):
        document = self.json(*A2, "--size", "1MiB", "--ranks", "32")
        self.assertEqual((document["devices_per_node"], document["ranks_per_node"], document["nodes"]), (8, 8, 4))
        self.assertIn("hierarchical", [row["algorithm"] for row in document["rows"]])
        document = self.json(*A2, "--size", "1MiB", "--ranks", "4", "--stride", "8")
        self.assertEqual((document["ranks_per_node"], document["nodes"]), (1, 4))
        self.assertEqual({row["busiest_link"] for row in document["rows"]}, {"200 GbE RoCE"})
        document = self.json(*A2, "--size", "1MiB", "--ranks", "8", "--devices-per-node", "4")
        self.assertEqual((document["ranks_per_node"], document["nodes"]), (4, 2))
        document = self.json("map-collective", "--hw", "tpu-v4", "--op", "all-gather", "--size", "1MiB", "--ranks", "4096")
        self.assertEqual((document["devices_per_node"], document["nodes"]), (None, 1))

    def test_one_rank_has_nothing_to_do(self):
        for op in OPS:
            row, = self.json("map-collective", "--hw", "h100-sxm", "--op", op, "--size", "1GiB", "--ranks", "1")["rows"]
            self.assertEqual((row["algorithm"], row["time_s"], row["sent_bytes"]), ("none", 0, 0))

    def test_an_algorithm_can_be_asked_for(self):
        document = self.json(*A2, "--size", "1GiB", "--ranks", "8", "--algorithm", "ring")
        self.assertEqual([row["algorithm"] for row in document["rows"] if row["chosen"]], ["ring"])
        self.assertIn("times faster", self.output(*A2, "--size", "1GiB", "--ranks", "8", "--algorithm", "ring"))
        for row in self.json(*A2, "--sweep", "--ranks", "8", "--algorithm", "ring")["rows"]:
            self.assertEqual(row["algorithm"], "ring")

    def test_csv_and_json_hold_the_same_rows(self):
        words = [*A2, "--size", "1MiB", "--ranks", "16"]
        rows = list(csv.DictReader(io.StringIO(self.output(*words, "--format", "csv"))))
        expected = self.json(*words)["rows"]
        self.assertEqual(len(rows), len(expected))
        for row, entry in zip(rows, expected):
            self.assertEqual(list(row), list(entry))
            self.assertEqual(row["algorithm"], entry["algorithm"])
            self.assertTrue(math.isclose(float(row["time_s"]), entry["time_s"]))

    def test_the_table_says_why_and_what_it_rests_on(self):
        text = self.output(*A2, "--size", "64MiB", "--ranks", "8")
        for fragment in ["bound by bandwidth", "one-shot is faster", "Rests on", "HCCS", "(assumed)", "8 (datasheet)"]:
            self.assertIn(fragment, text)
        self.assertIn("bound by latency", self.output(*A2, "--size", "1KiB", "--ranks", "8"))
        self.assertIn("(given)", self.output(*A2, "--size", "1KiB", "--ranks", "8", "--devices-per-node", "4"))
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100)

    def test_bad_input(self):
        size = ["--size", "1MiB"]
        ranks = ["--ranks", "8"]
        cases = [
            ([*A2, *ranks], "either --size or --sweep"),
            ([*A2, *ranks, *size, "--sweep"], "either --size or --sweep"),
            ([*A2, *ranks, "--size", "64"], "--size: '64' is not an amount"),
            ([*A2, *ranks, "--size", "1MiB,"], "empty item"),
            ([*A2, *ranks, "--size", "0B"], "nothing to exchange"),
            ([*A2, *size, "--ranks", "0"], "--ranks: '0' is not a whole number"),
            ([*A2, *size, "--ranks", "9999999"], "--ranks"),
            ([*A2, *size, *ranks, "--stride", "0"], "--stride"),
            ([*A2, *size, *ranks, "--devices-per-node", "16"], "7 links"),
            ([*A2, *size, *ranks, "--algorithm", "rign"], "did you mean 'ring'"),
            ([*A2, *size, *ranks, "--algorithm", "bruck"], "no bruck all-reduce of 8 ranks"),
            ([*A2[:3], "--op", "allreduce", *size, *ranks], "did you mean 'all-reduce'"),
            (["map-collective", "--hw", "rtx409", "--op", "send", *size, *ranks], "'rtx4090'"),
        ]
        for words, fragment in cases:
            with self.subTest(words=words):
                self.assert_bad_input(words, fragment)


if __name__ == "__main__":
    unittest.main()
