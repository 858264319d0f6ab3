"""The laws that every summary keeps; `tests.laws.kinds` has the list of summaries."""

from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, strategies as st

from discriminant.engines import local
from discriminant.engines.dispatch import read_moments
from discriminant.errors import (
    LabelError,
    MomentsMismatchError,
    OptionError,
    PrecisionLostError,
)
from discriminant.moments import accumulate as reading_module
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import DETAILS, ClassMoments
from discriminant.table.memory import as_table
from tests.laws.kinds import KINDS
from tests.shared.blocks import (
    LABELS,
    assert_facts,
    cuts,
    expected,
    frame_of,
    merged,
    near,
    random_rows,
    read_class_moments,
    rows_of,
    same_bits,
    seen,
)

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)

every_anchored_kind = pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.anchored], ids=lambda kind: kind.name
)


def able(verb):
    kinds = [kind for kind in KINDS if kind.can(verb)]
    return pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.name)


# --- reading and merging -------------------------------------------------------------------------


@every_kind
@given(rows=rows_of())
def test_a_reading_says_what_the_formula_says(kind, rows):
    kind.says(kind.read(rows), rows)


@every_kind
@given(data=st.data(), rows=rows_of())
def test_merging_parts_in_any_order_equals_reading_the_whole(kind, data, rows):
    parts = [kind.read(rows.take(part), near(rows)) for part in data.draw(cuts(len(rows)))]
    kind.says(data.draw(merged(parts)), rows)


@every_anchored_kind
@given(data=st.data(), rows=rows_of(least=2))
def test_parts_with_different_origins_merge_to_the_whole(kind, data, rows):
    width = rows.features.shape[1]
    anchors = st.builds(
        lambda seed: Anchor(3 * np.random.default_rng(seed).standard_normal(width), np.ones(width)),
        st.integers(0, 999),
    )
    parts = [
        kind.read(rows.take(part), data.draw(anchors)) for part in data.draw(cuts(len(rows), 4))
    ]
    kind.says(data.draw(merged(parts)), rows, 1e-11)


@every_anchored_kind
@given(data=st.data(), rows=rows_of(least=2), scale=st.sampled_from([1e-200, 1e-120, 1e150]))
def test_parts_in_different_units_merge_to_the_whole(kind, data, rows, scale):
    scales = np.where(np.arange(rows.features.shape[1]) % 2, 1.0, scale)
    rows = replace(rows, features=rows.features * scales)
    parts = [kind.read(rows.take(part)) for part in data.draw(cuts(len(rows), 4)) if len(part)]
    kind.says(data.draw(merged(parts)), rows, 1e-11)


@every_anchored_kind
def test_a_part_of_zeros_does_not_drown_tiny_numbers(kind):
    rows = random_rows(5, n=20)
    rows = replace(
        rows, features=np.where(np.arange(20)[:, None] < 10, 0.0, 1e-200 * rows.features)
    )
    first, second = kind.read(rows.take(slice(10))), kind.read(rows.take(slice(10, None)))
    kind.says(first + second, rows)


@every_kind
@given(data=st.data(), rows=rows_of(least=2))
def test_parts_that_know_different_classes_merge_to_the_union(kind, data, rows):
    rows = rows.own_labels()
    parts = data.draw(cuts(len(rows), 4))
    read = [kind.read(rows.take(part).own_labels(), near(rows)) for part in parts]
    kind.says(data.draw(merged(read)), rows)


@every_anchored_kind
@given(data=st.data(), rows=rows_of(least=2))
def test_merging_survives_a_large_common_offset(kind, data, rows):
    # Numbers on a grid of 1/1024 stay what they are when 1e8 is added to them.
    grid = replace(rows, features=np.round(rows.features * 1024) / 1024)
    far = replace(grid, features=grid.features + 1e8)
    parts = [kind.read(far.take(part)) for part in data.draw(cuts(len(rows), 4)) if len(part)]
    kind.says(data.draw(merged(parts)), far, 1e-12)


