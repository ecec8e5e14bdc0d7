"""What people install to run the app is all that it needs; the checks install more."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent

ASKED_FOR_LATER = {
    "trainer.remote.client": "tinker",
    "trainer.remote.sampler": "tinker",
    "trainer.remote.wire": "tinker",
}
"""Modules that are imported only where an extra is in use, and the package it brings."""

SCRIPTS = ("__main__.py", "main.py", "env.py")
"""What does its work when it is imported, as the views do; what it imports is here by itself."""

PROBE = """
import importlib, sys

names, hidden = sys.argv[1].split(), sys.argv[2].split()
sys.modules.update(dict.fromkeys(hidden))
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        print(name, error.name)
"""


def test_every_module_imports_with_what_requirements_txt_brings() -> None:
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for layer in ("db", "trainer", "app")
        for path in sorted((ROOT / layer).rglob("*.py"))
        if path.name not in SCRIPTS and "views" not in path.parts
    ]
    brought = _reachable([*_required(ROOT / "requirements.txt"), "everyturn"])
    extras = [canonicalize_name(Requirement(line).name) for line in _extras()]
    hidden = {
        package
        for package, distributions in metadata.packages_distributions().items()
        if any(canonicalize_name(one) in extras for one in distributions)
        and not any(canonicalize_name(one) in brought for one in distributions)
    }
    assert {"tinker", "datasets", "pytest"} <= hidden
    probe = subprocess.run(
        [sys.executable, "-c", PROBE, " ".join(names), " ".join(hidden)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    missing = dict(line.split() for line in probe.stdout.splitlines())
    assert missing == ASKED_FOR_LATER


def _extras() -> list[str]:
    return [line for file in ROOT.glob("requirements-*.txt") for line in _required(file)]


def _required(file: Path) -> list[str]:
    lines = (line.partition("#")[0].strip() for line in file.read_text("utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("-")]


def _reachable(required: list[str]) -> set[str]:
    """Return the names of the distributions that these requirements bring, on this machine."""
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    waiting = [(requirement, "") for requirement in required]
    while waiting:
        text, extra_of_parent = waiting.pop()
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra_of_parent}):
            continue
        name = canonicalize_name(requirement.name)
        found.add(name)
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for extra in ("", *requirement.extras):
            waiting += [(need, extra) for need in needs if (need, extra) not in seen]
            seen.update((need, extra) for need in needs)
    return found
