import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { PEER } from '../peers/routes.ts';
import { startPeerProvider, USED, type PeerProvider } from '../peers/peer-provider.ts';
import { newDataDirectory } from '../support/data-directory.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// A quote of any primitive binds one call, through a restart with other prices.

const services = ({ modelUrl, toolUrl, agentUrl }: PeerProvider, factor: number) => `
[[models]]
name = "${PEER}"
context_length = 100000
max_output_tokens = 5000
[models.pricing]
prompt = 0
completion = ${factor}
[models.params]
model = "peer"
api_base = "${modelUrl}"

[[images]]
name = "${PEER}"
[images.pricing]
input_image = 0
generation = ${0.001 * factor}
[images.params]
model = "peer"
edits = true
body = "json"
api_base = "${modelUrl}"

[[tools]]
name = "${PEER}"
endpoint = "${toolUrl}"
[tools.pricing]
per_call = ${0.01 * factor}

[[agents]]
name = "${PEER}"
endpoint = "${agentUrl}"
[agents.pricing]
per_call = ${0.02 * factor}
`;

let provider: PeerProvider;
let spine: Spine;
const dataDir = newDataDirectory();
const start = (factor: number) => startSpine({ dataDir, toml: UNHURRIED + services(provider, factor) });
beforeAll(async () => {
  provider = await startPeerProvider();
  spine = await start(1);
});
afterAll(async () => {
  await spine.stop();
  await provider.close();
  rmSync(dataDir, { recursive: true, force: true });
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

interface Quoted {
  readonly price_micro_usdc: number;
  readonly exact: boolean;
  readonly quote_id: string;
}

const quote = async (body: object): Promise<Quoted> => {
  const response = await spine.post('/quotes', body);
  const answer = (await response.json()) as Quoted;
  expect([response.status, answer]).toMatchObject([200, { valid: true }]);
  return answer;
};

const chat = { model: PEER, max_tokens: 5_000, messages: [{ role: 'user', content: 'complete' }] };
const image = { model: PEER, prompt: 'complete' };
const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const message = { messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'complete' }] };

/** Each primitive: what is quoted, and how the same is called. */
const CALLS = {
  model: { body: chat, path: '/chat/completions', call: chat, most: 5_000, charged: USED },
  image: { body: image, path: '/image/generate', call: image, most: 1_000, charged: 1_000 },
  tool: {
    body: { tool: `${PEER}/do` },
    path: `/mcp/${PEER}`,
    call: rpc('tools/call', { name: 'do', arguments: { text: 'complete' } }),
    most: 10_000,
    charged: 10_000,
  },
  agent: {
    body: { agent: PEER },
    path: `/a2a/${PEER}`,
    call: rpc('message/send', { message }),
    most: 20_000,
    charged: 20_000,
  },
} as const;
const names = Object.keys(CALLS) as (keyof typeof CALLS)[];

let calls = 0;
async function charge(name: keyof typeof CALLS, id: string): Promise<{ readonly paid: number; readonly text: string }> {
  const { path, call } = CALLS[name];
  const before = await spine.balance();
  const body =
    name === 'agent' ? rpc('message/send', { message: { ...message, messageId: `${id} ${calls++}` } }) : call;
  const response = await spine.post(path, body, { 'x-quote-id': id });
  const text = await response.text();
  await spine.quiet();
  return { paid: Number(before.available - (await spine.balance()).available), text };
}

test.each(names)('a quote of %s says what its call costs', async (name) => {
  const { body, most, charged } = CALLS[name];
  const answer = await quote({ primitive: name, ...body });
  expect(answer).toMatchObject({ price_micro_usdc: most, exact: name !== 'model' });
  expect((await charge(name, answer.quote_id)).paid).toBe(charged);
  const again = await charge(name, answer.quote_id);
  expect([again.paid, again.text]).toEqual([0, expect.stringContaining('This quote was already used') as string]);
});

