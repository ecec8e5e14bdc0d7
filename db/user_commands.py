"""`python -m db user ...`: who may come in where people sign in, and what they may do."""

import argparse
import getpass
import sys

from db import commands, passwords, queries
from db.engine import Database
from db.enums import UserRole
from db.errors import DataError


def add_user_parser(parser: argparse.ArgumentParser) -> None:
    """Give the parser of `user` its commands."""
    actions = parser.add_subparsers(dest="action", required=True)
    add = actions.add_parser("add", help="let a person sign in, or change password and role")
    add.add_argument("name", metavar="NAME", help="their name, or e-mail address with a provider")
    add.add_argument("--admin", action="store_true", help="an admin; an annotator if left out")
    add.add_argument(
        "--no-password", action="store_true", help="they sign in through a provider only (OIDC)"
    )
    remove = actions.add_parser("remove", help="keep a person out; their scores stay")
    remove.add_argument("name", metavar="NAME")
    actions.add_parser("list", help="show who may sign in")


def run_user_command(database: Database, options: argparse.Namespace) -> str:
    """Run one of the commands and return what there is to tell.

    Raises:
        DataError: if the name or the password cannot be used.
        NotFoundError: if there is nobody to remove.
    """
    match options.action:
        case "add":
            role = UserRole.ADMIN if options.admin else UserRole.ANNOTATOR
            password = None if options.no_password else _ask_password()
            user = commands.admit_person(database, options.name, role=role, password=password)
            way = "through the provider" if password is None else "with this password"
            return f"{user.name} may sign in {way} as {user.role}"
        case "remove":
            return (
                f"{commands.dismiss_person(database, options.name).name} may not sign in any more"
            )
        case _:
            listed = passwords.names(database.settings)
            lines = [
                f"{person.user.name}\t{person.user.role}\t"
                f"{'password' if person.user.name in listed else 'provider'}"
                for person in queries.people(database)
                if person.may_sign_in
            ]
            return "\n".join(lines) or "nobody may sign in yet: python -m db user add NAME --admin"


def _ask_password() -> str:
    """Read a password: twice from a person, once from a pipe."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass.getpass("Password: ")
    passwords.check_password(first)
    if getpass.getpass("Once more: ") != first:
        raise DataError(
            "the two passwords differ", where="password", remedy="Run the command again."
        )
    return first
