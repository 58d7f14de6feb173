import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { message, response } from './support/transcripts.ts';
import { startWireUpstream, type WireUpstream } from './support/wire-upstream.ts';

// What has another price than the one that is locked reaches a provider only if its block says so.

const PLAIN = 'acme/plain';
const LISTED = 'acme/listed';
let upstream: WireUpstream;
let spine: Spine;
beforeAll(async () => {
  upstream = await startWireUpstream();
  upstream.answer = ({ path }) => ({ text: path.endsWith('messages') ? message() : response() });
  const wires = 'wires = ["messages", "responses"]';
  const forward =
    'forward = ["service_tier", "cache_control.ttl", "context-1m-2025-08-07", "compact-2026-01-12", "known_field"]';
  const native = { provider: 'Acme', url: upstream.url };
  spine = await startSpine({
    toml:
      UNHURRIED +
      modelBlock({ name: PLAIN, ...native, params: wires }) +
      modelBlock({ name: LISTED, ...native, params: `${wires}\n${forward}` }),
  });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await upstream.stop();
  }
});

/** What reached the provider, and the names that did not. */
async function sent(path: string, body: object, beta = '') {
  const reply = await fetch(`${spine.url}/${path}`, {
    method: 'POST',
    headers: {
      'x-api-key': spine.key,
      'content-type': 'application/json',
      ...(beta === '' ? {} : { 'anthropic-beta': beta }),
    },
    body: JSON.stringify(body),
  });
  const text = await reply.text();
  expect([reply.status, text]).toEqual([200, expect.any(String)]);
  return { ...upstream.reached.at(-1)!, dropped: reply.headers.get('x-tollgate-dropped') };
}

const HOUR = { type: 'ephemeral', ttl: '1h' };
const COSTLY = { service_tier: 'priority', speed: 'fast', inference_geo: 'us' };
const asks = (model: string, more: object = {}) => ({
  model,
  max_tokens: 50,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: HOUR }] }],
  ...more,
});
const CLEAR = { type: 'clear_tool_uses_20250919' };
const COMPACT = { type: 'compact_20260112', trigger: { type: 'input_tokens', value: 150_000 } };
const COMPACTS = { messages: [{ role: 'user', content: 'Hi' }], context_management: { edits: [COMPACT, CLEAR] } };
const BETAS = 'claude-code-20250219,context-1m-2025-08-07,fast-mode-2026-02-01';

describe('a model that lists nothing', () => {
  test('gets none of it under a name with escapes', async () => {
    const text = JSON.stringify(asks(PLAIN)).replace('"ttl"', String.raw`"\u0074tl"`);
    const reply = await fetch(`${spine.url}/messages`, {
      method: 'POST',
      headers: { 'x-api-key': spine.key, 'content-type': 'application/json' },
      body: text,
    });
    expect(reply.headers.get('x-tollgate-dropped')).toBe('cache_control.ttl');
    await reply.text();
    expect(upstream.reached.at(-1)!.text).not.toContain('1h');
  });

  test('gets the betas that change no price', async () => {
    const { headers, dropped } = await sent(
      'messages',
      { ...asks(PLAIN), messages: [{ role: 'user', content: 'Hi' }] },
      BETAS,
    );
    expect(headers['anthropic-beta']).toBe('claude-code-20250219');
    expect(dropped).toBe('context-1m-2025-08-07, fast-mode-2026-02-01');
  });

  test.each([
    ['mid-conversation-tool-changes-2026-07-01,thinking-token-count-2026-05-13', null],
    ['a-beta-of-tomorrow-2027-01-01', null],
    ['context-management-2025-06-27', null],
    ['context-2m-2027-01-01', 'context-2m-2027-01-01'],
    ['server-side-fallback-2026-07-01', 'server-side-fallback-2026-07-01'],
    ['advisor-tool-2026-03-01', 'advisor-tool-2026-03-01'],
    ['message-threads-2026-08-12', 'message-threads-2026-08-12'],
    ['extended-cache-ttl-2025-04-11', 'extended-cache-ttl-2025-04-11'],
  ])('of %s it does not get %s', async (beta, lost) => {
    const asked = { ...asks(PLAIN), messages: [{ role: 'user', content: 'Hi' }] };
    const { headers, dropped } = await sent('messages', asked, beta);
    expect(headers['anthropic-beta']).toBe(lost === null ? beta : undefined);
    expect(dropped).toBe(lost);
  });

  test('gets no compaction, whose tokens `usage` leaves out', async () => {
    const { body, headers, dropped } = await sent('messages', asks(PLAIN, COMPACTS), 'compact-2026-01-12');
    expect(body['context_management']).toEqual({ edits: [CLEAR] });
    expect(headers['anthropic-beta']).toBeUndefined();
    expect(dropped).toBe('context_management.compact, compact-2026-01-12');
  });
});

describe('a model that lists fields', () => {
  test('gets those beside the published ones', async () => {
    const asked = asks(LISTED, { ...COSTLY, top_k: 4, known_field: 1, future_field: 1 });
    const { body, headers, dropped } = await sent('messages', asked, BETAS);
    expect(body).toEqual({
      ...asks(LISTED),
      model: 'upstream-of-Acme',
      service_tier: 'priority',
      top_k: 4,
      known_field: 1,
    });
    expect(headers['anthropic-beta']).toBe('claude-code-20250219,context-1m-2025-08-07');
    expect(dropped).toBe('speed, inference_geo, future_field, fast-mode-2026-02-01');
  });

  test('gets compaction by the name of its beta', async () => {
    const { body, headers, dropped } = await sent('messages', asks(LISTED, COMPACTS), 'compact-2026-01-12');
    expect(body['context_management']).toEqual(COMPACTS.context_management);
    expect(headers['anthropic-beta']).toBe('compact-2026-01-12');
    expect(dropped).toBeNull();
  });

  test('gets those of a response', async () => {
    const { body, dropped } = await sent('responses', {
      model: LISTED,
      input: 'Hi',
      service_tier: 'flex',
      truncation: 'auto',
      future_field: 1,
    });
    expect(body).toMatchObject({ service_tier: 'flex', truncation: 'auto' });
    expect(dropped).toBe('future_field');
  });
});
