import { describe, expect, it } from 'vitest';
import { parseJson } from '#wire';
import { createCheck } from '#http';
import type { Offer } from '#catalog';
import { toCall } from '../../src/openai/call/chat-to-call.ts';
import { chatSchema, type ChatBody } from '../../src/openai/chat/chat-schema.ts';
import { PUBLISHED } from '../../src/openai/chat/request/forwarded-body.ts';
import { makeOffer } from './support/offers.ts';

const check = createCheck<ChatBody>(chatSchema(2048));
const valid = { model: 'acme/small', messages: [{ role: 'user', content: 'hi' }], max_tokens: 10 };
const OURS = { ...valid, model: 'upstream-small' };

const own = (forward?: 'all' | readonly string[]): Offer =>
  makeOffer(forward === undefined ? {} : { model: { forward } });
const dialledIn = (forward?: 'all' | readonly string[]): Offer => ({
  ...own(forward),
  endpoint: { kind: 'tunnel', provider: 'acme-key', basePath: '/models/acme%2Fsmall' },
});
const EVERY_OFFER: readonly Offer[] = [
  own(),
  own('all'),
  own([]),
  dialledIn(),
  dialledIn('all'),
  dialledIn(['n_predict', 'best_of', 'options']),
];

const adapterOf = (body: string) =>
  toCall(check(parseJson(Buffer.from(body), { jsonDepthMax: 64, jsonKeysMax: 10_000 })), {
    caller: { account: 'tollgate:local:dev', key: null, wallet: null },
    requestId: 'req-1',
    headers: {},
    now: 0,
    replyBytesMax: 1e6,
    receipts: 'on-request',
  }).adapter;

function sent(offer: Offer, more: object) {
  const adapter = adapterOf(JSON.stringify({ ...valid, ...more }));
  const body = JSON.parse(adapter.request(offer).body as string) as Record<string, unknown>;
  return { body, dropped: adapter.dropped };
}

describe('a published field', () => {
  const values: Record<string, unknown> = {
    logit_bias: { 5: 1 },
    seed: 3,
    top_k: 40,
    reasoning_effort: 'high',
    thinking: { type: 'enabled' },
  };

  it.each(EVERY_OFFER)('goes to every offer as it came', (offer) => {
    expect(sent(offer, values)).toEqual({ body: { ...OURS, ...values }, dropped: [] });
    const special = ['model', 'messages', 'stream', 'n', 'tools', 'tool_choice', 'user', 'stop'];
    for (const field of PUBLISHED) {
      if (special.includes(field) || field.endsWith('_penalty') || ['temperature', 'top_p'].includes(field)) continue;
      expect(sent(offer, { [field]: 'as it came' }), field).toEqual({
        body: { ...OURS, [field]: 'as it came' },
        dropped: [],
      });
    }
  });
});

describe('an extension of the published chat API', () => {
  const asked = {
    top_k: 40,
    min_p: 0.1,
    thinking: { type: 'enabled' },
    thinking_budget: 5,
    seed: 3,
    reasoning_effort: 'low',
  };
  const strict = (forward?: 'all' | readonly string[]) =>
    makeOffer({ model: { strictFields: true, ...(forward === undefined ? {} : { forward }) } });

  it('is left out, and named, for a strict service that does not list it', () => {
    const dropped = ['top_k', 'min_p', 'thinking', 'thinking_budget'];
    for (const offer of [strict(), strict('all'), strict([])]) {
      const told = sent(offer, asked);
      expect(told.body).toEqual({ ...OURS, seed: 3, reasoning_effort: 'low' });
      expect(told.dropped.toSorted()).toEqual(dropped.toSorted());
      expect(sent(offer, { top_k: null, thinking: null })).toEqual({ body: OURS, dropped: [] });
    }
  });

  it('goes to a strict service that lists it', () => {
    expect(sent(strict(['top_k', 'thinking']), asked)).toEqual({
      body: { ...OURS, top_k: 40, thinking: { type: 'enabled' }, seed: 3, reasoning_effort: 'low' },
      dropped: ['min_p', 'thinking_budget'],
    });
  });
});

