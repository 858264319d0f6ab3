"""Source distributions of the peers, in the versions that are installed.

`pip download` would build a source distribution's metadata, and for that a compiler and an hour.
Only the files are needed, so pip's own client is asked for the address and the file is unpacked.
"""

from __future__ import annotations

import hashlib
import tarfile
from importlib.metadata import version
from pathlib import Path


def fetch_source(distribution: str, folder: Path) -> Path:
    """Unpacked source distribution of an installed package; downloaded unless it is there."""
    release = version(distribution)
    target = folder / f"{distribution}-{release}"
    if target.is_dir():
        return target
    archive = _download(distribution, release, folder)
    unpacked = folder / f"{target.name}.part"
    with tarfile.open(archive) as files:
        files.extractall(unpacked, filter="data")
    (inside,) = unpacked.iterdir()
    inside.rename(target)
    unpacked.rmdir()
    archive.unlink()
    return target


def _download(distribution: str, release: str, folder: Path) -> Path:
    from pip._internal.commands import create_command
    from pip._internal.utils.temp_dir import global_tempdir_manager

    command = create_command("download")
    with command.main_context(), global_tempdir_manager():
        options, _ = command.parse_args(["--no-binary", ":all:", "--quiet"])
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session)
        links = [
            candidate.link
            for candidate in finder.find_all_candidates(distribution)
            if str(candidate.version) == release and candidate.link.filename.endswith(".tar.gz")
        ]
        if not links:
            raise SystemExit(f"The package index has no source of {distribution} {release}.")
        answer = session.get(links[0].url_without_fragment)
        answer.raise_for_status()
        content = answer.content
    expected = links[0].hash
    if links[0].hash_name != "sha256" or hashlib.sha256(content).hexdigest() != expected:
        raise SystemExit(f"The source of {distribution} {release} does not match its digest.")
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / links[0].filename
    archive.write_bytes(content)
    return archive