test('a quote is of one primitive, and of one service', async () => {
  const { quote_id: id } = await quote({ primitive: 'tool', ...CALLS.tool.body });
  for (const other of ['model', 'agent', 'image'] as const)
    expect(await charge(other, id)).toEqual({ paid: 0, text: expect.stringContaining('for another call') as string });
  const larger = await quote({ primitive: 'model', ...chat, max_tokens: 4_000 });
  expect((await charge('model', larger.quote_id)).text).toContain('may cost more');
});

test('a quote of a tool and of a model sets the price, where they are called as agents', async () => {
  const ask = async (service: string, text: string, id: string) => {
    const said = { messageId: `as an agent ${calls++}`, role: 'user', parts: [{ kind: 'text', text }] };
    return (await spine.post(`/a2a/${service}`, rpc('message/send', { message: said }), { 'x-quote-id': id })).text();
  };
  const tool = await quote({ primitive: 'tool', ...CALLS.tool.body });
  expect(await ask(`mcp/${PEER}/do`, '{"text":"complete"}', tool.quote_id)).toContain('"kind":"message"');
  expect(await ask(`mcp/${PEER}/do`, '{"text":"complete"}', tool.quote_id)).toContain('This quote was already used');
  expect((await charge('tool', tool.quote_id)).text).toContain('This quote was already used');
  const model = await quote({ primitive: 'model', ...chat });
  expect(await ask(`model/${PEER}`, 'complete', model.quote_id)).toContain('"kind":"message"');
  expect((await charge('model', model.quote_id)).text).toContain('This quote was already used');
});

test('a cap that is lower than the quote refuses the call, and leaves the quote', async () => {
  const { quote_id: id } = await quote({ primitive: 'tool', ...CALLS.tool.body });
  const { path, call } = CALLS.tool;
  const response = await spine.post(path, call, { 'x-quote-id': id, 'x-max-cost': '0.009' });
  expect(await response.text()).toContain('x-max-cost is 0.009 USD, but the quote is 0.01 USD');
  expect((await charge('tool', id)).paid).toBe(10_000);
});

test.each(['tool', 'agent'] as const)('a cap that is higher than the quote of %s changes nothing', async (name) => {
  const { body, path, call, charged } = CALLS[name];
  const { quote_id: id } = await quote({ primitive: name, ...body });
  const before = await spine.balance();
  const response = await spine.post(path, call, { 'x-quote-id': id, 'x-max-cost': '1' });
  expect(await response.text()).toContain('"result"');
  await spine.quiet();
  expect(Number(before.available - (await spine.balance()).available)).toBe(charged);
});

test.each([
  [{ primitive: 'song' }, 400, 'primitive'],
  [{ primitive: 'tool' }, 400, 'tool'],
  [{ primitive: 'tool', tool: 'no/such' }, 404, null],
  [{ primitive: 'model', model: PEER }, 400, 'messages'],
  [{ primitive: 'image', model: PEER, n: 11 }, 400, 'n'],
])('%j is refused', async (body, status, param) => {
  const response = await spine.post('/quotes', body);
  const { error } = (await response.json()) as { error: { param: string | null } };
  expect(response.status).toBe(status);
  if (param !== null) expect(error.param).toBe(param);
});

test('an edit is quoted with its images, and JSON-RPC calls name quotes', async () => {
  const answer = await quote({ primitive: 'image', ...image, image_count: 2, n: 3 });
  expect(answer).toMatchObject({ price_micro_usdc: 3_000, resolved: { n: 3, images: 2 } });
  const { quote_id: id } = await quote({ primitive: 'image', ...image });
  const response = await spine.post('/rpc', rpc('images/generate', image), { 'x-quote-id': id });
  expect(await response.json()).toMatchObject({ result: { status: 'completed' } });
  expect((await charge('image', id)).text).toContain('This quote was already used');
});

test('a gateway that is started with higher prices keeps to the quotes', async () => {
  const ids = await Promise.all(
    names.map(async (name) => (await quote({ primitive: name, ...CALLS[name].body })).quote_id),
  );
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  spine = await start(3);
  for (const [index, name] of names.entries()) {
    expect([name, (await charge(name, ids[index]!)).paid]).toEqual([name, CALLS[name].charged]);
  }
  const now = await quote({ primitive: 'tool', ...CALLS.tool.body });
  expect(now.price_micro_usdc).toBe(30_000);
});
