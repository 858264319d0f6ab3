"""Label trees measured on files: the same figures as by the formulas, and a page about them."""

import json

import numpy as np
import pytest
from scipy import sparse

import discriminant as dd
from discriminant.cli.run import run

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Files of rows to learn from and to be asked about, and a model of the first."""
    folder = tmp_path_factory.mktemp("labels")
    rng = np.random.default_rng(3)
    X = sparse.random_array((240, 25), density=0.3, format="csr", rng=rng).astype(np.float32)
    Y = sparse.csr_array(sparse.random_array((240, 12), density=0.15, format="csr", rng=rng) > 0)
    dd.write_xmc(folder / "train.txt", X[:120], Y[:120].astype(np.int8))
    dd.write_xmc(folder / "test.txt", X[120:], Y[120:].astype(np.int8))
    dd.LabelTree(trees=2, arity=4, leaf=4).fit(X[:120], Y[:120]).save(folder / "tree.model")
    return folder


def by_formula(lists, truth, frequency, rows, k):
    """Measures at k, a row at a time, as napkinXC has them."""
    c = (np.log(rows) - 1) * 2.5**0.55
    worth = 1 + c * (frequency + 1.5) ** -0.55
    own = [set(truth[i].indices.tolist()) for i in range(truth.shape[0])]
    log = [1 / np.log2(r + 2) for r in range(k)]
    P, R, G, ps, best, psg, bestg = [], [], [], 0, 0, 0, 0
    for said, true in zip(lists[:, :k].tolist(), own, strict=True):
        hits = [label in true for label in said]
        P.append(sum(hits) / k)
        ideal = sorted((worth[label] for label in true), reverse=True)[:k]
        ps += sum(worth[label] for label, hit in zip(said, hits, strict=True) if hit)
        won = sum(d * worth[one] for d, one, hit in zip(log, said, hits, strict=True) if hit)
        first = sum(log[: max(len(true), 1)])
        psg, bestg = psg + won / first, bestg + np.dot(log[: len(ideal)], ideal) / first
        best += sum(ideal)
        if true:
            R.append(sum(hits) / len(true))
            G.append(sum(np.array(log)[hits]) / sum(log[: len(true)]))
    means = {"P": np.mean(P), "recall": np.mean(R), "nDCG": np.mean(G)}
    return means | {"PSP": ps / best, "PSnDCG": psg / bestg}


def told(args, capsys):
    assert run([*map(str, args), "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


def test_on_bibtex_assess_says_what_the_formulas_say(shared_data, tmp_path, capsys):
    held = shared_data / "xmc" / "mldr"
    train, test = held / "bibtex_train.txt.xz", held / "bibtex_test.txt.xz"
    fit = ["fit", train, "--model", "label-tree", "--with", "trees=1", "--out", tmp_path / "m"]
    told(fit, capsys)
    found = told(["assess", tmp_path / "m", test], capsys)
    learnt, asked = dd.read_xmc(train), dd.read_xmc(test)
    frequency = np.bincount(learnt.labels.indices, minlength=159)
    lists = dd.load(tmp_path / "m").predict_topk(asked.features)[0]
    for k in (1, 3, 5):
        wanted = by_formula(lists, asked.labels, frequency, len(learnt), k)
        assert {name: found[f"{name}@{k}"] for name in wanted} == pytest.approx(wanted, rel=1e-12)


def test_labels_of_about_one_frequency_are_averaged_label_by_label(place, capsys):
    found = told(["assess", place / "tree.model", place / "test.txt", "--top", "3"], capsys)
    learnt, asked = dd.read_xmc(place / "train.txt"), dd.read_xmc(place / "test.txt")
    counts = learnt.labels.toarray().sum(axis=0)
    listed = np.zeros(asked.labels.shape, bool)
    codes = dd.load(place / "tree.model").predict_topk(asked.features, k=3)[0]
    np.put_along_axis(listed, codes.astype(int), True, axis=1)
    truth = asked.labels.toarray() > 0
    for one in found["by_frequency"]:
        most = np.inf if one["most"] is None else one["most"]
        assert {type(one[name]) for name in ("least", "most", "labels")} <= {int, type(None)}
        some = (counts >= one["least"]) & (counts <= most) & truth.any(axis=0)
        recall = (listed & truth)[:, some].sum(axis=0) / truth[:, some].sum(axis=0)
        assert (one["labels"], one["recall"]) == (some.sum(), pytest.approx(recall.mean()))
    assert found["labels_a_row"] == pytest.approx(truth.sum() / 120)


def test_svmlight_and_xmc_text_are_measured_alike(place, tmp_path, capsys):
    asked = dd.read_xmc(place / "test.txt")
    dd.write_svmlight(tmp_path / "test.svm", asked.features, asked.labels)
    a = told(["assess", place / "tree.model", place / "test.txt"], capsys)
    b = told(["assess", place / "tree.model", tmp_path / "test.svm"], capsys)
    unlike = {name for name in a if a[name] != b[name]}
    assert unlike <= {"seconds", "made"}


def test_labels_that_the_model_does_not_know_are_refused_or_missed(place, tmp_path, capsys):
    asked = dd.read_xmc(place / "test.txt")
    more = sparse.hstack([asked.labels, np.ones((120, 1), np.float32)], format="csr")
    dd.write_xmc(tmp_path / "more.txt", asked.features, more)
    assess = ["assess", place / "tree.model", tmp_path / "more.txt"]
    assert run([*map(str, assess), "--quiet"]) == 2
    assert "--unknown count" in capsys.readouterr().err
    found = told([*assess, "--unknown", "count"], capsys)
    plain = told(["assess", place / "tree.model", place / "test.txt"], capsys)
    assert (found["unknown"], found["P@1"]) == (120, plain["P@1"])
    assert found["recall@5"] < plain["recall@5"]


def test_a_report_writes_a_page_a_model_and_facts(place, tmp_path, capsys):
    page, facts = tmp_path / "page.html", tmp_path / "facts.json"
    report = ["report", place / "train.txt", "--model", "label-tree", "--with", "trees=1"]
    more = ["--facts", facts, "--markdown", tmp_path / "page.md"]
    found = told([*report, "--test", place / "test.txt", "--out", page, *more], capsys)
    same = told(["assess", tmp_path / "page.model", place / "test.txt"], capsys)
    assert found["measured"]["at"]["P"] == [same[f"P@{k}"] for k in range(1, 6)]
    assert json.loads(facts.read_text())["tree"] == found["tree"]
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert found["written"]["markdown"] == str(tmp_path / "page.md")
    assert "## Accuracy on the test file" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_a_report_without_rows_to_measure_says_what_was_read(place, tmp_path, capsys):
    page = tmp_path / "page.html"
    told(
        ["report", place / "train.txt", "--model", "label-tree", "--out", page, "--no-model"],
        capsys,
    )
    text = page.read_text(encoding="utf-8")
    assert "Accuracy on the test file" not in text and "The trees" in text
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_assess_writes_a_page_if_it_is_asked_for_one(place, tmp_path, capsys):
    page = tmp_path / "page.html"
    found = told(["assess", place / "tree.model", place / "test.txt", "--page", page], capsys)
    assert found["written"] == {"page": str(page)} and page.stat().st_size < 1_000_000


def test_a_page_of_other_models_is_refused_with_the_way_to_one(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("x,y\n" + "1,a\n2,b\n1.5,a\n3,b\n" * 5)
    fit = ["fit", tmp_path / "t.csv", "--target", "y", "--model", "lda", "--out", tmp_path / "m"]
    told(fit, capsys)
    assess = ["assess", tmp_path / "m", tmp_path / "t.csv", "--page", tmp_path / "page.html"]
    assert run([*map(str, assess)]) == 2
    assert "'discriminant report' writes a page" in capsys.readouterr().err
