"""`collect`: ask a model for replies to many prompts, for people to score."""

import argparse
from pathlib import Path

from db import queries
from db.commands import go_on_collecting
from db.engine import open_database
from db.enums import CollectionState, Partner
from db.errors import DataError
from db.records import CollectionPlan
from trainer.commands.console import fail, say
from trainer.errors import ConfigError
from trainer.runs.process import new_claim

# ruff: noqa: PLC0415 - see the package


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    collect = commands.add_parser("collect", help="sample replies in the background, to be scored")
    collect.add_argument("id", type=int, nargs="?", help="go on with this collection")
    # The process of one that somebody cancels just now must not take it up again.
    collect.add_argument("--spawned", action="store_true", help=argparse.SUPPRESS)
    collect.add_argument(
        "--openings", type=Path, metavar="FILE", help="what users say first: one a line, or a file"
    )
    collect.add_argument("--system", default="", help="system prompt of the openings")
    collect.add_argument("--name", default="", help="what people call the collection")
    collect.add_argument("--model", help="base model: a listed name, hub id or folder")
    collect.add_argument("--run", type=int, help="ask the adapter of this run")
    collect.add_argument(
        "--script", type=Path, metavar="FILE", help="further user turns, one a line"
    )
    collect.add_argument("--persona", default="", help="let the base model play this user")
    defaults = CollectionPlan(name="", base_model="").to_json()
    for name, kind, help in (
        ("replies", int, "for each prompt"),
        ("turns", int, "replies of a conversation with a played user"),
        ("temperature", float, "0 takes the likeliest token"),
        ("top_p", float, "share of the probability that is sampled from"),
        ("max_tokens", int, "of one reply"),
        ("seed", int, "fixes the dice"),
    ):
        option = f"--{name.replace('_', '-')}"
        collect.add_argument(
            option, type=kind, default=defaults[name], help=f"{help} (%(default)s)"
        )
    collect.set_defaults(command=collect_replies)


def collect_replies(options: argparse.Namespace) -> int:
    """Go on with a collection, or begin one from a file and carry it out."""
    from trainer.collecting.holding import taken, wait_for_device

    database = open_database()
    if (options.id is None) == (options.openings is None):
        return fail("Give either the number of a collection or --openings FILE.")
    collection_id = options.id if options.id is not None else _begin(options)
    if options.id is not None and not options.spawned:
        go_on_collecting(database, collection_id)
    with taken(database, collection_id) as collection:
        if wait_for_device(database, collection, say):
            from trainer.collecting.worker import carry_out  # torch, only once it may be used

            carry_out(database, collection, say)
    found = queries.collection(database, collection_id)
    say(f"Collection {found.id} is {found.state}: it has {found.conversations} conversations.")
    if found.error_text:
        say(found.error_text)
    return 1 if found.state is CollectionState.FAILED else 0


def _begin(options: argparse.Namespace) -> int:
    from trainer.catalog import default_model, find_model
    from trainer.collecting.life import start_collection
    from trainer.collecting.prompts import from_file

    database = open_database()
    base_model = options.model or default_model()
    if options.run is not None:
        base_model = options.model or queries.run(database, options.run).base_model
    script, partner = _partner(options)
    plan = CollectionPlan(
        name=options.name or options.openings.stem,
        base_model=find_model(database.settings, base_model).name,
        run_id=options.run,
        replies=options.replies,
        partner=partner,
        script=script,
        persona=options.persona,
        turns=options.turns,
        temperature=options.temperature,
        top_p=options.top_p,
        max_tokens=options.max_tokens,
        seed=options.seed,
    )
    prompts = from_file(options.openings.name, options.openings.read_bytes(), system=options.system)
    collection_id = start_collection(
        database,
        plan,
        prompts,
        start_token=new_claim(),
        user_id=queries.local_user(database).id,
        in_background=False,
    )
    say(f"Collection {collection_id}: {len(prompts)} prompts.")
    return collection_id


def _partner(options: argparse.Namespace) -> tuple[tuple[str, ...], Partner]:
    if options.script is not None and options.persona:
        raise ConfigError(
            "two kinds of users are asked for",
            where="--script and --persona",
            remedy="Give one of them.",
        )
    if options.script is None:
        return (), Partner.MODEL if options.persona else Partner.NOBODY
    try:
        lines = options.script.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(
            "the script is not in UTF-8", where=str(options.script), remedy="Save it as UTF-8."
        ) from error
    return tuple(line.strip() for line in lines if line.strip()), Partner.SCRIPT
