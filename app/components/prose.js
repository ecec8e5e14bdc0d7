// Draws a message from a tree of plain nodes: a string is text, anything else one of the elements
// below. Nothing is ever parsed as HTML, so a message cannot be more than it shows.

const BLOCKS = new Set([
  "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "table", "thead",
  "tbody", "tr", "th", "td", "hr",
]);
const INLINE = new Set(["strong", "em", "s", "code", "span"]);

export default function ({ data, parentElement }) {
  const place = parentElement.querySelector(".prose");
  place.replaceChildren(...data.map(build));
}

function build(node) {
  if (typeof node === "string") return document.createTextNode(node);
  const [name, children, start] = node;
  const isBlock = BLOCKS.has(name);
  const element = document.createElement(isBlock || INLINE.has(name) ? name : "span");
  if (isBlock && name !== "pre") element.dir = "auto"; // each block reads its own way
  if (name === "ol" && Number.isInteger(start)) element.start = start;
  if (name === "span") element.className = "aside";
  element.append(...children.map(build));
  if (name !== "table") return element;
  const frame = document.createElement("div");
  frame.className = "wide";
  frame.append(element);
  return frame;
}
