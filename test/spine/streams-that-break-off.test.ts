import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  type Behaviour,
  beginStream,
  chatEvents,
  type FailingUpstream,
  failWith,
  startFailingUpstream,
} from '../support/failing-upstream.ts';
import { ask, events, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// A stream that breaks off in the middle of its answer: it ends with an error, or, if the caller wants that, another
// model that takes the beginning of an answer goes on with it.

const WORDS = ['one', ' two', ' three', ' four', ' five', ' six'];
const { role, text, end } = chatEvents;
const begun = role + WORDS.slice(0, 3).map(text).join('');

const BEHAVIOURS = {
  /** Three words, then the connection is lost. */
  breaks: (reply) => {
    beginStream(reply).write(begun);
    setTimeout(() => reply.destroy(), 100);
  },
  /** The error comes together with the last word. */
  errs: (reply) => beginStream(reply).end(begun + chatEvents.error({ message: 'out of order' })),
  calls: (reply) => {
    const call = { index: 0, id: 'c1', type: 'function', function: { name: 'look', arguments: '{"at":' } };
    const chunk = { id: 'x', choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }] };
    beginStream(reply).write(`${begun}data: ${JSON.stringify(chunk)}\n\n`);
    setTimeout(() => reply.destroy(), 100);
  },
  refuses: failWith(400, { message: 'the last message must be of the user', type: 'invalid_request_error' }),
  /** Goes on after what the last message of the assistant has, as services with prefilled answers do. */
  goesOn: (reply, { body }) => {
    const { role: who, content } = (body['messages'] as { role: string; content: string }[]).at(-1)!;
    const whole = WORDS.join('');
    const rest = who === 'assistant' && whole.startsWith(content) ? whole.slice(content.length) : whole;
    return beginStream(reply).end(role + rest.split(/(?= )/).map(text).join('') + end);
  },
  spaced: (reply) => {
    beginStream(reply).write(role + text('one') + text(' '));
    setTimeout(() => reply.destroy(), 100);
  },
  cutEvent: (reply) =>
    beginStream(reply).end(
      `${begun}data: {"id": "x", "object": "chat.completion.chunk", "choices": [{"delta": {"content": \n\n${WORDS.slice(3).map(text).join('')}${end}`,
    ),
  cutText: (reply) => {
    beginStream(reply).write(begun);
    setTimeout(() => reply.end(`data: {"id": "x", "choices": [{"delta": {"content": " fo\n\n${end}`), 100);
  },
} satisfies Record<string, Behaviour>;
type Name = keyof typeof BEHAVIOURS;

let upstream: FailingUpstream<Name>;
let spine: Spine;
let skew = 0;

