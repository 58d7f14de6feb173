import { setImmediate as endOfTurn, setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createUnlistedTool } from '../../../src/mcp/call/request-call.ts';
import { parseMessage, type RequestMessage } from '../../../src/gateway/json-rpc/message.ts';
import { overHttp, serveRaw, startCatalogue, toolOffer, toolsText } from './catalogue-world.ts';

async function serveChanging() {
  const state: { tools: readonly string[]; prompts: readonly string[]; down: boolean } = {
    tools: ['one'],
    prompts: [],
    down: false,
  };
  const server = await serveRaw((method) => {
    if (state.down) return '"broken"';
    if (method === 'tools/list') return toolsText(state.tools.map((name) => ({ name })));
    if (method === 'prompts/list') return JSON.stringify({ prompts: state.prompts.map((name) => ({ name })) });
    return null;
  });
  let begun = 0;
  /** Counts the refreshes, each when it begins. */
  const facts: typeof overHttp.facts = (offer, signal) => {
    begun++;
    return overHttp.facts(offer, signal);
  };
  return { state, server, facts, lists: () => begun };
}

test('a server is asked again after five minutes, and listeners are told what has changed and nothing else', async () => {
  const { state, server, facts, lists } = await serveChanging();
  const { catalogue, now, changed } = await startCatalogue([toolOffer(server.url)], { facts });
  const told: string[] = [];
  catalogue.onChanged(({ kinds }) => told.push(kinds.join()));
  expect(lists()).toBe(1);
  now.advance(200_000);
  await catalogue.settled();
  expect(lists()).toBe(1);

  now.advance(200_000);
  await server.came('prompts/list', 2);
  state.prompts = ['greet'];
  now.advance(400_000);
  expect((await changed()).kinds).toEqual(['prompts']);
  state.tools = ['one', 'two'];
  now.advance(400_000);
  await changed();
  expect(told).toEqual(['prompts', 'tools']);
  expect([...catalogue.service('acme/tools')!.tools.keys()]).toEqual(['one', 'two']);
});

test('a server that says its list has changed is asked at once, but not as often as it says so', async () => {
  const { state, server, facts, lists } = await serveChanging();
  const offer = toolOffer(server.url);
  const { catalogue, now, changed } = await startCatalogue([offer], { facts, gapMs: 10_000 });
  now.advance(60_000);
  for (const [index, gap] of [20_000, 40_000, 80_000].entries()) {
    state.tools = [`tool_${index}`];
    const told = changed();
    catalogue.stale(offer);
    expect(lists()).toBe(2 + index);
    await told;
    // Listeners are told while the refresh is ending.
    await endOfTurn();
    now.advance(gap - 1);
    catalogue.stale(offer);
    expect(lists()).toBe(2 + index);
    now.advance(1);
  }
});

test('a tool is unlisted only if its server, asked again, lists it nowhere', async () => {
  const { state, server } = await serveChanging();
  const offer = toolOffer(server.url);
  const { catalog, catalogue, now } = await startCatalogue([offer], { gapMs: 10_000 });
  const unlisted = createUnlistedTool({ catalog, catalogue });
  const asked = (name: string) => {
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } });
    return unlisted({ target: 'acme/tools', message: parseMessage(text) as RequestMessage });
  };
  expect(await asked('one')).toBeNull();
  expect(await asked('ones')).toMatchObject({ message: 'There is no tool ones here. The nearest: one' });
  now.advance(60_000);
  state.tools = ['one', 'two'];
  expect(await asked('two')).toBeNull();
  expect([...catalogue.listingOf(offer)!.tools.keys()]).toEqual(['one', 'two']);
  // A server that cannot be asked has what it had.
  now.advance(60_000);
  state.down = true;
  expect(await asked('three')).toMatchObject({ message: 'There is no tool three here. tools/list shows all' });
});

test('a change while the list is being read is read next', async () => {
  let name = 'one';
  let answered = Promise.resolve();
  const server = await serveRaw(async (method) => {
    if (method !== 'tools/list') return null;
    const text = toolsText([{ name }]);
    await answered;
    return text;
  });
  const offer = toolOffer(server.url);
  const { catalogue, now, changed } = await startCatalogue([offer], { gapMs: 10_000 });
  const { promise, resolve } = Promise.withResolvers<void>();
  answered = promise;
  name = 'two';
  const second = changed();
  now.advance(400_000);
  await server.came('tools/list', 2);
  name = 'three';
  catalogue.stale(offer);
  resolve();
  await second;
  await endOfTurn();
  const third = changed();
  now.advance(10_000);
  await third;
  expect([...catalogue.listingOf(offer)!.tools.keys()]).toEqual(['three']);
});

