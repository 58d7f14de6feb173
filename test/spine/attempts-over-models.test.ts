import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { answerChat, type FailingUpstream, failWith, startFailingUpstream } from '../support/failing-upstream.ts';
import { ask, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// One plan of attempts over the models that a request names and their offers.

const BEHAVIOURS = {
  fine: answerChat('fine'),
  busy: failWith(503, { message: 'overloaded', type: 'server_error', code: 'overloaded' }),
  long: failWith(400, { message: 'The prompt is too long.', code: 'context_length_exceeded' }),
  policy: failWith(400, { message: 'The safety system rejected it.', code: 'content_policy_violation' }),
  once: ((response, request) =>
    request.nth > 1
      ? answerChat('at last')(response, request)
      : failWith(500, { message: 'an error' })(response, request)) satisfies ReturnType<typeof failWith>,
  limited: ((response, request) =>
    request.nth > 1
      ? answerChat('at last')(response, request)
      : failWith(429, { message: 'slow down' }, { 'retry-after': '1' })(response, request)) satisfies ReturnType<
    typeof failWith
  >,
  late: failWith(429, { message: 'slow down' }, { 'retry-after': '20' }),
};
type Name = keyof typeof BEHAVIOURS;

let upstream: FailingUpstream<Name>;
let spine: Spine;
let skew = 0;

beforeAll(async () => {
  upstream = await startFailingUpstream(BEHAVIOURS);
  const offers = (name: string, behaviour: Name, ...providers: string[]) =>
    providers.map((provider) => modelBlock({ name, provider, url: upstream.urlOf(behaviour) })).join('');
  spine = await startSpine({
    now: () => Date.now() + skew,
    toml: `${UNHURRIED}
[upstream]
cooldown_ms = 60000
${offers('test/spare', 'fine', 'Spare')}
${offers('test/busy-three', 'busy', 'One', 'Two', 'Three')}
${offers('test/busy', 'busy', 'Alone')}
${offers('test/long', 'long', 'One', 'Two')}
${offers('test/policy', 'policy', 'One', 'Two')}
${offers('test/once', 'once', 'One')}
${offers('test/limited', 'limited', 'One')}
${offers('test/late', 'late', 'One')}`,
  });
});
afterAll(async () => {
  await spine.stop();
  upstream.stop();
});
beforeEach(() => {
  // Every failure is forgotten, and the budget of retries is whole.
  skew += 3_600_000;
  upstream.clear();
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const counts = (...names: Name[]) => names.map((name) => upstream.seen(name).length);

async function call(model: string, more: object = {}): Promise<{ status: number; model: string; text: string }> {
  const response = await spine.post('/chat/completions', ask('hello', { model, ...more }));
  const text = await response.text();
  return { status: response.status, model: (JSON.parse(text) as { model?: string }).model ?? '', text };
}
const SPARE = { models: ['test/spare'] };

test('a model with three offers that are down leaves an attempt to the next model', async () => {
  expect(await call('test/busy-three', SPARE)).toMatchObject({ status: 200, model: 'test/spare' });
  expect(counts('busy', 'fine')).toEqual([2, 1]);
});

test('each of many models has an attempt', async () => {
  const models = ['test/busy', 'test/once', 'test/late', 'test/spare'];
  expect(await call('test/busy-three', { models })).toMatchObject({ status: 200, model: 'test/once' });
});

test('a prompt that is too long for a model goes to the next model, not to its other offer', async () => {
  expect(await call('test/long', SPARE)).toMatchObject({ status: 200, model: 'test/spare' });
  expect(counts('long', 'fine')).toEqual([1, 1]);
});

test('where it is too long for all models, the caller hears it, and nothing is charged', async () => {
  const before = await spine.balance();
  const { status, text } = await call('test/long');
  expect([status, counts('long')]).toEqual([400, [1]]);
  expect(text).toContain('The prompt is too long');
  await spine.quiet();
  expect(await spine.balance()).toEqual(before);
});

test('content that a policy refuses goes nowhere else', async () => {
  const { status } = await call('test/policy', SPARE);
  expect([status, counts('policy', 'fine')]).toEqual([422, [1, 0]]);
});

test('it goes to the next model if the caller wants that, and to no other offer of the first', async () => {
  const wanted = { ...SPARE, provider: { content_fallbacks: true } };
  expect(await call('test/policy', wanted)).toMatchObject({ status: 200, model: 'test/spare' });
  expect(counts('policy', 'fine')).toEqual([1, 1]);
});

test('an offer that rests comes after a healthy fallback', async () => {
  await call('test/busy', SPARE);
  upstream.clear();
  expect(await call('test/busy', SPARE)).toMatchObject({ status: 200, model: 'test/spare' });
  expect(counts('busy', 'fine')).toEqual([0, 1]);
  // When its rest is over, one call finds out whether it works again.
  skew += 61_000;
  for (let n = 0; n < 2; n++) await call('test/busy', SPARE);
  expect(counts('busy', 'fine')).toEqual([1, 3]);
});

test.each([
  ['an error of the only offer', 'test/once', 'once', SPARE],
  ['an error of the only offer, without a fallback', 'test/once', 'once', {}],
  ['a limit that ends soon', 'test/limited', 'limited', SPARE],
] as const)('%s: the same offer is asked once more', async (_name, model, behaviour, more) => {
  expect(await call(model, more)).toMatchObject({ status: 200, model });
  expect(counts(behaviour, 'fine')).toEqual([2, 0]);
});

test('an offer that says to come back later is not waited for', async () => {
  expect(await call('test/late', SPARE)).toMatchObject({ status: 200, model: 'test/spare' });
  expect(counts('late', 'fine')).toEqual([1, 1]);
});

test('an only offer that goes on failing is asked twice, and is not asked twice by the next call', async () => {
  const before = await spine.balance();
  expect((await call('test/busy')).status).toBe(529);
  expect(counts('busy')).toEqual([2]);
  expect((await call('test/busy')).status).toBe(529);
  expect(counts('busy')).toEqual([3]);
  await spine.quiet();
  expect(await spine.balance()).toEqual(before);
});

const WIRES = [
  { wire: 'chat', path: '/chat/completions', body: { messages: [{ role: 'user', content: 'hi' }] }, field: 'model' },
  {
    wire: 'messages',
    path: '/messages',
    body: { messages: [{ role: 'user', content: 'hi' }], max_tokens: 50 },
    field: 'model',
  },
  { wire: 'responses', path: '/responses', body: { input: 'hi' }, field: 'model' },
  { wire: 'completions', path: '/completions', body: { prompt: 'hi' }, field: 'model' },
  {
    wire: 'gemini',
    path: '/models/test/busy:generateContent',
    body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
    field: 'modelVersion',
  },
];

test.each(WIRES)('an answer names the model that gave it: $wire', async ({ wire, path, body, field }) => {
  const namedIn = async (at: string, sent: object) => {
    const text = await (await spine.post(at, sent)).text();
    return [...new Set([...text.matchAll(new RegExp(`"${field}": ?"([^"]*)"`, 'g'))].map((match) => match[1]))];
  };
  const isGemini = wire === 'gemini';
  const withModel = (model: string) => ({ ...body, ...(isGemini ? {} : { model }) });
  const streams = [
    [path, {}],
    [isGemini ? path.replace('generateC', 'streamGenerateC') : path, isGemini ? {} : { stream: true }],
  ] as const;
  for (const [at, more] of streams) {
    expect(await namedIn(at, { ...withModel('test/busy'), ...more, ...SPARE })).toEqual(['test/spare']);
    // Without a fallback, the name is the client's own.
    const floor = 'test/spare:floor';
    const own = await namedIn(at.replace('test/busy', floor), { ...withModel(floor), ...more });
    expect(own).toEqual([wire === 'chat' ? 'test/spare' : floor]);
  }
});
