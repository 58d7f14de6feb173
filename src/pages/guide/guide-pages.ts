import { readdir, readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';

/** The address of the guide's first page. All others are below it. */
export const GUIDE = '/docs/guide';

export interface GuidePage {
  /** Below `/docs/guide/`, such as `clients/openai`; empty for the first page. */
  readonly path: string;
  /** Its file, from `docs/` on. */
  readonly file: string;
  readonly title: string;
  /** As it is in the repository, in Markdown. */
  readonly text: string;
}

/** A chapter of the contents: what stands below one heading of `docs/README.md`. */
interface Chapter {
  readonly title: string;
  readonly pages: readonly GuidePage[];
}

export interface Guide {
  readonly pages: ReadonlyMap<string, GuidePage>;
  /** The same by their files, as `sourceOfPage` names them. */
  readonly sources: ReadonlyMap<string, GuidePage>;
  readonly chapters: readonly Chapter[];
  /** Files below `docs/images/`, by name. */
  readonly images: ReadonlySet<string>;
  /** The page, the picture or the anchor that a link of a page leads to; null for what only the repository has. */
  resolve(from: GuidePage, href: string): string | null;
}

const HOME = 'README.md';
/** Pages that lie beside `docs/`, by their path in the guide. */
const BESIDE = { changelog: '../CHANGELOG.md' } as const;
const DECISIONS = 'decisions';

/** Reads the guide: `docs/` of a checkout or of a package. */
export async function readGuide(root: string): Promise<Guide> {
  const docs = join(root, 'docs');
  // Without the folder every page is one that the guide does not have.
  const entries = await readdir(docs, { recursive: true }).catch((): string[] => []);
  const files = entries.map((entry) => entry.replaceAll('\\', '/')).toSorted();
  const named: readonly (readonly [path: string, file: string])[] = [
    ...files.filter((file) => file.endsWith('.md')).map((file) => [pathOf(file), file] as const),
    ...Object.entries(BESIDE),
  ];
  const pages = new Map<string, GuidePage>();
  for (const [path, file] of named) {
    const text = await readFile(join(docs, file), 'utf8').catch(() => null);
    if (text !== null) pages.set(path, { path, file, title: titleOf(text), text });
  }
  pages.set(DECISIONS, listOfDecisions([...pages.values()]));
  const images = new Set(files.filter((file) => file.startsWith('images/')).map((file) => posix.basename(file)));
  const byFile = new Map([...pages.values()].map((page) => [page.file, page] as const));
  const sources = new Map([...pages.values()].map((page) => [sourceOfPage(page), page] as const));
  const resolve = (from: GuidePage, href: string) => addressOf(from, href, byFile, images);
  return { pages, sources, images, resolve, chapters: chaptersOf(pages, byFile) };
}

/** `clients/README.md` is the page `clients`. */
const pathOf = (file: string): string => file.replace(/(?:^|\/)README\.md$|\.md$/, '');

const titleOf = (text: string): string => plain(/^# (.+)$/m.exec(text)?.[1] ?? 'Guide');

/** A line of Markdown as its words alone. */
export const plain = (line: string): string =>
  line
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .trim();

function listOfDecisions(pages: readonly GuidePage[]): GuidePage {
  const lines = pages
    .filter(({ path }) => path.startsWith(`${DECISIONS}/`))
    .map(({ file, title }) => `- [${title}](${posix.basename(file)})`);
  const text = `# Decisions\n\nChoices that bind, each with its context and its consequences.\n\n${lines.join('\n')}\n`;
  return { path: DECISIONS, file: `${DECISIONS}/README.md`, title: 'Decisions', text };
}

/** Lines such as `- [Chat](chat.md): …` below a heading. Pages that it does not name come last. */
function chaptersOf(pages: ReadonlyMap<string, GuidePage>, byFile: ReadonlyMap<string, GuidePage>): readonly Chapter[] {
  const [, ...parts] = (pages.get('')?.text ?? '').split(/^## /m);
  const chapters = parts.map((part) => ({
    title: plain(part.split('\n', 1)[0]!),
    pages: [...part.matchAll(/^- \[[^\]]+\]\(([^)#]+)\)/gm)].flatMap(
      ([, file]) => byFile.get(file!) ?? byFile.get(`${file}/${HOME}`) ?? [],
    ),
  }));
  const named = new Set(chapters.flatMap((chapter) => chapter.pages));
  const others = [...pages.values()].filter((page) => page.path !== '' && !INSIDE.test(page.path) && !named.has(page));
  return others.length === 0 ? chapters : [...chapters, { title: 'More', pages: others }];
}

/** Pages that a page of their own lists. */
const INSIDE = /^(?:clients|decisions)\/./;

function addressOf(
  from: GuidePage,
  href: string,
  byFile: ReadonlyMap<string, GuidePage>,
  images: ReadonlySet<string>,
): string | null {
  if (/^(?:https?:\/\/|\/|#)/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const file = posix.join(posix.dirname(from.file), path).replace(/\/$/, '');
  // The repository's own front page is the guide's to a reader of the guide.
  const page = file === '../README.md' ? byFile.get(HOME) : (byFile.get(file) ?? byFile.get(`${file}/README.md`));
  if (page) return `${addressOfPage(page)}${anchor === undefined ? '' : `#${anchor}`}`;
  const image = posix.basename(file);
  return file === `images/${image}` && images.has(image) ? `${GUIDE}/images/${image}` : null;
}

export const addressOfPage = ({ path }: GuidePage): string => (path === '' ? GUIDE : `${GUIDE}/${path}`);

/** A page as Markdown, below `/docs/guide/`: as its file lies in `docs/`, so that links between files lead on. */
export const sourceOfPage = ({ file }: GuidePage): string => file.replace(/^\.\.\//, '');
