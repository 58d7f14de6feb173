import { AUDIO, CLAUDE, GEMINI, GPT, LONG } from './vendor-models.ts';
import type { VendorReply } from './vendor-upstream.ts';

type Wire = 'chat' | 'messages' | 'responses';

/** A call, and how it is billed. Amounts are micro-USD. */
export interface Case {
  readonly wire: Wire;
  readonly model: string;
  /** Members of the request. */
  readonly asked?: object;
  /** Characters of the prompt. */
  readonly length?: number;
  readonly reply: VendorReply;
  readonly cost: number;
  /** The highest price of a prompt token and of a completion token, and what else is locked. */
  readonly locked: readonly [prompt: number, completion: number, more?: number];
  readonly usage: Readonly<Record<string, number>>;
  /** Members of the request as it reached the provider. */
  readonly reached?: object;
  /** Of the flag `usage_implausible`. Default: not flagged. */
  readonly claims?: readonly object[];
  readonly tier?: string | null;
}

/** Usage in the form of chat. */
const chat = (prompt: number, completion: number, more: object = {}) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  ...more,
});
/** Usage in the form of responses. */
const response = (input: number, output: number, more: object = {}) => ({
  input_tokens: input,
  output_tokens: output,
  total_tokens: input + output,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens_details: { reasoning_tokens: 0 },
  ...more,
});
const SEARCH = { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'x' } };
const OPEN = { ...SEARCH, action: { type: 'open_page', url: 'https://example.com' } };
const WEB = { type: 'web_search_20250305', name: 'web_search' };
const HOUR = { type: 'ephemeral', ttl: '1h' };
/** A part of a message with sound. */
export const SOUND = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };

