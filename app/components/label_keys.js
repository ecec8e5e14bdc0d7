// Listens to the whole page's keys while the label page is open, and hands them to the server.
//
// A key is kept in `pending` under a number of its own until the server says that it has been
// applied (`data.applied`). So none is lost while the page is being redrawn or the connection is
// cut for a moment, none is applied twice however often the list is sent, and they are applied in
// the order they were pressed. Where one is lost all the same, those behind it are, too: a score
// never lands on the turn of another one. The line says so.

const RESEND_MS = 1500;
const SLOW_MS = 2500; // after which a server that does not answer is told
const WARNING_MS = 5000; // how long a warning stands at least, whatever is pressed
const HANDED_ON_MS = 5000; // how long a board waits for the one that takes its place
const ASLEEP =
  'input:not([type=button]):not([type=submit]), textarea, select, [contenteditable=""], ' +
  '[contenteditable=true], [role=textbox], [role=combobox], [role=slider], [role=listbox], ' +
  '[role=menu], [role=dialog]';
const OWN_CLICKS = "button, a, input, textarea, select, summary, label, [role=button], [tabindex]";

const boards = new WeakMap();

export default function (component) {
  const root = component.parentElement;
  let board = boards.get(root);
  if (!board) {
    board = new Board(root);
    boards.set(root, board);
  }
  board.update(component);
  return () => {
    board.close();
    boards.delete(root);
  };
}

class Board {
  constructor(root) {
    this.line = root.querySelector("[role=status]");
    this.pending = [];
    this.lastNumber = 0;
    this.session = null;
    this.data = null;
    this.connection = 0; // counts the times that the server was found again
    this.cutAt = Date.now(); // since when it is gone, if it is
    this.dropped = 0; // keys that were pressed while it was gone for long
    this.noteText = null; // what is typed for a note whose field is not there yet
    this.noteEnds = false; // whether Esc or Enter has been pressed behind it
    this.held = []; // what was pressed behind that
    this.noteAt = 0;
    this.follows = true; // until somebody scrolls away from the marked turn
    this.warning = "";
    this.warnedAt = 0;
    this.pressedAt = 0;
    this.stop = new AbortController();
    const listen = { capture: true, signal: this.stop.signal };
    document.addEventListener("keydown", (event) => this.onKey(event), listen);
    document.addEventListener("click", (event) => this.onClick(event), { signal: this.stop.signal });
    for (const kind of ["focusin", "focusout"]) {
      document.addEventListener(kind, () => queueMicrotask(() => this.tell()), listen);
    }
    for (const kind of ["online", "offline"]) {
      window.addEventListener(kind, () => this.onConnection(), listen);
    }
    window.addEventListener("focus", () => this.lookAgain(), { signal: this.stop.signal });
    this.app = document.querySelector('[data-testid="stApp"]');
    this.wasThere = this.isConnected();
    this.watch = new MutationObserver(() => this.onConnection());
    this.watch.observe(this.app, { attributeFilter: ["data-test-connection-state"] });
    this.growth = new ResizeObserver(() => this.follow());
    this.growth.observe(document.querySelector('[data-testid="stMainBlockContainer"]'));
    this.bar = document.querySelector('[data-testid="stBottomBlockContainer"]');
    this.growth.observe(this.bar); // its buttons take more lines on a narrow screen
    for (const kind of ["wheel", "touchmove", "pointerdown"]) {
      document.addEventListener(kind, () => (this.follows = false), { ...listen, passive: true });
    }
    this.clock = setInterval(() => this.resend(), RESEND_MS);
  }

  close() {
    this.stop.abort();
    this.watch.disconnect();
    this.growth.disconnect();
    clearInterval(this.clock);
    const { session, pending, lastNumber, connection } = this;
    window.everyturnLeftKeys = { session, pending, lastNumber, connection, at: Date.now() };
  }

  // A redraw may take a board away and put up another one: what it had not handed over goes on.
  adopt({ session }) {
    const left = window.everyturnLeftKeys;
    window.everyturnLeftKeys = null;
    if (left?.session !== session || Date.now() - left.at > HANDED_ON_MS) return;
    this.session = session;
    this.pending = left.pending;
    this.lastNumber = left.lastNumber;
    this.connection = left.connection;
  }

