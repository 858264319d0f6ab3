"""Files: what is saved comes back to the last bit, and nothing else is ever loaded."""

import ast
import errno
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression

import discriminant as dd
from discriminant import (
    LDA,
    QDA,
    RDA,
    Decision,
    Encoded,
    LinearRegression,
    Logistic,
    OrderedLogistic,
    Perceptron,
    ShrunkenCentroids,
    SparseLDA,
    store,
)
from discriminant.errors import StateError, StoredFileError, WriteError
from discriminant.store.container import lock_for_writing, open_regular, read_header
from discriminant.store.kinds import KINDS
from discriminant.table.files.atomic import atomic_write_bytes
from tests.shared.estimators import BASES, ESTIMATORS, FRAMES, SPECIES, WRAPPERS, X, Y, answers
from tests.shared.paths import ROOT
from tests.shared.stored import arrays_within, differences, signed, taken_apart

GOLDEN = sorted((ROOT / "tests" / "golden" / "store_v1").glob("*.dd"))
MODELS = [*ESTIMATORS, *BASES, *WRAPPERS]
FOREIGN = [m for m in WRAPPERS if "sklearn" in type(getattr(m, "estimator", None)).__module__]
OURS = [model for model in MODELS if model not in FOREIGN]
OTHERS = {  # options that keep more than the ones above
    "calibrated by Platt": Decision(CalibratedClassifierCV(LDA())),
    "calibrated by steps": Decision(CalibratedClassifierCV(LDA(), method="isotonic")),
    "decision with calibration": Decision(LDA(), calibrate="platt"),
    "costs, reject, outliers": Decision(LDA(), cost=1 - np.eye(3), reject=0.1, outlier=0.01),
    "chosen by cross-validation": RDA(pooling="cv", shrinkage="cv"),
    "threshold chosen by cross-validation": ShrunkenCentroids(threshold="cv"),
    "penalty chosen by cross-validation": SparseLDA(penalty="cv"),
    "priors": LDA(prior=np.array([0.2, 0.3, 0.5])),
    "order": OrderedLogistic(order=np.array([2, 0, 1]), prior=[0.2, 0.3, 0.5]),
    "class weights": Logistic(class_weight={0: 1, 1: 2.5, 2: 3}, ridge=0.1),
}

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")


@pytest.fixture
def place(tmp_path):
    return tmp_path / "model.dd"


@pytest.fixture
def content(place):
    """A file, as bytes."""
    LDA().fit(X[:, :2], SPECIES).save(place)
    return place.read_bytes()


def there_and_back(thing, place, **options):
    dd.save(thing, place)
    return dd.load(place, **options)


# --- there and back ---------------------------------------------------------------------------


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("model", OURS, ids=repr)
def test_a_model_comes_back_to_the_last_bit(model, mmap, place):
    fitted = clone(model).fit(X, answers(model))
    loaded = there_and_back(fitted, place, mmap=mmap)
    assert differences(fitted, loaded) == []


@pytest.mark.parametrize("model", OTHERS.values(), ids=OTHERS)
def test_whatever_options_keep_comes_back_to_the_last_bit(model, place):
    fitted = clone(model).fit(X, Y)
    loaded = there_and_back(fitted, place)
    assert differences(fitted, loaded) == []


@pytest.mark.parametrize("model", OURS, ids=repr)
def test_a_model_that_comes_back_answers_to_the_last_bit(model, place):
    fitted = clone(model).fit(X, answers(model))
    loaded = there_and_back(fitted, place)
    for ask in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(fitted, ask):
            for rows in (X, X[:1], X[3:10]):
                assert np.array_equal(getattr(fitted, ask)(rows), getattr(loaded, ask)(rows))


@pytest.mark.parametrize("model", OURS, ids=repr)
def test_a_model_that_is_not_fitted_comes_back_with_its_options(model, place):
    assert differences(clone(model), there_and_back(clone(model), place)) == []


@pytest.mark.parametrize(
    "labels",
    [
        SPECIES,
        SPECIES.astype(object),
        SPECIES.astype("S"),
        Y == 1,
        Y.astype(np.uint8),
        Y.astype(np.float32),
        Y.astype(">i4"),
        Y.astype("M8[D]"),
        np.array([10**30 + int(code) for code in Y], dtype=object),
        np.array(["a\0b", "é\u202e", "\U0001f600"])[Y],
        np.array(["lone \ud800", "", '"}]'], dtype=object)[Y],
    ],
    ids=["text", "objects", "bytes", "yes/no", "u1", "f4", ">i4", "dates", "huge", "odd", "odder"],
)
def test_labels_come_back_with_their_type(labels, place):
    fitted = LDA().fit(X, labels)
    assert differences(fitted.predict(X), there_and_back(fitted, place).predict(X)) == []


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_columns_are_matched_by_name_after_loading(frame, place):
    fitted = LDA().fit(frame, SPECIES)
    turned = frame[list(frame.columns)[::-1]]
    assert np.array_equal(
        there_and_back(fitted, place).predict_proba(turned), fitted.predict_proba(frame)
    )


