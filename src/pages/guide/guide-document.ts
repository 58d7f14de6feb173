import { ICON } from '../reference/icon.ts';
import { FIRST_SCRIPT_PATH } from '../reference/first-script.ts';
import { addressOfPage, GUIDE, type Guide, type GuidePage, sourceOfPage } from './guide-pages.ts';
import { escapeHtml, renderPage, type RenderedPage } from './render-page.ts';

const MARK = ICON.replace('<svg ', '<svg aria-hidden="true" ');

/** The HTML document of a page. */
export function guideDocument(guide: Guide, page: GuidePage, version: string): string {
  const rendered = renderPage(guide, page);
  return frame(guide, {
    title: page.title,
    version,
    here: page,
    body: `<article>${rendered.html}${neighbours(guide, page)}</article>${onThisPage(rendered)}`,
  });
}

/** The HTML document for a path that the guide doesn't have. */
export function missingDocument(guide: Guide, version: string): string {
  const body = `<article><h1>Not found</h1>
<p>The guide has no such page. Search for it above, or begin at <a href="${GUIDE}">the contents</a>.</p></article>`;
  return frame(guide, { title: 'Not found', version, here: null, body });
}

interface Frame {
  readonly title: string;
  readonly version: string;
  readonly here: GuidePage | null;
  readonly body: string;
}

const frame = (guide: Guide, { title, version, here, body }: Frame): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · tollgate guide</title>
<meta name="color-scheme" content="light dark">
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${GUIDE}/assets/guide.css">
<script src="${FIRST_SCRIPT_PATH}"></script>
<script src="${GUIDE}/assets/guide.js" defer></script>
</head>
<body>
<a class="skip" href="#content">To the text</a>
<header><div class="wide">
<a class="name" href="/">${MARK} tollgate</a>
<a class="to" href="${GUIDE}">Guide</a>
<a class="to" href="/docs">API reference</a>
<a class="to" href="/marketplace">Marketplace</a>
<search class="search" hidden>
<label class="seen-not" for="query">Search the guide</label>
<input id="query" type="search" placeholder="Search the guide" autocomplete="off" spellcheck="false" aria-keyshortcuts="/">
<div class="found" hidden><p role="status"></p><ul></ul></div>
</search>
</div></header>
<div class="wide columns">
<nav class="contents" aria-label="Contents">
<details><summary>Contents</summary>${contents(guide, here)}</details>
</nav>
<main id="content" tabindex="-1">${body}</main>
</div>
<footer><div class="wide"><span>tollgate ${escapeHtml(version)} · Apache-2.0</span>${source(here)}</div></footer>
</body>
</html>
`;

/** A link to the page as Markdown, for language models and for copying. */
const source = (here: GuidePage | null): string =>
  here === null ? '' : `<a href="${GUIDE}/${sourceOfPage(here)}">This page as Markdown</a>`;

const contents = ({ chapters }: Guide, here: GuidePage | null): string =>
  chapters
    .map(({ title, pages }) => {
      const links = pages.map((page) => `<li>${linkTo(page, page === here ? ' aria-current="page"' : '')}</li>`);
      return `<h2>${escapeHtml(title)}</h2><ul>${links.join('')}</ul>`;
    })
    .join('\n');

const linkTo = (page: GuidePage, more = ''): string =>
  `<a href="${addressOfPage(page)}"${more}>${escapeHtml(page.title)}</a>`;

const onThisPage = ({ contents: parts }: RenderedPage): string =>
  parts.length < 3
    ? ''
    : `<nav class="parts" aria-label="On this page"><h2>On this page</h2><ul>${parts
        .map(({ anchor, title }) => `<li><a href="#${escapeHtml(anchor)}">${title}</a></li>`)
        .join('')}</ul></nav>`;

/** Links to the previous and the next page, in the order of the contents. */
function neighbours({ chapters }: Guide, page: GuidePage): string {
  const all = chapters.flatMap(({ pages }) => pages);
  const index = all.indexOf(page);
  const [before, after] =
    index === -1 ? [undefined, page.path === '' ? all[0] : undefined] : [all[index - 1], all[index + 1]];
  if (!before && !after) return '';
  return `<p class="neighbours">${before ? `<span>Before: ${linkTo(before)}</span>` : '<span></span>'}${after ? `<span>Next: ${linkTo(after)}</span>` : ''}</p>`;
}
