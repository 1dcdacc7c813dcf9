"""Message headers read by compiled code: the columns that Python reads, and the same names for the same texts."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from tests.refinement.tigerbeetle.logs import CONFORMING, REJECTED, lines_of
from viewproof.refinement.flat.dictionary import Dictionary, NotPlain
from viewproof.refinement.flat.terms import NULL
from viewproof.refinement.tigerbeetle.headers import COLUMNS, Headers, Names
from viewproof.refinement.tigerbeetle.profile import JULY, JUNE
from viewproof.refinement.tigerbeetle.word_headers import WordHeaders

HEADER = re.compile(r"\w+\{ .*\}$")
NUMBERED = frozenset(
    ("message", "m_content", "m_checksum", "m_parent", "m_prepare", "m_asked", "m_client", "m_nonce", "m_operation",
     "m_reply")
)  # fmt: skip


def headers_of(name: str, count: int) -> list[str]:
    """The different headers of the first lines of a shipped log."""
    found = (HEADER.search(line) for line in lines_of(name, count))
    return [text for text in dict.fromkeys(one[0] for one in found if one) if ".size" in text and ".command" in text]


def changed(text: str, rng: random.Random) -> str:
    """The header with one change."""
    fields = list(re.finditer(r"= ?([^, ]+)", text))
    field = rng.choice(fields)
    value = rng.choice(
        ("0", "00", "1", "null", "x.y.register", "9" * 18, "0123", "a b", "", "f" * 40, "ö", field[1] + "0")
    )
    whole = text[: field.start(1)] + value + text[field.end(1) :]
    return rng.choice((whole, whole, whole, text.replace(", ", ",", 1), text[:-1] + " }", text.replace("=", " = ", 1)))


def check(form: object, texts: list[str], parts: int) -> None:
    """Different headers, read in so many parts: compiled code says what Python says, up to the numbers of names."""
    by_python = Headers(form, Names())  # type: ignore[arg-type]
    dictionary = Dictionary(())
    codes = dictionary.intern([text.encode() for text in texts])
    words = WordHeaders(form, Names(), dictionary)  # type: ignore[arg-type]
    for some in np.array_split(codes, parts):
        words.read(np.ascontiguousarray(some))
    names: dict[str, tuple[dict[int, int], dict[int, int]]] = {}
    kinds = {"m_parent": "m_checksum", "m_prepare": "m_checksum", "m_asked": "m_checksum"}
    for text, row in zip(texts, words.rows.tolist(), strict=False):
        for column, value, word in zip(COLUMNS, by_python.of(text), row, strict=True):
            if value is None:
                assert word == NULL, (column, text)
            elif isinstance(value, str):
                assert dictionary.text(word) == value, (column, text)
            elif column in NUMBERED:
                there, back = names.setdefault(kinds.get(column, column), ({0: 0}, {0: 0}))
                assert there.setdefault(int(value), word) == word, (column, text)
                assert back.setdefault(word, int(value)) == int(value), (column, text)
            else:
                assert word == value, (column, text)


@pytest.mark.parametrize("name", [*REJECTED, *CONFORMING])
def test_headers_of_shipped_logs(name: str) -> None:
    """All kinds of messages of both families."""
    check(JUNE.form if "2022" in name else JULY.form, headers_of(name, 20_000), 7)


@pytest.mark.parametrize("name", ["tigerbeetle-2022-06/seed-1.log.zst", "tigerbeetle-2026-07/seed-103.log.zst"])
def test_changed_headers(name: str) -> None:
    """Other spaces, names of zeros, fields that are no numbers, headers that are cut, texts that are not ASCII."""
    rng, texts = random.Random(7), headers_of(name, 8_000)
    odd = list(dict.fromkeys(changed(rng.choice(texts), rng) for _ in range(250)))
    form = JUNE.form if "2022" in name else JULY.form
    plain = []
    for text in odd:
        try:
            check(form, [text], 1)
            plain.append(text)
        except NotPlain:
            pass
    assert len(plain) > len(odd) / 2
    check(form, list(dict.fromkeys([*texts[:50], *plain])), 3)
    check(form, plain, 1)