@every_kind
@given(seed=st.integers(0, 99), weighted=st.booleans())
def test_rows_read_in_tiles_say_what_the_formula_says(kind, seed, weighted):
    rows = random_rows(seed, n=700, weighted=weighted)
    rows = replace(rows, features=rows.features + np.linspace(0, 30, 700)[:, None])  # they drift
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading_module, "_TILE_BYTES", 1)  # so that a tile has 256 rows
        kind.says(kind.read(rows), rows)


@every_kind
def test_the_builtin_sum_adds_summaries(kind):
    rows = random_rows(1)
    kind.says(sum(kind.read(rows.take(slice(j, None, 3))) for j in range(3)), rows)


@every_kind
@given(rows=rows_of(), seed=st.integers(0, 99), left=st.booleans())
def test_empty_changes_nothing_not_even_the_last_bit(kind, rows, seed, left):
    origin = 100 * np.random.default_rng(seed).standard_normal(rows.features.shape[1])
    other = replace(rows, labels=LABELS[len(rows.labels) - 1 :])
    found = kind.read(rows)
    empty = kind.empty(other, Anchor(origin, np.full(len(origin), 2.0**-700)))
    both = empty + found if left else found + empty
    pairs = zip(kind.bits(both, rows.labels), kind.bits(found, rows.labels), strict=True)
    assert all(same_bits(one, two) for one, two in pairs)


@every_kind
@pytest.mark.parametrize("threads", [2, 4])
def test_the_number_of_threads_changes_no_bit(kind, threads):
    rows = random_rows(3, n=30_000, width=4, classes=3, weighted=True)
    table = as_table(rows.features, rows.y, weight=rows.weight)
    reading = kind.reading(rows, near(rows))
    one, many = (local.fold(table, reading, threads=count) for count in (1, threads))
    assert all(map(same_bits, kind.bits(many, rows.labels), kind.bits(one, rows.labels)))


@every_kind
def test_a_fold_over_blocks_says_what_the_formula_says(kind):
    rows = random_rows(4, n=20_000, width=3)
    table = as_table(rows.features, rows.y)
    kind.says(local.fold(table, kind.reading(rows, near(rows))), rows)


# --- weights and order ---------------------------------------------------------------------------


@every_kind
@given(data=st.data(), rows=rows_of(weighted=False))
def test_an_integer_weight_is_a_repeated_row(kind, data, rows):
    counts = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    )
    if counts.any():
        found = kind.read(replace(rows, weight=counts.astype(float)))
        kind.says(found, rows.take(np.repeat(np.arange(len(rows)), counts)), 1e-12, kind.counts)


@every_kind
@given(rows=rows_of(least=2, weighted=True), first=st.integers(1, 39))
def test_a_row_of_weight_zero_is_absent(kind, rows, first):
    weight = np.where(np.arange(len(rows)) < first, rows.weight, 0.0)
    kind.says(kind.read(replace(rows, weight=weight)), rows.take(slice(first)))