def test_a_frame_with_categories_and_gaps_is_taken_after_loading(place):
    frame = pd.DataFrame({"size": X[:, 0], "colour": np.array(["red", None, "blue"])[Y[::-1]]})
    fitted = Decision(Encoded(LDA(), missing="mean", unseen="ignore"), reject=0.2).fit(frame, Y)
    loaded = there_and_back(fitted, place)
    assert differences(fitted, loaded) == []
    assert np.array_equal(loaded.decide(frame), fitted.decide(frame))


def test_more_rows_can_be_added_after_loading_as_if_it_had_never_stopped(place):
    without_stop = LDA().partial_fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    with_stop = there_and_back(LDA().partial_fit(X[:100], Y[:100]), place)
    assert differences(without_stop, with_stop.partial_fit(X[100:], Y[100:])) == []


@pytest.mark.parametrize("detail", ["diagonal", "pooled", "class", "fourth", "rows"])
def test_moments_add_and_subtract_after_loading(detail, place):
    first, second = (
        dd.moments(X[part], SPECIES[part], detail=detail) for part in (slice(90), slice(90, None))
    )
    loaded = there_and_back(first, place)
    assert differences(first + second, loaded + second) == []
    assert differences((first + second) - second, (loaded + second) - second) == []


def test_the_order_of_an_array_in_memory_is_kept(place):
    cube = np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0)
    loaded = there_and_back(LDA(prior=cube), place).prior
    assert loaded.strides == cube.strides and np.array_equal(loaded, cube)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("-inf"),
        -0.0,
        5e-324,
        np.float32(0.1),
        np.bool_(True),
        np.str_("é"),
        10**25,
        (1, ("a", None), [2.5, {"b": (3,)}]),
        {("a", 1): {2: "c"}, 1.5: []},
        slice(1, None, 2),
        np.array(["a", None, 3, ("x",)], dtype=object),
        np.zeros((0, 3)),
        np.array(7.5),
        np.array([], dtype="<U3"),
        np.array([["ab", "c"], ["", "dé"]]).T,
        np.array([np.nan, np.inf, -0.0]),
    ],
    ids=repr,
)
def test_a_value_comes_back_as_it_was(value, place):
    assert differences(value, there_and_back(LDA(prior=value), place).prior) == []


def test_what_is_shared_is_saved_once_and_is_shared_after_loading(place):
    table = np.arange(1000.0)
    loaded = there_and_back(LDA(prior=table, shrinkage=[table, table]), place)
    assert loaded.prior is loaded.shrinkage[0] is loaded.shrinkage[1]
    assert place.stat().st_size < 2 * table.nbytes


def test_the_same_model_makes_the_same_file(tmp_path):
    model = QDA().fit(X, SPECIES)
    model.save(tmp_path / "one")
    dd.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_function_that_shows_progress_is_no_part_of_a_model(place):
    fitted = Logistic(ridge=0.1, progress=lambda *told: None).fit(X, Y)
    assert there_and_back(fitted, place).progress is None


def test_mapped_arrays_stay_in_the_file(place):
    loaded = there_and_back(QDA().fit(X, Y), place, mmap=True)
    assert not loaded.moments_.scatter.flags.owndata
    loaded.moments_.scatter[:] = 0  # ours to change, and not the file's
    assert dd.load(place).moments_.scatter.any()


# --- others can read it -----------------------------------------------------------------------


@pytest.mark.parametrize("model", [LDA(), QDA(), Logistic(ridge=0.1), Perceptron()], ids=repr)
def test_any_reader_of_safetensors_finds_the_same_arrays(model, place):
    fitted = clone(model).fit(X, SPECIES)
    fitted.save(place)
    ours = {array.tobytes("A") for array in arrays_within(dd.load(place))}
    theirs = safetensors.numpy.load_file(place)
    assert theirs and all(array.tobytes() in ours for array in theirs.values())


def test_every_array_lies_at_a_multiple_of_its_width(place):
    LinearRegression().fit(X, Y).save(place)
    Decision(LDA(), cost=1 - np.eye(3, dtype=np.int8)).fit(X, Y).save(place)
    with open_regular(place) as file:
        head, _ = read_header(file, place)
    assert head.places and all(at.start % at.dtype.itemsize == 0 for at in head.places)


