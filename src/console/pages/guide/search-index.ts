import { createAnchors, addressOfPage, plain, type Guide, type GuidePage } from './guide-pages.ts';

/** A part of a page below one heading: `[address, title of the page, heading, text]`. */
type SearchEntry = readonly [address: string, page: string, heading: string, text: string];

const TEXT_MAX = 2_000;

/**
 * All parts of the pages, for the search in the browser. The contents, decisions and the changelog answer no user's
 * question.
 */
export function searchIndex(guide: Guide): readonly SearchEntry[] {
  return [...guide.pages.values()].filter(({ path }) => !/^(?:$|decisions|changelog)/.test(path)).flatMap(entriesOf);
}

function entriesOf(page: GuidePage): readonly SearchEntry[] {
  const anchorOf = createAnchors();
  const address = addressOfPage(page);
  const entries: { readonly to: string; readonly heading: string; lines: string[] }[] = [];
  let fenced = false;
  for (const line of withoutAsides(page.text).split('\n')) {
    if (line.startsWith('```')) fenced = !fenced;
    const [, level, heading] = fenced ? [] : (/^(#{1,4}) (.+)$/.exec(line) ?? []);
    if (heading === undefined) entries.at(-1)?.lines.push(line);
    else {
      const anchor = anchorOf(heading);
      entries.push({ to: level === '#' ? address : `${address}#${anchor}`, heading: plain(heading), lines: [] });
    }
  }
  return entries.map(({ to, heading, lines }) => [to, page.title, heading, textOf(lines)]);
}

/** Diagrams and comments are not searched. */
const withoutAsides = (text: string): string => text.replaceAll(/^```mermaid$[^]*?^```$|<!--[^]*?-->/gm, '');

/** The words of the lines, without the marks of tables, lists and fences. */
function textOf(lines: readonly string[]): string {
  const words = lines
    .filter((line) => !/^(?:```|\|[-| ]+\|$)/.test(line))
    .map((line) =>
      plain(line)
        .replaceAll('|', ' ')
        .replace(/^[-*] /, ''),
    )
    .join(' ');
  return words.replaceAll(/\s+/g, ' ').trim().slice(0, TEXT_MAX);
}