@every_kind
@given(rows=rows_of(), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(kind, rows, seed):
    order = np.random.default_rng(seed).permutation(len(rows))
    kind.says(kind.read(rows.take(order)), rows)


@every_kind
@given(rows=rows_of(classes=(2, 4)), seed=st.integers(0, 99))
def test_renaming_classes_permutes_the_summary(kind, rows, seed):
    place = np.random.default_rng(seed).permutation(len(rows.labels))
    renamed = replace(rows, codes=place[rows.codes])
    before, after = (
        kind.bits(kind.read(one, near(rows)), LABELS[[k]])
        for k, one in ((0, rows), (place[0], renamed))
    )
    assert all(
        np.allclose(one, two, rtol=0, atol=1e-9) for one, two in zip(before, after, strict=True)
    )


@able("select")
@given(rows=rows_of(), seed=st.integers(0, 99))
def test_permuting_columns_permutes_the_summary(kind, rows, seed):
    order = np.random.default_rng(seed).permutation(rows.features.shape[1])
    there = kind.read(replace(rows, features=rows.features[:, order]))
    back = there.select(np.argsort(order).tolist())
    kind.says(back, rows)


@able("select")
@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ([5], r"features=\[5\].*'f0', 'f1', 'f2'.* 0 to 2"),
        (["f9"], r"features=\['f9'\].*'f0', 'f1', 'f2'"),
        ([0, "f0"], r"features=\['f0'\].*once each"),
        ([True, False], r"2 truth values.*each of the 3 features"),
        ([True, 1], r"features=\[True\]"),
    ],
    ids=str,
)
def test_features_that_are_not_there_or_come_twice_are_refused_by_name(kind, wanted, words):
    with pytest.raises(OptionError, match=words):
        kind.read(random_rows(1)).select(wanted)


@able("select")
def test_a_truth_value_for_each_feature_selects_those_that_are_true(kind):
    found = kind.read(random_rows(1)).select([True, False, True])
    assert found.features == ("f0", "f2")


# --- removing ------------------------------------------------------------------------------------


@able("remove")
@given(data=st.data(), rows=rows_of(least=2))
def test_what_is_added_and_removed_was_never_there(kind, data, rows):
    keep, gone = data.draw(cuts(len(rows)).filter(lambda parts: len(parts) == 2))
    left = kind.read(rows) - kind.read(rows.take(gone), near(rows))
    kind.says(left, rows.take(keep) if len(keep) else rows.take([]), 1e-8)


@able("cancel")
@given(seed=st.integers(0, 999), far=st.floats(0, 4))
def test_after_a_removal_there_are_as_many_digits_as_it_says(kind, seed, far):
    rows = random_rows(seed, n=60, classes=2)
    gone = replace(rows, features=rows.features + 10**far)
    left = (kind.read(rows) + kind.read(gone)).remove(kind.read(gone), digits=0)
    frame = near(rows)
    truth, found = (kind.seen(m, frame)["scatter"] for m in (kind.read(rows), left))
    if truth.ndim > 2 or kind.name.endswith("pooled"):
        truth, found = (np.diagonal(s, axis1=-2, axis2=-1) for s in (truth, found))
    assert np.abs(found / truth - 1).max() <= 10 ** (1 - left.digits)


@able("cancel")
def test_a_removal_that_cannot_be_trusted_is_refused_and_says_the_digits(kind):
    near_rows, far_rows = random_rows(1), random_rows(2)
    far_rows = replace(far_rows, features=far_rows.features + 1e8)
    both = kind.read(near_rows) + kind.read(far_rows)
    with pytest.raises(
        PrecisionLostError, match=r"'f\d'.*\d\.\d correct digits left.*Read the rem"
    ):
        both - kind.read(far_rows)


@able("remove")
@given(seed=st.integers(0, 999), high=st.sampled_from([1, 7, 1000]), count=st.integers(1, 3))
def test_the_last_rows_that_differ_in_a_column_of_whole_numbers_can_go(kind, seed, high, count):
    rows = random_rows(seed, n=60, classes=2)
    rows.features[:, 1] = 3.0
    gone = np.random.default_rng(seed).choice(60, count, replace=False)
    rows.features[gone, 1] = 3.0 + high
    left = kind.read(rows) - kind.read(rows.take(gone))
    stay = rows.take(np.setdiff1d(np.arange(60), gone))
    kind.says(left, stay, 1e-8)
    constant = left.select([1]).reduce("diagonal" if left.has("diagonal") else left.detail)
    assert not np.any(constant.scatter)


@able("cancel")
def test_rows_that_vary_less_than_was_removed_are_refused_though_they_be_whole(kind):
    rows = random_rows(1, n=61, classes=1)
    rows.features[:, 1] = np.resize([-1.0, 0.0, 1.0], 61)
    rows.features[60, 1] = 1e8
    with pytest.raises(PrecisionLostError, match=r"'f1'.*Read the remaining rows"):
        kind.read(rows) - kind.read(rows.take([60]))


