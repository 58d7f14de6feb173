import { Marked, type Tokens } from 'marked';
import { createAnchors } from './anchors.ts';
import { diagramFile } from './diagrams.ts';
import type { Guide, GuidePage } from './guide-pages.ts';

/** A page as HTML, with its second-level headings. */
export interface RenderedPage {
  readonly html: string;
  readonly contents: readonly { readonly anchor: string; readonly title: string }[];
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
export const escapeHtml = (text: string): string => text.replaceAll(/[&<>"]/g, (character) => ESCAPES[character]!);

/**
 * Renders a page of the guide. HTML in a page is shown as text. Links to files that only the repository has become
 * plain text.
 */
export function renderPage(guide: Guide, page: GuidePage): RenderedPage {
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
        const picture = guide.resolve(page, `images/${diagramFile(page.file, diagrams)}`);
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
