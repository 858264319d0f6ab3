"""No word of tools/vocabulary.toml is used more often than tools/vocabulary_counts.toml allows."""

from collections import Counter

from tools import vocabulary

SOURCE = '''
"""Of the page. A model told of by
whoever asks, as data are at
hand."""
from io import open as taken

def found(told, *, rows):  # so
    # many words: found
    self._kept_rows = "Nothing was found" if rows else f"Told {rows}"
    class FoundRows: message = "{told} rows"
    return found(told)
'''


def test_counts_do_not_rise():
    places = list(vocabulary.all_places())
    counts, allowed = vocabulary.counted(places), vocabulary.committed()
    risen = {
        (kind, word): f"{allowed[kind][word]} -> {n}: write {instead(word)}"
        for kind, words in counts.items()
        for word, n in words.items()
        if n > allowed[kind][word]
    }
    where = [place for place in places if (place.kind, place.word) in risen]
    assert not risen, f"{risen}\n{vocabulary.listing(where)}"


def instead(word):
    return [section[word] for section in vocabulary.listed().values() if word in section]


def test_every_listed_word_has_a_count():
    assert vocabulary.committed().keys() == vocabulary.counted([]).keys()
    for kind, words in vocabulary.counted([]).items():
        assert vocabulary.committed()[kind].keys() == words.keys(), "run make words"


def test_names_are_counted_where_they_are_defined_and_phrases_across_lines():
    places = vocabulary.places_in_module("a/telling.py", SOURCE, vocabulary.listed())
    assert Counter((place.kind, place.word, place.line) for place in places) == {
        ("identifiers", "telling", 1): 1,
        ("identifiers", "taken", 5): 1,
        ("identifiers", "found", 7): 1,
        ("identifiers", "told", 7): 1,
        ("identifiers", "kept", 9): 1,
        ("identifiers", "found", 10): 1,
        ("prose", "Of", 2): 1,
        ("prose", "told", 2): 1,
        ("prose", "whoever", 3): 1,
        ("prose", "at hand", 4): 1,
        ("prose", "so many", 8): 1,
        ("prose", "told", 9): 1,
    }


def test_code_in_guides_is_not_prose():
    text = vocabulary.without_code("Of\n```python\ntold\n```\n`told` whoever\n")
    places = vocabulary.places_in_text("guides", "a.md", 1, text, vocabulary.listed())
    assert [(place.word, place.line) for place in places] == [("whoever", 5), ("Of", 1)]


def test_lowering_never_raises_a_count():
    before = {"prose": {"told": 5, "said": 2}}
    now = {"prose": {"told": 3, "said": 4, "new": 7}}
    assert vocabulary.lowered(before, now) == {"prose": {"told": 3, "said": 2, "new": 7}}