describe('reasoning, the word of another router,', () => {
  const NOT_LISTED = [own([]), own(['n_predict']), dialledIn(), dialledIn(['n_predict'])];

  it('goes as it came to an offer that lists it or takes all, as the operator’s own models do unless they list', () => {
    for (const offer of [own(), own('all'), own(['reasoning']), dialledIn('all'), dialledIn(['reasoning'])])
      expect(sent(offer, { reasoning: { effort: 'high', x: [1] } })).toEqual({
        body: { ...OURS, reasoning: { effort: 'high', x: [1] } },
        dropped: [],
      });
  });

  it.each([
    [{ reasoning: { effort: 'high' } }, { reasoning_effort: 'high' }, []],
    [
      { reasoning: { effort: 'low', exclude: true, max_tokens: 5 } },
      { reasoning_effort: 'low' },
      ['reasoning.exclude', 'reasoning.max_tokens'],
    ],
    [{ reasoning: { enabled: true } }, {}, ['reasoning.enabled']],
    [{ reasoning: { effort: 3 } }, {}, ['reasoning.effort']],
    [{ reasoning: { effort: 'high' }, reasoning_effort: 'high' }, { reasoning_effort: 'high' }, []],
    [{ reasoning: { effort: 'high' }, reasoning_effort: 'low' }, { reasoning_effort: 'low' }, ['reasoning.effort']],
    [{ reasoning: 'much' }, {}, ['reasoning']],
    [{ reasoning: null }, {}, []],
  ])('of %j becomes %j elsewhere', (asked, fields, dropped) => {
    for (const offer of NOT_LISTED) expect(sent(offer, asked)).toEqual({ body: { ...OURS, ...fields }, dropped });
  });
});

