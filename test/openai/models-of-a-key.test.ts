import { expect, test } from 'vitest';
import { UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// The list of what a key may call, page by page.

const NAMES = ['acme/a', 'acme/b', 'acme/c'];
const spine = spineOfFile(() => {
  const models = NAMES.map(
    (name) => `
[[models]]
name = "${name}"
context_length = 1000
[models.pricing]
prompt = 1
completion = 1
[models.params]
model = "upstream"
api_base = "http://127.0.0.1:9/v1"
`,
  );
  return { toml: UNHURRIED + models.join('') };
});

interface Listing {
  readonly data: readonly { readonly id: string }[];
  readonly total_count: number;
  readonly links: { readonly next: string | null };
}

/** The names on all pages of the list of a key, one model on each page. */
async function walk(key: string): Promise<{ readonly names: readonly string[]; readonly total: number }> {
  const names: string[] = [];
  let total = 0;
  for (let path: string | null = '/api/v1/models/user?type=chat&limit=1'; path !== null && names.length < 10;) {
    const reply: Response = await fetch(spine.origin + path, { headers: { authorization: `Bearer ${key}` } });
    const page = (await reply.json()) as Listing;
    names.push(...page.data.map(({ id }) => id));
    total = page.total_count;
    path = page.links.next;
  }
  return { names, total };
}

test('the next page of the list of a key is a page of that list', async () => {
  const allowed = ['acme/a', 'acme/c'];
  const { key } = await spine.tenant('restricted', '0', { allowedServices: allowed });
  expect(await walk(key)).toEqual({ names: allowed, total: 2 });
});

test('a key that may call everything is given its own list as well', async () => {
  const reply = await spine.get('/models/user?type=chat&limit=1');
  expect(((await reply.json()) as Listing).links.next).toBe('/api/v1/models/user?type=chat&offset=1&limit=1');
  expect((await walk(spine.key)).names).toEqual(expect.arrayContaining(NAMES));
});