beforeAll(async () => {
  upstream = await startFailingUpstream<Name>(BEHAVIOURS);
  const block = (name: string, behaviour: Name, provider: string, params = '') =>
    modelBlock({ name: `test/${name}`, provider, url: upstream.urlOf(behaviour), params, prompt: 3, completion: 5 });
  spine = await startSpine({
    now: () => Date.now() + skew,
    toml: `${UNHURRIED}
[upstream]
cooldown_ms = 0
${block('breaks', 'breaks', 'First')}
${block('breaks-and-asks', 'breaks', 'First').replace('[models.pricing]', 'continue = true\n[models.pricing]')}
${block('errs', 'errs', 'First')}
${block('calls', 'calls', 'First')}
${block('spaced', 'spaced', 'First')}
${block('cut-event', 'cutEvent', 'First')}
${block('cut-text', 'cutText', 'First')}
${block('takes-none', 'goesOn', 'Plain')}
${block('refuses', 'refuses', 'Strict', 'prefill = "message"')}
${block('message', 'goesOn', 'Second', 'prefill = "message"')}
${block('prefix', 'goesOn', 'Second', 'prefill = "prefix"')}
${block('final', 'goesOn', 'Second', 'prefill = "continue_final_message"')}`,
  });
});
afterAll(async () => {
  await spine.stop();
  upstream.stop();
});
beforeEach(() => {
  skew += 3_600_000;
  upstream.clear();
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const CONTINUE = { continue: true };
const body = (model: string, models: readonly string[], more: object) =>
  ask('count', { model: `test/${model}`, models: models.map((one) => `test/${one}`), stream: true, ...more });

interface Answer {
  readonly said: string;
  readonly error: unknown;
  readonly models: readonly string[];
  readonly roles: number;
  readonly generation: string;
}

async function stream(
  model: string,
  models: readonly string[],
  more: object = CONTINUE,
  key = spine.key,
): Promise<Answer> {
  const reply = await spine.post('/chat/completions', body(model, models, more), { authorization: `Bearer ${key}` });
  const chunks = events(await reply.text()).filter((one) => one !== '[DONE]') as {
    model: string;
    error?: unknown;
    choices: { delta: { content?: string; role?: string } }[];
  }[];
  const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
  await spine.quiet();
  return {
    said: deltas.map(({ content = '' }) => content).join(''),
    error: chunks.at(-1)!.error,
    models: [...new Set(chunks.map((one) => one.model))],
    roles: deltas.filter((delta) => delta.role !== undefined).length,
    generation: reply.headers.get('x-generation-id')!,
  };
}

describe('with continue', () => {
  test.each([
    ['message', { role: 'assistant', content: 'one two three' }, {}],
    ['prefix', { role: 'assistant', content: 'one two three', prefix: true }, {}],
    [
      'final',
      { role: 'assistant', content: 'one two three' },
      { continue_final_message: true, add_generation_prompt: false },
    ],
  ])('a model with prefill as %s goes on, and the client sees one answer', async (model, last, members) => {
    const before = await spine.balance();
    const answer = await stream('breaks', [model]);
    expect(answer).toMatchObject({ said: WORDS.join(''), error: undefined, roles: 1 });
    expect(answer.models).toEqual(['test/breaks', `test/${model}`]);
    const [sent] = upstream.seen('goesOn');
    expect((sent!.body['messages'] as object[]).at(-1)).toEqual(last);
    expect(sent!.body).toMatchObject(members);
    expect(sent!.body['max_tokens']).toBeLessThan(50);
    // The first one broke its answer off and gets nothing. The other one is paid for what it reports.
    expect(before.available - (await spine.balance()).available).toBe(BigInt(3 * 10 + 5 * 4));
    expect(await spine.generation(answer.generation)).toMatchObject({
      provider_name: 'Second',
      failed_attempts: [{ provider: 'First', service: 'test/breaks' }],
    });
  });

  test('text that came together with the error is not lost, and not doubled', async () => {
    expect(await stream('errs', ['message'])).toMatchObject({ said: WORDS.join(''), error: undefined });
  });

  test('a space at the end of what came is not doubled', async () => {
    expect(await stream('spaced', ['message'])).toMatchObject({ said: WORDS.join(''), error: undefined });
    expect((upstream.seen('goesOn')[0]!.body['messages'] as object[]).at(-1)).toMatchObject({ content: 'one' });
  });

  test('a model that takes no beginning is passed over', async () => {
    expect(await stream('breaks', ['takes-none', 'message'])).toMatchObject({ said: WORDS.join('') });
    expect(upstream.seen('goesOn')).toHaveLength(1);
  });

  test('where none takes a beginning, the stream ends with its error, and nobody else is asked', async () => {
    const before = await spine.balance();
    expect(await stream('breaks', ['takes-none'])).toMatchObject({
      said: 'one two three',
      error: { type: 'provider_unavailable' },
    });
    expect(upstream.seen('goesOn')).toHaveLength(0);
    expect(await spine.balance()).toEqual(before);
  });

  test('a model that refuses a beginning is followed by the next one', async () => {
    expect(await stream('breaks', ['refuses', 'message'])).toMatchObject({ said: WORDS.join(''), error: undefined });
    expect(upstream.seen('refuses')).toHaveLength(1);
  });

  test('where all refuse it, the client hears that its stream broke off', async () => {
    expect(await stream('breaks', ['refuses'])).toMatchObject({
      said: 'one two three',
      error: { type: 'provider_unavailable' },
    });
  });

  test('half a tool call is never gone on with', async () => {
    expect(await stream('calls', ['message'])).toMatchObject({ error: { type: 'provider_unavailable' } });
    expect(upstream.seen('goesOn')).toHaveLength(0);
  });

  test.each(['/messages', '/responses'])('a client of %s sees one answer, too', async (path) => {
    const request =
      path === '/messages'
        ? body('breaks', ['message'], CONTINUE)
        : { model: 'test/breaks', models: ['test/message'], input: 'count', stream: true, ...CONTINUE };
    const reply = await spine.post(path, request);
    const texts = [
      ...(await reply.text()).matchAll(/"type":"(?:response\.output_text\.delta|content_block_delta)".*/g),
    ].map(([line]) => {
      const event = JSON.parse(`{${line}`) as { delta: string | { text: string } };
      return typeof event.delta === 'string' ? event.delta : event.delta.text;
    });
    expect(texts.join('')).toBe(WORDS.join(''));
  });
});

test.each([
  ['by the model, unless the request says no', 'breaks-and-asks', {}, WORDS.join('')],
  ['not where the request says no', 'breaks-and-asks', { continue: false }, 'one two three'],
  ['not by default', 'breaks', {}, 'one two three'],
])('%s', async (_name, model, more, said) => {
  expect((await stream(model, ['message'], more)).said).toBe(said);
});

interface OwnKey {
  readonly hash: string;
  readonly continue: boolean | null;
}

test('a key says it between the request and the model, and no request is gone on with against its word', async () => {
  const made = await spine.post('/keys', { label: 'continues', continue: true });
  const { key, data } = (await made.json()) as { key: string; data: OwnKey };
  expect(data.continue).toBe(true);
  const cost = async (model: string, more: object) => {
    const before = await spine.balance();
    const { said } = await stream(model, ['message'], more, key);
    return [said, before.available - (await spine.balance()).available];
  };
  // The one who broke off gets nothing.
  const goneOn = [WORDS.join(''), BigInt(3 * 10 + 5 * 4)];
  const ended = ['one two three', 0n];
  expect(await cost('breaks', {})).toEqual(goneOn);
  expect(await cost('breaks', { continue: null })).toEqual(goneOn);
  expect(await cost('breaks', { continue: false })).toEqual(ended);

  const change = async (value: boolean | null) => {
    const headers = { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' };
    const init = { method: 'PATCH', headers, body: JSON.stringify({ continue: value }) };
    expect((await fetch(`${spine.url}/keys/${data.hash}`, init)).status).toBe(200);
    const read = (await (await spine.get(`/keys/${data.hash}`)).json()) as { data: OwnKey };
    expect(read.data.continue).toBe(value);
  };
  await change(false);
  expect(await cost('breaks-and-asks', {})).toEqual(ended);
  expect(await cost('breaks', CONTINUE)).toEqual(goneOn);
  await change(null);
  expect(await cost('breaks', {})).toEqual(ended);
  expect(await cost('breaks-and-asks', {})).toEqual(goneOn);
});

describe('an event that is cut off', () => {
  test('before any text is skipped and flagged', async () => {
    const answer = await stream('cut-event', [], {});
    expect(answer).toMatchObject({ said: WORDS.join(''), error: undefined });
    expect(await spine.generation(answer.generation)).toMatchObject({ flags: ['malformed_reply'] });
  });

  test('within its text ends the stream', async () => {
    expect(await stream('cut-text', [], {})).toMatchObject({
      said: 'one two three',
      error: { type: 'provider_unavailable' },
    });
  });
});
