import { sse, typed } from '../endings/kinds.ts';

/* Streams of each wire in pieces: a beginning, words of one token each, and an end with the usage. */

interface Tokens {
  readonly prompt: number;
  readonly completion: number;
}

export interface StreamedWire {
  readonly name: string;
  /** Lines of the block of its model. */
  readonly lines?: string;
  readonly pricing?: string;
  readonly params?: string;
  readonly noTokens?: true;
  readonly ask: (model: string) => { readonly path: string; readonly body: object };
  readonly type: string;
  readonly begin: string | Buffer;
  readonly word: string | Buffer;
  readonly end: (tokens: Tokens) => string | Buffer;
  /** The words that a client has got with this answer. */
  readonly wordsIn: (bytes: Buffer) => number;
}

/** Four bytes: one token. */
const WORD = 'abc ';
const TEXT = 'hello';
const STREAM = 'text/event-stream';
const wordsIn = (bytes: Buffer) => bytes.toString().split(WORD).length - 1;

const chunk = (choices: readonly object[], more: object = {}) =>
  sse({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more });
const CHAT = {
  type: STREAM,
  begin: chunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]),
  word: chunk([{ index: 0, delta: { content: WORD }, finish_reason: null }]),
  end: ({ prompt, completion }: Tokens) =>
    `${chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])}${chunk([], {
      usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
    })}data: [DONE]\n\n`,
  wordsIn,
} as const;

const delta = (text: string) => ({
  type: 'response.output_text.delta',
  item_id: 'i',
  output_index: 0,
  content_index: 0,
  delta: text,
});
const response = (status: string, more: object = {}) => ({
  id: 'r',
  object: 'response',
  status,
  model: 'm',
  output: [],
  ...more,
});
const content = (text: string, more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts: text === '' ? [] : [{ text }] }, index: 0, ...more }],
});

export const STREAMED_WIRES: readonly StreamedWire[] = [
  {
    ...CHAT,
    name: 'chat',
    ask: (model) => ({
      path: '/api/v1/chat/completions',
      body: { model, stream: true, max_tokens: 2_000, messages: [{ role: 'user', content: TEXT }] },
    }),
  },
  {
    ...CHAT,
    name: 'completions',
    ask: (model) => ({ path: '/api/v1/completions', body: { model, stream: true, max_tokens: 2_000, prompt: TEXT } }),
  },
  {
    name: 'messages',
    params: 'wires = ["messages"]',
    ask: (model) => ({
      path: '/api/v1/messages',
      body: { model, stream: true, max_tokens: 2_000, messages: [{ role: 'user', content: TEXT }] },
    }),
    type: STREAM,
    begin: typed(
      {
        type: 'message_start',
        message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ),
    word: typed({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: WORD } }),
    end: ({ prompt, completion }) =>
      typed(
        { type: 'content_block_stop', index: 0 },
        {
          type: 'message_delta',
          delta: { stop_reason: 'end_turn', stop_sequence: null },
          usage: { input_tokens: prompt, output_tokens: completion },
        },
        { type: 'message_stop' },
      ),
    wordsIn,
  },
  {
    name: 'responses',
    params: 'wires = ["responses"]',
    ask: (model) => ({
      path: '/api/v1/responses',
      body: { model, stream: true, max_output_tokens: 2_000, input: TEXT, store: false },
    }),
    type: STREAM,
    begin: typed({ type: 'response.created', response: response('in_progress') }),
    word: typed(delta(WORD)),
    end: ({ prompt, completion }) =>
      typed({
        type: 'response.completed',
        response: response('completed', {
          usage: { input_tokens: prompt, output_tokens: completion, total_tokens: prompt + completion },
        }),
      }),
    wordsIn,
  },
  {
    name: 'gemini',
    params: 'wires = ["gemini"]',
    ask: (model) => ({
      path: `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
      body: { contents: [{ role: 'user', parts: [{ text: TEXT }] }], generationConfig: { maxOutputTokens: 2_000 } },
    }),
    type: STREAM,
    begin: '',
    word: sse(content(WORD)),
    end: ({ prompt, completion }) =>
      sse({
        ...content('', { finishReason: 'STOP' }),
        usageMetadata: {
          promptTokenCount: prompt,
          candidatesTokenCount: completion,
          totalTokenCount: prompt + completion,
        },
      }),
    wordsIn,
  },
  {
    name: 'speech',
    lines: 'output_modalities = ["speech"]',
    noTokens: true,
    pricing: 'character = 10',
    ask: (model) => ({
      path: '/api/v1/audio/speech',
      body: { model, input: 'x'.repeat(100), voice: 'v', response_format: 'opus' },
    }),
    type: 'audio/opus',
    begin: Buffer.alloc(30, 7),
    word: Buffer.alloc(30, 7),
    end: () => Buffer.alloc(30, 7),
    wordsIn: (bytes) => Math.floor(bytes.length / 30),
  },
];
