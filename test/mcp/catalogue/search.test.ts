import { expect, test } from 'vitest';
import { serveRaw, startCatalogue, toolOffer, toolsText } from './catalogue-world.ts';

const SERVICES = {
  'acme/web': [
    { name: 'search_web', title: 'Web search', description: 'Searches the public web and returns links.' },
    { name: 'fetchPage', description: 'Downloads a web page as text.' },
  ],
  'acme/files': [
    { name: 'read_file', description: 'Reads a file from disk.' },
    { name: 'write_file', description: 'Writes text to a file. Search and replace is possible.' },
    { name: 'listDirectory', description: 'Lists the entries of a directory.' },
  ],
  'acme/weather': [
    { name: 'forecast', description: 'Weather of the next days.' },
    { name: '天気予報', description: '東京の天気を調べます' },
  ],
  'spam/everything': [{ name: 'best', description: 'weather search file web '.repeat(500) }],
} as const;

async function startSearch() {
  const offers = await Promise.all(
    Object.entries(SERVICES).map(async ([service, tools]) => {
      const { url } = await serveRaw((method) => (method === 'tools/list' ? toolsText(tools) : null));
      return toolOffer(url, { service });
    }),
  );
  const { catalogue } = await startCatalogue(offers);
  return async (query: string, limit = 10, services: readonly string[] | null = null) =>
    (await catalogue.find(query, { limit, services })).map(({ tool }) => tool.name);
}

test('the tool that does what the words say comes first, in any form of the words', async () => {
  const find = await startSearch();
  expect((await find('search the web'))[0]).toBe('search_web');
  expect((await find('SEARCHING WEBS'))[0]).toBe('search_web');
  expect((await find('reading files'))[0]).toBe('read_file');
  expect((await find('write'))[0]).toBe('write_file');
  expect((await find('directories'))[0]).toBe('listDirectory');
  expect((await find('download page'))[0]).toBe('fetchPage');
  expect((await find('forecast of the weather'))[0]).toBe('forecast');
  expect((await find('東京 天気'))[0]).toBe('天気予報');
  expect(await find('no such thing anywhere')).toEqual([]);
  expect(await find('  ?!  ')).toEqual([]);
  expect(await find('constructor __proto__ prototype')).toEqual([]);
});

test('a description that repeats the words is not a better match', async () => {
  const find = await startSearch();
  for (const query of ['weather', 'search web', 'file']) expect((await find(query)).indexOf('best')).toBeGreaterThan(0);
});

test('only the services that are asked for are searched, at most so many tools come back, and always the same', async () => {
  const find = await startSearch();
  expect(await find('search', 10, ['acme/files'])).toEqual(['write_file']);
  expect(await find('search', 10, ['acme/files', 'none'])).toEqual(['write_file']);
  expect(await find('search', 10, [])).toEqual([]);
  expect(await find('file', 2)).toHaveLength(2);
  expect(await find('file web weather')).toEqual(await find('file web weather'));
});
