"""Coverage is summed over the files of a room."""

from tools.coverage_by_room import by_room, room_of, share


def report(statements, covered):
    return {"summary": {"num_statements": statements, "covered_lines": covered}}


def test_statements_are_summed_over_the_folders_of_a_room():
    files = {
        "src/discriminant/table/blocks.py": report(10, 9),
        "src/discriminant/table/files/csv.py": report(30, 15),
        "src/discriminant/posterior.py": report(5, 5),
    }
    statements, covered = by_room(files)
    assert statements == {"table": 40, "posterior": 5}
    assert covered == {"table": 24, "posterior": 5}


def test_room_of_a_file_in_another_checkout():
    assert room_of("/home/user/project/src/discriminant/models/rules.py") == "models"


def test_room_without_statements_is_covered():
    assert share(0, 0) == 1.0
