import { png } from '../../media/support/image-provider.ts';
import { wavFile } from '../../openai/audio/support/audio-files.ts';

/* The kinds of calls of models: how each is asked, how its vendor answers, and what the vendor's usage costs. */

type Json = Readonly<Record<string, unknown>>;
type Tokens = { readonly prompt: number; readonly completion: number };

export interface Kind {
  readonly name: string;
  /** It makes images, and has a block of its own kind. */
  readonly images?: true;
  /** Lines of its block. */
  readonly lines?: string;
  readonly pricing?: string;
  /** Tokens cost nothing. */
  readonly noTokens?: true;
  readonly params?: string;
  /** Path, and body or form, of a request to `model` with this text. */
  readonly ask: (model: string, text: string) => { readonly path: string; readonly body: object };
  readonly type: string;
  /** Members of a reply that report this usage. */
  readonly usage: (tokens: Tokens) => Json;
  readonly reply: (text: string, usage: Json) => string | Buffer;
  /** The beginning of a stream and its end; absent for a reply in one piece. */
  readonly begin?: (text: string) => string | Buffer;
  readonly end?: (usage: Json) => string | Buffer;
  /** The beginning of a stream that reports the usage before its answer; absent if its wire has none. */
  readonly counted?: (usage: Json) => string;
  /** The beginning is no output yet. */
  readonly beginsEmpty?: true;
  /** A reply that is too large; absent if its bytes are all answer. */
  readonly padded?: (padding: string, usage: Json, text?: string) => string;
  /** Micro-USD for the reported usage; null if it does not count, because the price is by another unit. */
  readonly worth: (tokens: Tokens) => number | null;
  /** An answer without usage is measured. Default: it is free, and flagged. */
  readonly measures?: true;
  /** A whole reply of which all was thinking; absent if its wire shows none. */
  readonly thinks?: (usage: Json) => string;
  /** It is answered before its call has ended. */
  readonly inBackground?: true;
  /** It says words, so a reply without any is the vendor's fault. */
  readonly words?: true;
}

const JSON_TYPE = 'application/json';
const STREAM = 'text/event-stream';
export const sse = (...events: readonly object[]) =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
export const typed = (...events: readonly { readonly type: string; readonly [member: string]: unknown }[]) =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
/** 1 USD for a million tokens in, 2 out. */
const tokens = ({ prompt, completion }: Tokens) => prompt + 2 * completion;
const prompts = ({ prompt }: Tokens) => prompt;

const chatUsage = ({ prompt, completion }: Tokens) => ({
  usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
});
export const inOut = ({ prompt, completion }: Tokens) => ({
  usage: { input_tokens: prompt, output_tokens: completion, total_tokens: prompt + completion },
});
const completion = (content: string, usage: Json) =>
  JSON.stringify({
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    ...usage,
  });
const chunk = (delta: object, finish: string | null) => ({
  id: 'x',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const chatPadded = (padding: string, usage: Json, content?: string) =>
  JSON.stringify({ ...(content === undefined ? {} : { choices: [{ message: { content } }] }), padding, ...usage });
const CHAT = {
  usage: chatUsage,
  reply: completion,
  padded: chatPadded,
  worth: tokens,
  type: JSON_TYPE,
  words: true,
} as const;

const THOUGHT = 'hm, let me see';
const chatThinks = (usage: Json) =>
  JSON.stringify({
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content: '', reasoning_content: THOUGHT }, finish_reason: 'length' },
    ],
    ...usage,
  });

const message = (text: string, usage: Json) =>
  JSON.stringify({
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: text === '' ? [] : [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    ...usage,
  });
export const response = (text: string, usage: Json) => ({
  id: 'r',
  object: 'response',
  status: 'completed',
  model: 'm',
  output:
    text === ''
      ? []
      : [
          {
            type: 'message',
            id: 'i',
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text, annotations: [] }],
          },
        ],
  ...usage,
});
export const content = (text: string) => ({
  candidates: [{ content: { role: 'model', parts: text === '' ? [] : [{ text }] }, finishReason: 'STOP', index: 0 }],
});
const padded = (before: Json) => (padding: string, usage: Json) => JSON.stringify({ ...before, padding, ...usage });