@able("remove")
def test_removing_more_rows_than_there_are_is_refused(kind):
    rows = replace(random_rows(1, n=5, classes=1))
    with pytest.raises(MomentsMismatchError, match=r"remove .*5 row.*'ash'.* 4\b"):
        kind.read(rows.take(slice(4))) - kind.read(rows)


@able("cancel")
def test_removing_more_weight_than_there_is_is_refused(kind):
    rows = random_rows(1, n=6, classes=1, weighted=True)
    heavy = replace(rows.take(slice(3)), weight=np.full(3, 100.0))
    with pytest.raises(MomentsMismatchError, match=r"weight 300 .*'ash'"):
        kind.read(rows) - kind.read(heavy)


@able("remove")
def test_removing_all_rows_leaves_empty(kind):
    rows = random_rows(1, weighted=True)
    kind.says(kind.read(rows) - kind.read(rows), rows.take([]), 0.0)


# --- regrouping ----------------------------------------------------------------------------------


@able("scale")
@given(data=st.data(), rows=rows_of())
def test_scaling_classes_is_weighting_their_rows(kind, data, rows):
    factor = st.sampled_from([0.0, 0.25, 1.0, 7.0])
    K = len(rows.labels)
    factors = data.draw(st.lists(factor, min_size=K, max_size=K))
    factors = np.array(factors if kind.can("uneven") else [factors[0]] * K)
    weighted = replace(rows, weight=rows.ones * factors[rows.codes])
    kind.says(kind.read(rows).scale(factors), weighted)


@able("scale")
def test_a_class_that_a_mapping_does_not_name_keeps_its_weight(kind):
    rows = random_rows(1)
    factors = {"ash": 2.0} if kind.can("uneven") else dict.fromkeys(rows.labels, 2.0)
    found = kind.read(rows).scale(factors)
    factor = np.array([2.0, 1.0, 1.0] if kind.can("uneven") else [2.0, 2.0, 2.0])
    kind.says(found, replace(rows, weight=factor[rows.codes]))


@able("scale")
@pytest.mark.parametrize("factor", [-1.0, np.nan, np.inf])
def test_a_factor_that_is_no_weight_is_refused(kind, factor):
    rows = random_rows(1)
    with pytest.raises(OptionError, match="factors"):
        kind.read(rows).scale(np.full(3, factor))


@able("group")
@given(rows=rows_of(classes=(3, 4)))
def test_grouping_classes_is_relabelling_rows(kind, rows):
    new = {"ash": "leafy", "birch": "leafy", "cedar": "conifer", "date": "date"}
    names, codes = np.unique([new[label] for label in rows.labels], return_inverse=True)
    rows, ungrouped = replace(rows, codes=codes[rows.codes], labels=names), rows
    found = kind.read(ungrouped).group({"conifer": ["cedar"], "leafy": ["ash", "birch"]})
    assert found.labels.tolist() == names.tolist()
    kind.says(found, rows)


@able("classes")
@given(rows=rows_of(least=5, classes=(3, 4)))
def test_keeping_classes_is_keeping_their_rows(kind, rows):
    kept = rows.take(rows.codes != 1).own_labels()
    kind.says(kind.read(rows).classes([label for label in rows.labels if label != "birch"]), kept)


@able("select")
@given(data=st.data(), rows=rows_of(width=(2, 4)))
def test_selecting_features_is_keeping_columns(kind, data, rows):
    width = rows.features.shape[1]
    columns = data.draw(st.lists(st.integers(0, width - 1), min_size=1, unique=True))
    found = kind.read(rows).select([rows.names[j] for j in columns])
    assert found.features == tuple(rows.names[j] for j in columns)
    kind.says(found, replace(rows, features=rows.features[:, columns]))


