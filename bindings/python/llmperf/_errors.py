"""What goes wrong, as exceptions. Messages of the library name the fields of a request between backquotes; here they
are keywords."""
import difflib
import json
import re

_FIELD = re.compile(r"(?:`([a-z][a-z0-9-]*)`|--([a-z][a-z0-9-]*))(?: (-?\d+(?:\.\d+)?)(?![\w.:]))?")


def in_keywords(text, keys):
    """`gpu-layers` 20 is gpu_layers=20, `tensor-split` alone tensor_split=, and before a colon it is a name. What is no
    keyword stays."""
    def keyword(match):
        key = keys.get(match[1] or match[2])
        if key is None:
            return match[0]
        return key if text.startswith(":", match.end()) else f"{key}={match[3] or ''}"
    return _FIELD.sub(keyword, text)


class Error(Exception):
    """Of every error: `errors`, a list of dicts with "message" and, where there is one, "hint", "file", "line" and
    "column"; all that were found at once."""

    def __init__(self, errors):
        self.errors = errors
        super().__init__("\n".join(_formatted(e) for e in errors))

    def __reduce__(self):
        return type(self), (self.errors,), self.__dict__

    @property
    def hints(self):
        """The ways out, as texts."""
        return [e["hint"] for e in self.errors if e.get("hint")]


class BadInput(Error, ValueError):
    """A name, a file, a value or a keyword that is wrong (exit status 2 of the program)."""


class UnknownKeyword(BadInput, TypeError):
    """A keyword that the function does not have."""


class DoesNotFit(Error):
    """Understood, and it cannot be done: too little memory, no machine within the bounds (exit status 3). `hints` say
    what would do; `result` is the document, with what memory is needed and no times."""

    def __init__(self, errors, result=None):
        super().__init__(errors)
        self.result = result


class Failed(Error, RuntimeError):
    """Something outside the input went wrong (exit status 1)."""


def _formatted(error):
    where = ":".join(str(error[key]) for key in ("file", "line", "column") if error.get(key))
    text = f"{where}: {error['message']}" if where else error["message"]
    return text + (f"\n  hint: {error['hint']}" if error.get("hint") else "")


def problems(text, keys):
    """The errors of a document llmperf.error, in the words of keywords."""
    errors = json.loads(text)["errors"] if text else [{"message": "failed without a reason"}]
    for error in errors:
        if error.get("file") == "request":  # the text that was made of the keywords, which nobody sees
            for part in ("file", "line", "column"):
                error.pop(part, None)
        for part in ("message", "hint"):
            if part in error:
                error[part] = in_keywords(error[part], keys)
    return errors


def unknown_keyword(function, keyword, known):
    near = difflib.get_close_matches(keyword, known, n=1)
    error = {"message": f"{function}() has no keyword {keyword}="}
    if near:
        error["hint"] = f"did you mean {near[0]}=?"
    return UnknownKeyword([error])
