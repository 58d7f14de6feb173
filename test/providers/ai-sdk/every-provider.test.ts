import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { events } from '../../support/spine.ts';
import { CALL, EMBEDDED, KINDS, SIGNATURE, TEXT, THOUGHT, TOKENS, VECTOR, type Kind } from './support/scene.ts';
import { PICTURE } from './support/picture.ts';
import { type SdkWorld, startSdkWorld } from './support/sdk-world.ts';
import { VENDORS, type Vendor } from './support/vendors.ts';

// Each package of the AI SDK against its vendor's wire: what arrives at the vendor, what the client gets, and the cost.

let world: SdkWorld;
beforeAll(async () => {
  world = await startSdkWorld(VENDORS);
});
afterAll(() => world.stop());

/** The prompts are as long as the tokens that their vendors claim, since a token has at least a byte. */
const LONG = ' Tell me about the weather of the world, please.'.repeat(3);
const PIXEL = PICTURE.toString('base64');
const TOOL = {
  type: 'function',
  function: {
    name: CALL.name,
    description: 'The weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};
const MESSAGES: Readonly<Partial<Record<Kind, readonly object[]>>> = {
  images: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'kind=images' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
      ],
    },
  ],
  tools: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'kind=tools' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_0', type: 'function', function: { name: CALL.name, arguments: '{"city":"Rome"}' } }],
    },
    { role: 'tool', tool_call_id: 'call_0', content: 'sunny-in-rome' },
    { role: 'user', content: 'And in Paris?' },
  ],
};

const chat = ({ name }: Vendor, kind: Kind, stream: boolean) => ({
  model: `${name}/chat`,
  messages: MESSAGES[kind] ?? [{ role: 'user', content: `kind=${kind}${LONG}` }],
  max_tokens: 1000,
  ...(stream ? { stream } : {}),
  ...(kind === 'tools' ? { tools: [TOOL], tool_choice: 'auto' } : {}),
  ...(kind === 'reasoning' ? { reasoning_effort: 'high' } : {}),
});

/** Micro-USD of a chat call: 2 for a token of the prompt, 0.5 from the cache, 4 into it, 10 for one of the answer. */
function costOf({ says }: Vendor): number {
  // 60 and 40 tokens, or 50, 40 and 10, or 100; and 20.
  if (says.includes('written')) return 50 * 2 + 20 + 40 + 200;
  return says.includes('cached') ? 60 * 2 + 20 + 200 : 100 * 2 + 200;
}

interface Said {
  content: string;
  reasoning: string;
  calls: { id: string; name: string; arguments: string }[];
  details: Record<string, unknown>[];
  finish: unknown;
  usage: Record<string, unknown>;
}

/** The whole answer of a stream, joined as clients join it. */
function joined(text: string): Said {
  const said: Said = { content: '', reasoning: '', calls: [], details: [], finish: null, usage: {} };
  for (const event of events(text)) {
    if (event === '[DONE]') break;
    const { choices, usage } = event as { choices: Record<string, unknown>[]; usage?: Record<string, unknown> };
    const { delta, finish_reason: finish } = choices[0] as { delta: Record<string, unknown>; finish_reason: unknown };
    said.content += (delta['content'] as string | undefined) ?? '';
    said.reasoning += (delta['reasoning'] as string | undefined) ?? '';
    said.details.push(...((delta['reasoning_details'] as Record<string, unknown>[] | undefined) ?? []));
    for (const call of (delta['tool_calls'] as Record<string, never>[] | undefined) ?? []) {
      const {
        index,
        id,
        function: fn,
      } = call as never as {
        index: number;
        id?: string;
        function?: { name?: string; arguments?: string };
      };
      const known = (said.calls[index] ??= { id: '', name: '', arguments: '' });
      known.id += id ?? '';
      known.name += fn?.name ?? '';
      known.arguments += fn?.arguments ?? '';
    }
    said.finish = finish ?? said.finish;
    if (usage) said.usage = usage;
  }
  return said;
}

function whole(body: Record<string, unknown>): Said {
  const { message, finish_reason: finish } = (body['choices'] as Record<string, never>[])[0]! as never as {
    message: Record<string, unknown>;
    finish_reason: unknown;
  };
  const calls = (message['tool_calls'] as { id: string; function: { name: string; arguments: string } }[]) ?? [];
  return {
    content: (message['content'] as string | null) ?? '',
    reasoning: (message['reasoning'] as string | undefined) ?? '',
    calls: calls.map(({ id, function: fn }) => ({ id, ...fn })),
    details: (message['reasoning_details'] as Record<string, unknown>[] | undefined) ?? [],
    finish,
    usage: body['usage'] as Record<string, unknown>,
  };
}

const CHAT_KINDS = KINDS.filter((kind) => kind !== 'embeddings' && kind !== 'paint');

