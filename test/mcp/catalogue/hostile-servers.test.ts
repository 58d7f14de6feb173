import { describe, expect, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { serveRaw, startCatalogue, toolOffer, toolsText } from './catalogue-world.ts';

const tool = (name: string, more: object = {}) => ({
  name,
  description: `About ${name}`,
  inputSchema: { type: 'object' },
  ...more,
});
const many = (count: number) => Array.from({ length: count }, (_, i) => tool(`tool_${i}`));

describe('what a hostile server lists is cut', () => {
  test('10,000 tools in one page are 2,000', async () => {
    const { url } = await serveRaw((method) => (method === 'tools/list' ? toolsText(many(10_000)) : null));
    const offer = toolOffer(url);
    const { catalogue } = await startCatalogue([offer]);
    const listing = catalogue.listingOf(offer)!;
    expect(listing.tools.size).toBe(2_000);
    expect(listing.truncated).toBe(true);
  });

  test('a definition of a megabyte is left out, and those beside it are not', async () => {
    const big = tool('big', { description: 'x'.repeat(1024 * 1024) });
    const { url } = await serveRaw((method) =>
      method === 'tools/list' ? toolsText([tool('before'), big, tool('after')]) : null,
    );
    const offer = toolOffer(url);
    const { catalogue } = await startCatalogue([offer]);
    expect([...catalogue.listingOf(offer)!.tools.keys()]).toEqual(['before', 'after']);
    expect(catalogue.listingOf(offer)!.truncated).toBe(true);
  });

  test('4 MiB are the most of one server, and 16 MiB of one provider', async () => {
    const tools = Array.from({ length: 250 }, (_, i) => tool(`tool_${i}`, { description: 'x'.repeat(20_000) }));
    const { url } = await serveRaw((method) => (method === 'tools/list' ? toolsText(tools) : null));
    const offers = Array.from({ length: 6 }, (_, i) => toolOffer(url, { service: `acme/s${i}` }));
    const { catalogue, errors } = await startCatalogue(offers, { concurrency: 1 });
    expect(errors).toEqual([]);
    const sizes = offers.map((offer) => catalogue.listingOf(offer)!.size);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4 * 1024 * 1024);
    expect(sizes[0]).toBeGreaterThan(3.9 * 1024 * 1024);
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(16 * 1024 * 1024);
    expect(sizes.at(-1)).toBeLessThan(100_000);
  });

  test('two lists of one provider that are read at the same time share its room', async () => {
    const tools = Array.from({ length: 150 }, (_, i) => tool(`tool_${i}`, { description: 'x'.repeat(2_000) }));
    const both = Promise.withResolvers<void>();
    const server = await serveRaw(async (method) => {
      if (method !== 'tools/list') return null;
      await both.promise;
      return toolsText(tools);
    });
    void server.came('tools/list', 2).then(both.resolve);
    const offers = Array.from({ length: 2 }, (_, i) => toolOffer(server.url, { service: `acme/s${i}` }));
    const { catalogue, errors } = await startCatalogue(offers, { limits: { providerSizeMax: 400_000 } });
    expect(errors).toEqual([]);
    const sizes = offers.map((offer) => catalogue.listingOf(offer)!.size).sort((a, b) => a - b);
    expect(sizes[1]).toBeGreaterThan(300_000);
    expect(sizes[0]! + sizes[1]!).toBeLessThanOrEqual(400_000);
  });

  test('strangers share a room of their own by network, and leave the others theirs', async () => {
    const tools = Array.from({ length: 150 }, (_, i) => tool(`tool_${i}`, { description: 'x'.repeat(2_000) }));
    const server = await serveRaw((method) => (method === 'tools/list' ? toolsText(tools) : null));
    const offerOf = (provider: string) => toolOffer(server.url, { provider, service: `${provider.toLowerCase()}/s` });
    const { catalog, catalogue } = await startCatalogue(['Many0', 'Many1', 'Many2', 'Many3'].map(offerOf), {
      limits: { totalSizeMax: 2_000_000, strangersSizeMax: 1_500_000 },
      isStranger: ({ provider }) => provider.name !== 'Own',
      networkOf: ({ provider }) => provider.name.replace(/\d/, ''),
    });
    const sizeOf = (provider: string) => catalogue.listingOf(offerOf(provider))?.size ?? 0;
    await catalogue.settled();
    const many = ['Many0', 'Many1', 'Many2', 'Many3'].map(sizeOf);
    expect(many.reduce((sum, size) => sum + size)).toBeLessThan(900_000);
    const others = ['Other', 'Own'].map(offerOf);
    catalog.replace('late', others);
    await Promise.all(others.map(({ service }) => catalogue.tried(service)));
    expect([sizeOf('Other'), sizeOf('Own')]).toEqual([Math.max(...many), Math.max(...many)]);
  });

  test('cursors without end end after 50 pages, or where one comes again', async () => {
    let page = 0;
    const endless = await serveRaw((method) =>
      method === 'tools/list' ? toolsText([tool(`tool_${page}`)], `page-${page++}`) : null,
    );
    const circular = await serveRaw((method, { cursor = '0' }) =>
      method === 'tools/list' ? toolsText([tool(`tool_${cursor}`)], cursor === '1' ? '2' : '1') : null,
    );
    const [one, other] = [
      toolOffer(endless.url, { service: 'acme/endless' }),
      toolOffer(circular.url, { service: 'acme/circular' }),
    ];
    const { catalogue } = await startCatalogue([one, other]);
    expect(endless.asked.filter((method) => method === 'tools/list')).toHaveLength(50);
    expect(catalogue.listingOf(one)!.tools.size).toBe(50);
    expect(catalogue.listingOf(one)!.truncated).toBe(true);
    expect(circular.asked.filter((method) => method === 'tools/list')).toHaveLength(3);
    expect([...catalogue.listingOf(other)!.tools.keys()]).toEqual(['tool_0', 'tool_1', 'tool_2']);
  });
});

