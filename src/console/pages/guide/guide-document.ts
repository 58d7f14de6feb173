import { createHash } from 'node:crypto';
import { Marked, type Tokens } from 'marked';
import { FIRST_SCRIPT_PATH, ICON, NAV, NAV_MENU, THEME_SWITCH } from '../front/page-parts.ts';
import { addressOfPage, GUIDE, type Guide, type GuidePage, sourceOfPage, createAnchors } from './guide-pages.ts';

const MARK = ICON.replace('<svg ', '<svg aria-hidden="true" ');

export function guideDocument(guide: Guide, page: GuidePage, version: string): string {
  const rendered = renderPage(guide, page);
  return frame(guide, {
    title: page.title,
    version,
    here: page,
    body: `<article>${rendered.html}${neighbours(guide, page)}</article>${onThisPage(rendered)}`,
  });
}

export function missingDocument(guide: Guide, version: string): string {
  const body = `<article><h1>Not found</h1>
<p>The guide has no such page. Search for it above, or begin at <a href="${GUIDE}">the contents</a>.</p></article>`;
  return frame(guide, { title: 'Not found', version, here: null, body });
}

interface PageFrame {
  readonly title: string;
  readonly version: string;
  readonly here: GuidePage | null;
  readonly body: string;
}

const frame = (guide: Guide, { title, version, here, body }: PageFrame): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · tollgate guide</title>
<meta name="color-scheme" content="light dark">
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${GUIDE}/assets/guide.css">
<script src="${FIRST_SCRIPT_PATH}"></script>
<script src="${GUIDE}/assets/guide.js" type="module"></script>
</head>
<body>
<a class="skip" href="#content">To the text</a>
<header><div class="wide">
<a class="name" href="/">${MARK} tollgate</a>
<nav class="to" aria-label="Main">${NAV}</nav>
<search class="search" hidden>
<label class="seen-not" for="query">Search the guide</label>
<input id="query" type="search" placeholder="Search the guide (Ctrl K)" autocomplete="off" spellcheck="false" aria-keyshortcuts="/ Control+K">
<div class="found" hidden><p role="status"></p><ul></ul></div>
</search>
${THEME_SWITCH}
${NAV_MENU}
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

function neighbours({ chapters }: Guide, page: GuidePage): string {
  const all = chapters.flatMap(({ pages }) => pages);
  const index = all.indexOf(page);
  const [before, after] =
    index === -1 ? [undefined, page.path === '' ? all[0] : undefined] : [all[index - 1], all[index + 1]];
  if (!before && !after) return '';
  return `<p class="neighbours">${before ? `<span>Before: ${linkTo(before)}</span>` : '<span></span>'}${after ? `<span>Next: ${linkTo(after)}</span>` : ''}</p>`;
}

interface RenderedPage {
  readonly html: string;
  readonly contents: readonly { readonly anchor: string; readonly title: string }[];
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escapeHtml = (text: string): string => text.replaceAll(/[&<>"]/g, (character) => ESCAPES[character]!);

/**
 * Renders a page of the guide. HTML in a page is shown as text. Links to files that only the repository has become
 * plain text.
 */
function renderPage(guide: Guide, page: GuidePage): RenderedPage {
  const anchorOf = createAnchors();
  const contents: { readonly anchor: string; readonly title: string }[] = [];
  let diagrams = 0;
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }: Tokens.Heading) {
        const inner = this.parser.parseInline(tokens);
        const anchor = anchorOf(text);
        if (depth === 1) return `<h1>${inner}</h1>\n`;
        if (depth === 2) contents.push({ anchor, title: inner.replaceAll(/<[^>]+>/g, '') });
        const label = `aria-label="Link to this part" href="#${escapeHtml(anchor)}"`;
        return `<h${depth} id="${escapeHtml(anchor)}">${inner} <a class="anchor" ${label}>#</a></h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const inner = this.parser.parseInline(tokens);
        const address = guide.resolve(page, href);
        if (address === null)
          return `<span class="source" title="In the repository: ${escapeHtml(href)}">${inner}</span>`;
        const away = /^https?:/.test(address) ? ' rel="noopener"' : '';
        return `<a href="${escapeHtml(address)}"${away}>${inner}</a>`;
      },
      image({ href, text }: Tokens.Image) {
        const address = guide.resolve(page, href);
        return address === null
          ? escapeHtml(text)
          : `<img src="${escapeHtml(address)}" alt="${escapeHtml(text)}" loading="lazy">`;
      },
      code({ text, lang }: Tokens.Code) {
        if (lang !== 'mermaid') return codeBlock(text);
        const picture = guide.resolve(
          page,
          `${'../'.repeat(page.file.split('/').length - 1)}images/${diagramFile(page.file, diagrams)}`,
        );
        diagrams += 1;
        return diagram(text, picture);
      },
      // HTML comments are for the authors of the page, so they are removed.
      html: ({ text }: Tokens.HTML | Tokens.Tag) => escapeHtml(withoutComments(text)),
      table(token: Tokens.Table) {
        const row = (cells: readonly Tokens.TableCell[], tag: 'th' | 'td') =>
          `<tr>${cells.map((cell) => cellOf(cell.text === '' ? 'td' : tag, this.parser.parseInline(cell.tokens))).join('')}</tr>`;
        const head = token.header.some(({ text }) => text !== '') ? `<thead>${row(token.header, 'th')}</thead>` : '';
        const body = token.rows.map((cells) => row(cells, 'td')).join('\n');
        return `<div class="table" tabindex="0"><table>${head}<tbody>${body}</tbody></table></div>\n`;
      },
    },
  });
  return { html: marked.parse(page.text, { async: false }), contents };
}

const withoutComments = (text: string): string => text.replaceAll(/<!--[^]*?-->/g, '');

const cellOf = (tag: 'th' | 'td', inner: string): string => `<${tag}>${inner}</${tag}>`;

const codeBlock = (text: string): string =>
  `<div class="code"><pre tabindex="0"><code>${escapeHtml(text)}</code></pre></div>\n`;

/**
 * A diagram as the picture that `scripts/diagrams.ts` drew, because the library that draws it is larger than the whole
 * guide. Its text is below, for who cannot see the picture.
 */
function diagram(text: string, picture: string | null): string {
  const image =
    picture === null
      ? ''
      : `<img class="diagram" src="${escapeHtml(picture)}" alt="A diagram; its text is below" loading="lazy">`;
  return `${image}<details><summary>The diagram as text</summary>${codeBlock(text)}</details>\n`;
}

/** The sources of a page's Mermaid diagrams, in order. */
export const diagramsOf = (text: string): readonly string[] =>
  [...text.matchAll(/^```mermaid\n([^]*?)^```$/gm)].map(([, source]) => source!.trimEnd());

/** The picture of a page's diagram in `docs/images/`. `file`: `how/ledger.md`. `index`: 0 for the first diagram. */
export const diagramFile = (file: string, index: number): string =>
  `diagram-${file.replace(/\.md$/, '').replaceAll('/', '-')}${index === 0 ? '' : `-${index + 1}`}.svg`;

/** A line in the picture that names the source it was drawn from, so that an old picture is noticed. */
export const diagramMark = (source: string): string =>
  `source ${createHash('sha256').update(source).digest('hex').slice(0, 16)}`;