test('a server that is down keeps what it listed and is asked less and less often', async () => {
  const { state, server, facts, lists } = await serveChanging();
  const offer = toolOffer(server.url);
  const { catalogue, now, failed, changed } = await startCatalogue([offer], { facts });
  state.down = true;
  now.advance(400_000);
  await failed(1);
  // Each a little more or less.
  for (const [index, ms] of [2_000, 4_000, 8_000].entries()) {
    now.advance(ms * 0.8);
    void catalogue.settled();
    expect(lists()).toBe(2 + index);
    now.advance(ms * 0.4);
    await failed(2 + index);
    expect(lists()).toBe(3 + index);
  }
  expect([...catalogue.listingOf(offer)!.tools.keys()]).toEqual(['one']);
  state.down = false;
  state.tools = ['two'];
  const back = changed();
  now.advance(20_000);
  await back;
  expect([...catalogue.listingOf(offer)!.tools.keys()]).toEqual(['two']);
});

test('a server that did not answer is asked again for somebody who waits for its list, before its pause is over', async () => {
  const { state, server, facts, lists } = await serveChanging();
  state.down = true;
  const { catalogue, now, failed } = await startCatalogue([toolOffer(server.url)], { facts, gapMs: 3_000 });
  await failed(1);
  for (let failures = 2; failures < 9; failures++) {
    now.advance(1_000_000);
    await failed(failures);
  }
  // Its pause is minutes now.
  const asked = lists();
  state.down = false;
  await catalogue.tried('acme/tools');
  expect(lists()).toBe(asked);
  now.advance(10_000);
  await catalogue.tried('acme/tools');
  expect([...catalogue.service('acme/tools')!.tools.keys()]).toEqual(['one']);
});

test('a server whose prompts or resources cannot be read has its tools, and is asked again for the rest', async () => {
  let broken = true;
  const server = await serveRaw((method) => {
    if (method === 'tools/list') return toolsText([{ name: 'one' }]);
    if (broken) return '"broken"';
    if (method === 'prompts/list') return '{"prompts":[{"name":"greet"}]}';
    if (method === 'resources/list') return '{"resources":[{"uri":"file:///a","name":"a"}]}';
    return null;
  });
  const { catalogue, now, errors, changed, failed } = await startCatalogue([toolOffer(server.url)]);
  const service = () => catalogue.service('acme/tools')!;
  const listed = () => [
    [...service().tools.keys()],
    [...service().prompts, ...service().resources].map(({ key }) => key),
  ];
  expect(listed()).toEqual([['one'], []]);
  expect(errors).toHaveLength(1);

  broken = false;
  now.advance(3_000);
  expect((await changed()).kinds).toEqual(['resources', 'prompts']);
  expect(listed()).toEqual([['one'], ['greet', 'file:///a']]);

  // Later they stay as they were.
  broken = true;
  now.advance(400_000);
  await failed(2);
  expect(listed()).toEqual([['one'], ['greet', 'file:///a']]);
});

test('a server that never answers for its prompts has its tools', async () => {
  const server = await serveRaw((method) => {
    if (method === 'tools/list') return toolsText([{ name: 'one' }]);
    return method === 'prompts/list' ? new Promise<never>(() => {}) : null;
  });
  const { catalogue, errors } = await startCatalogue([toolOffer(server.url)], { limits: { othersMs: 600 } });
  expect([...catalogue.service('acme/tools')!.tools.keys()]).toEqual(['one']);
  expect(errors.length).toBeGreaterThan(0);
});

test('a server with slow tools that answers for nothing else has its tools', async () => {
  const server = await serveRaw(async (method) => {
    if (method !== 'tools/list') return new Promise<never>(() => {});
    await sleep(300);
    return toolsText([{ name: 'one' }]);
  });
  // Each other list gets an equal part of the time that the tools leave.
  const { catalogue, errors } = await startCatalogue([toolOffer(server.url)], {
    timeoutMs: 4_000,
    limits: { othersMs: 600 },
  });
  expect([...catalogue.service('acme/tools')!.tools.keys()]).toEqual(['one']);
  expect(errors.length).toBeGreaterThan(0);
});

test('a provider that is away is not asked, and is as soon as it is back', async () => {
  const { state, server, facts, lists } = await serveChanging();
  const offer = toolOffer(server.url);
  let away = true;
  const { catalogue, now, changed } = await startCatalogue([offer], { facts, present: () => !away });
  const first = changed();
  away = false;
  await first;
  away = true;
  now.advance(60_000);
  await catalogue.settled();
  expect(lists()).toBe(1);
  // Its program may be another one now.
  away = false;
  state.tools = ['two'];
  await changed();
  expect([...catalogue.listingOf(offer)!.tools.keys()]).toEqual(['two']);
});

test('a new price is told as a change of the tools, and the same offer once more is not', async () => {
  const { server } = await serveChanging();
  const { catalog, catalogue } = await startCatalogue([toolOffer(server.url)]);
  const told: string[] = [];
  catalogue.onChanged(({ service, kinds }) => told.push(`${service} ${kinds.join()}`));
  catalog.replace('test', [toolOffer(server.url)]);
  catalogue.services();
  expect(told).toEqual([]);
  catalog.replace('test', [toolOffer(server.url, { call: 0.002 })]);
  catalogue.services();
  expect(told).toEqual(['acme/tools tools,resources,prompts']);
});