describe('a field beyond', () => {
  const odd = { chat_template_kwargs: { enable_thinking: false }, top_n_sigma: 1, 'a.b': null };

  it('goes to the operator’s own models, unless they list others', () => {
    for (const offer of [own(), own('all')])
      expect(sent(offer, odd)).toEqual({
        body: { ...OURS, chat_template_kwargs: odd.chat_template_kwargs, top_n_sigma: 1 },
        dropped: [],
      });
    expect(sent(own([]), odd)).toEqual({ body: OURS, dropped: ['chat_template_kwargs', 'top_n_sigma'] });
  });

  it('goes to a provider that dials in where it lists it', () => {
    expect(sent(dialledIn(), odd)).toEqual({ body: OURS, dropped: ['chat_template_kwargs', 'top_n_sigma'] });
    expect(sent(dialledIn(['top_n_sigma']), odd)).toEqual({
      body: { ...OURS, top_n_sigma: 1 },
      dropped: ['chat_template_kwargs'],
    });
    expect(sent(dialledIn('all'), odd).dropped).toEqual([]);
  });

  it('service_tier is listed by every model that has no price for it', () => {
    for (const offer of [own(), own('all'), dialledIn(), dialledIn('all')])
      expect(sent(offer, { service_tier: 'priority' })).toEqual({ body: OURS, dropped: ['service_tier'] });
    expect(sent(own(['service_tier']), { service_tier: 'x' }).body).toHaveProperty('service_tier', 'x');
    expect(sent(dialledIn(['service_tier']), { service_tier: 'x' }).body).toHaveProperty('service_tier', 'x');
  });

  it('service_tier inside another field is not sent either, because only the field has a price', () => {
    const options = (tier: object) => ({ provider_options: { openai: { user: 'u', ...tier } } });
    for (const name of ['serviceTier', 'service_tier', 'SERVICE-TIER', 'sharedRequestType'])
      for (const offer of [own(), own('all'), own(['provider_options']), dialledIn(['provider_options'])])
        expect(sent(offer, options({ [name]: 'priority' }))).toEqual({
          body: { ...OURS, ...options({}) },
          dropped: [`provider_options.openai.${name}`],
        });
    expect(sent(own(['provider_options', 'service_tier']), options({ serviceTier: 'x' })).dropped).toEqual([]);
  });

  it('numbers that a double cannot hold pass where a time in a cache is removed', () => {
    const huge = '123456789012345678901234567890';
    const body = `{"model":"acme/small","max_tokens":10,"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral","ttl":"1h"},"x":${huge}}]}],"y":${huge}}`;
    const bytes = adapterOf(body).request(own()).body as Buffer;
    expect(bytes.toString()).toContain(`"cache_control":{"type":"ephemeral"},"x":${huge}`);
    expect(bytes.toString()).toContain(`"y":${huge}`);
  });

  it.each(['priority', 'web_search_options', 'prediction', 'enable_search', 'mcp_servers'])(
    '%s costs more than tokens: every model lists it by name',
    (field) => {
      for (const offer of [own(), own('all'), dialledIn(), dialledIn('all'), dialledIn(['x'])])
        expect(sent(offer, { [field]: 'x' })).toEqual({ body: OURS, dropped: [field] });
      for (const offer of [own([field]), dialledIn([field])])
        expect(sent(offer, { [field]: 'x' })).toEqual({ body: { ...OURS, [field]: 'x' }, dropped: [] });
    },
  );

  it('lora costs memory: providers that dial in list it by name', () => {
    for (const offer of [dialledIn(), dialledIn('all'), dialledIn(['x'])])
      expect(sent(offer, { lora: 'x' })).toEqual({ body: OURS, dropped: ['lora'] });
    for (const offer of [own(), dialledIn(['lora'])])
      expect(sent(offer, { lora: 'x' })).toEqual({ body: { ...OURS, lora: 'x' }, dropped: [] });
  });

  it.each([
    'api_base',
    'base_url',
    'api_key',
    'mock_response',
    'extra_headers',
    'fallbacks',
    'logits_processors',
    'chat_template',
  ])('%s sends a call elsewhere or runs what it holds: every model lists it by name', (field) => {
    for (const offer of [own(), own('all'), dialledIn('all')])
      expect(sent(offer, { [field]: 'x' })).toEqual({ body: OURS, dropped: [field] });
    expect(sent(own([field]), { [field]: 'x' }).body).toHaveProperty(field, 'x');
  });

  it.each(['plugins', 'transforms', 'route', 'trace', 'preset', 'include_reasoning'])(
    '%s is for another router, and goes nowhere',
    (field) => {
      for (const offer of [...EVERY_OFFER, own([field])])
        expect(sent(offer, { [field]: ['x'] })).toEqual({ body: OURS, dropped: [field] });
    },
  );

  it('that asks the gateway for what it does is not told as dropped', () => {
    expect(sent(own(), { usage: { include: true }, metadata: { a: 'b' }, session_id: 's', provider: {} })).toEqual({
      body: OURS,
      dropped: [],
    });
  });
});

const spellings = (name: string) => [
  name,
  name.replaceAll('_', '-'),
  name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
  name.replaceAll('_', ''),
  name.toUpperCase(),
];

describe('another name of the cap', () => {
  it.each([
    'n_predict',
    'max_new_tokens',
    'num_predict',
    'max_output_tokens',
    'max_length',
    'max_gen_len',
    'max_tokens_to_sample',
    'tokens_to_generate',
  ])('%s is dropped everywhere, however it is spelt, however deep it is', (name) => {
    for (const field of spellings(name)) {
      for (const offer of EVERY_OFFER) {
        if (offer.model!.forward?.includes(field)) continue;
        for (const value of [20_000, '20000', { value: 20_000 }])
          expect(sent(offer, { [field]: value })).toEqual({ body: OURS, dropped: [field] });
      }
      expect(sent(own(), { options: { [field]: 20_000, seed: 1 } })).toEqual({
        body: { ...OURS, options: { seed: 1 } },
        dropped: [`options.${field}`],
      });
      expect(sent(dialledIn(['extra_body']), { extra_body: { options: { [field]: 1 } } })).toEqual({
        body: { ...OURS, extra_body: { options: {} } },
        dropped: [`extra_body.options.${field}`],
      });
    }
  });

  it('gets the cap where the model lists it', () => {
    expect(sent(dialledIn(['n_predict']), { n_predict: 20_000 })).toEqual({
      body: { ...OURS, n_predict: 10 },
      dropped: [],
    });
    expect(sent(own(['n_predict']), { n_predict: '1' })).toEqual({ body: { ...OURS, n_predict: 10 }, dropped: [] });
  });

  it('inside of what a schema or a grammar holds is none', () => {
    const guided = {
      guided_json: { properties: { max_length: { type: 'integer' } }, maxLength: 5 },
      response_format: { json_schema: { maxLength: 3 } },
    };
    expect(sent(dialledIn(), guided)).toEqual({ body: { ...OURS, ...guided }, dropped: [] });
  });
});

