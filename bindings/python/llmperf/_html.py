"""How results look in a notebook, and in a line of text."""
from html import escape

# What is shown of a document first: key, words, unit.
_HEADLINE = (("ttft_s", "TTFT", "s"), ("tpot_s", "TPOT", "s"), ("generation_s", "generation", "s"),
             ("step_s", "step", "s"), ("tokens_per_second", "tokens/s", ""), ("mfu", "MFU", "%"),
             ("cost_per_hour", "cost per hour", ""), ("largest_batch", "largest batch", ""),
             ("cost_per_million_output_tokens", "cost of a million output tokens", ""))
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))
_ROWS = 20


def number(value, unit=""):
    """Four digits with the unit: 12.06 ms, 15.58 GiB."""
    if value is None:
        return ""
    if unit == "%":
        return f"{100 * value:.1f} %"
    if unit == "B":
        for size, prefix in ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
            if value >= size:
                return f"{value / size:.4g} {prefix}B"
        return f"{value:.4g} B"
    if not unit:
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    scale, prefix = next((p for p in _PREFIXES if abs(value) >= p[0]), _PREFIXES[-1])
    if unit == "s" and scale > 1:
        scale, prefix = 1, ""
    return f"{value / scale:.4g} {prefix}{unit}" if value else f"0 {unit}"


def title(document):
    inputs = document["inputs"]
    return f"{inputs['model']['name']} on {inputs['hardware']['name']}"


def headline(document):
    """Words and values."""
    out = [(words, number(document[key], unit)) for key, words, unit in _HEADLINE if document.get(key) is not None]
    memory = document["memory"]
    need, has = (number(memory[key], "B") for key in ("total_bytes", "capacity_bytes"))
    return [("memory", f"{need} of {has}"), *out] if document["fits"] else [("does not fit:", f"needs {need} of {has}")]


def _table(head, rows):
    cells = "".join(f"<th>{escape(text)}</th>" for text in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table>{'<thead><tr>' + cells + '</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def estimate(document):
    parts = [f"<p><b>{escape(title(document))}</b>: {escape(document['label'])}</p>", _table((), headline(document))]
    if document["fits"]:
        phases = [(p["name"], f"{p['steps']:,}", number(p["time_s"], "s"), number(p["flops"], "FLOP"),
                   number(p["bytes"], "B"), p["bound"]) for p in document["phases"]]
        parts.append(_table(("phase", "steps", "time of one", "FLOPs", "memory traffic", "bound"), phases))
    parts += [f"<p>{escape(note)}</p>" for note in document.get("notes", ())]
    return "".join(parts)


def _value(name, value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return number(value, "s" if name.endswith("_s") else "B" if name.endswith("_bytes") else "")
    return "" if value is None else str(value)


def summary(of):
    """The first plain values at the top, as text."""
    plain = [(key, value) for key, value in list(of.items())[3:] if isinstance(value, (int, float, str))]
    return ", ".join(f"{key} {_value(key, value)}" for key, value in plain[:8])


def document(of):
    """The plain values at the top, and of lists of objects how many there are."""
    rows = []
    for key, value in of.items():
        if key in ("schema", "schema_version", "tool", "command", "request"):
            continue
        if isinstance(value, dict):
            plain = [f"{k} {_value(key, v)}" for k, v in value.items() if isinstance(v, (int, float, str))]
            value = ", ".join(plain) or "…"
        elif isinstance(value, list):
            value = ", ".join(value) if all(isinstance(v, str) for v in value) else f"{len(value)} entries"
        rows.append((key, _value(key, value)))
    return f"<p><b>{escape(of['schema'])}</b></p>" + _table((), rows)


def rows(sweep):
    """The first rows, without columns that hold one value in all of them."""
    columns = {name: values for name, values in sweep.to_dict().items()
               if len(sweep) == 1 or len(set(map(str, values))) > 1}
    first = zip(*(values[:_ROWS] for values in columns.values()))
    shown = [[_value(name, value) for name, value in zip(columns, row)] for row in first]
    more = f"<p>{len(sweep):,} rows; columns that do not change are not shown</p>"
    return _table(columns, shown) + more
