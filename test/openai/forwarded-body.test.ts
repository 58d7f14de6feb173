import { describe, expect, it, vi } from 'vitest';
import { parseJson } from '#wire';
import { createCheck } from '#http';
import { toCall } from '../../src/openai/call/chat-to-call.ts';
import { chatSchema, type ChatBody } from '../../src/openai/chat/chat-schema.ts';
import { withoutList } from '../../src/openai/chat/request/content-lists.ts';
import { makeOffer } from './support/offers.ts';

const check = createCheck<ChatBody>(chatSchema(2048));
const valid = { model: 'acme/small', messages: [{ role: 'user', content: 'hi' }] };

function call(body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return toCall(check(parseJson(Buffer.from(text), { jsonDepthMax: 64, jsonKeysMax: 10_000 })), {
    caller: { account: 'tollgate:local:dev', key: null, wallet: null },
    requestId: 'req-1',
    headers,
    now: 1_800_000_000_500,
    replyBytesMax: 1e6,
    receipts: 'on-request',
  });
}
const forwarded = (body: unknown, offer = makeOffer()) =>
  JSON.parse(call(body).adapter.request(offer).body as string) as Record<string, unknown>;

describe('what is sent to the provider', () => {
  it('is the request with the provider’s own name for the model and the cap of the lock', () => {
    expect(forwarded(valid)).toEqual({ ...valid, model: 'upstream-small', max_tokens: 1000 });
  });

  it('keeps unknown fields and the user, and drops what speaks to the gateway', () => {
    const extra = { seed: 3, response_format: { type: 'text' }, user: 'u-1', logit_bias: { 5: 1 }, temperature: 0 };
    const ours = { provider: { only: ['acme'] }, models: ['other'], session_id: 's', metadata: { a: 'b' } };
    expect(forwarded({ ...valid, ...extra, ...ours })).toEqual({
      ...valid,
      ...extra,
      model: 'upstream-small',
      max_tokens: 1000,
    });
  });

  it('has thinking among the parts of the content for the model that wrote it so, and for no other', () => {
    const message: Record<string, unknown> = {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }], signature: 'S', closed: true },
        { type: 'redacted_thinking', data: 'R' },
        { type: 'thinking', thinking: 'Ah' },
        { type: 'text', text: 'Hello' },
        { type: 'reference', reference_ids: [1] },
        'you',
      ],
    };
    withoutList(message, 'acme/small');
    expect(message).toMatchObject({ content: 'Helloyou', reasoning_content: 'HmAh' });
    const messages = [...valid.messages, message, ...valid.messages];
    const sent = (service: string) =>
      (forwarded({ ...valid, messages }, makeOffer({ service }))['messages'] as object[])[1];
    expect(sent('acme/small')).toEqual({
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }], signature: 'S', closed: true },
        { type: 'redacted_thinking', data: 'R' },
        { type: 'thinking', thinking: [{ type: 'text', text: 'Ah' }] },
        { type: 'text', text: 'Helloyou' },
      ],
    });
    expect(sent('acme/other')).toEqual({ role: 'assistant', content: 'Helloyou', reasoning_content: 'HmAh' });
  });

  it('leaves out what the client left out: models differ in their defaults, and some refuse a temperature', () => {
    expect(forwarded(valid)).not.toHaveProperty('temperature');
    expect(forwarded(valid)).not.toHaveProperty('top_p');
  });

  it('asks for usage in every stream, and has no stream options elsewhere', () => {
    expect(forwarded({ ...valid, stream: true })).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(
      forwarded({ ...valid, stream: true, stream_options: { include_usage: false, x: 1 } })['stream_options'],
    ).toEqual({
      include_usage: true,
      x: 1,
    });
    expect(forwarded({ ...valid, stream: false, stream_options: { include_usage: true } })).not.toHaveProperty(
      'stream_options',
    );
  });

  it.each([
    [{ max_tokens: 7 }, { max_tokens: 7 }],
    [{ max_completion_tokens: 7 }, { max_completion_tokens: 7 }],
    // Services refuse to be sent both.
    [{ max_completion_tokens: 9, max_tokens: 7 }, { max_tokens: 7 }],
    [{ max_completion_tokens: 7, max_tokens: 9 }, { max_tokens: 7 }],
    [{ max_tokens: 32_000 }, { max_tokens: 1000 }],
    [{ max_tokens: null }, { max_tokens: 1000 }],
  ])('passes the cap down under the client’s name for it: %j', (asked, wanted) => {
    const { max_tokens, max_completion_tokens } = forwarded({ ...valid, ...asked });
    expect({
      ...(max_tokens === undefined ? {} : { max_tokens }),
      ...(max_completion_tokens === undefined ? {} : { max_completion_tokens }),
    }).toEqual(wanted);
  });

  it.each([
    ['max_tokens', { max_completion_tokens: 7 }, { max_tokens: 7 }],
    ['max_completion_tokens', { max_tokens: 7 }, { max_completion_tokens: 7 }],
    ['max_completion_tokens', {}, { max_completion_tokens: 1000 }],
    ['none', { max_tokens: 7 }, {}],
    ['none', {}, {}],
  ] as const)('with cap = "%s" the cap has that name alone: %j', (cap, asked, wanted) => {
    expect(forwarded({ ...valid, ...asked }, makeOffer({ model: { cap } }))).toEqual({
      ...valid,
      model: 'upstream-small',
      ...wanted,
    });
  });

  it('has no cap where the client gave none and the model declares none', () => {
    expect(forwarded(valid, makeOffer({ model: { maxOutputTokens: null } }))).toEqual({
      ...valid,
      model: 'upstream-small',
    });
  });

  it('is what was checked, where keys are doubled', () => {
    const body = forwarded(
      '{"model":"x","max_tokens":100000,"messages":[{"role":"user","content":"hi"}],"model":"acme/small","max_tokens":5}',
    );
    expect(body).toEqual({ ...valid, model: 'upstream-small', max_tokens: 5 });
  });

  it('has no prototype of the client’s making', () => {
    const body = forwarded(
      '{"__proto__":{"stream":true,"polluted":1},"model":"m","messages":[{"role":"user","content":"hi","__proto__":{"x":1}}],"constructor":{"prototype":{"y":1}}}',
    );
    expect(Object.getPrototypeOf(body)).toBe(Object.prototype);
    expect(body).not.toHaveProperty('polluted');
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
    expect(({} as Record<string, unknown>)['y']).toBeUndefined();
  });

  it('is serialised once for one offer, and anew for another', () => {
    const { adapter } = call(valid);
    const stringify = vi.spyOn(JSON, 'stringify');
    const first = makeOffer();
    const body = adapter.request(first).body;
    expect(adapter.request(first).body).toBe(body);
    expect(stringify).toHaveBeenCalledTimes(1);
    stringify.mockRestore();
    const other = adapter.request(
      makeOffer({ provider: 'other', model: { upstreamModel: 'theirs', maxOutputTokens: 50 } }),
    ).body as string;
    expect(JSON.parse(other)).toEqual({ ...valid, model: 'theirs', max_tokens: 50 });
    expect(JSON.parse(adapter.request(first).body as string)).toEqual({
      ...valid,
      model: 'upstream-small',
      max_tokens: 1000,
    });
  });

  it('goes with content headers and the request id, and with nothing of the client’s', () => {
    const { adapter } = call(
      { ...valid, stream: true },
      { authorization: 'Bearer client', cookie: 'c', 'x-api-key': 'k' },
    );
    expect(adapter.request(makeOffer())).toMatchObject({
      method: 'POST',
      path: '/chat/completions',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', 'x-request-id': 'req-1' },
    });
    expect(Object.keys(adapter.request(makeOffer()).headers)).toHaveLength(3);
  });
});

