"""The rules of the Trace Event Format (docs/trace.md) that readers rely on, as assertions on a parsed file."""
import math

TIMED = {"X", "s", "f", "C"}
METADATA = {"process_name": "name", "process_sort_index": "sort_index", "thread_name": "name", "thread_sort_index": "sort_index"}


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def check_event(test, event):
    test.assertIn(event.get("ph"), TIMED | {"M"}, event)
    test.assertIsInstance(event.get("name"), str, event)
    test.assertTrue(event["name"], event)
    test.assertTrue(is_integer(event.get("pid")) and is_integer(event.get("tid")), event)
    test.assertGreater(event["pid"], 0, event)  # 0 is the idle process to some readers
    test.assertTrue(is_number(event.get("ts")) and event["ts"] >= 0, event)
    if event["ph"] == "X":
        test.assertTrue(is_number(event.get("dur")) and event["dur"] >= 0, event)
        test.assertIsInstance(event.get("cat"), str, event)
        test.assertIsInstance(event.get("args"), dict, event)
    elif event["ph"] == "M":
        test.assertIn(event["name"], METADATA, event)
        value = event["args"][METADATA[event["name"]]]
        test.assertTrue(isinstance(value, str) if METADATA[event["name"]] == "name" else is_integer(value), event)
    elif event["ph"] == "C":
        test.assertTrue(event["args"] and all(is_number(value) for value in event["args"].values()), event)
    else:
        test.assertTrue(is_integer(event.get("id")) and isinstance(event.get("cat"), str), event)
        test.assertEqual(event.get("bp"), "e" if event["ph"] == "f" else None, event)


def slices_of(trace, track=None, process=None):
    """Slices of the threads of that name (all of them), as (start, end, event) in nanoseconds."""
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    processes = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    found = []
    for event in trace["traceEvents"]:
        if event["ph"] != "X":
            continue
        if track is not None and names[event["pid"], event["tid"]] != track:
            continue
        if process is not None and processes[event["pid"]] != process:
            continue
        start = nanoseconds(event["ts"])
        found.append((start, start + nanoseconds(event["dur"]), event))
    return found


def check_nesting(test, slices):
    """In order of their beginnings, none ending after one that it began in."""
    open_ends = []
    last = 0
    for start, end, event in slices:
        test.assertGreaterEqual(start, last, event)
        last = start
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends:
            test.assertLessEqual(end, open_ends[-1], event)
        if end > start:
            open_ends.append(end)


def check_arrows(test, trace, by_track):
    ends = {}
    for event in trace["traceEvents"]:
        if event["ph"] not in "sf":
            continue
        at = nanoseconds(event["ts"])
        track = by_track[event["pid"], event["tid"]]
        test.assertTrue(any(start == at and end > start for start, end, _ in track), event)
        test.assertNotIn(event["ph"], ends.setdefault(event["id"], {}), event)
        ends[event["id"]][event["ph"]] = at
    for arrow, times in ends.items():
        test.assertEqual(sorted(times), ["f", "s"], arrow)
        test.assertLessEqual(times["s"], times["f"], arrow)


def check_trace(test, trace):
    test.assertEqual(set(trace), {"traceEvents", "displayTimeUnit", "otherData"})
    test.assertEqual(trace["displayTimeUnit"], "ns")
    test.assertIsInstance(trace["otherData"], dict)
    by_track = {}
    thread_of = {}
    named = set()
    for event in trace["traceEvents"]:
        check_event(test, event)
        if event["name"] in ("process_name", "thread_name"):
            named.add((event["name"], event["pid"], event["tid"]))
        if event["ph"] != "X":
            continue
        # A thread's number belongs to one process.
        test.assertEqual(thread_of.setdefault(event["tid"], event["pid"]), event["pid"])
        test.assertIn(("thread_name", event["pid"], event["tid"]), named, event)
        test.assertIn(("process_name", event["pid"], 0), named, event)
        start = nanoseconds(event["ts"])
        by_track.setdefault((event["pid"], event["tid"]), []).append((start, start + nanoseconds(event["dur"]), event))
    for slices in by_track.values():
        check_nesting(test, slices)
    check_arrows(test, trace, by_track)