export const KINDS: readonly Kind[] = [
  {
    ...CHAT,
    name: 'chat',
    thinks: chatThinks,
    ask: (model, text) => ({
      path: '/api/v1/chat/completions',
      body: { model, max_tokens: 200, messages: [{ role: 'user', content: text }] },
    }),
  },
  {
    ...CHAT,
    name: 'chatstream',
    thinks: (usage) =>
      `${sse(chunk({ role: 'assistant', reasoning_content: THOUGHT }, 'length'), { ...chunk({}, null), choices: [], ...usage })}data: [DONE]\n\n`,
    type: STREAM,
    ask: (model, text) => ({
      path: '/api/v1/chat/completions',
      body: { model, max_tokens: 200, stream: true, messages: [{ role: 'user', content: text }] },
    }),
    begin: (text) => sse(chunk({ role: 'assistant', content: text }, null)),
    counted: (usage) => sse({ ...chunk({}, null), choices: [], ...usage }),
    end: (usage) => `${sse(chunk({}, 'stop'), { ...chunk({}, null), choices: [], ...usage })}data: [DONE]\n\n`,
    reply: (text, usage) =>
      `${sse(chunk({ role: 'assistant', content: text }, 'stop'), { ...chunk({}, null), choices: [], ...usage })}data: [DONE]\n\n`,
  },
  {
    ...CHAT,
    name: 'completions',
    ask: (model, text) => ({ path: '/api/v1/completions', body: { model, max_tokens: 200, prompt: text } }),
  },
  {
    name: 'messages',
    params: 'wires = ["messages"]',
    ask: (model, text) => ({
      path: '/api/v1/messages',
      body: { model, max_tokens: 200, messages: [{ role: 'user', content: text }] },
    }),
    type: JSON_TYPE,
    usage: inOut,
    reply: message,
    thinks: (usage) =>
      JSON.stringify({
        ...(JSON.parse(message('', usage)) as object),
        content: [{ type: 'thinking', thinking: THOUGHT, signature: 's' }],
        stop_reason: 'max_tokens',
      }),
    padded: (padding, usage, text) =>
      JSON.stringify({
        type: 'message',
        ...(text === undefined ? {} : { content: [{ type: 'text', text }] }),
        padding,
        ...usage,
      }),
    worth: tokens,
    words: true,
  },
  {
    name: 'messagestream',
    params: 'wires = ["messages"]',
    ask: (model, text) => ({
      path: '/api/v1/messages',
      body: { model, max_tokens: 200, stream: true, messages: [{ role: 'user', content: text }] },
    }),
    type: STREAM,
    usage: inOut,
    reply: (text, usage) =>
      typed(
        { type: 'message_start', message: JSON.parse(message('', {})) },
        ...(text === ''
          ? []
          : [
              { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
              { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
              { type: 'content_block_stop', index: 0 },
            ]),
        { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, ...usage },
        { type: 'message_stop' },
      ),
    begin: (text) =>
      typed(
        { type: 'message_start', message: JSON.parse(message('', {})) },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
      ),
    end: (usage) =>
      typed(
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, ...usage },
        { type: 'message_stop' },
      ),
    worth: tokens,
    words: true,
  },
  {
    name: 'responses',
    params: 'wires = ["responses"]',
    ask: (model, text) => ({
      path: '/api/v1/responses',
      body: { model, max_output_tokens: 200, input: text, store: false },
    }),
    type: JSON_TYPE,
    usage: inOut,
    reply: (text, usage) => JSON.stringify(response(text, usage)),
    thinks: (usage) =>
      JSON.stringify({
        ...response('', usage),
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        output: [{ type: 'reasoning', id: 'i', summary: [{ type: 'summary_text', text: THOUGHT }] }],
      }),
    padded: (padding, usage, text) =>
      JSON.stringify({
        id: 'r',
        ...(text === undefined ? {} : { output: [{ type: 'message', content: [{ type: 'output_text', text }] }] }),
        padding,
        ...usage,
      }),
    worth: tokens,
    words: true,
  },
  {
    name: 'gemini',
    params: 'wires = ["gemini"]',
    ask: (model, text) => ({
      path: `/v1beta/models/${model}:generateContent`,
      body: { contents: [{ role: 'user', parts: [{ text }] }], generationConfig: { maxOutputTokens: 200 } },
    }),
    type: JSON_TYPE,
    usage: ({ prompt, completion: said }) => ({
      usageMetadata: { promptTokenCount: prompt, candidatesTokenCount: said, totalTokenCount: prompt + said },
    }),
    reply: (text, usage) => JSON.stringify({ ...content(text), ...usage }),
    thinks: (usage) => {
      const parts = [{ text: THOUGHT, thought: true }];
      const candidates = [{ content: { role: 'model', parts }, finishReason: 'MAX_TOKENS', index: 0 }];
      return JSON.stringify({ candidates, ...usage });
    },
    padded: (padding, usage, text) =>
      JSON.stringify({ ...(text === undefined ? {} : content(text)), padding, ...usage }),
    worth: tokens,
    words: true,
  },
  {
    name: 'embeddings',
    lines: 'output_modalities = ["embeddings"]',
    ask: (model, text) => ({ path: '/api/v1/embeddings', body: { model, input: [text] } }),
    type: JSON_TYPE,
    usage: ({ prompt }) => ({ usage: { prompt_tokens: prompt, total_tokens: prompt } }),
    reply: (text, usage) =>
      JSON.stringify({
        object: 'list',
        data: text === '' ? [] : [{ object: 'embedding', index: 0, embedding: [0.5, 0.25] }],
        model: 'm',
        ...usage,
      }),
    worth: prompts,
    measures: true,
  },
  {
    name: 'rerank',
    lines: 'output_modalities = ["rerank"]',
    ask: (model, text) => ({ path: '/api/v1/rerank', body: { model, query: text, documents: ['one', 'two'] } }),
    type: JSON_TYPE,
    usage: ({ prompt }) => ({ usage: { total_tokens: prompt } }),
    reply: (_text, usage) =>
      JSON.stringify({
        results: [
          { index: 0, relevance_score: 0.9 },
          { index: 1, relevance_score: 0.1 },
        ],
        ...usage,
      }),
    padded: padded({ results: [] }),
    worth: prompts,
    measures: true,
  },
  {
    name: 'moderation',
    lines: 'output_modalities = ["moderation"]',
    ask: (model, text) => ({ path: '/api/v1/moderations', body: { model, input: text } }),
    type: JSON_TYPE,
    usage: ({ prompt }) => ({ usage: { total_tokens: prompt } }),
    reply: (_text, usage) =>
      JSON.stringify({ id: 'm', results: [{ flagged: false, categories: {}, category_scores: {} }], ...usage }),
    padded: padded({ results: [] }),
    worth: prompts,
    measures: true,
  },
  {
    name: 'speech',
    lines: 'output_modalities = ["speech"]',
    pricing: 'character = 10',
    noTokens: true,
    ask: (model, text) => ({
      path: '/api/v1/audio/speech',
      body: { model, input: text, voice: 'v', response_format: 'opus' },
    }),
    type: 'audio/opus',
    usage: () => ({}),
    reply: () => Buffer.alloc(900, 7),
    begin: () => Buffer.alloc(300, 7),
    end: () => Buffer.alloc(600, 7),
    worth: () => null,
    measures: true,
  },
  {
    name: 'transcription',
    lines: 'input_modalities = ["audio"]\noutput_modalities = ["transcription"]',
    pricing: 'per_minute = 0.06',
    noTokens: true,
    ask(model, text) {
      const form = new FormData();
      form.set('model', model);
      form.set('prompt', text);
      form.set('response_format', 'verbose_json');
      form.set('file', new Blob([new Uint8Array(wavFile(2))]), 'a.wav');
      return { path: '/api/v1/audio/transcriptions', body: form };
    },
    type: JSON_TYPE,
    usage: () => ({ usage: { type: 'duration', seconds: 2 } }),
    reply: (text, usage) => JSON.stringify({ text, ...usage }),
    padded: padded({ text: '' }),
    worth: () => 2_000,
    measures: true,
  },
  {
    name: 'image',
    images: true,
    ask: (model, text) => ({ path: '/api/v1/images/generations', body: { model, prompt: text } }),
    type: JSON_TYPE,
    usage: () => ({}),
    reply: () => JSON.stringify({ created: 1, data: [{ b64_json: png(64, 64).toString('base64') }] }),
    padded: padded({ data: [] }),
    worth: () => 40_000,
    measures: true,
  },
];