def test_a_file_says_what_it_holds_before_it_is_loaded(place):
    LDA(shrinkage=0.25).fit(X, SPECIES).save(place)
    told = store.look(place)
    assert (told["kind"], told["version"], told["options"]["shrinkage"]) == ("LDA", 1, 0.25)
    assert told["arrays"]["moments_.mean"] == ("float64", (3, 4))


# --- what cannot be saved ---------------------------------------------------------------------


@pytest.mark.parametrize("model", FOREIGN, ids=repr)
def test_a_part_that_is_not_ours_is_named_with_the_way_out(model, place):
    fitted = clone(model).fit(X, SPECIES)
    with pytest.raises(StateError, match=r"^estimator is a sklearn\..*joblib\.dump"):
        fitted.save(place)
    assert not list(place.parent.iterdir())


def endless():
    inside = []
    inside.append(inside)
    return inside


class Impostor:
    """A class of the name of one of ours."""


Impostor.__qualname__, Impostor.__module__ = "LDA", "discriminant.estimators.gaussian.lda_qda"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ((n for n in range(3)), r"^prior is a generator"),
        (lambda: 0, r"^prior is a function"),
        ([1, {"a": print}], r"^prior\[1\]\['a'\] is a builtin_function_or_method"),
        ({1, 2}, r"^prior is a set"),
        (np.random.default_rng(0), r"^prior is a numpy\.random.*an integer for a generator"),
        (FRAMES["pandas"], r"^prior is a pandas\..*DataFrame.*a list or an array for a frame"),
        (np.ones(2) * 1j, r"^prior is an array of complex128"),
        (np.longdouble(1.5), r"^prior is an array of float128|longdouble"),
        (np.ma.masked_array([1.0]), r"^prior is a numpy\.ma.*MaskedArray"),
        (np.array([object()], dtype=object), r"^prior\[0\] is a object"),
        (
            LogisticRegression(),
            r"^prior is a sklearn.*LogisticRegression.*not an estimator of this",
        ),
        (endless(), r"^prior\[0\] is a list that contains itself"),
        (Impostor(), r"^prior is a discriminant"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_a_file_cannot_hold_is_refused_by_its_place(value, said, place):
    place.write_bytes(b"old")
    with pytest.raises(StateError, match=said):
        dd.save(LDA(prior=value), place)
    assert place.read_bytes() == b"old"


def test_a_rule_with_a_coefficient_that_is_no_number_is_not_saved(place):
    fitted = LDA().fit(X, Y)
    fitted.rule_.coef[1, 2] = np.nan
    with pytest.raises(StateError, match=r"^_fitted cannot be saved: coef has 1 of 12 values"):
        fitted.save(place)


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_nan_in_any_array_of_a_signed_file_is_refused(file, place):
    """Also where the digest was computed anew."""
    content = file.read_bytes()
    header, _, arrays = taken_apart(content)
    kinds = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
    for name, entry in header.items():
        start, stop = entry.get("data_offsets", (0, 0))
        if start == stop or entry["dtype"] not in kinds:
            continue
        nan = np.array(np.nan, kinds[entry["dtype"]]).tobytes()
        forged = arrays[:start] + nan + arrays[start + len(nan) :]
        place.write_bytes(signed(*taken_apart(content)[:2], forged))
        with pytest.raises(StoredFileError, match=r"NaN|finite|no number|standard deviations"):
            dd.load(place)
            pytest.fail(f"{name} holds NaN, and was loaded")


def test_nan_of_a_fit_without_dispersion_is_allowed(place):
    rows = np.arange(12.0)[:, None]
    fitted = dd.GLM(family="poisson").fit(rows, np.arange(12) % 4)
    assert not differences(fitted, there_and_back(fitted, place))


def test_only_models_and_moments_are_saved(place):
    with pytest.raises(StateError, match="to be saved is a DataFrame"):
        dd.save(FRAMES["pandas"], place)


# --- damaged and changed files ----------------------------------------------------------------


def test_a_number_changed_in_a_file_is_told_by_its_digest(content, place):
    place.write_bytes(content[:-8] + b"\0" * 7 + b"\x40")
    with pytest.raises(StoredFileError, match=r"changed after it was saved: its SHA-256"):
        dd.load(place)


def test_bytes_after_the_end_are_found(content, place):
    place.write_bytes(content + b"more")
    with pytest.raises(StoredFileError, match=f"damaged at byte {len(content):,}: 4 bytes follow"):
        dd.load(place)


def test_a_later_format_is_told_with_what_can_be_read_and_how_to_upgrade(content, place):
    header, manifest, arrays = taken_apart(content)
    header["__metadata__"] |= {"version": "7", "package": "9.1"}
    place.write_bytes(signed(header, manifest, arrays))
    with pytest.raises(
        StoredFileError, match=r"version 7, written by discriminant 9\.1; .* 1 to 1\. Upgrade: pip"
    ):
        dd.load(place)


@pytest.mark.parametrize("where", ["header", "within"])
def test_an_unknown_kind_is_told_with_its_name_and_version(content, place, where):
    header, manifest, arrays = taken_apart(content)
    if where == "header":
        header["__metadata__"]["kind"] = "Crystal"
    else:
        manifest["objects"][0]["kind"] = "Crystal"
    place.write_bytes(signed(header, manifest, arrays))
    with pytest.raises(StoredFileError, match=r"a 'Crystal' \(format version 1, written by"):
        dd.load(place)


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_a_file_larger_than_was_allowed_is_refused(mmap, content, place):
    with pytest.raises(StoredFileError, match=f"has {len(content):,} bytes, and at most 100"):
        dd.load(place, max_bytes=100, mmap=mmap)


# --- places -----------------------------------------------------------------------------------


def test_a_folder_a_pipe_and_a_device_are_refused_by_kind(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, kind in [(tmp_path, "folder"), (tmp_path / "pipe", "pipe"), ("/dev/zero", "device")]:
        with pytest.raises(StoredFileError, match=f"is a .*{kind}"):
            dd.load(path)
        with pytest.raises(WriteError, match=f"is a {kind} and is not overwritten"):
            dd.save(LDA(), path)


def test_a_file_that_is_not_there_is_said_to_be_absent(tmp_path):
    with pytest.raises(StoredFileError, match=r"There is no file .*none\.dd"):
        dd.load(tmp_path / "none.dd")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(WriteError, match=r"folder .*none: No such file") as told:
        store.check_writable(tmp_path / "none" / "model.dd")
    assert isinstance(told.value, OSError)


def test_a_read_only_folder_is_told_before_the_work(tmp_path):
    tmp_path.chmod(0o555)
    who = os.geteuid()
    try:
        if who == 0:
            os.seteuid(65534)  # root may write anywhere
        with pytest.raises(WriteError, match=r"Permission denied\. Choose another folder"):
            store.check_writable(tmp_path / "model.dd")
    finally:
        os.seteuid(who)
        tmp_path.chmod(0o755)


def test_who_may_read_a_file_stays_as_it_was(place):
    LDA().save(place)
    place.chmod(0o640)
    LDA().save(place)
    assert place.stat().st_mode & 0o777 == 0o640


def write_page(place):
    atomic_write_bytes(place, b"page")


@pytest.mark.parametrize("write", [LDA().save, write_page], ids=["model", "page"])
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_a_new_file_is_as_the_umask_says_and_an_old_one_as_it_was(write, mask, place):
    before = os.umask(mask)
    try:
        write(place)
        new = place.stat().st_mode & 0o777
        place.chmod(0o664)
        write(place)
    finally:
        os.umask(before)
    assert new == 0o666 & ~mask and place.stat().st_mode & 0o777 == 0o664


def test_a_link_leads_to_its_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model.dd")
    LDA().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "model.dd").is_file()


def test_nothing_but_the_file_is_left(place):
    LDA().save(place)
    assert [found.name for found in place.parent.iterdir()] == ["model.dd"]


# --- two writers ------------------------------------------------------------------------------


def test_a_second_writer_is_told_who_holds_the_file(place):
    LDA().save(place)
    code = "import sys, discriminant as dd; dd.save(dd.LDA(), sys.argv[1])"
    with lock_for_writing(place):
        found = subprocess.run([sys.executable, "-c", code, place], capture_output=True, text=True)
    assert f"WriteError: {place} is locked by pid {os.getpid()}" in found.stderr


def test_a_lock_left_by_a_process_that_is_gone_is_none(place):
    (place.parent / ".model.dd.lock").write_text("999999")
    (place.parent / ".model.dd.tmp").write_bytes(b"half")
    LDA().save(place)
    assert [found.name for found in place.parent.iterdir()] == ["model.dd"]


def test_lock_on_a_full_disk_is_removed(place, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(WriteError, match="No space for"):
        LDA().save(place)
    assert not list(place.parent.iterdir())


def test_many_writers_never_make_a_mix(place):
    models = [LDA(prior=np.full(20_000, float(number))) for number in range(6)]
    refused = []

    def work(model):
        for _ in range(15):
            try:
                model.save(place)
            except WriteError as fault:
                refused.append(str(fault))

    models[0].save(place)
    writers = [threading.Thread(target=work, args=(model,)) for model in models]
    for writer in writers:
        writer.start()
    found = []
    while any(writer.is_alive() for writer in writers):
        found.append(np.unique(dd.load(place).prior))
    assert found and all(len(values) == 1 for values in found)
    assert all("locked by pid" in told for told in refused)


# --- a full disk ------------------------------------------------------------------------------


def test_a_full_disk_is_told_with_what_was_needed_and_leaves_the_old_file(place, monkeypatch):
    LDA().save(place)
    old, write = place.read_bytes(), os.write
    monkeypatch.delattr(os, "posix_fallocate")
    monkeypatch.setattr("discriminant.store.container._CHUNK", 4096)
    model = LDA(prior=np.arange(50_000.0))
    for room in range(0, 400_000, 4_000):  # a hundred disks, each with more room
        left = [room]

        def limited(handle, part, left=left):
            if not isinstance(part, memoryview):  # the pid in the lock
                return write(handle, part)
            if left[0] < len(part):
                raise OSError(28, "No space left on device")
            left[0] -= len(part)
            return write(handle, part)

        monkeypatch.setattr(os, "write", limited)
        with pytest.raises(WriteError, match=r"needs 40\d,\d\d\d bytes, and .* are free") as told:
            model.save(place)
        assert told.value.errno == 28 and place.read_bytes() == old
    assert [found.name for found in place.parent.iterdir()] == ["model.dd"]


def test_a_limit_of_the_system_on_sizes_is_told_alike(place):
    LDA().save(place)
    old = place.read_bytes()
    code = (
        "import sys, resource, numpy as np, discriminant as dd\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "dd.save(dd.LDA(prior=np.arange(50_000.0)), sys.argv[1])"
    )
    found = subprocess.run([sys.executable, "-c", code, place], capture_output=True, text=True)
    assert "WriteError: No space for" in found.stderr and "it needs 40" in found.stderr
    assert place.read_bytes() == old


# --- nothing is run ---------------------------------------------------------------------------


def test_the_package_has_no_way_to_run_what_it_reads():
    banned = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "xml"}
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name.partition(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [(node.module or "").partition(".")[0]]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names = [node.func.id] if node.func.id in ("eval", "exec", "__import__") else []
            found += [f"{path.name}: {n}" for n in names if n in banned | {"eval", "exec"}]
    assert found == []


def test_every_public_estimator_has_a_kind_and_can_be_saved():
    public = [getattr(dd, name) for name in dd.__all__]
    estimators = [kind for kind in public if isinstance(kind, type) and hasattr(kind, "fit")]
    assert [cls.__name__ for cls in estimators if not hasattr(cls, "save")] == []
    assert {cls.__name__ for cls in estimators} <= set(KINDS)


# --- for ever ---------------------------------------------------------------------------------


@pytest.mark.parametrize("place", GOLDEN, ids=lambda place: place.stem)
def test_a_file_of_the_first_format_comes_back_to_the_last_bit(place):
    loaded = {array.tobytes("A") for array in arrays_within(dd.load(place))}
    stored = safetensors.numpy.load_file(place)
    assert [name for name, array in stored.items() if array.tobytes() not in loaded] == []


@pytest.mark.parametrize("place", GOLDEN, ids=lambda place: place.stem)
def test_a_model_of_the_first_format_says_what_it_said(place):
    told = json.loads((place.parent / "answers.json").read_text())[place.stem]
    if told is not None:
        wanted = [[float.fromhex(value) for value in row] for row in told["found"]]
        model, rows = dd.load(place), told["rows"]
        if "model" in told:  # moments, asked through a model made from them
            model = getattr(dd, told["model"])().fit_moments(model)
        rows = pd.DataFrame(rows) if isinstance(rows, dict) else np.array(rows)
        found = np.reshape(getattr(model, told["ask"])(rows), np.shape(wanted))
        if "one_vs_one" in place.stem:  # a solved system: its digits are those of a part of 1
            np.testing.assert_allclose(np.exp(found), np.exp(wanted), rtol=1e-11, atol=1e-15)
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-11)


def test_every_kind_of_the_first_format_keeps_its_name_and_has_a_file():
    kinds = json.loads((GOLDEN[0].parent / "kinds.json").read_text())
    held = [taken_apart(place.read_bytes())[1]["objects"] for place in GOLDEN]
    assert set(kinds) <= set(KINDS)
    assert {entry["kind"] for objects in held for entry in objects} == set(kinds)
