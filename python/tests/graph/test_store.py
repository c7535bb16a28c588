"""What a `BaseStore` promises, tried on `ForgeStore` and, as a check of these tests, on LangGraph's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import forge_store
import pytest
from forge_store.langgraph import ForgeStore
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, Item, ListNamespacesOp
from langgraph.store.base import MatchCondition, PutOp, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore

Batch = Callable[..., list[Any]]


@pytest.fixture(params=["langgraph", "forge"])
def memories(request: pytest.FixtureRequest) -> Iterator[BaseStore]:
    if request.param == "langgraph":
        yield InMemoryStore()
    else:
        with ForgeStore() as memories:
            yield memories


@pytest.fixture(params=["sync", "async"])
def batch(request: pytest.FixtureRequest, memories: BaseStore) -> Batch:
    """`batch` or `abatch`, which must do the same."""
    if request.param == "sync":
        return lambda *ops: memories.batch(ops)
    return lambda *ops: asyncio.run(memories.abatch(ops))


def found(result: Any) -> list[tuple[tuple[str, ...], str]]:
    return sorted((item.namespace, item.key) for item in result)


# Items


def test_an_item_comes_back_whole(batch: Batch) -> None:
    value = {"text": "ü", "list": [1, 2.5, None, {"deep": None}], "empty": {}, "yes": True}
    assert batch(PutOp(("a", "b"), "k", value)) == [None]
    [item] = batch(GetOp(("a", "b"), "k"))
    assert isinstance(item, Item) and item.value == value
    assert (item.namespace, item.key) == (("a", "b"), "k")
    assert item.created_at.tzinfo is not None and item.updated_at >= item.created_at


def test_what_is_not_there_is_none(batch: Batch) -> None:
    assert batch(ListNamespacesOp(), GetOp(("a",), "k"), SearchOp(("a",))) == [[], None, []]
    batch(PutOp(("a", "b"), "k", {}))
    assert batch(GetOp(("a",), "k"), GetOp(("a", "b"), "other")) == [None, None]


def test_a_put_replaces_the_whole_value(batch: Batch) -> None:
    batch(PutOp(("a",), "k", {"one": 1}))
    batch(PutOp(("a",), "k", {"two": 2}))
    assert batch(GetOp(("a",), "k"))[0].value == {"two": 2}
    assert len(batch(SearchOp(("a",)))[0]) == 1


def test_none_deletes(batch: Batch) -> None:
    batch(PutOp(("a",), "k", {"one": 1}), PutOp(("a",), "other", {}))
    batch(PutOp(("a",), "k", None), PutOp(("a",), "absent", None))
    assert batch(GetOp(("a",), "k")) == [None]
    assert found(batch(SearchOp(("a",)))[0]) == [(("a",), "other")]


@pytest.mark.parametrize(
    "key", ["a/b", "%2F", "~", " spaces ", "line\nbreak", "x" * 900, "..", "*", "ü🦀"]
)
def test_any_text_is_a_key_and_a_label(batch: Batch, key: str) -> None:
    batch(PutOp(("ns", key), key, {"key": key}), PutOp(("ns",), key, {"up": 1}))
    assert batch(GetOp(("ns", key), key))[0].value == {"key": key}
    assert found(batch(SearchOp(("ns", key)))[0]) == [(("ns", key), key)]
    assert (("ns", key)) in batch(ListNamespacesOp())[0]


def test_values_are_copies(batch: Batch) -> None:
    value = {"number": 1}
    batch(PutOp(("a",), "k", value))
    value["number"] = 2
    assert batch(GetOp(("a",), "k"))[0].value == {"number": 1}


# Batches


def test_results_are_in_the_order_of_the_operations(batch: Batch) -> None:
    batch(PutOp(("a",), "one", {"n": 1}), PutOp(("a",), "two", {"n": 2}))
    ops = [GetOp(("a",), "two"), PutOp(("a",), "three", {}), SearchOp(("a",)), GetOp(("a",), "one")]
    two, nothing, search, one = batch(*ops)
    assert (two.value, nothing, one.value) == ({"n": 2}, None, {"n": 1})
    assert found(search) == [(("a",), "one"), (("a",), "two")]


def test_a_batch_reads_what_was_before_it(batch: Batch) -> None:
    batch(PutOp(("a",), "k", {"n": 1}))
    put, get, search, spaces = batch(
        PutOp(("a",), "k", {"n": 2}),
        GetOp(("a",), "k"),
        SearchOp(("a",)),
        ListNamespacesOp(),
    )
    assert put is None and get.value == {"n": 1} and [one.value for one in search] == [{"n": 1}]
    assert spaces == [("a",)] and batch(GetOp(("a",), "k"))[0].value == {"n": 2}


def test_the_last_put_of_a_key_counts(batch: Batch) -> None:
    batch(PutOp(("a",), "k", {"n": 1}), PutOp(("a",), "gone", {}), PutOp(("a",), "k", {"n": 2}))
    batch(PutOp(("a",), "gone", {"n": 3}), PutOp(("a",), "gone", None))
    assert [item.value for item in batch(SearchOp(("a",)))[0]] == [{"n": 2}]


def test_an_empty_batch_does_nothing(batch: Batch) -> None:
    assert batch() == []


# Search


@pytest.fixture
def posts(batch: Batch) -> Batch:
    batch(
        PutOp(("posts", "x"), "1", {"kind": "news", "score": 5, "tags": ["a"], "by": {"id": 1}}),
        PutOp(("posts", "x"), "2", {"kind": "news", "score": 7, "tags": ["a", "b"], "by": {"id": 2}}),
        PutOp(("posts", "y"), "3", {"kind": "talk", "score": 5.0, "tags": [], "by": {"id": 1}}),
        PutOp(("postscript",), "4", {"kind": "news", "score": 9}),
    )
    return batch


@pytest.mark.parametrize(
    "prefix, keys", [((), "1234"), (("posts",), "123"), (("posts", "x"), "12"), (("post",), "")]
)
def test_a_search_is_of_a_namespace_and_those_below(
    posts: Batch, prefix: tuple[str, ...], keys: str
) -> None:
    [result] = posts(SearchOp(prefix))
    assert sorted(item.key for item in result) == list(keys)
    assert all(isinstance(item, SearchItem) and item.score is None for item in result)


@pytest.mark.parametrize(
    "wanted, keys",
    [
        ({"kind": "news"}, "12"),
        ({"kind": "news", "score": 7}, "2"),
        ({"kind": {"$eq": "talk"}}, "3"),
        ({"kind": {"$ne": "news"}}, "3"),
        ({"score": {"$gt": 5}}, "2"),
        ({"score": {"$gte": 5}}, "123"),
        ({"score": {"$lt": 7}}, "13"),
        ({"score": {"$lte": 7}}, "123"),
        ({"score": {"$gt": 4, "$lt": 6}}, "13"),
        ({"tags": ["a", "b"]}, "2"),
        ({"by": {"id": 1}}, "13"),
        ({"by": {"id": {"$gte": 2}}}, "2"),
        ({"missing": None}, "123"),
        ({"missing": 1}, ""),
        ({}, "123"),
    ],
)
def test_a_filter_chooses(posts: Batch, wanted: dict[str, Any], keys: str) -> None:
    [result] = posts(SearchOp(("posts",), filter=wanted))
    assert sorted(item.key for item in result) == list(keys)


def test_an_unknown_operator_is_refused(posts: Batch) -> None:
    with pytest.raises(ValueError, match="near"):
        posts(SearchOp(("posts",), filter={"score": {"$near": 1}}))


def test_limit_and_offset_make_pages(batch: Batch) -> None:
    batch(*(PutOp(("n",), f"{number:02}", {}) for number in range(25)))
    assert len(batch(SearchOp(("n",)))[0]) == 10
    pages = [batch(SearchOp(("n",), limit=7, offset=start))[0] for start in range(0, 28, 7)]
    assert [len(page) for page in pages] == [7, 7, 7, 4]
    assert len({item.key for page in pages for item in page}) == 25


# Namespaces


@pytest.fixture
def spaces(batch: Batch) -> Batch:
    names = ["a/b/c", "a/b/d", "a/b/d/i", "a/c/f", "b/a/f", "c"]
    batch(*(PutOp(tuple(name.split("/")), "k", {}) for name in names))
    return batch


def listed(batch: Batch, **how: Any) -> list[str]:
    return ["/".join(namespace) for namespace in batch(ListNamespacesOp(**how))[0]]


def where(match_type: Any, path: str) -> MatchCondition:
    return MatchCondition(match_type, tuple(path.split("/")))


@pytest.mark.parametrize(
    "conditions, names",
    [
        ([], ["a/b/c", "a/b/d", "a/b/d/i", "a/c/f", "b/a/f", "c"]),
        ([where("prefix", "a/b")], ["a/b/c", "a/b/d", "a/b/d/i"]),
        ([where("suffix", "f")], ["a/c/f", "b/a/f"]),
        ([where("prefix", "a"), where("suffix", "f")], ["a/c/f"]),
        ([where("prefix", "a/*/f")], ["a/c/f"]),
        ([where("prefix", "*/a")], ["b/a/f"]),
        ([where("suffix", "*/f")], ["a/c/f", "b/a/f"]),
        ([where("prefix", "a/b/c/d")], []),
    ],
)
def test_conditions_choose_namespaces(
    spaces: Batch, conditions: list[MatchCondition], names: list[str]
) -> None:
    assert listed(spaces, match_conditions=tuple(conditions)) == names


def test_a_depth_shortens_namespaces(spaces: Batch) -> None:
    assert listed(spaces, max_depth=2) == ["a/b", "a/c", "b/a", "c"]
    assert listed(spaces, max_depth=1, limit=2, offset=1) == ["b", "c"]


def test_pages_of_namespaces(spaces: Batch) -> None:
    assert listed(spaces, limit=2, offset=3) == ["a/c/f", "b/a/f"]


def test_methods_of_the_base_class(memories: BaseStore) -> None:
    for wrong in ((), ("a.b",), ("",), ("langgraph",)):
        with pytest.raises(InvalidNamespaceError):
            memories.put(wrong, "k", {})
    memories.put(("a",), "k", {"n": 1})
    item = memories.get(("a",), "k")
    assert item is not None and item.value == {"n": 1}
    assert [one.key for one in memories.search(("a",), filter={"n": 1})] == ["k"]
    assert memories.list_namespaces(prefix=("*",)) == [("a",)]
    memories.delete(("a",), "k")
    assert memories.get(("a",), "k") is None


def test_async_methods_of_the_base_class(memories: BaseStore) -> None:
    async def use() -> None:
        await asyncio.gather(*(memories.aput(("a",), str(n), {"n": n}) for n in range(20)))
        assert len(await memories.asearch(("a",), limit=100)) == 20
        await memories.adelete(("a",), "3")
        assert await memories.aget(("a",), "3") is None
        assert await memories.alist_namespaces() == [("a",)]

    asyncio.run(use())


# Vectors


def embed(texts: list[str]) -> list[list[float]]:
    """How often a text has each of these letters."""
    return [[float(text.count(letter)) for letter in "abcd"] for text in texts]


async def embed_later(texts: list[str]) -> list[list[float]]:
    await asyncio.sleep(0)
    return embed(texts)


@pytest.fixture(params=["langgraph", "forge"])
def similar(request: pytest.FixtureRequest) -> Iterator[BaseStore]:
    index: Any = {"dims": 4, "embed": embed, "fields": ["text", "list[*].text"]}
    if request.param == "langgraph":
        yield InMemoryStore(index=index)
    else:
        with ForgeStore(index=index) as memories:
            yield memories


def test_a_query_orders_by_similarity(similar: BaseStore) -> None:
    similar.put(("d",), "a", {"text": "aaa"})
    similar.put(("d",), "ab", {"text": "ab"})
    similar.put(("d",), "none", {"text": "bbb"}, index=False)
    similar.put(("e",), "other", {"text": "aaa"})
    result = similar.search(("d",), query="a")
    assert [item.key for item in result] == ["a", "ab", "none"]
    assert result[0].score == pytest.approx(1.0) and result[1].score == pytest.approx(0.5**0.5)
    assert result[2].score is None
    assert [item.key for item in similar.search(("d",), query="a", limit=1, offset=1)] == ["ab"]


def test_the_best_vector_of_an_item_counts(similar: BaseStore) -> None:
    similar.put(("d",), "many", {"text": "dd", "list": [{"text": "b"}, {"text": "c"}]})
    similar.put(("d",), "one", {"text": "cd"})
    result = similar.search(("d",), query="c")
    assert [item.key for item in result] == ["many", "one"]
    assert [item.score for item in result] == pytest.approx([1.0, 0.5**0.5])


def test_a_put_names_its_own_fields(similar: BaseStore) -> None:
    similar.put(("d",), "k", {"text": "a", "other": "b"}, index=["other"])
    assert similar.search(("d",), query="b")[0].score == pytest.approx(1.0)
    assert similar.search(("d",), query="a")[0].score == pytest.approx(0.0)


def test_a_filter_and_a_query_go_together(similar: BaseStore) -> None:
    similar.put(("d",), "a", {"text": "a", "kind": 1})
    similar.put(("d",), "b", {"text": "b", "kind": 2})
    result = similar.search(("d",), query="a", filter={"kind": 2})
    assert [item.key for item in result] == ["b"] and result[0].score == pytest.approx(0.0)


def test_a_deleted_item_is_not_found_by_similarity(similar: BaseStore) -> None:
    similar.put(("d",), "a", {"text": "a"})
    similar.delete(("d",), "a")
    assert similar.search(("d",), query="a") == []


def test_a_query_without_an_index_only_filters(memories: BaseStore) -> None:
    memories.put(("d",), "a", {"text": "a"})
    assert [item.score for item in memories.search(("d",), query="a")] == [None]


@pytest.mark.parametrize("kind", [InMemoryStore, ForgeStore])
def test_an_embedding_may_be_awaited(kind: Any) -> None:
    memories: BaseStore = kind(index={"dims": 4, "embed": embed_later})

    async def use() -> list[SearchItem]:
        await memories.aput(("d",), "a", {"text": "a"})
        await memories.aput(("d",), "b", {"text": "bbb"})
        return await memories.asearch(("d",), query="b")

    assert [item.key for item in asyncio.run(use())] == ["b", "a"]


def test_a_vector_of_another_length_is_refused() -> None:
    index: Any = {"dims": 3, "embed": embed}
    with ForgeStore(index=index) as memories:
        with pytest.raises(forge_store.Invalid, match="4 dimensions, and the index 3"):
            memories.put(("d",), "a", {"text": "a"})
        assert memories.search(("d",)) == []
