"""Tables of pages that scripts write."""


def table(header, rows):
    """`header`: names; those that start with ':' are columns of text."""
    names = [name.lstrip(":") for name in header]
    rules = "|" + "|".join("---" if name.startswith(":") else "---:" for name in header) + "|"
    lines = ["| " + " | ".join(cells) + " |" for cells in [names, *rows]]
    return "\n".join([lines[0], rules, *lines[1:]])
