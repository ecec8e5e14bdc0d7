"""Somebody's text as a reader expects it: Markdown's look, and no markup of anybody's.

The text becomes a tree of a few plain elements, which the browser builds node by node. HTML in it
is text; pictures are not fetched and links are not followed: both are told as text with their
address. Each paragraph is read in the direction that its own script asks for.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from streamlit.components import v2

Node = str | list["str | int | list[Node]"]
"""A text, or [element, children] ([element, children, first number] for a numbered list)."""

MAX_PARSED_CHARS = 40_000
"""Longer texts are shown as plain text: nobody reads their structure, and parsing takes time."""

_STYLE = """
.prose { overflow-wrap: anywhere; line-height: 1.55; color: var(--st-text-color); }
.prose > :first-child { margin-top: 0; }
.prose > :last-child { margin-bottom: 0; }
p, li, blockquote, th, td { white-space: pre-wrap; unicode-bidi: plaintext; text-align: start; }
p, ul, ol, pre, blockquote, .wide { margin: 0 0 0.6em; }
ul, ol { padding-inline-start: 1.5em; white-space: normal; }
li > p { margin: 0; }
h1, h2, h3, h4, h5, h6 { font-size: 1em; font-weight: 650; margin: 0.8em 0 0.3em; }
h1 { font-size: 1.15em; }
blockquote { border-inline-start: 3px solid var(--st-border-color); padding-inline-start: 0.8em;
  color: var(--st-gray-text-color); }
code { font-family: var(--st-code-font); font-size: 0.88em; background: var(--st-code-background-color);
  border-radius: 0.25rem; padding: 0.1em 0.3em; }
pre { background: var(--st-code-background-color); border-radius: var(--st-base-radius);
  padding: 0.7em 0.9em; overflow-x: auto; overflow-wrap: normal; }
pre code { background: none; padding: 0; white-space: pre; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid var(--st-border-color); padding: 0.25em 0.6em; }
hr { border: none; border-top: 1px solid var(--st-border-color); }
.aside { color: var(--st-gray-text-color); }
"""

_mount = v2.component(
    "everyturn_prose",
    html='<div class="prose"></div>',
    css=_STYLE,
    js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
)

_MAX_NESTING = 12

_parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_NESTING}).enable(
    ["table", "strikethrough"]
)


def render_prose(text: str, *, key: str, markdown: bool = True) -> None:
    """Show a text; without `markdown` letter by letter, with its line breaks.

    The key keeps texts apart: the same words may stand on a page twice.
    """
    if markdown and len(text) <= MAX_PARSED_CHARS:
        _mount(data=parsed(text), key=key)
    else:
        _mount(data=[["p", [text]]], key=key)


@lru_cache(maxsize=4000)
def parsed(text: str) -> list[Node]:
    """Return the tree of a Markdown text; one that nests too deeply to be read is plain text."""
    tokens = _parser.parse(text)
    if any(token.level >= _MAX_NESTING - 1 for token in tokens):
        return [["p", [text]]]  # the parser leaves out what lies deeper
    return _blocks(tokens)


def _blocks(tokens: Sequence[Token]) -> list[Node]:
    """Build the nested elements of a flat list of opening and closing tokens."""
    top: list[Node] = []
    open_lists = [top]
    for token in tokens:
        if token.nesting == 1:
            element: list[str | int | list[Node]] = [token.tag, []]
            start = token.attrGet("start")
            if token.tag == "ol" and isinstance(start, int):
                element.append(start)
            open_lists[-1].append(element)
            children = element[1]
            assert isinstance(children, list)
            open_lists.append(children)
        elif token.nesting == -1:
            open_lists.pop()
        elif token.type == "inline":
            open_lists[-1].extend(_inline(token.children or []))
        elif token.type in ("fence", "code_block"):
            open_lists[-1].append(["pre", [["code", [token.content.removesuffix("\n")]]]])
        elif token.type == "hr":
            open_lists[-1].append(["hr", []])
        else:
            open_lists[-1].append(token.content)
    return top


def _inline(tokens: Sequence[Token]) -> list[Node]:
    top: list[Node] = []
    open_lists = [top]
    addresses: list[str] = []
    for token in tokens:
        here = open_lists[-1]
        if token.type == "link_open":
            addresses.append(str(token.attrGet("href")))
        elif token.type == "link_close":
            address = addresses.pop()
            if not here or here[-1] != address:
                here.append(["span", [f" ({address})"]])
        elif token.nesting == 1:
            children: list[Node] = []
            here.append([token.tag, children])
            open_lists.append(children)
        elif token.nesting == -1:
            open_lists.pop()
        else:
            here.append(_leaf(token))
    return top


def _leaf(token: Token) -> Node:
    match token.type:
        case "softbreak" | "hardbreak":
            return "\n"
        case "code_inline":
            return ["code", [token.content]]
        case "image":
            told = f"[image: {token.content}]" if token.content else "[image]"
            return ["span", [f"{told} ({token.attrGet('src')})"]]
        case _:
            return token.content
