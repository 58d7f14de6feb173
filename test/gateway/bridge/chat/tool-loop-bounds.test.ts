import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { streamed, whole } from './support/chat-shapes.ts';
import { startScriptedModel, type ScriptedModel } from './support/scripted-model.ts';
import { startScriptedTools, type ScriptedTools } from './support/scripted-tools.ts';
import { modelToml, toolToml, UNHURRIED } from './support/toml.ts';
import { startWorld, type World } from './support/world.ts';

// What a run may take: at once, in all, and after its client left.

let tools: ScriptedTools;
let model: ScriptedModel;
let world: World;
let open = Promise.withResolvers<string>();
const LONG = 'x'.repeat(300 * 1024);
beforeAll(async () => {
  tools = await startScriptedTools({ wait: () => open.promise, long: async () => LONG });
  model = await startScriptedModel();
  world = await startWorld({ toml: modelToml(model.url) + toolToml(tools.url) + UNHURRIED });
});
afterAll(async () => {
  await world.stop();
  await model.stop();
  await tools.stop();
});
afterEach(async () => {
  open = Promise.withResolvers<string>();
  expect(await world.faults()).toEqual([]);
  expect(world.errors).toEqual([]);
});

const ask = (more: object = {}) => ({
  model: 'test/model',
  messages: [{ role: 'user', content: 'go' }],
  tools: [{ type: 'mcp', service: 'kit' }],
  max_tokens: 50,
  ...more,
});
const calls = (count: number, name = 'kit__wait') =>
  Array.from({ length: count }, (_, index) => ({ id: `c${index}`, name, args: {} }));

test('at most eight tools run at once, and no more than 64 of one turn', async () => {
  model.says({ calls: calls(66) }, { text: 'ok' });
  const reply = world.chat(ask({ max_cost: 1 }));
  await tools.together(8);
  // What goes the same way afterwards has come and gone: so would have a ninth.
  expect((await world.chat({ model: 'mcp/kit/long', messages: [{ role: 'user', content: '{}' }] })).status).toBe(200);
  expect(tools.running).toHaveLength(8);
  open.resolve('ready');
  const body = await whole(await reply);
  expect(body.choices[0]!.message.content).toBe('ok');
  expect(tools.ran.filter((name) => name === 'wait')).toHaveLength(64);
  const said = model.asked[1]!.messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
  expect(said.slice(0, 64).every((text) => text === 'ready')).toBe(true);
  expect(said.slice(64)).toEqual(Array.from({ length: 2 }, () => 'Error: at most 64 tools can be called at once'));
  expect(body.usage.cost).toBeCloseTo(0.064 + 2 * 0.00002, 9);
});

test('a client that leaves while a tool runs pays for the tool where it ends in time, and no turn follows', async () => {
  model.says({ text: 'Wait.', calls: calls(1) }, { text: 'never' });
  const before = await world.balance();
  const leaving = new AbortController();
  const response = await world.chat(ask({ stream: true }), {}, leaving.signal);
  const id = response.headers.get('x-generation-id');
  const read = response.body!.getReader().read();
  await tools.together(1);
  await read;
  leaving.abort();
  open.resolve('ready');
  await world.quiet();
  expect(model.asked).toHaveLength(1);
  expect(before.available - (await world.balance()).available).toBe(20n + 1_000n);
  expect((await world.children(id)).map(({ state }) => state)).toEqual(['settled', 'settled']);
});

test('what a tool says is cut, and what all say is bounded', async () => {
  model.says({ calls: calls(40, 'kit__long') });
  const body = await whole(await world.chat(ask({ max_cost: 1 })));
  expect(body.choices[0]!.finish_reason).toBe('length');
  expect(body.tollgate!.note!.message).toContain('more than');
  expect(model.asked).toHaveLength(1);

  model.says({ calls: calls(1, 'kit__long') }, { text: 'ok' });
  await whole(await world.chat(ask({ max_cost: 1 })));
  const [said] = model.asked[1]!.messages.filter(({ role }) => role === 'tool').map(({ content }) => content as string);
  expect(said!.length).toBeLessThan(270_000);
  expect(said).toMatch(/\[cut: the result is longer than 262144 characters\]$/);
});

