const PAGES_MAX = 10;
const PAGE = 100;
/** The most entries that a page shows. */
export const SHOWN_MAX = PAGES_MAX * PAGE;

/** Reads the pages of a list, up to SHOWN_MAX entries. `ask` gets the query of each page. */
interface PageQuery {
  readonly limit: number;
  readonly before?: string;
}

export async function everyPage<T>(
  ask: (query: PageQuery) => Promise<{ readonly data: readonly T[]; readonly next: string | null }>,
): Promise<readonly T[]> {
  const found: T[] = [];
  let before: string | null = null;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const { data, next } = await ask(before === null ? { limit: PAGE } : { limit: PAGE, before });
    found.push(...data);
    if (next === null) break;
    before = next;
  }
  return found;
}