describe('what the pipeline is told', () => {
  it('targets, fallbacks and metadata', () => {
    const { request } = call(
      { ...valid, models: ['b', 'acme/small', 'b'], metadata: { k: 1 }, stream: true },
      { traceparent: '00-a-b-01' },
    );
    expect(request).toMatchObject({
      primitive: 'model',
      targets: ['acme/small', 'b'],
      metadata: { k: 1 },
      stream: true,
      traceparent: '00-a-b-01',
      requestId: 'req-1',
    });
  });

  it('preferences, with prices exact', () => {
    const { request } = call({
      ...valid,
      provider: {
        order: ['a'],
        ignore: ['b'],
        allow_fallbacks: false,
        sort: 'latency',
        max_price: { prompt: 0.15, completion: '0.6', image: 0.001 },
      },
    });
    expect(request.preferences).toEqual({
      order: ['a'],
      only: [],
      ignore: ['b'],
      allowFallbacks: false,
      contentFallbacks: false,
      sort: 'latency',
      maxPrice: { prompt: 150_000n, completion: 600_000n, image: 1_000_000_000n },
      declared: null,
      requireParameters: false,
    });
  });

  it('refuses a price that is none', () => {
    expect(() => call({ ...valid, provider: { max_price: { completion: 'cheap' } } })).toThrow(
      expect.objectContaining({ code: 'invalid_request', param: 'provider.max_price.completion' }),
    );
    expect(() => call({ ...valid, provider: { max_price: { prompt: -1 } } })).toThrow(
      expect.objectContaining({ param: 'provider.max_price.prompt' }),
    );
  });

  it('the session, from the body before the header, within the account', () => {
    expect(call({ ...valid, session_id: 's1' }, { 'x-session-id': 's2' }).request.stickyKey).toBe(
      'tollgate:local:dev s1',
    );
    expect(call(valid, { 'x-session-id': 's2' }).request.stickyKey).toBe('tollgate:local:dev s2');
    expect(call(valid).request.stickyKey).toBeNull();
    expect(() => call(valid, { 'x-session-id': 'x'.repeat(257) })).toThrow(
      expect.objectContaining({ code: 'invalid_request' }),
    );
  });

  it('whether a receipt is wanted', () => {
    expect(call(valid).request.wantsReceipt).toBe(false);
    expect(call(valid, { 'x-receipt': '1' }).request.wantsReceipt).toBe(true);
  });
});