/** Calls by their names. */
export const CASES: Readonly<Record<string, Case>> = {
  // Tiers by the length of the prompt: one token below, at, and above.
  'a prompt at its threshold': {
    wire: 'chat',
    model: GPT,
    length: 3_000,
    reply: { usage: chat(LONG, 9) },
    cost: LONG * 5 + 9 * 30,
    locked: [10, 45],
    usage: { prompt: LONG, completion: 9 },
  },
  'a prompt above its threshold': {
    wire: 'chat',
    model: GPT,
    length: 3_000,
    reply: { usage: chat(LONG + 1, 9) },
    cost: (LONG + 1) * 10 + 9 * 45,
    locked: [10, 45],
    usage: { prompt: LONG + 1, completion: 9 },
  },
  'a prompt above its threshold by what a cache had': {
    wire: 'responses',
    model: GPT,
    length: 3_000,
    reply: { usage: response(LONG + 1, 9, { input_tokens_details: { cached_tokens: 1_900 } }) },
    cost: Math.ceil(101 * 10 + 1_900 * 1 + 9 * 45),
    locked: [10, 45],
    usage: { prompt: 101, completion: 9, input_cache_read: 1_900, input_cache_write: 0 },
  },
  'a prompt that cannot reach the threshold locks the lower price': {
    wire: 'chat',
    model: GPT,
    length: 100,
    reply: { usage: chat(60, 9) },
    cost: 60 * 5 + 9 * 30,
    locked: [5, 30],
    usage: { prompt: 60, completion: 9 },
  },
  'a claim beyond the prompt is cut before its tier is chosen': {
    wire: 'chat',
    model: GPT,
    length: 100,
    reply: { usage: chat(90_000, 9) },
    cost: (100 + 4 + 16 + 64) * 5 + 9 * 30,
    locked: [5, 30],
    usage: { prompt: 184, completion: 9 },
    claims: [{ meter: 'prompt', claimed: 90_000, most: 184 }],
  },
  // Service tiers: the claim below, at and above what was asked.
  ...Object.fromEntries(
    (
      [
        // asked, claimed, the prices that are charged, those that are locked
        [undefined, undefined, [5, 30], [5, 30]],
        [undefined, 'default', [5, 30], [5, 30]],
        [undefined, 'flex', [2.5, 15], [5, 30]],
        [undefined, 'priority', [5, 30], [5, 30]],
        [undefined, 'batch', [2.5, 15], [5, 30]],
        ['flex', 'flex', [2.5, 15], [2.5, 15]],
        ['flex', 'default', [2.5, 15], [2.5, 15]],
        ['flex', 'priority', [2.5, 15], [2.5, 15]],
        ['flex', undefined, [2.5, 15], [2.5, 15]],
        ['priority', 'priority', [12.5, 75], [12.5, 75]],
        ['priority', 'default', [5, 30], [12.5, 75]],
        ['priority', 'flex', [2.5, 15], [12.5, 75]],
        ['priority', undefined, [5, 30], [12.5, 75]],
        ['priority', 'what is that', [5, 30], [12.5, 75]],
        ['default', 'priority', [5, 30], [5, 30]],
        ['auto', 'priority', [5, 30], [5, 30]],
        ['unheard-of', 'priority', [5, 30], [5, 30]],
      ] as const
    ).flatMap(([asked, claimed, [prompt, completion], locked]) =>
      (['chat', 'responses'] as const).map((wire): [string, Case] => [
        `${wire}: asked for ${asked}, served ${claimed}`,
        {
          wire,
          model: GPT,
          length: 100,
          asked: asked === undefined ? {} : { service_tier: asked },
          reply: { usage: wire === 'chat' ? chat(60, 10) : response(60, 10), tier: claimed },
          cost: 60 * prompt + 10 * completion,
          locked,
          usage: { prompt: 60, completion: 10 },
          reached: { service_tier: asked === 'unheard-of' ? undefined : asked },
          tier: claimed ?? null,
        },
      ]),
    ),
  ),
  'flex with a long prompt': {
    wire: 'chat',
    model: GPT,
    length: 3_000,
    asked: { service_tier: 'flex' },
    reply: { usage: chat(2_500, 10), tier: 'flex' },
    cost: 2_500 * 5 + 225,
    locked: [5, 22.5],
    usage: { prompt: 2_500, completion: 10 },
    tier: 'flex',
  },
  'a tier that the Messages API names in its usage': {
    wire: 'messages',
    model: CLAUDE,
    length: 100,
    reply: { usage: { input_tokens: 60, output_tokens: 9 }, tier: 'standard' },
    cost: 60 * 3 + 9 * 15,
    locked: [3.75, 15],
    usage: { prompt: 60, completion: 9 },
    tier: 'standard',
  },
  // Caches of five minutes and of an hour.
  'writes to a cache for an hour and for five minutes': {
    wire: 'messages',
    model: CLAUDE,
    length: 1_500,
    asked: { system: [{ type: 'text', text: 'Be brief', cache_control: HOUR }] },
    reply: {
      usage: {
        input_tokens: 100,
        cache_read_input_tokens: 800,
        cache_creation_input_tokens: 300,
        cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 100 },
        output_tokens: 9,
      },
    },
    cost: 300 + 240 + 750 + 600 + 135,
    locked: [6, 15],
    usage: { prompt: 100, completion: 9, input_cache_read: 800, input_cache_write: 200, input_cache_write_1h: 100 },
    reached: { system: [{ type: 'text', text: 'Be brief', cache_control: HOUR }] },
  },
  'writes for an hour above the threshold': {
    wire: 'messages',
    model: CLAUDE,
    length: 3_000,
    asked: { cache_control: HOUR },
    reply: {
      usage: {
        input_tokens: 1,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: 2_000,
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 2_000 },
        output_tokens: 10,
      },
    },
    cost: 6 + 24_000 + 225,
    locked: [12, 22.5],
    usage: { prompt: 1, completion: 10, input_cache_read: 0, input_cache_write: 0, input_cache_write_1h: 2_000 },
  },
  'writes for an hour that nobody asked for cost those of five minutes': {
    wire: 'messages',
    model: CLAUDE,
    length: 1_000,
    asked: { cache_control: { type: 'ephemeral' } },
    reply: {
      usage: {
        input_tokens: 100,
        cache_creation_input_tokens: 300,
        cache_creation: { ephemeral_1h_input_tokens: 300 },
        output_tokens: 1,
      },
    },
    cost: 300 + 1_125 + 15,
    locked: [3.75, 15],
    usage: { prompt: 100, completion: 1, input_cache_read: 0, input_cache_write: 300 },
  },
  'more written for an hour than written at all': {
    wire: 'messages',
    model: CLAUDE,
    length: 1_000,
    asked: { cache_control: HOUR },
    reply: {
      usage: {
        input_tokens: 100,
        cache_creation_input_tokens: 300,
        cache_creation: { ephemeral_1h_input_tokens: 9_000 },
        output_tokens: 1,
      },
    },
    cost: 300 + 1_800 + 15,
    locked: [6, 15],
    usage: { prompt: 100, completion: 1, input_cache_read: 0, input_cache_write: 0, input_cache_write_1h: 300 },
  },
  // Searches.
  'searches within the limit of the request': {
    wire: 'messages',
    model: CLAUDE,
    length: 100,
    asked: { tools: [{ ...WEB, max_uses: 3 }] },
    reply: { usage: { input_tokens: 60, output_tokens: 9, server_tool_use: { web_search_requests: 2 } } },
    cost: 180 + 135 + 20_000,
    locked: [-1, 22.5, 30_000],
    usage: { prompt: 60, completion: 9, web_search: 2 },
    reached: { tools: [{ ...WEB, max_uses: 3 }] },
  },
  'searches beyond the limit of the request': {
    wire: 'messages',
    model: CLAUDE,
    length: 100,
    asked: { tools: [{ ...WEB, max_uses: 3 }] },
    reply: { usage: { input_tokens: 60, output_tokens: 9, server_tool_use: { web_search_requests: 30 } } },
    cost: 180 + 135 + 30_000,
    locked: [-1, 22.5, 30_000],
    usage: { prompt: 60, completion: 9, web_search: 3 },
    claims: [{ meter: 'web_search', claimed: 30, most: 3 }],
  },
  'searches without a limit get that of the model': {
    wire: 'messages',
    model: CLAUDE,
    length: 100,
    asked: { tools: [WEB] },
    reply: { usage: { input_tokens: 60, output_tokens: 9, server_tool_use: { web_search_requests: 1 } } },
    cost: 180 + 135 + 10_000,
    locked: [-1, 22.5, 40_000],
    usage: { prompt: 60, completion: 9, web_search: 1 },
    reached: { tools: [{ ...WEB, max_uses: 4 }] },
  },
  'searches that nobody asked for': {
    wire: 'messages',
    model: CLAUDE,
    length: 100,
    reply: { usage: { input_tokens: 60, output_tokens: 9, server_tool_use: { web_search_requests: 1 } } },
    cost: 180 + 135,
    locked: [3.75, 15],
    usage: { prompt: 60, completion: 9 },
    claims: [{ meter: 'web_search', claimed: 1, most: 0 }],
  },
  'searches of the Responses API, of which opening a page is none': {
    wire: 'responses',
    model: GPT,
    length: 100,
    asked: { tools: [{ type: 'web_search' }] },
    reply: { usage: response(60, 9), items: [SEARCH, OPEN, SEARCH] },
    cost: 300 + 270 + 20_000,
    locked: [-1, 45, 100_000],
    usage: { prompt: 60, completion: 9, web_search: 2 },
    reached: { max_tool_calls: 10 },
  },
  'a limit of the Responses API': {
    wire: 'responses',
    model: GPT,
    length: 100,
    asked: { tools: [{ type: 'web_search' }], max_tool_calls: 2 },
    reply: { usage: response(60, 9), items: [SEARCH] },
    cost: 300 + 270 + 10_000,
    locked: [-1, 45, 20_000],
    usage: { prompt: 60, completion: 9, web_search: 1 },
    reached: { max_tool_calls: 2 },
  },
  'a search of chat that is not counted is one': {
    wire: 'chat',
    model: GEMINI,
    length: 100,
    asked: { web_search_options: {} },
    reply: { usage: chat(60, 9) },
    cost: 75 + 90 + 14_000,
    locked: [1.25, 30, 14_000],
    usage: { prompt: 60, completion: 9, web_search: 1 },
    reached: { web_search_options: {} },
  },
  'a search of chat that is counted': {
    wire: 'chat',
    model: GEMINI,
    length: 100,
    asked: { web_search_options: {} },
    reply: { usage: chat(60, 9, { server_tool_use: { web_search_requests: 0 } }) },
    cost: 75 + 90,
    locked: [1.25, 30, 14_000],
    usage: { prompt: 60, completion: 9 },
  },
  // Reasoning inside the completion (OpenAI), and beside it (Google).
  'reasoning inside the completion': {
    wire: 'chat',
    model: GEMINI,
    length: 100,
    reply: { usage: chat(60, 40, { completion_tokens_details: { reasoning_tokens: 30 } }) },
    cost: 75 + 100 + 360,
    locked: [1.25, 30],
    usage: { prompt: 60, completion: 10, internal_reasoning: 30 },
  },
  'reasoning beside the completion': {
    wire: 'chat',
    model: GEMINI,
    length: 100,
    reply: {
      usage: { ...chat(60, 10), total_tokens: 100, completion_tokens_details: { reasoning_tokens: 30 } },
    },
    cost: 75 + 100 + 360,
    locked: [1.25, 30],
    usage: { prompt: 60, completion: 10, internal_reasoning: 30 },
  },
  'pictures in an answer': {
    wire: 'chat',
    model: GEMINI,
    length: 100,
    reply: { usage: chat(60, 45, { completion_tokens_details: { image_tokens: 36, reasoning_tokens: 5 } }) },
    cost: 75 + 40 + 60 + 1_080,
    locked: [1.25, 30],
    usage: { prompt: 60, completion: 4, internal_reasoning: 5, image_output: 36 },
  },
  'parts that are more than the whole': {
    wire: 'chat',
    model: GEMINI,
    length: 100,
    reply: { usage: chat(60, 50, { completion_tokens_details: { image_tokens: 40, reasoning_tokens: 45 } }) },
    cost: 75 + 120 + 1_200,
    locked: [1.25, 30],
    usage: { prompt: 60, completion: 0, internal_reasoning: 10, image_output: 40 },
  },
  // Sound.
  'sound inside the prompt and the completion': {
    wire: 'chat',
    model: AUDIO,
    length: 100,
    asked: { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' }, sound: true },
    reply: {
      usage: chat(80, 40, {
        prompt_tokens_details: { audio_tokens: 20, cached_tokens: 0 },
        completion_tokens_details: { audio_tokens: 30 },
      }),
    },
    cost: 240 + 640 + 160 + 1_920,
    locked: [-1, 64],
    usage: { prompt: 60, completion: 10, audio: 20, audio_output: 30 },
  },
  'cached sound': {
    wire: 'chat',
    model: AUDIO,
    length: 100,
    asked: { sound: true },
    reply: {
      usage: chat(80, 10, {
        prompt_tokens_details: {
          audio_tokens: 40,
          cached_tokens: 50,
          cached_tokens_details: { text_tokens: 20, audio_tokens: 30 },
        },
      }),
    },
    cost: Math.ceil(20 * 4 + 20 * 0.4 + 10 * 32 + 30 * 0.8 + 160),
    locked: [-1, 16],
    usage: { prompt: 20, completion: 10, input_cache_read: 20, input_cache_write: 0, audio: 10, input_audio_cache: 30 },
  },
  'cached sound that is not told apart: text was cached first': {
    wire: 'chat',
    model: AUDIO,
    length: 100,
    asked: { sound: true },
    reply: { usage: chat(80, 10, { prompt_tokens_details: { audio_tokens: 40, cached_tokens: 50 } }) },
    cost: Math.ceil(40 * 0.4 + 30 * 32 + 10 * 0.8 + 160),
    locked: [-1, 16],
    usage: { prompt: 0, completion: 10, input_cache_read: 40, input_cache_write: 0, audio: 30, input_audio_cache: 10 },
  },
  'sound that nobody sent or asked for is text': {
    wire: 'chat',
    model: AUDIO,
    length: 100,
    reply: {
      usage: chat(80, 40, {
        prompt_tokens_details: { audio_tokens: 20 },
        completion_tokens_details: { audio_tokens: 30 },
      }),
    },
    cost: 320 + 640,
    locked: [4, 16],
    usage: { prompt: 80, completion: 40 },
  },
};
