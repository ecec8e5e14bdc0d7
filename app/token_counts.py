"""Token counts, then time and memory, for the launch page, from child processes of their own.

Tokenizers and models stay out of the web process.
"""

import hashlib
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app import data, state
from db import formats
from db.errors import StorageError
from db.records import Conversation
from trainer.config import Preset, TrainConfig
from trainer.data.findings import Finding
from trainer.estimate import Estimate
from trainer.remote.fitting import SentTokens

COUNTED_FIELDS = (
    *("preset", "base_model", "endpoint", "rendering", "max_context_tokens", "credit"),
    *("aggregation", "rater", "held_out", "seed"),
)
"""The settings that token counts depend on; changing another one keeps the counts."""

ESTIMATED_FIELDS = (
    *COUNTED_FIELDS,
    *("device", "base_precision", "lora_rank", "token_budget", "memory_limit_gb"),
    *("epochs", "batch_conversations", "old_logprobs", "kl_weight", "max_kl"),
    *("sample_prompts", "sample_tokens"),
)
"""The settings that time and memory depend on."""

SENT_FIELDS = (
    *ESTIMATED_FIELDS,
    *("loss", "dual_clip", "guard", "lora_alpha", "start_from"),
)
"""The settings that the tokens sent to an endpoint depend on, and whether it takes the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """What the child process found.

    Attributes:
        turns: Tokens and reply tokens of each turn, by (conversation, turn).
        distinct_tokens: Tokens that the engine computes in one epoch: shared beginnings once.
        turn_tokens: Tokens that one pass for each turn would compute.
        blocking: Findings that need token counts and forbid a start.
        warnings: Findings that need the model's files and forbid nothing.
        cost: Time and memory of the run; None where only tokens were counted.
        sent: Tokens that go to an endpoint; None without one.
    """

    turns: Mapping[tuple[int, int], tuple[int, int]]
    distinct_tokens: int
    turn_tokens: int
    blocking: tuple[str, ...]
    warnings: tuple[Finding, ...]
    cost: Estimate | None = None
    sent: SentTokens | None = None


@dataclass(slots=True)
class CountJob:
    """One child process with its files, and its outcome once it has ended."""

    process: "subprocess.Popen[bytes]"
    folder: "tempfile.TemporaryDirectory[str]"
    counts: TokenCounts | None = None
    failure: str = ""

    @property
    def pending(self) -> bool:
        """Whether the outcome is still to come; looks at the process, never waits for it."""
        if self.counts is None and not self.failure and self.process.poll() is not None:
            self._collect()
        return self.counts is None and not self.failure

    def stop(self) -> None:
        """End the child if it still counts, and remove its files."""
        if self.pending:
            self.process.kill()
            self.process.wait()
            self.failure = "The count was given up."
            self.folder.cleanup()

    def _collect(self) -> None:
        out, err = (Path(self.folder.name) / name for name in ("out.json", "err.txt"))
        if self.process.returncode == 0:
            self.counts = parse_counts(json.loads(out.read_text()))
        else:
            lines = err.read_text(errors="replace").strip().splitlines()
            self.failure = lines[-1] if lines else f"It ended with {self.process.returncode}."
            if self.process.returncode == -signal.SIGKILL:
                self.failure = "The system ended it, most likely for want of memory."
        self.folder.cleanup()


def token_counts(
    conversations: Sequence[Conversation], config: TrainConfig, *, estimate: bool = False
) -> CountJob:
    """Return the job that counts these conversations' tokens, started if it is new.

    A job for other data or settings that this session still waits for is ended.

    Args:
        conversations: The data.
        config: The settings.
        estimate: Whether to tell time and memory, too. Where this machine has not tried the model
            lately, that takes a quarter of a minute and both cores; ask only for one that is here.

    Raises:
        StorageError: if the child's files cannot be written, or it cannot be started.
    """
    text = formats.write(conversations, "native")
    counting, estimating = (
        _fingerprint(text, config, fields) for fields in (_counted(config), ESTIMATED_FIELDS)
    )
    give_up_counting(but=(counting, estimating))
    jobs = state.COUNT_JOBS.get()
    name = estimating if estimate else counting
    if name not in jobs:
        try:
            jobs[name] = _start(text, config, estimate=estimate)
        except OSError as error:
            raise StorageError(
                f"the count cannot be started ({error.strerror})",
                where="folder for temporary files",
                remedy="Check that it can be written and has space.",
            ) from None
    return jobs[name]


def give_up_counting(*, but: Sequence[str] = ()) -> None:
    """End every child that this session still waits for, so that a run gets the whole machine."""
    jobs = state.COUNT_JOBS.get()
    for name in [name for name, job in jobs.items() if name not in but and job.pending]:
        jobs.pop(name).stop()


def parse_counts(document: Mapping[str, Any]) -> TokenCounts:
    """Read what `python -m trainer preview --json` printed."""
    late = [finding for finding in document["warnings"] if finding["kind"] in _MODEL_FINDINGS]
    return TokenCounts(
        turns={
            (turn["conversation"], turn["turn"]): (turn["tokens"], turn["response_tokens"])
            for turn in document["turns"]
        },
        distinct_tokens=document["distinct_tokens"],
        turn_tokens=document["turn_tokens"],
        blocking=tuple(finding["text"] for finding in late if finding["blocking"]),
        warnings=tuple(
            Finding(kind=finding["kind"], text=finding["text"])
            for finding in late
            if not finding["blocking"]
        ),
        cost=Estimate(**document["estimate"]) if document["estimate"] else None,
        sent=SentTokens(**document["sent"]) if document["sent"] else None,
    )


_MODEL_FINDINGS = (
    *("too_long", "all_too_long", "held_out_too_long", "one_pass_a_turn"),
    *("will_not_fit", "is_split", "recomputes", "stale_logprobs"),
)
"""Kinds of findings that the page cannot make without the model."""


def _counted(config: TrainConfig) -> Sequence[str]:
    return SENT_FIELDS if config.endpoint else COUNTED_FIELDS


def _fingerprint(text: str, config: TrainConfig, fields: Sequence[str]) -> str:
    counted = {key: value for key, value in config.to_json().items() if key in fields}
    return hashlib.sha256(
        json.dumps([text, counted, str(data.settings().home)]).encode()
    ).hexdigest()


def _start(text: str, config: TrainConfig, *, estimate: bool) -> CountJob:
    folder = tempfile.TemporaryDirectory(prefix="everyturn-preview-")
    root = Path(folder.name)
    (root / "data.jsonl").write_text(text)
    command = [sys.executable, "-m", "trainer", "preview", "--json"]
    command += ["--data", str(root / "data.jsonl")]
    command += _arguments(config, ESTIMATED_FIELDS if estimate else _counted(config))
    command += ["--estimate"] if estimate else []
    with (root / "out.json").open("wb") as out, (root / "err.txt").open("wb") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    return CountJob(process=process, folder=folder)


def _arguments(config: TrainConfig, fields: Sequence[str]) -> list[str]:
    preset = TrainConfig.for_preset(Preset(config.preset)).to_json()
    arguments = ["--model", config.base_model, "--preset", config.preset.value]
    for key, value in config.to_json().items():
        if key in fields[2:] and value != preset[key]:
            arguments += ["--set", f"{key}={value}"]
    return arguments
