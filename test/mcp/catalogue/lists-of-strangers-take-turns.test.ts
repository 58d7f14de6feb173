import { expect, test } from 'vitest';
import { fetchLists } from '../../../src/mcp/catalogue/fetch-lists.ts';
import { makeListing } from '../../../src/mcp/catalogue/listing.ts';
import { indexTools, searchTools } from '../../../src/mcp/catalogue/search-index.ts';
import { createBridgedSearch } from '../../../src/mcp/own/builtin/bridged-services.ts';

/* Each provider writes the texts that are searched. */

/** Text without spaces, in which each pair of characters is another word. */
function chinese(seed: number, length: number): string {
  let state = seed;
  let text = '';
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += String.fromCharCode(0x4e00 + ((state >>> 8) % 20_000));
  }
  return text;
}

test('an index of long texts is bounded, and is made in many turns', async () => {
  const tools = Array.from({ length: 1_000 }, (_, at) => ({
    name: `t${at}`,
    title: null,
    description: chinese(at + 1, 4_000),
  }));
  let turns = 0;
  const counting = setInterval(() => turns++, 0);
  const index = await indexTools(tools, 'acme/x');
  clearInterval(counting);
  expect(turns).toBeGreaterThan(10);
  // A few words of the name, and those of the beginning of the description.
  expect(index.postings.values().reduce((sum, { length }) => sum + length / 2, 0)).toBeLessThan(300 * 1_000);
  expect(index.size).toBeGreaterThan(200 * 1_000);
  expect(searchTools(tools[7]!.description.slice(0, 6), [['x', index]], 1)[0]?.name).toBe('t7');
});

test('an entry that stays as it was is not indexed again, whatever others change', async () => {
  let version = 1;
  let other = 'first';
  const long = Array.from({ length: 1_000 }, (_, at) => ({
    name: `acme/${at}`,
    displayName: `Model ${at}`,
    description: chinese(at + 1, 1_000),
  }));
  const list = () => [...long, { name: 'acme/other', displayName: 'Other', description: other }];
  const search = createBridgedSearch({
    targets: () => ({ a2a: { list, has: () => true } }) as never,
    catalog: { version: () => version, resolve: () => ({}) } as never,
  });
  const found = async (query: string) => {
    const began = process.cpuUsage();
    const names = (await search.find('a2a', query, 5, () => true)).map(({ name }) => name);
    const { user, system } = process.cpuUsage(began);
    return { names, work: user + system };
  };
  const first = await found('first');
  expect(first.names).toEqual(['acme/other']);
  [version, other] = [2, 'second'];
  const second = await found('second');
  expect(second.names).toEqual(['acme/other']);
  expect((await found('first')).names).toEqual([]);
  expect((await found(long[3]!.description.slice(0, 6))).names).toContain('acme/3');
  expect(second.work).toBeLessThan(first.work / 3);
});

test('a page of large definitions is read in many turns, and so is its listing', async () => {
  const tool = (at: number) =>
    `{"name":"t${at}","inputSchema":{"type":"object","default":[${'[],'.repeat(19_000)}[]]}}`;
  const page = `{"tools":[${Array.from({ length: 60 }, (_, at) => tool(at)).join()}]}`;
  const offer = { service: 'acme/x', displayName: 'X' } as never;
  let turns = 0;
  const counting = setInterval(() => turns++, 0);
  const fetched = await fetchLists(
    offer,
    { facts: async () => ({ capabilities: { tools: {} } }) as never, list: async () => page },
    { pagesMax: 50, itemsMax: 2_000, itemMax: 64 * 1024, sizeMax: 4 * 1024 * 1024, othersMs: 5_000 },
    new AbortController().signal,
  );
  expect(fetched.tools).toHaveLength(60);
  expect(turns).toBeGreaterThan(20);
  turns = 0;
  const options = { offer, fetched, sizeMax: 4 * 1024 * 1024, before: null, now: Date.now };
  const listing = await makeListing({ ...options, pin: async () => new Map() });
  clearInterval(counting);
  expect(listing.tools.size).toBe(60);
  expect(turns).toBeGreaterThan(20);
});