describe.each(VENDORS.filter(({ models }) => models.chat !== null))('@ai-sdk/$name', (vendor) => {
  const { name, says } = vendor;

  test.each(
    CHAT_KINDS.flatMap((kind) => [
      [kind, kind === 'stream'] as const,
      ...(kind === 'tools' || kind === 'reasoning' ? [[kind, true] as const] : []),
    ]),
  )('%s, streamed: %s', async (kind, stream) => {
    const { spine, vendors } = world;
    const { asked } = vendors.get(name)!;
    const before = asked.length;
    const response = await spine.post('/chat/completions', chat(vendor, kind, stream));
    const text = await response.text();
    expect(response.status, text).toBe(200);
    const said = stream ? joined(text) : whole(JSON.parse(text) as Record<string, unknown>);

    expect(said.content).toBe(kind === 'tools' ? '' : TEXT.join(''));
    expect(said.reasoning).toBe(kind === 'reasoning' ? THOUGHT : '');
    expect(said.finish).toBe(kind === 'tools' ? 'tool_calls' : 'stop');
    if (kind === 'tools') {
      expect(said.calls).toHaveLength(1);
      expect([said.calls[0]!.name, JSON.parse(said.calls[0]!.arguments)]).toEqual([CALL.name, CALL.input]);
    }
    if (kind === 'reasoning' && vendor.signs) expect(JSON.stringify(said.details)).toContain(SIGNATURE);

    expect(said.usage).toMatchObject({
      prompt_tokens: TOKENS.prompt,
      completion_tokens: TOKENS.completion,
      prompt_tokens_details: {
        cached_tokens: says.includes('cached') ? TOKENS.cached : 0,
        cache_write_tokens: says.includes('written') ? TOKENS.written : 0,
      },
      completion_tokens_details: { reasoning_tokens: says.includes('reasoning') ? TOKENS.reasoning : 0 },
      cost: costOf(vendor) / 1e6,
    });
    const record = await spine.generation(response.headers.get('x-generation-id'));
    expect(record).toMatchObject({
      cost_micro_usdc: costOf(vendor),
      tokens_prompt: TOKENS.prompt,
      tokens_completion: TOKENS.completion,
      flags: [],
      estimated: false,
    });

    expect(asked).toHaveLength(before + 1);
    const sent = asked.at(-1)!;
    expect(vendor.key(sent.headers)).toBe(true);
    if (kind === 'images') expect(sent.text).toContain(PIXEL);
    if (kind === 'tools') {
      for (const word of ['sunny-in-rome', 'Rome', 'Be brief.', 'The weather of a city', CALL.name])
        expect(sent.text).toContain(word);
    }
  });
});

describe.each(VENDORS.filter(({ models }) => models.embed !== null))('@ai-sdk/$name', (vendor) => {
  const { name } = vendor;

  test('embeddings', async () => {
    const input = ['two words', 'some more words'];
    const response = await world.spine.post('/embeddings', {
      model: `${name}/embed`,
      input: name === 'amazon-bedrock' ? input[0] : input,
    });
    const body = (await response.json()) as { data: { embedding: number[] }[]; usage: Record<string, unknown> };
    expect(response.status, JSON.stringify(body)).toBe(200);
    expect(body.data.map(({ embedding }) => embedding)).toEqual(
      name === 'amazon-bedrock' ? [[...VECTOR]] : [[...VECTOR], [...VECTOR]],
    );
    // Without a count of the vendor, one token for each four bytes: 9 and 15 bytes.
    const tokens = vendor.countsNoInputs ? (9 + 15) / 4 : EMBEDDED;
    expect(body.usage).toMatchObject({ prompt_tokens: tokens, cost: (tokens * 2) / 1e6 });
    const record = await world.spine.generation(response.headers.get('x-generation-id'));
    expect(record).toMatchObject({ cost_micro_usdc: tokens * 2 });
    expect(vendor.key(world.vendors.get(name)!.asked.at(-1)!.headers)).toBe(true);
  });
});

describe.each(VENDORS.filter(({ models }) => models.rerank !== undefined))('@ai-sdk/$name', (vendor) => {
  const { name, models } = vendor;
  const { usage, sent } = models.rerank!;

  test('reranking', async () => {
    const documents = Array.from({ length: 2 }, () => 'x'.repeat(30_000));
    const response = await world.spine.post('/rerank', {
      model: `${name}/rerank`,
      query: 'which',
      documents,
      max_tokens_per_doc: 100_000,
      return_documents: false,
    });
    const body = (await response.json()) as { results: object[]; usage: object };
    expect(response.status, JSON.stringify(body)).toBe(200);
    expect(body.results).toEqual([
      { index: 1, relevance_score: 0.9 },
      { index: 0, relevance_score: 0.1 },
    ]);
    expect(body.usage).toMatchObject(usage);
    const { cost } = usage as { cost: number };
    const record = await world.spine.generation(response.headers.get('x-generation-id'));
    expect(record).toMatchObject({ cost_micro_usdc: cost * 1e6, flags: [] });
    const asked = world.vendors.get(name)!.asked.at(-1)!;
    expect(asked.body).toMatchObject(sent(documents));
    expect(vendor.key(asked.headers)).toBe(true);
  });
});

describe.each(VENDORS.filter(({ models }) => models.paint !== null))('@ai-sdk/$name', ({ name, key }) => {
  test('an image', async () => {
    const { asked } = world.vendors.get(name)!;
    const before = asked.length;
    const response = await world.spine.post('/image/generate', {
      model: `${name}/paint`,
      prompt: 'kind=paint',
      size: '64x64',
    });
    const text = await response.text();
    expect(response.status, text).toBe(200);
    expect(text).toContain(PIXEL);
    const record = await world.spine.generation(response.headers.get('x-generation-id'));
    expect(record).toMatchObject({ cost_micro_usdc: 40_000, flags: [] });
    expect(asked[before]!.text).toContain('kind=paint');
    expect(key(asked[before]!.headers)).toBe(true);
  });
});

test('the books balance', async () => {
  expect(await world.spine.faults()).toEqual([]);
});
