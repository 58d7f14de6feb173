// The guide's search, a copy button at each code block, and the address of this gateway in the code. All requests go to
// this host.

/** @typedef {readonly [address: string, page: string, heading: string, text: string]} Entry */

const MOST_FOUND = 12;
const AROUND = 70;
const COPIED_MS = 1500;

const box = /** @type {HTMLElement} */ (document.querySelector('.search'));
const input = /** @type {HTMLInputElement} */ (box.querySelector('input'));
const found = /** @type {HTMLElement} */ (box.querySelector('.found'));
const list = /** @type {HTMLElement} */ (found.querySelector('ul'));
const told = /** @type {HTMLElement} */ (found.querySelector('[role=status]'));

/** @type {Promise<readonly Entry[]> | null} */
let index = null;

/** Fetches the parts of all pages, once. After a failure the next search tries again. */
async function fetchIndex() {
  try {
    const answer = await fetch('/docs/guide/assets/search.json');
    if (!answer.ok) throw new Error(`the index is not to be had: ${answer.status}`);
    return /** @type {readonly Entry[]} */ (await answer.json());
  } catch {
    index = null;
    return [];
  }
}
const load = () => (index ??= fetchIndex());

/** Words of a question that say nothing about its subject. */
const EMPTY_WORDS = new Set(
  'a an and are at be by can do does for from get has have how i if in is it its me my need of on or our should so that the their there this to us want was we what when where which who why will with you your'.split(
    ' ',
  ),
);

/** Other words for the same: a reader types one, and the pages may use the other. */
const SAME = [
  ['refund', 'credit', 'debit', 'correct'],
  ['block', 'ban', 'freeze', 'refuse'],
  ['rotate', 'replace', 'renew'],
  ['raise', 'increase'],
  ['customer', 'account', 'user'],
  ['invoice', 'statement', 'receipt'],
  ['remove', 'delete'],
  ['payout', 'withdraw'],
  ['quota', 'limit'],
];

/**
 * The words of a search. Question words are left out if others remain, and plurals are searched as singulars.
 * @type {(text: string) => readonly string[]}
 */
function wordsOf(text) {
  const all = text
    .toLowerCase()
    .split(/[\s?!,;]+/)
    .filter((word) => word !== '');
  const telling = all.filter((word) => !EMPTY_WORDS.has(word));
  return (telling.length > 0 ? telling : all).map((word) =>
    word.length > 4 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word,
  );
}

/** @type {(word: string) => readonly string[]} */
const othersOf = (word) => SAME.find((group) => group.includes(word))?.filter((other) => other !== word) ?? [];

/**
 * Returns how well a part of a page fits the words. 0 if less than half of the words, or words of the same meaning,
 * occur in it. A part with all words comes before parts with some of them.
 * @type {(entry: Entry, words: readonly string[]) => number}
 */
function score([address, page, heading, text], words) {
  const inPage = page.toLowerCase();
  const inHeading = heading.toLowerCase();
  const inText = text.toLowerCase();
  /** @type {(word: string) => number} */
  const pointsOf = (word) => {
    const at = inText.indexOf(word);
    return (
      (inHeading.includes(word) ? 8 : 0) +
      (inPage.includes(word) ? 4 : 0) +
      (at === -1 ? 0 : 1 + (at < 200 ? 1 : 0)) +
      // A heading that is the word alone answers a search for the word alone.
      (words.length === 1 && (inHeading === word || inPage === word) ? 8 : 0)
    );
  };
  let sum = 0;
  let matched = 0;
  for (const word of words) {
    const points = pointsOf(word) || Math.max(0, ...othersOf(word).map(pointsOf)) / 2;
    if (points > 0) matched += 1;
    sum += points;
  }
  // Decisions and the changelog say why and when, not how.
  const weight = /\/guide\/(?:decisions|changelog)\b/.test(address) ? 0.25 : 1;
  return matched * 2 < words.length ? 0 : weight * sum * (matched / words.length) ** 2;
}

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
  const words = wordsOf(asked);
  if (words.length === 0) return close();
  const entries = await load();
  if (input.value !== asked) return;
  // The sort is stable, so equal results stay in the order of the pages.
  const best = entries
    .map((entry) => ({ entry, points: score(entry, words) }))
    .filter(({ points }) => points > 0)
    .sort((a, b) => b.points - a.points);
  list.replaceChildren(...best.slice(0, MOST_FOUND).map(({ entry }) => lineOf(entry, words)));
  told.textContent =
    best.length === 0
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
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isIn(event, 'input, textarea, select, [contenteditable]')) return;
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