  update({ data, setStateValue }) {
    const before = this.data;
    this.setStateValue = setStateValue;
    this.data = data;
    if (this.session === null) this.adopt(data);
    this.pending = this.pending.filter((key) => key.number > data.applied);
    if (this.session !== data.session) this.startAnew(before);
    this.lastNumber = Math.max(this.lastNumber, data.applied);
    if (before?.place !== data.place) this.follows = true;
    this.tell();
    this.follow();
    this.enterNote();
  }

  // Another server process: of keys that were on their way to the one before, it is not known
  // whether they were applied; those pressed since it is there can only be meant for it. Or a key
  // could not be applied: those behind it were meant for the turns it would have led to.
  startAnew(before) {
    const { place, failed, texts } = this.data;
    const isSame = before?.place === place && !failed;
    const sure = this.pending.filter((key) => isSame && key.connection === this.connection);
    const lost = this.pending.length - sure.length;
    if (lost) this.warn(counted(failed ? texts.left_out : texts.lost, lost));
    this.session = this.data.session;
    this.lastNumber = this.data.applied;
    this.pending = sure.map((key) => ({ ...key, number: (this.lastNumber += 1) }));
    if (sure.length) this.send();
  }

  // ------------------------------------------------------------------ keys

  onKey(event) {
    const target = event.composedPath()[0];
    if (event.isComposing || isAsleep(target)) {
      if (event.key !== "Escape") return;
      document.activeElement?.blur(); // which stores what was typed; a number field's own Esc
      if (target.matches?.("[type=number]")) event.stopImmediatePropagation(); // would drop it
      return;
    }
    if (this.noteText !== null) {
      event.preventDefault();
      if (this.noteEnds) this.held.push(this.actionOf(event));
      else if (event.key === "Escape" || event.key === "Enter") this.noteEnds = true;
      else if (event.key.length === 1) this.noteText += event.key;
      return;
    }
    const action = this.actionOf(event);
    if (!action) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.repeat && (!action.startsWith("go:") || this.pending.length > 2)) return;
    if (action === "go:note") {
      if (!this.data.note) return;
      this.noteText = "";
      this.noteAt = Date.now();
      this.enterNote();
      this.tell();
    } else {
      this.press(action);
    }
  }

  actionOf(event) {
    const names = keyNames(event);
    return names.map((name) => this.data.keys[name]).find((action) => action !== undefined);
  }

  onClick(event) {
    const path = event.composedPath().filter((node) => node instanceof Element);
    const turn = path.map(turnOf).find((number) => number !== null);
    if (turn === undefined || path.some((node) => node.matches(OWN_CLICKS))) return;
    if (!window.getSelection().isCollapsed) return; // somebody marks text to copy it
    if (`turn-${turn}` !== this.data.focus) this.press(`turn:${turn}`);
  }

  press(action) {
    if (!this.takesKeys()) {
      this.dropped += 1;
      this.tell();
      return;
    }
    this.pressedAt = Date.now();
    this.lastNumber += 1;
    const { lastNumber: number, connection } = this;
    this.pending.push({ number, action, connection, at: this.pressedAt });
    if (this.isConnected()) this.send();
  }

  send() {
    const keys = this.pending.map(({ number, action }) => ({ number, action }));
    this.setStateValue("pressed", { session: this.session, keys, sent: Date.now() });
  }

  resend() {
    const isBusy = this.app.dataset.testScriptState === "running";
    if (this.pending.length && this.isConnected() && !isBusy) this.send();
    const isSeen = this.pressedAt > this.warnedAt && Date.now() - this.warnedAt > WARNING_MS;
    if (isSeen) this.warning = "";
    const waits = this.pending.length || isBusy || Date.now() - this.noteAt < SLOW_MS;
    if (this.noteText !== null && !waits) this.endNote(); // the turn has gone, and its field
    this.tell();
  }

  // Another window, or another rater, may have changed what stands here; whoever comes back to this
  // window is to see what is true now. (A redraw would close a dialog.)
  lookAgain() {
    const isOpen = document.querySelector("[role=dialog]") !== null;
    if (this.data && this.isConnected() && !isOpen) this.send();
  }

  // Go into the marked turn's note, once the keys pressed before have led to that turn.
  enterNote() {
    const { focus, note } = this.data;
    const field = document.querySelector(`.st-key-${focus} .st-key-${note} :is(input, textarea)`);
    if (this.noteText === null || this.pending.length || !field) return;
    field.focus();
    if (this.noteText) document.execCommand("insertText", false, this.noteText);
    if (this.noteEnds) field.blur();
    this.endNote();
  }

  endNote() {
    const held = this.held.filter((action) => action !== undefined);
    this.noteText = null;
    this.noteEnds = false;
    this.held = [];
    for (const action of held) this.press(action);
    this.tell();
  }

  // ------------------------------------------------------------------ what the line says

  isConnected() {
    return this.app.dataset.testConnectionState === "CONNECTED" && navigator.onLine;
  }

  // A cut that is over at once is none: its keys wait. What is pressed in a long one, unseen, is
  // not taken, or it would all land much later.
  takesKeys() {
    return this.isConnected() || Date.now() - this.cutAt < SLOW_MS;
  }

  warn(text) {
    this.warning = text;
    this.warnedAt = Date.now();
  }

  tell() {
    const { texts } = this.data;
    const number = this.pending.length;
    const waits = number && Date.now() - this.pending[0].at > SLOW_MS;
    const isBad = !this.takesKeys() || waits || this.warning !== "";
    const isTyping = this.noteText !== null || isAsleep(document.activeElement);
    let text = isTyping ? texts.asleep : texts.awake;
    if (this.warning) text = this.warning;
    if (waits) text = counted(texts.waiting, number);
    if (!this.takesKeys()) text = number ? counted(texts.cut_waiting, number) : texts.cut;
    if (this.line.textContent !== text) this.line.textContent = text;
    this.line.classList.toggle("bad", Boolean(isBad));
  }

  onConnection() {
    const isThere = this.isConnected();
    if (isThere && !this.wasThere) {
      this.connection += 1;
      if (this.dropped) this.warn(counted(this.data.texts.dropped, this.dropped));
      this.dropped = 0;
    }
    if (!isThere && this.wasThere) this.cutAt = Date.now();
    this.wasThere = isThere;
    if (this.data) this.tell();
  }

  // ------------------------------------------------------------------ the marked turn

  // Called whenever the page has changed: what grows above the marked turn pushes it away.
  follow() {
    if (!this.follows || !this.data) return;
    const turn = document.querySelector(`.st-key-${this.data.focus}`);
    if (!turn) return;
    this.enterNote();
    const box = turn.getBoundingClientRect();
    const top = 72;
    const bottom = this.bar.getBoundingClientRect().top - 12;
    if (box.top >= top && box.bottom <= bottom) return;
    const isTall = box.height > bottom - top;
    turn.style.scrollMargin = `${top}px 0 ${window.innerHeight - bottom}px`;
    // The end of a turn has its controls; a long one is read from its beginning.
    turn.scrollIntoView({ block: isTall || box.top < top ? "start" : "end", behavior: "instant" });
  }
}

