"""Folders, imports and class names of src; the counts of tools/structure.py."""

import pytest

from tools import structure

MODULE = '''"""Docstring
of two lines."""

import a  # a comment


class Rule:
    """Docstring."""

    weight: float
    """Docstring of an attribute."""

    # a comment
    text = """two
    lines"""
'''


@pytest.fixture(scope="module")
def sources():
    return structure.read_sources(structure.SRC)


def test_no_folder_has_more_than_15_files():
    assert structure.large_folders(structure.SRC) == []


def test_modules_of_a_room_do_not_import_each_other(sources):
    assert structure.cycles_in_rooms(structure.import_graph(sources)) == []


def test_class_names_are_used_once(sources):
    assert structure.repeated_classes(sources) == []


def test_files_of_subfolders_packages_and_caches_are_not_counted(tmp_path):
    for name in ["a.py", "b.css", "__init__.py", "__init__.pyi", "inner/c.py", "__pycache__/a.pyc"]:
        path = tmp_path / "room" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert structure.large_folders(tmp_path, most=2) == []
    assert structure.large_folders(tmp_path, most=1) == ["room: 2"]


def test_lazy_type_and_indirect_imports_form_cycles_inside_a_room():
    graph = structure.import_graph(
        {
            "p.room.a": "def f():\n    from p.room.b import x",
            "p.room.b": "if TYPE_CHECKING:\n    import p.room.c",
            "p.room.c": "from p.room import a",
            "p.room.d": "from p.room.a import f\nfrom p.other.e import y",
            "p.other.e": "from p.room.d import z",
            "p.room.__init__": "",
        }
    )
    assert structure.cycles_in_rooms(graph) == ["p.room.a <-> p.room.b <-> p.room.c"]


def test_single_importers_count_packages_as_importers_only():
    graph = structure.import_graph(
        {
            "p.__init__": "from p.a import f",
            "p.a": "import p.b\nimport numpy",
            "p.b": "from p import f",
            "p.c": "from p import b",
        }
    )
    assert graph["p.b"] == {"p.__init__"}
    assert structure.single_importers(graph) == {"p.a": "p.__init__"}


def test_repeated_classes_are_listed_with_their_modules():
    sources = {
        "p.a": "class Rule: pass",
        "p.b": "def f():\n    class Rule: pass",
        "p.c": "Rule = 1",
    }
    assert structure.repeated_classes(sources) == ["Rule: p.a, p.b"]


def test_code_lines_exclude_docstrings_comments_and_blank_lines():
    assert structure.code_lines(MODULE) == 5  # import, class, weight and two lines of text