test('names of any characters are kept as they are, of two that are the same the first, and elements that are no tool are passed over', async () => {
  const odd = [
    'a\u0000b',
    'new\nline',
    'ünïcödé',
    '💥',
    '../../etc',
    '__proto__',
    'constructor',
    'with "quotes"',
    'a__b',
    ' ',
  ];
  const text = `{"tools":[${[
    ...odd.map((name) => JSON.stringify(tool(name))),
    '{"name":"twice","description":"first"}',
    '{"name":"twice","description":"second"}',
    '{"name":"hidden","na\\u006de":"shown"}',
    'null',
    '7',
    '[]',
    '{}',
    '{"name":""}',
    '{"name":{}}',
    JSON.stringify({ name: 'n'.repeat(2_000) }),
  ].join()}]}`;
  const { url } = await serveRaw((method) => (method === 'tools/list' ? text : null));
  const offer = toolOffer(url);
  const { catalogue, database, errors } = await startCatalogue([offer]);
  expect(errors).toEqual([]);
  const listing = catalogue.listingOf(offer)!;
  expect([...listing.tools.keys()]).toEqual([...odd, 'twice']);
  expect(listing.tools.get('twice')!.description).toBe('first');
  for (const entry of listing.tools.values()) expect(entry.definition.version, entry.name).toBe(1);
  expect(await database.query({ name: 'count', text: 'SELECT COUNT(*) AS pins FROM tool_pins' })).toEqual([
    { pins: BigInt(odd.length + 1) },
  ]);
});

test.each([
  ['no object', '7'],
  ['no list', '{}'],
  ['a list that is none', '{"tools":{}}'],
  ['a list twice', '{"tools":[],"tools":[]}'],
])('a result with %s is a failure, and the last good list stands', async (_, bad) => {
  let text = toolsText([tool('good')]);
  const server = await serveRaw((method) => (method === 'tools/list' ? text : null));
  const offer = toolOffer(server.url);
  const { catalogue, failed, now } = await startCatalogue([offer]);
  text = bad;
  now.advance(400_000);
  await failed(1);
  expect([...catalogue.listingOf(offer)!.tools.keys()]).toEqual(['good']);
});

test('servers that never answer hold up neither others nor themselves', async () => {
  const silent = await serveRaw(() => new Promise<never>(() => {}));
  const quick = await serveRaw((method) => (method === 'tools/list' ? toolsText([tool('quick')]) : null));
  const { catalog, catalogue, changed, errors, failed } = await startCatalogue([], {
    timeoutMs: atThisLoad(500),
    concurrency: 3,
  });
  const told = changed('quick/one');
  catalog.replace(
    'silent',
    Array.from({ length: 4 }, (_, i) => toolOffer(silent.url, { service: `silent/${i}`, provider: 'S' })),
  );
  catalogue.services();
  await silent.came('tools/list', 2);
  catalog.replace('quick', [toolOffer(quick.url, { service: 'quick/one', provider: 'Q' })]);
  await told;
  // The others still wait: one provider never has all places, and each of its servers only so much time.
  expect(catalogue.service('quick/one')!.tools.size).toBe(1);
  expect(silent.asked.filter((method) => method === 'tools/list')).toHaveLength(2);
  expect(errors).toEqual([]);
  await failed(4);
});