// The names a key may have in the map, best first: what it writes, else its place on the keyboard
// (letters of keyboards that write other scripts). In the row of digits the place comes first: on
// keyboards that write digits with Shift, all ten give scores, whatever signs they write without.
function keyNames(event) {
  const isPrintable = event.key.length === 1;
  const isLatin = /^[\x21-\x7e]$/.test(event.key);
  const place = /^(?:Digit|Numpad|Key)([0-9A-Z])$/.exec(event.code)?.[1];
  const key = isPrintable ? event.key.toUpperCase() : event.key;
  const isLetter = isPrintable && key !== event.key.toLowerCase();
  const before = (event.ctrlKey || event.metaKey ? "Ctrl+" : "") + (event.altKey ? "Alt+" : "");
  const shift = event.shiftKey && (!isPrintable || isLetter) ? "Shift+" : "";
  const names = [before + shift + key];
  if (place && !event.shiftKey && !/^[0-9]$/.test(event.key) && isPrintable) {
    if (/^[0-9]$/.test(place)) names.unshift(before + place);
    else if (!isLatin) names.push(before + place);
  }
  return names;
}

// A text for one or for many of something.
function counted(texts, number) {
  return number === 1 ? texts.one : texts.other.replace("{n}", number);
}

function isAsleep(element) {
  return element instanceof Element && element.closest(ASLEEP) !== null;
}

function turnOf(element) {
  const found = /(?:^|\s)st-key-turn-(\d+)(?:\s|$)/.exec(element.className?.toString() ?? "");
  return found ? Number(found[1]) : null;
}
