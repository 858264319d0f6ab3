"""The guide to very many labels, run on the sets that it is about."""

import doctest
import re

import pytest

from tests.shared.paths import ROOT

GUIDE = ROOT / "docs" / "extreme.md"


@pytest.mark.filterwarnings("error::discriminant.errors.DiscriminantWarning")
def test_the_guide_to_very_many_labels_says_what_happens(shared_data, monkeypatch):
    monkeypatch.chdir(shared_data / "xmc" / "mldr")
    blocks = "\n".join(re.findall(r"```pycon\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL))
    session = doctest.DocTestParser().get_doctest(blocks, {}, GUIDE.name, str(GUIDE), 0)
    told = []
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    doctest.DocTestRunner(optionflags=flags).run(session, out=told.append)
    assert session.examples and not told, "".join(told)
