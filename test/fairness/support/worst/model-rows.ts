import { UNHURRIED } from '../../../support/spine.ts';
import type { Row, Usual } from './world.ts';

/* Replies of models, at every route that is billed. */

const MIB = 1024 * 1024;

const usage = '"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}';
const CHAT = { messages: [{ role: 'user', content: 'x' }], max_tokens: 5 };
const sse = (...events: string[]): string => events.map((event) => `data: ${event}\n\n`).join('');
const chunk = (more: string) =>
  `{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],${usage},"junk":${more}}`;

interface Kind {
  readonly bound: Row['bound'];
  readonly bytesMax?: number;
  readonly isText?: boolean;
  /** The end of the provider's path, by which it knows what to answer. */
  readonly at: string;
  readonly model: string;
  readonly wires?: string;
  readonly path: string;
  readonly body: object;
  readonly reply: (junk: string) => string;
}

const GEMINI = { contents: [{ role: 'user', parts: [{ text: 'x' }] }] };
const MESSAGES = { model: 'm/messages', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] };
const RESPONSES = { model: 'm/responses', max_output_tokens: 5, input: 'x', store: false };
const completion = (junk: string, text = '"x"') =>
  `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":${text}},"finish_reason":"stop"}],${usage},"junk":${junk}}`;
const message = (junk: string, text = '"x"') =>
  `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":${text}}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1},"junk":${junk}}`;
const generated = (junk: string, text = '"x"') =>
  `{"candidates":[{"content":{"parts":[{"text":${text}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1},"junk":${junk}}`;
const responded = (junk: string) =>
  `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2},"junk":${junk}}`;
const embedded = (junk: string) =>
  `{"object":"list","data":[{"index":0,"embedding":[0.1]}],"junk":${junk},"usage":{"prompt_tokens":1,"total_tokens":1}}`;
const chat = (path: string, body: object, model = 'text'): Kind => ({
  bound: 'largeReply',
  at: '/chat/completions',
  model,
  path,
  body: { ...CHAT, ...body },
  reply: completion,
});

/** What is asked, and answered with worst JSON beside what is right. */
const KINDS: Readonly<Record<string, Kind>> = {
  chat: chat('/api/v1/chat/completions', { model: 'm/text' }),
  'chat, small': { ...chat('/api/v1/chat/completions', { model: 'm/text' }), bound: 'reply', bytesMax: MIB / 16 },
  'chat stream': {
    ...chat('/api/v1/chat/completions', { model: 'm/text', stream: true }),
    bound: 'chatEvent',
    bytesMax: MIB,
    reply: (junk) => sse(chunk(junk), '[DONE]'),
  },
  completions: chat('/api/v1/completions', { model: 'm/text', prompt: 'x', messages: undefined }),
  'messages, translated': chat('/api/v1/messages', { ...MESSAGES, model: 'm/text' }),
  'responses, translated': chat('/api/v1/responses', { ...RESPONSES, model: 'm/text', messages: undefined }),
  messages: {
    bound: 'largeReply',
    at: '/messages',
    model: 'messages',
    wires: 'messages',
    path: '/api/v1/messages',
    body: MESSAGES,
    reply: message,
  },
  'messages stream': {
    bound: 'nativeEvent',
    at: '/messages',
    model: 'messages',
    wires: 'messages',
    path: '/api/v1/messages',
    body: { ...MESSAGES, stream: true },
    reply: (junk) => sse(`{"type":"message_start","message":${message(junk)}}`),
  },
  responses: {
    bound: 'largeReply',
    at: '/responses',
    model: 'responses',
    wires: 'responses',
    path: '/api/v1/responses',
    body: RESPONSES,
    reply: responded,
  },
  'responses stream': {
    bound: 'nativeEvent',
    at: '/responses',
    model: 'responses',
    wires: 'responses',
    path: '/api/v1/responses',
    body: { ...RESPONSES, stream: true },
    reply: (junk) => sse(`{"type":"response.completed","response":${responded(junk)}}`),
  },
  gemini: {
    bound: 'largeReply',
    at: 'generateContent',
    model: 'gemini',
    wires: 'gemini',
    path: '/api/v1beta/models/m/gemini:generateContent',
    body: GEMINI,
    reply: generated,
  },
  'gemini stream': {
    bound: 'nativeEvent',
    at: 'streamGenerateContent',
    model: 'gemini',
    wires: 'gemini',
    path: '/api/v1beta/models/m/gemini:streamGenerateContent?alt=sse',
    body: GEMINI,
    reply: (junk) => sse(generated(junk)),
  },
  embeddings: {
    bound: 'embeddings',
    at: '/embeddings',
    model: 'embeddings',
    path: '/api/v1/embeddings',
    body: { model: 'm/embeddings', input: 'x' },
    reply: embedded,
  },
  'embeddings for Gemini': {
    bound: 'embeddingsForGemini',
    at: '/embeddings',
    model: 'embeddings',
    path: '/api/v1beta/models/m/embeddings:embedContent',
    body: { content: { parts: [{ text: 'x' }] } },
    reply: embedded,
  },
  rerank: {
    bound: 'rerank',
    at: '/rerank',
    model: 'rerank',
    path: '/api/v1/rerank',
    body: { model: 'm/rerank', query: 'q', documents: ['a'] },
    reply: (junk) => `{"results":[{"index":0,"relevance_score":1}],"junk":${junk}}`,
  },
  moderations: {
    bound: 'moderation',
    at: '/moderations',
    model: 'moderation',
    path: '/api/v1/moderations',
    body: { model: 'm/moderation', input: 'x' },
    reply: (junk) => `{"results":[{"flagged":false}],"junk":${junk}}`,
  },
  speech: {
    bound: 'speechEvent',
    at: '/audio/speech',
    model: 'speech',
    path: '/api/v1/audio/speech',
    body: { model: 'm/speech', voice: 'v', input: 'x', stream_format: 'sse' },
    reply: (junk) => sse(`{"type":"x","junk":${junk}}`, '{"type":"speech.audio.delta","audio":"AAAA"}'),
  },
};

