"""Files for contributors agree with the package and with one another."""

import re
import tomllib

import yaml

from tests.shared.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_citation_has_the_version_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["project"]["version"]
    assert citation["license"] == PROJECT["project"]["license"]


def test_pre_commit_runs_every_program_of_make_check():
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    programs = set(re.findall(r"\$\(BIN\)/([\w-]+)", recipe.group(1)))
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    entries = [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]]
    assert programs <= {re.match(r"\.venv/bin/([\w-]+)", entry).group(1) for entry in entries}


def test_change_fragments_have_a_known_kind():
    kinds = "|".join(kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"])
    files = {path.name for path in (ROOT / "changes").iterdir()} - {"README.md"}
    assert [
        name for name in files if not re.fullmatch(rf"(\d+|\+[\w-]+)\.({kinds})\.md", name)
    ] == []


def test_every_pinned_tool_is_described():
    described = (ROOT / "docs" / "dependencies.md").read_text().lower()
    extras = PROJECT["project"]["optional-dependencies"].values()
    required = [*PROJECT["project"]["dependencies"], *(name for extra in extras for name in extra)]
    names = {re.match(r"[\w.-]+", requirement).group() for requirement in required}
    assert [name for name in names - {"discriminant"} if name not in described] == []


def test_workflows_run_targets_of_the_makefile():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "".join(path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    used = set(re.findall(r"\bmake (?:--silent )?([\w-]+)", text))
    assert used and used <= targets


def test_workflow_tests_the_oldest_supported_python():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    versions = workflow["jobs"]["pinned"]["strategy"]["matrix"]["python"]
    assert f">={versions[0]}" == PROJECT["project"]["requires-python"]
