import { expect, test } from 'vitest';
import { serveRaw, startCatalogue, toolOffer, toolsText } from './catalogue-world.ts';

/* Anybody may dial in with servers that accept each request and answer none. */

const never = () => new Promise<never>(() => {});
const silent = () => serveRaw(never);
const honest = () => serveRaw((method) => (method === 'tools/list' ? toolsText([{ name: 'hello' }]) : null));

/** `services` of each owner, all at one server. */
const offersOf = (url: string, owners: readonly string[], services: number) =>
  owners.flatMap((provider) =>
    Array.from({ length: services }, (_, at) => toolOffer(url, { provider, service: `${provider}/${at}` })),
  );
const strangers = (count: number) => Array.from({ length: count }, (_, at) => `silent${at}`);

/** Silent servers hold a refresh for this long, which no test waits for. */
const timeoutMs = 600_000;

test('a new server is read while eleven owners have servers that never answer', async () => {
  const [away, near] = [await silent(), await honest()];
  const hostile = offersOf(away.url, strangers(11), 60);
  const { catalog, catalogue, errors } = await startCatalogue([], { timeoutMs, longMs: 100 });
  catalog.replace('test', hostile);
  catalogue.services();
  await away.came('tools/list', 8);
  catalog.replace('test', [...hostile, toolOffer(near.url, { provider: 'honest', service: 'honest/tools' })]);
  await catalogue.tried('honest/tools');
  expect([...catalogue.service('honest/tools')!.tools.keys()]).toEqual(['hello']);
  // Nobody was given up for it, and each has two at most.
  expect(errors).toEqual([]);
  await away.came('tools/list', 22);
  expect(away.asked.filter((method) => method === 'tools/list')).toHaveLength(22);
});

test('of more than may take long, the oldest of who has most is given up, and never one of a network with few', async () => {
  const answer = Promise.withResolvers<string>();
  const slow = await serveRaw((method) => (method === 'tools/list' ? answer.promise : null));
  const [away, near] = [await silent(), await honest()];
  const crowd = offersOf(away.url, strangers(40), 1);
  const other = toolOffer(slow.url, { provider: 'slow', service: 'slow/tools' });
  const { catalog, catalogue, errors, failed } = await startCatalogue([], {
    timeoutMs,
    longMs: 20,
    networkOf: ({ provider }) => (provider.name.startsWith('silent') ? 'crowd' : null),
  });
  catalog.replace('test', [other]);
  catalogue.services();
  await slow.came('tools/list', 1);
  catalog.replace('test', [other, ...crowd]);
  catalogue.services();
  await failed(10);
  catalog.replace('test', [other, ...crowd, toolOffer(near.url, { provider: 'honest', service: 'honest/tools' })]);
  await catalogue.tried('honest/tools');
  expect([...catalogue.service('honest/tools')!.tools.keys()]).toEqual(['hello']);
  expect(new Set(errors.map(({ message }) => message))).toEqual(new Set(['no answer yet, and other servers wait']));
  answer.resolve(toolsText([{ name: 'late' }]));
  await catalogue.tried('slow/tools');
  expect([...catalogue.service('slow/tools')!.tools.keys()]).toEqual(['late']);
});

/** Honest servers of these names, and the order in which their tools were asked for. */
async function inOrder<Name extends string>(...names: readonly Name[]) {
  const order: Name[] = [];
  const serve = async (name: Name) => {
    const { url } = await serveRaw((method) => {
      if (method !== 'tools/list') return null;
      order.push(name);
      return toolsText([{ name: 'one' }]);
    });
    return [name, url] as const;
  };
  return { order, urls: Object.fromEntries(await Promise.all(names.map(serve))) as Record<Name, string> };
}

test('owners take turns, one service of each before a second of anybody', async () => {
  const { order, urls } = await inOrder('many', 'few', 'one');
  await startCatalogue(
    [...offersOf(urls.many, ['many'], 5), ...offersOf(urls.few, ['few'], 2), ...offersOf(urls.one, ['one'], 1)],
    { concurrency: 1 },
  );
  expect(order.join()).toBe('many,few,one,many,few,many,many,many');
});

test('networks take turns, and in each of them its owners', async () => {
  const { order, urls } = await inOrder('many', 'few', 'alone');
  await startCatalogue(
    [...offersOf(urls.many, ['many'], 3), ...offersOf(urls.few, ['few'], 2), ...offersOf(urls.alone, ['alone'], 4)],
    {
      concurrency: 1,
      networkOf: ({ provider }) => (provider.name === 'alone' ? '192.0.2.1' : '192.0.2.2'),
    },
  );
  expect(order.join()).toBe('many,alone,few,alone,many,alone,few,alone,many');
});