test('a key that may not use the service of a tool is told before anything is paid', async () => {
  const key = await world.limitedKey(['test/model']);
  model.says({ text: 'never' });
  const response = await world.chat(ask(), { authorization: `Bearer ${key}` });
  expect(response.status).toBe(403);
  expect((await whole(response)).error).toMatchObject({ type: 'permission_denied', param: 'tools[0].service' });
  expect(model.asked).toEqual([]);
});

test('a key that may use some tools of a service shows the model these alone', async () => {
  const key = await world.limitedKey(['test/model', 'kit', '-kit/long']);
  model.says({ text: 'ok' });
  const response = await world.chat(ask({ tools: [{ type: 'mcp', service: 'kit' }] }), {
    authorization: `Bearer ${key}`,
  });
  expect(response.status).toBe(200);
  await response.text();
  const names = (model.asked[0]! as unknown as { tools: { function: { name: string } }[] }).tools.map(
    (tool) => tool.function.name,
  );
  expect(names).not.toContain('kit__long');
  expect(names.length).toBeGreaterThan(0);

  const named = await world.chat(ask({ tools: [{ type: 'mcp', service: 'kit', allowed_tools: ['long'] }] }), {
    authorization: `Bearer ${key}`,
  });
  expect(named.status).toBe(400);
  expect((await whole(named)).error).toMatchObject({ param: 'tools[0].allowed_tools[0]' });
});

test('a model takes 128 tools, those of servers and of the request together', async () => {
  const withOwn = (count: number) => [
    { type: 'mcp', service: 'kit', allowed_tools: ['long'] },
    ...Array.from({ length: count }, (_, at) => ({ type: 'function', function: { name: `own_${at}` } })),
  ];
  model.says({ text: 'ok' });
  const most = await world.chat(ask({ tools: withOwn(127) }));
  expect([most.status, await most.text()]).toEqual([200, expect.stringContaining('ok')]);
  const more = await world.chat(ask({ tools: withOwn(128) }));
  expect([more.status, (await whole(more)).error]).toEqual([
    400,
    expect.objectContaining({ param: 'tools', message: expect.stringContaining('129 tools') as string }),
  ]);
});

test('the default budget is bounded, and never less than a turn', async () => {
  const small = await startWorld({
    toml: modelToml(model.url) + toolToml(tools.url) + UNHURRIED,
    credit: '0.01',
    budgetMax: '0.005',
  });
  model.says({ text: 'ok' });
  const response = await small.chat(ask());
  expect(response.status).toBe(200);
  expect((await small.lock(response.headers.get('x-generation-id'))).amount).toBe(5_000n);
  await response.text();
  const long = await small.chat(ask({ messages: [{ role: 'user', content: 'x'.repeat(6_000) }] }));
  expect((await small.lock(long.headers.get('x-generation-id'))).amount).toBeGreaterThan(6_000n);
  await long.text();
  expect(await small.faults()).toEqual([]);
  await small.stop();
});

test('a stream is kept alive while a tool is silent', async () => {
  const slow = await startWorld({ toml: modelToml(model.url) + toolToml(tools.url) + UNHURRIED, keepAliveMs: 20 });
  model.says({ calls: calls(1) }, { text: 'ok' });
  const response = await slow.chat(ask({ stream: true }));
  const [one, other] = response.body!.tee();
  const reader = one.getReader();
  for (let text = ''; !text.includes('keep-alive');) text += new TextDecoder().decode((await reader.read()).value);
  open.resolve('ready');
  expect((await streamed(new Response(other))).content).toBe('ok');
  await slow.stop();
});
