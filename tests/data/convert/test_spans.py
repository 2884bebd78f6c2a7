"""Spans of characters from doccano, Prodigy, Label Studio and spaCy: what is read, and what is counted."""

import json

import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.data.reading import open_records, read_records
from cdlm_lab.data.records import PassedOver

TEXT = "Ann left Rome. She slept."


def rows(write, *given, task="tagging"):
    path = write("test.jsonl", list(given))
    passed_over = PassedOver()
    some = list(read_records(task, path.parent, "test", passed_over=passed_over))
    return some, {reason: count for reason, (count, _) in passed_over.counts.items()}


def names(document):
    """Words of each span with their label."""
    found = []
    for sentence in document.sentences:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            if tag.startswith("B-"):
                found.append([tag[2:], word])
            elif tag != "O":
                found[-1].append(word)
    return [tuple(one) for one in found]


def studio(*results, text=TEXT, **more):
    return {"id": 3, "data": {"text": text}, "annotations": [{"result": list(results), **more}]}


def region(name, start, end, label="PER", **more):
    return {"id": name, "type": "labels", "value": {"start": start, "end": end, "labels": [label], **more}}


WITHIN = "span that begins or ends within a word, which was divided"


@pytest.mark.parametrize(("row", "expected", "counted"), [
    ({"text": TEXT, "label": [[0, 3, "PER"], [9, 13, "LOC"]]}, [("PER", "Ann"), ("LOC", "Rome")], {}),
    ({"text": TEXT, "labels": [[9, 14, "LOC"]]}, [("LOC", "Rome", ".")], {}),
    ({"text": TEXT, "label": [[9, 12, "LOC"]]}, [("LOC", "Rom")], {WITHIN: 1}),
    ({"text": TEXT, "label": [[0, 8, "A"], [4, 13, "B"], [4, 8, "C"]]}, [("A", "Ann", "left")],
     {"span that crosses another one, which counts": 1, "span within another one, which counts": 1}),
    ({"text": TEXT, "label": [[0, 99, "A"], [-1, 3, "A"], [3, 3, "A"], [3, 4, "A"], [0, 3, "A"]]},
     [("A", "Ann")], {"span outside of its text": 3, "span without words": 1}),
    ({"text": TEXT, "spans": [{"start": 0, "end": 3, "label": "PER", "token_start": 0}], "answer": "accept"},
     [("PER", "Ann")], {}),
    ({"text": TEXT, "spans": [{"start": 0, "end": 3}]}, [], {"span without a label": 1}),
    ({"text": TEXT, "entities": [{"id": 1, "label": "PER", "start_offset": 0, "end_offset": 3}]},
     [("PER", "Ann")], {}),
    ({"text": TEXT, "ents": [{"start": 9, "end": 13, "label": "GPE"}],
      "spans": {"coref_clusters_1": [{"start": 0, "end": 3, "label": ""}]}}, [("GPE", "Rome")], {}),
    (studio(region("a", 0, 3, text="Ann"), {"id": "b", "type": "choices", "value": {"choices": ["x"]}}),
     [("PER", "Ann")], {"result that is no span": 1}),
    (studio(region("a", 3, 6, text="Ann"), region("b", 3, 6, text="And"), text="😀 Ann left."),
     [("PER", "Ann")], {"span whose text is not what stands at its place": 1}),
    ({"text": TEXT, "label": [{"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]}], "annotator": 1},
     [("PER", "Ann")], {}),
])  # fmt: skip
def test_names(write, row, expected, counted):
    (document,), lost = rows(write, row)
    assert (names(document), lost) == (expected, counted)


def test_texts_that_were_rejected_or_not_annotated_are_counted(write):
    some, lost = rows(
        write, {"text": "a", "spans": [], "answer": "accept"}, {"text": "b", "spans": [], "answer": "reject"},
        studio(was_cancelled=True), {"id": 1, "data": {"text": "a"}, "annotations": []},
    )  # fmt: skip
    assert len(some) == 1
    assert lost == {"text whose answer is reject": 1, "text that nobody annotated": 2}


RELATION = {"from_id": "a", "to_id": "b", "type": "relation"}
HEAD, CHILD = ({"start": a, "end": b, "label": "PER"} for a, b in ((15, 18), (0, 3)))


@pytest.mark.parametrize("row", [
    {"text": TEXT, "entities": [{"id": 5, "label": "PER", "start_offset": 0, "end_offset": 3},
                                {"id": 6, "label": "PER", "start_offset": 15, "end_offset": 18}],
     "relations": [{"id": 1, "from_id": 5, "to_id": 6, "type": "same as"}]},
    {"text": TEXT, "spans": [CHILD],
     "relations": [{"head_span": HEAD, "child_span": CHILD, "label": "COREF"}]},
    studio(region("a", 0, 3), region("b", 15, 18), {**RELATION, "labels": ["coref"]}),
    studio(region("a", 0, 3), region("b", 15, 18), RELATION),
    {"text": TEXT, "ents": [CHILD],
     "spans": {"coref_clusters_1": [CHILD, HEAD], "sc": [{"start": 0, "end": 9}]}},
    {"text": TEXT, "spans": [CHILD | {"cluster": 7}, HEAD | {"cluster": 7}]},
])  # fmt: skip
def test_clusters(write, row):
    (document,), lost = rows(write, row, task="coreference")
    assert [document.text_of(one) for one in document.mentions] == ["Ann", "She"]
    assert len({one.cluster for one in document.mentions}) == 1
    assert ({one.kind for one in document.mentions}, lost) == ({"entity"}, {})


def test_other_relations_are_no_coreference_and_labels_tell_events(write):
    given = studio(
        region("a", 0, 3), region("b", 19, 24, "Event"), {**RELATION, "labels": ["agent"]},
        {**RELATION, "to_id": "z", "labels": ["coref"]},
    )  # fmt: skip
    (document,), lost = rows(write, given, task="coreference")
    assert [(one.cluster, one.kind) for one in document.mentions] == [("3:0", "entity"), ("3:1", "event")]
    assert lost == {
        "relation that is not named as one of coreference": 1, "relation of spans that are not there": 1,
    }  # fmt: skip


def test_texts_of_one_topic_share_clusters(write):
    given = [{"topic": "mill", "text": "Ann.", "spans": [{"start": 0, "end": 3, "cluster": "ann"}]}] * 2
    some, _ = rows(write, *given, task="coreference")
    assert {one.mentions[0].cluster for one in some} == {"mill:ann"}


@pytest.mark.parametrize(("row", "message"), [
    ({"text": TEXT, "label": [[0, "x", "PER"]]}, "test.jsonl:1: field span.end"),
    ({"text": "", "label": []}, "test.jsonl:1: field text: it is empty"),
    ({"data": {}, "annotations": [{"result": []}]}, "field text"),
])  # fmt: skip
def test_a_faulty_row_is_named_by_its_line(write, row, message):
    with pytest.raises(DataError, match=message):
        rows(write, row)


def test_a_list_and_a_file_alone_are_read_too(write):
    path = write(
        "export.json", json.dumps([studio(region("a", 0, 3)), studio(region("a", 0, 3)) | {"id": 4}])
    )
    assert open_records("tagging", path).format == "spans"
    (read,) = open_records("tagging", path).splits.values()
    assert [one.id for one in read()] == ["3", "4"]
    # one's own rows are none of these
    assert open_records("tagging", write("own.jsonl", [{"text": "a", "names": []}])).format == "native"
