import { readdir, readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';

export const GUIDE = '/docs/guide';

export interface GuidePage {
  /** Path below `/docs/guide/`, such as `clients/openai`. Empty for the first page. */
  readonly path: string;
  /** Path of its file, relative to `docs/`. */
  readonly file: string;
  readonly title: string;
  readonly text: string;
}

/** A chapter of the contents: the pages that `docs/README.md` lists below one heading. */
interface Chapter {
  readonly title: string;
  readonly pages: readonly GuidePage[];
}

export interface Guide {
  readonly pages: ReadonlyMap<string, GuidePage>;
  /** The same pages by their files, in the form of `sourceOfPage`. */
  readonly sources: ReadonlyMap<string, GuidePage>;
  readonly chapters: readonly Chapter[];
  /** Names of the files in `docs/images/`. */
  readonly images: ReadonlySet<string>;
  /**
   * Returns the address of the page, picture or anchor that a link leads to. Returns null if only the repository has
   * the target.
   */
  resolve(from: GuidePage, href: string): string | null;
}

const HOME = 'README.md';
/** Pages outside of `docs/`, by their path in the guide. */
const BESIDE = { changelog: '../CHANGELOG.md' } as const;

export async function readGuide(root: string): Promise<Guide> {
  const docs = join(root, 'docs');
  // Without the folder the guide has no pages.
  const entries = await readdir(docs, { recursive: true }).catch((): string[] => []);
  const files = entries.map((entry) => entry.replaceAll('\\', '/')).toSorted();
  const guideFiles: readonly (readonly [path: string, file: string])[] = [
    ...files.filter((file) => file.endsWith('.md')).map((file) => [pathOf(file), file] as const),
    ...Object.entries(BESIDE),
  ];
  const pages = new Map<string, GuidePage>();
  for (const [path, file] of guideFiles) {
    const text = await readFile(join(docs, file), 'utf8').catch(() => null);
    if (text !== null) pages.set(path, { path, file, title: titleOf(text), text });
  }
  const images = new Set(files.filter((file) => file.startsWith('images/')).map((file) => posix.basename(file)));
  const byFile = new Map([...pages.values()].map((page) => [page.file, page] as const));
  const sources = new Map([...pages.values()].map((page) => [sourceOfPage(page), page] as const));
  const resolve = (from: GuidePage, href: string) => addressOf(from, href, byFile, images);
  return { pages, sources, images, resolve, chapters: chaptersOf(pages, byFile) };
}

/** `clients/README.md` is the page `clients`. */
const pathOf = (file: string): string => file.replace(/(?:^|\/)README\.md$|\.md$/, '');

const titleOf = (text: string): string => plain(/^# (.+)$/m.exec(text)?.[1] ?? 'Guide');

export const plain = (line: string): string =>
  line
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .trim();

/** Reads the chapters from lines such as `- [Chat](use/chat.md): …` below a heading. Other pages come last. */
function chaptersOf(pages: ReadonlyMap<string, GuidePage>, byFile: ReadonlyMap<string, GuidePage>): readonly Chapter[] {
  const [, ...parts] = (pages.get('')?.text ?? '').split(/^## /m);
  const chapters = parts.map((part) => ({
    title: plain(part.split('\n', 1)[0]!),
    pages: [...part.matchAll(/^- \[[^\]]+\]\(([^)#]+)\)/gm)].flatMap(
      ([, file]) => byFile.get(file!) ?? byFile.get(`${file}/${HOME}`) ?? [],
    ),
  }));
  const listed = new Set(chapters.flatMap((chapter) => chapter.pages));
  const others = [...pages.values()].filter((page) => page.path !== '' && !INSIDE.test(page.path) && !listed.has(page));
  return others.length === 0 ? chapters : [...chapters, { title: 'More', pages: others }];
}

/** These pages are not in the contents: `clients/README.md` lists its own, and decisions are for developers. */
const INSIDE = /^(?:clients\/.|decisions(?:$|\/))/;

function addressOf(
  from: GuidePage,
  href: string,
  byFile: ReadonlyMap<string, GuidePage>,
  images: ReadonlySet<string>,
): string | null {
  if (/^(?:https?:\/\/|\/|#)/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const file = posix
    .join(posix.dirname(from.file), path)
    .replace(/\/$/, '')
    .replace(/^\.\.\/docs\//, '');
  // For a reader of the guide, a link to the repository's README leads to the guide's first page.
  const page = file === '../README.md' ? byFile.get(HOME) : (byFile.get(file) ?? byFile.get(`${file}/README.md`));
  if (page) return `${addressOfPage(page)}${anchor === undefined ? '' : `#${anchor}`}`;
  const image = posix.basename(file);
  return file === `images/${image}` && images.has(image) ? `${GUIDE}/images/${image}` : null;
}

export const addressOfPage = ({ path }: GuidePage): string => (path === '' ? GUIDE : `${GUIDE}/${path}`);

/**
 * The address of a page as Markdown, below `/docs/guide/`. It is the file's path in `docs/`, so links between files
 * work.
 */
export const sourceOfPage = ({ file }: GuidePage): string => file.replace(/^\.\.\//, '');

/**
 * Makes the anchors of one page's headings in the form that Git hosts use. A repeated heading gets `-1`, `-2` and so
 * on.
 */
export function createAnchors(): (heading: string) => string {
  const counts = new Map<string, number>();
  return (heading) => {
    const name = plain(heading)
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    const times = counts.get(name) ?? 0;
    counts.set(name, times + 1);
    return times === 0 ? name : `${name}-${times}`;
  };
}
