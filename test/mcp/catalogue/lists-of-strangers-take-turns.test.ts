import { expect, test } from 'vitest';
import { fetchLists } from '../../../src/mcp/catalogue/fetch-lists.ts';
import { makeListing } from '../../../src/mcp/catalogue/listing.ts';
import { indexTools, searchTools } from '../../../src/mcp/catalogue/search-index.ts';
import { createToolTarget } from '../../../src/mcp/call/tool-target.ts';
import { createAggregate } from '../../../src/mcp/own/aggregate/aggregate.ts';
import { createTables } from '../../../src/mcp/own/aggregate/tables.ts';
import { mergedPage } from '../../../src/mcp/own/aggregate/merged-list.ts';
import { createBridgedSearch } from '../../../src/mcp/own/builtin/bridged-services.ts';
import { resolveServerTools } from '../../../src/openai/tool-loop/server-tools.ts';
import { serveRaw, startCatalogue, toolOffer } from './catalogue-world.ts';

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
  const found = await searchTools(tools[7]!.description.slice(0, 6), [['x', [index]]], { limit: 1, order: () => 0 });
  expect(found[0]?.name).toBe('t7');
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
    isStranger: () => false,
  });
  const found = async (query: string) => {
    const began = process.cpuUsage();
    const names = (
      await search.find(
        'a2a',
        query,
        5,
        () => true,
        () => null,
      )
    ).map(({ name }) => name);
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

/** Turns of the event loop that pass until a promise has resolved. */
async function turnsOf<T>(run: () => Promise<T>): Promise<{ readonly turns: number; readonly result: T }> {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const result = await run();
  isOver = true;
  return { turns, result };
}

const SERVICES = 12;
const ITEMS = 2_000;

/** A catalogue of many services, each with many tools and prompts, whose names need a digest. */
async function startLargeCatalogue() {
  const items = Array.from({ length: ITEMS }, (_, at) => ({
    name: `tool-${at}-with-a-longer-name-than-forty-eight-characters`,
    description: 'Reads a file and searches the web for words',
    inputSchema: { type: 'object' },
  }));
  const page = JSON.stringify({ tools: items, prompts: items.map(({ name }) => ({ name })) });
  const { url } = await serveRaw((method) => (/^(?:tools|prompts).list$/.test(method) ? page : null));
  const names = Array.from({ length: SERVICES }, (_, at) => `acme/s${String(at).padStart(2, '0')}`);
  const offers = names.map((service, at) => toolOffer(url, { provider: `p${at}`, service }));
  return { ...(await startCatalogue(offers, { limits: { othersMs: 60_000 }, timeoutMs: 120_000 })), names };
}

test('a search of many tools, the names of what it finds and the tools of a chat take turns', async () => {
  const { catalogue, names, catalog } = await startLargeCatalogue();

  // Each word is one of every tool.
  const query = 'read file and search the web for words with longer name than forty eight characters tool acme';
  const search = await turnsOf(() => catalogue.find(query, { limit: 3, services: null }));
  expect(search.turns).toBeGreaterThan(1);
  // All are as good, so the first ones by their names are the best.
  const first = [...catalogue.service(names[0]!)!.tools.keys()].sort().slice(0, 3);
  expect(search.result.map(({ service, tool }) => [service, tool.name])).toEqual(first.map((name) => [names[0], name]));

  const isStranger = () => false;
  const bridged = createBridgedSearch({ targets: () => ({}), catalog, isStranger });
  const aggregate = createAggregate({ catalogue, version: '1', bridged, isStranger });
  const scope = aggregate.scope({ key: null }, null);
  const services = names.map((service) => ({ query: 'tool 7', limit: 1, services: [service] }));
  const found = await turnsOf(() => Promise.all(services.map((args) => aggregate.find(args, scope, true))));
  expect(found.result).toHaveLength(SERVICES);
  expect(found.turns).toBeGreaterThan(SERVICES);

  const target = createToolTarget({ catalogue, catalog, limits: {}, bytesMax: 1 } as never);
  const asked = names.map((service) => ({ type: 'mcp', service }));
  const chat = await turnsOf(() => resolveServerTools(asked, target.toolsOf).catch((error: Error) => error.message));
  expect(chat.result).toMatch(`There are ${SERVICES * ITEMS} tools, but a model takes at most 128`);
  expect(chat.turns).toBeGreaterThan(3 * SERVICES);

  // A page needs the names of its own services alone.
  const tables = createTables(catalogue);
  const options = { method: 'prompts/list', form: 'modern', after: null, isStranger } as const;
  expect((await mergedPage({ ...scope, services: names }, tables, options)).items).toHaveLength(200);
  expect(names.map((service) => tables.tableOf(service)!.work('prompts'))).toEqual([
    0,
    ...names.slice(1).map(() => ITEMS),
  ]);
  expect(names.map((service) => tables.tableOf(service)!.work('tools'))).toEqual(names.map(() => ITEMS));
});