@able("reduce")
@given(rows=rows_of())
def test_reducing_is_reading_at_that_detail(kind, rows):
    found = kind.read(rows)
    for lower in KINDS[: KINDS.index(kind)]:
        detail = lower.name.removeprefix("ClassMoments-")
        if detail in DETAILS and found.has(detail):
            lower.says(found.reduce(detail), rows)


@pytest.mark.parametrize("detail", ["pooled", "class", "fourth"])
@given(rows=rows_of(), scale=st.sampled_from([1.0, 1e-120]))
def test_total_scatter_is_within_plus_between_and_is_that_of_the_rows(detail, rows, scale):
    rows = replace(rows, features=rows.features * scale)
    found = read_class_moments(rows, detail)
    apart = rows.features - np.average(rows.features, axis=0, weights=rows.ones)
    total = np.einsum("n,ni,nj->ij", rows.ones, apart, apart)
    size = rows.ones.sum() * np.abs(rows.features).max() ** 2
    np.testing.assert_allclose(found.total(), total, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(
        found.within() + found.between(), found.total(), rtol=0, atol=1e-14 * size
    )


# --- refusing ------------------------------------------------------------------------------------


@every_anchored_kind
def test_parts_of_different_width_refuse_to_merge_and_say_what_to_do(kind):
    with pytest.raises(MomentsMismatchError, match=r"of 3 and 2 features.*'f2'.*select"):
        kind.read(random_rows(1, width=3)) + kind.read(random_rows(1, width=2))


def test_parts_of_different_detail_refuse_to_merge_and_say_what_to_do():
    rows = random_rows(1)
    with pytest.raises(MomentsMismatchError, match=r"'class' and 'pooled'.*reduce"):
        read_class_moments(rows, "class") + read_class_moments(rows, "pooled")


@able("labels")
def test_labels_of_text_and_of_numbers_refuse_to_merge(kind):
    rows = random_rows(1)
    numbers = replace(rows, labels=np.arange(3))
    with pytest.raises(LabelError, match="mixed types"):
        kind.read(rows) + kind.read(numbers)


def test_pooled_moments_refuse_to_take_classes_apart_and_say_what_they_need():
    found = read_class_moments(random_rows(1), "pooled")
    with pytest.raises(
        MomentsMismatchError, match="detail 'class', but these have detail 'pooled'"
    ):
        found.scale([1.0, 2.0, 3.0])


def test_unknown_classes_are_named():
    found = read_class_moments(random_rows(1), "class")
    with pytest.raises(LabelError, match=r"'oak'.*the classes are 'ash', 'birch', 'cedar'"):
        found.classes(["oak"])


def test_many_parts_lose_no_more_than_rounding():
    rows = random_rows(7, n=2000, weighted=True)
    parts = [read_class_moments(rows.take([i]), "class") for i in range(len(rows))]
    frame = frame_of(rows)
    found = seen(reduce(add, parts), frame)
    assert_facts(found, expected(rows, "class", frame), 1e-12)


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("name", ["rows", "weight", "weight2", "mean", "scatter", "lost"])
def test_moments_of_the_wrong_shape_cannot_be_made(detail, name):
    good = read_class_moments(random_rows(1), detail)
    with pytest.raises(MomentsMismatchError, match=rf"'{name}' has shape .*moments\(X, y\)"):
        replace(good, **{name: getattr(good, name)[:-1]})


@pytest.mark.parametrize("detail", ["rows", "all"])
def test_moments_of_no_known_detail_cannot_be_made(detail):
    with pytest.raises(OptionError, match=f"detail='{detail}'.*diagonal, pooled, class, fourth"):
        ClassMoments.empty(np.array(["a", "b"]), ["u"], detail=detail)


def test_rows_are_not_read_as_moments():
    table = as_table([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(OptionError, match="detail='rows'"):
        read_moments(table, detail="rows")
