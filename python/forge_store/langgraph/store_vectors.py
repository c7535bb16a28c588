"""The vectors of a store: which texts are embedded, and how similar they are to a query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from langgraph.store.base import IndexConfig, PutOp, ensure_embeddings
from langgraph.store.base import get_text_at_path, tokenize_path

from .. import Invalid
from .._values import refusal

Vector = list[float]


class VectorIndex:
    """How texts of values are embedded."""

    def __init__(self, config: IndexConfig) -> None:
        self.embeddings = ensure_embeddings(config.get("embed"))
        self._dims = config.get("dims")
        self._fields = config.get("fields") or ["$"]

    def texts(self, op: PutOp) -> dict[str, str]:
        """The texts of a value that are embedded, by their paths."""
        if op.value is None or op.index is False:
            return {}
        found: dict[str, str] = {}
        for path in self._fields if op.index is None else op.index:
            texts = get_text_at_path(op.value, path if path == "$" else tokenize_path(path))
            for place, text in enumerate(texts):
                found[path if len(texts) == 1 else f"{path}.{place}"] = text
        return found

    def checked(self, vectors: Sequence[Sequence[float]], count: int) -> list[Vector]:
        """The vectors as they are stored; refuses those of another number or length."""
        if len(vectors) != count:
            what = f"the embedding returned {len(vectors)} vectors for {count} texts"
            raise refusal(Invalid, what, "let 'embed' return one vector a text")
        for vector in vectors:
            if self._dims is not None and len(vector) != self._dims:
                what = f"the embedding has {len(vector)} dimensions, and the index {self._dims}"
                raise refusal(Invalid, what, "set 'dims' to that of the embedding")
        return [[float(number) for number in vector] for vector in vectors]


def best_scores(query: Vector, known: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """The cosine similarity of the best vector of each item; ``None`` for one without vectors."""
    rows = [vector for vectors in known for vector in vectors.values()]
    scores = iter(_similarities(query, rows))
    return [max((next(scores) for _ in vectors), default=None) for vectors in known]


def _similarities(query: Vector, rows: list[Vector]) -> list[float]:
    if not rows:
        return []
    try:
        numpy: Any = import_module("numpy")
    except ImportError:
        length = _length(query)
        products = (sum(a * b for a, b in zip(query, row)) for row in rows)
        return [
            product / norm if (norm := length * _length(row)) else 0.0
            for product, row in zip(products, rows)
        ]
    table = numpy.asarray(rows)
    norms = numpy.linalg.norm(table, axis=1) * numpy.linalg.norm(query)
    found: list[float] = list(table @ numpy.asarray(query) / numpy.where(norms == 0, 1.0, norms))
    return [float(score) for score in found]


def _length(vector: Vector) -> float:
    return math.sqrt(sum(number * number for number in vector))
