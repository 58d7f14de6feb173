// The guide's search, a copy button at each code block, and the address of this gateway in the code. All requests go to
// this host.

/** @typedef {readonly [address: string, page: string, heading: string, text: string]} Entry */
/**
 * @typedef {{
 *   readonly createGuideSearch: (entries: readonly Entry[]) => (question: string) => readonly Entry[],
 *   readonly wordsOfQuestion: (question: string) => readonly string[],
 * }} SearchModule
 */

const MOST_FOUND = 12;
const AROUND = 70;
const COPIED_MS = 1500;

const box = /** @type {HTMLElement} */ (document.querySelector('.search'));
const input = /** @type {HTMLInputElement} */ (box.querySelector('input'));
const found = /** @type {HTMLElement} */ (box.querySelector('.found'));
const list = /** @type {HTMLElement} */ (found.querySelector('ul'));
const told = /** @type {HTMLElement} */ (found.querySelector('[role=status]'));

/** @type {Promise<Found | null> | null} */
let index = null;

/**
 * @typedef {{
 *   readonly find: (question: string) => readonly Entry[],
 *   readonly wordsOf: (question: string) => readonly string[],
 * }} Found
 */

/**
 * Fetches the parts of all pages and the ranking that all searches of this gateway have (`web/src/search`), once. After
 * a failure the next search tries again.
 * @type {() => Promise<Found | null>}
 */
async function fetchIndex() {
  try {
    const [answer, ranking] = await Promise.all([
      fetch('/docs/guide/assets/search.json'),
      /** @type {Promise<SearchModule>} */ (import(new URL('/docs/static/search.js', location.origin).href)),
    ]);
    if (!answer.ok) throw new Error(`the index is not to be had: ${answer.status}`);
    const entries = /** @type {readonly Entry[]} */ (await answer.json());
    return { find: ranking.createGuideSearch(entries), wordsOf: ranking.wordsOfQuestion };
  } catch {
    index = null;
    return null;
  }
}
const load = () => (index ??= fetchIndex());

/**
 * Returns the place of the first of the words in a text, or null if the text has no such word.
 * @type {(text: string, words: readonly string[]) => { readonly at: number, readonly length: number } | null}
 */
function firstOf(text, words) {
  const low = text.toLowerCase();
  let first = null;
  for (const word of words) {
    const at = low.indexOf(word);
    if (at !== -1 && (first === null || at < first.at)) first = { at, length: word.length };
  }
  return first;
}

/**
 * Returns the text around the first matching word, with all matches marked.
 * @type {(text: string, words: readonly string[]) => HTMLElement}
 */
function excerpt(text, words) {
  const from = Math.max(0, (firstOf(text, words)?.at ?? 0) - AROUND);
  const shown = text.slice(from, from + 2 * AROUND);
  const line = document.createElement('span');
  let rest = `${from > 0 ? '…' : ''}${shown}${from + shown.length < text.length ? '…' : ''}`;
  for (let next = firstOf(rest, words); next !== null; next = firstOf(rest, words)) {
    const mark = document.createElement('mark');
    mark.textContent = rest.slice(next.at, next.at + next.length);
    line.append(rest.slice(0, next.at), mark);
    rest = rest.slice(next.at + next.length);
  }
  line.append(rest);
  return line;
}

/** @type {(entry: Entry, words: readonly string[]) => HTMLElement} */
function lineOf([address, page, heading, text], words) {
  const item = document.createElement('li');
  const link = document.createElement('a');
  link.href = address;
  const title = document.createElement('b');
  title.textContent = page === heading ? page : `${page} › ${heading}`;
  link.append(title, excerpt(text, words));
  item.append(link);
  return item;
}

async function search() {
  const asked = input.value;
  if (asked.trim() === '') return close();
  const search = await load();
  if (input.value !== asked) return;
  const words = search?.wordsOf(asked) ?? [];
  const best = search?.find(asked) ?? [];
  list.replaceChildren(...best.slice(0, MOST_FOUND).map((entry) => lineOf(entry, words)));
  told.textContent =
    search === null
      ? 'The search could not be loaded. Type on to try again.'
      : best.length === 0
        ? `Nothing about “${asked.trim()}”. Try fewer words.`
        : `${best.length} ${best.length === 1 ? 'place' : 'places'}`;
  found.hidden = false;
}

function close() {
  found.hidden = true;
}

/**
 * Moves the focus between the search field and the results.
 * @type {(step: 1 | -1) => void}
 */
function move(step) {
  /** @type {readonly HTMLElement[]} */
  const stops = [input, ...list.querySelectorAll('a')];
  const here = stops.findIndex((stop) => stop === document.activeElement);
  if (!found.hidden) stops[here + step]?.focus();
}

/** @type {(event: Event, selector: string) => boolean} */
const isIn = ({ target }, selector) => target instanceof Element && target.closest(selector) !== null;

box.hidden = false;
input.addEventListener('focus', () => void load());
input.addEventListener('input', () => void search());
box.addEventListener('keydown', (event) => {
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    event.preventDefault();
    move(event.key === 'ArrowDown' ? 1 : -1);
  } else if (event.key === 'Escape') {
    close();
    input.focus();
  } else if (event.key === 'Enter' && event.target === input) list.querySelector('a')?.click();
});
document.addEventListener('keydown', (event) => {
  const finds = event.key === 'k' && (event.ctrlKey || event.metaKey);
  if (!finds && (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey)) return;
  if (!finds && isIn(event, 'input, textarea, select, [contenteditable]')) return;
  event.preventDefault();
  input.focus();
});
document.addEventListener('click', (event) => {
  // A link to another part of the same page doesn't load a page, so the search must be closed here.
  if (!isIn(event, '.search') || isIn(event, '.search a')) close();
});

// The files have the address of a gateway that runs with its defaults. The reader's gateway is the one that sent the
// page, but a proxy in front of it still finds it at that address.
const DEFAULT_ADDRESS = /(?<!proxy_pass )\b(?:http|ws):\/\/127\.0\.0\.1:8402\b/g;
/** @type {(text: string) => string} */
const atThisGateway = (text) =>
  text.replaceAll(DEFAULT_ADDRESS, (address) =>
    address.startsWith('ws') ? location.origin.replace(/^http/, 'ws') : location.origin,
  );
for (const code of document.querySelectorAll('article code')) {
  const text = atThisGateway(code.textContent);
  if (text !== code.textContent) code.textContent = text;
}
for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll('article a')))
  if (link.href.startsWith('http://127.0.0.1:8402')) link.href = atThisGateway(link.href);

for (const block of document.querySelectorAll('.code')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.addEventListener('click', () => {
    const say = (/** @type {string} */ text) => {
      button.textContent = text;
      setTimeout(() => (button.textContent = 'Copy'), COPIED_MS);
    };
    navigator.clipboard.writeText(block.querySelector('code')?.textContent ?? '').then(
      () => say('Copied'),
      () => say('Not allowed'),
    );
  });
  block.append(button);
}

// On wide screens the contents are open. On narrow screens the reader opens them.
const frame = /** @type {HTMLElement} */ (document.querySelector('.contents'));
const contents = /** @type {HTMLDetailsElement} */ (frame.querySelector('details'));
const wide = matchMedia('(min-width: 900px)');
const unfold = () => (contents.open = wide.matches);
wide.addEventListener('change', unfold);
unfold();
// Scrolls the contents so that the current page is visible in them.
const here = /** @type {HTMLElement | null} */ (contents.querySelector('[aria-current]'));
if (wide.matches && here) frame.scrollTop = here.offsetTop - frame.clientHeight / 2;