/** The same in the text of the answer. */
const IN_TEXTS: Readonly<Record<string, Kind>> = Object.fromEntries(
  Object.entries({
    chat: (text) => completion('0', text),
    'chat stream': (text) =>
      sse(
        chunk('0').replace('"a"', () => text),
        '[DONE]',
      ),
    completions: (text) => completion('0', text),
    'messages, translated': (text) => completion('0', text),
    'responses, translated': (text) => completion('0', text),
    messages: (text) => message('0', text),
    'messages stream': (text) =>
      sse(
        `{"type":"message_start","message":${message('0')}}`,
        `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":${text}}}`,
      ),
    gemini: (text) => generated('0', text),
    'gemini stream': (text) => sse(generated('0', text)),
  } satisfies Record<string, Kind['reply']>).map(([name, reply]) => [
    `${name}, in its text`,
    { ...KINDS[name]!, isText: true, reply: (junk: string) => reply(junk === '0' ? '"x"' : junk) },
  ]),
);

/** The routes that are asked. */
export const MODEL_PATHS: readonly string[] = Object.values(KINDS).map(({ path }) => path);

const typeOf = (body: string) => (body.startsWith('data:') ? 'text/event-stream' : 'application/json');

export const MODEL_ROWS: Readonly<Record<string, Row>> = Object.fromEntries(
  Object.entries({ ...KINDS, ...IN_TEXTS }).map(
    ([name, { bound, bytesMax, isText = false, at, path, body, reply }]): [string, Row] => [
      name,
      {
        bound,
        isText,
        ...(bytesMax === undefined ? {} : { bytesMax }),
        act: (world) => world.ask(path, body),
        answer(asked, junk) {
          if (!asked.path.replace(/\?.*/, '').endsWith(at)) return null;
          const text = reply(junk);
          return { type: typeOf(text), body: text };
        },
      },
    ],
  ),
);

export const modelToml = (url: string): string => {
  const models = new Map(Object.values(KINDS).map((kind) => [kind.model, kind]));
  return [...models]
    .map(
      ([model, { wires }]) => `
[[models]]
name = "m/${model}"
provider_name = "Of ${model}"
context_length = 8000
output_modalities = ["${wires === undefined ? model : 'text'}"]
pricing = { prompt = 0, completion = 0 }
[models.params]
model = "m"
api_base = "${url}/v1"
api_key = "std::env::TEST_UPSTREAM_KEY"
${wires === undefined ? '' : `wires = ["${wires}"]`}
`,
    )
    .reduce((toml, block) => toml + block, `${UNHURRIED}[upstream]\ncooldown_ms = 1\n`);
};

export const modelUsual: Usual = () => ({ status: 404, body: '{}' });