describe('a field that makes more output than is priced', () => {
  it.each(['best_of', 'use_beam_search', 'num_beams', 'num_return_sequences', 'n_cmpl', 'candidateCount'])(
    '%s is dropped everywhere',
    (field) => {
      for (const offer of [...EVERY_OFFER, own([field])])
        expect(sent(offer, { [field]: 64 })).toEqual({ body: OURS, dropped: [field] });
    },
  );

  it.each(['min_tokens', 'min_new_tokens', 'thinking_budget_tokens', 'reasoning_budget'])(
    '%s is at most the cap',
    (field) => {
      expect(sent(own(), { [field]: 20_000 }).body).toHaveProperty(field, 10);
      expect(sent(own(), { [field]: '20000' }).body).toHaveProperty(field, 10);
      expect(sent(own(), { [field]: 3 }).body).toHaveProperty(field, 3);
      expect(sent(dialledIn(), { [field]: 3 })).toEqual({ body: OURS, dropped: [field] });
    },
  );

  it('reasoning is at most the cap', () => {
    expect(
      sent(dialledIn(['reasoning']), {
        reasoning: { effort: 'low', max_tokens: 20_000 },
        thinking: { type: 'enabled', budget_tokens: 20_000 },
        thinking_budget: 9_999,
      }).body,
    ).toEqual({
      ...OURS,
      reasoning: { effort: 'low', max_tokens: 10 },
      thinking: { type: 'enabled', budget_tokens: 10 },
      thinking_budget: 10,
    });
    expect(sent(dialledIn('all'), { reasoning: { max_tokens: 7 } }).body['reasoning']).toEqual({ max_tokens: 7 });
  });
});

describe('fields inside of fields', () => {
  const nested = {
    n: 50,
    N: 2,
    model: 'dear',
    api_base: 'http://127.0.0.1:1',
    messages: [],
    stream_options: { include_usage: false },
    kept: 1,
  };
  const names = ['n', 'N', 'model', 'api_base', 'messages', 'stream_options'];

  it('ask for no other model, no more completions and no other address', () => {
    for (const field of ['options', 'sampling_params', 'parameters', 'generationConfig'])
      expect(sent(own(), { [field]: nested })).toEqual({
        body: { ...OURS, [field]: { kept: 1 } },
        dropped: names.map((name) => `${field}.${name}`),
      });
    expect(sent(own(), { extra_body: nested })).toEqual({ body: OURS, dropped: ['extra_body'] });
  });

  it('of a field that the model lists are known to it, but for more completions', () => {
    const { n: _n, N: _N, ...known } = nested;
    expect(sent(own(['extra_body']), { extra_body: nested })).toEqual({
      body: { ...OURS, extra_body: known },
      dropped: ['extra_body.n', 'extra_body.N'],
    });
  });

  it('are found in arrays, too', () => {
    expect(
      sent(own(), { options: [{ num_predict: 99, seed: 1 }], configs: [[{ max_tokens: 99 }]], plain: [1, 'a'] }),
    ).toEqual({
      body: { ...OURS, options: [{ seed: 1 }], configs: [[{}]], plain: [1, 'a'] },
      dropped: ['options[0].num_predict', 'configs[0][0].max_tokens'],
    });
  });

  it.each([
    'be\u017ft_of',
    'num_beam\u017f',
    'n_predict\0',
    'n_predict\0x',
    'best_of\u200b',
    'max_token',
    'max_target_length',
  ])('%j is dropped', (field) => {
    expect(sent(own(), { [field]: 99 })).toEqual({ body: OURS, dropped: [field] });
  });
});
