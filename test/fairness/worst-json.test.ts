import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BILLED_PATHS } from '../peers/routes.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { stallsAt, watchedAt } from '../support/loop-stalls.ts';
import { BEYOND } from './support/worst/shapes.ts';
import { TURN_MS } from './support/worst/world.ts';

/* 8 MiB of the worst JSON from a provider, at every route that is billed: no turn of the event loop is long. */

const TRIES = 3;

const usage = '"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}';
const CHAT = { messages: [{ role: 'user', content: 'x' }], max_tokens: 5 };
const sse = (...events: string[]): string => events.map((event) => `data: ${event}\n\n`).join('');
const chunk = (more: string) =>
  `{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],${usage},"junk":${more}}`;

interface Kind {
  /** The path of the provider, by which it knows what to answer. */
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
const completion = (junk: string) =>
  `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],${usage},"junk":${junk}}`;
const message = (junk: string) =>
  `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1},"junk":${junk}}`;
const generated = (junk: string) =>
  `{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1},"junk":${junk}}`;
const embedded = (junk: string) =>
  `{"object":"list","data":[{"index":0,"embedding":[0.1]}],"junk":${junk},"usage":{"prompt_tokens":1,"total_tokens":1}}`;
const chat = (path: string, body: object, model = 'text'): Kind => ({
  at: '/chat/completions',
  model,
  path,
  body: { ...CHAT, ...body },
  reply: completion,
});

/** What is asked, and answered with worst JSON beside what is right. */
const KINDS: Readonly<Record<string, Kind>> = {
  chat: chat('/api/v1/chat/completions', { model: 'm/text' }),
  'chat stream': {
    ...chat('/api/v1/chat/completions', { model: 'm/text', stream: true }),
    reply: (junk) => sse(chunk(junk), '[DONE]'),
  },
  completions: chat('/api/v1/completions', { model: 'm/text', prompt: 'x', messages: undefined }),
  'messages, translated': chat('/api/v1/messages', { ...MESSAGES, model: 'm/text' }),
  'responses, translated': chat('/api/v1/responses', { ...RESPONSES, model: 'm/text', messages: undefined }),
  messages: {
    at: '/messages',
    model: 'messages',
    wires: 'messages',
    path: '/api/v1/messages',
    body: MESSAGES,
    reply: message,
  },
  'messages stream': {
    at: '/messages',
    model: 'messages',
    wires: 'messages',
    path: '/api/v1/messages',
    body: { ...MESSAGES, stream: true },
    reply: (junk) => sse(`{"type":"message_start","message":${message(junk)}}`),
  },
  responses: {
    at: '/responses',
    model: 'responses',
    wires: 'responses',
    path: '/api/v1/responses',
    body: RESPONSES,
    reply: (junk) =>
      `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2},"junk":${junk}}`,
  },
  gemini: {
    at: 'generateContent',
    model: 'gemini',
    wires: 'gemini',
    path: '/api/v1beta/models/m/gemini:generateContent',
    body: GEMINI,
    reply: generated,
  },
  'gemini stream': {
    at: 'streamGenerateContent',
    model: 'gemini',
    wires: 'gemini',
    path: '/api/v1beta/models/m/gemini:streamGenerateContent?alt=sse',
    body: GEMINI,
    reply: (junk) => sse(generated(junk)),
  },
  embeddings: {
    at: '/embeddings',
    model: 'embeddings',
    path: '/api/v1/embeddings',
    body: { model: 'm/embeddings', input: 'x' },
    reply: embedded,
  },
  'embeddings for Gemini': {
    at: '/embeddings',
    model: 'embeddings',
    path: '/api/v1beta/models/m/embeddings:embedContent',
    body: { content: { parts: [{ text: 'x' }] } },
    reply: embedded,
  },
  rerank: {
    at: '/rerank',
    model: 'rerank',
    path: '/api/v1/rerank',
    body: { model: 'm/rerank', query: 'q', documents: ['a'] },
    reply: (junk) => `{"results":[{"index":0,"relevance_score":1}],"junk":${junk}}`,
  },
  moderations: {
    at: '/moderations',
    model: 'moderation',
    path: '/api/v1/moderations',
    body: { model: 'm/moderation', input: 'x' },
    reply: (junk) => `{"results":[{"flagged":false}],"junk":${junk}}`,
  },
  speech: {
    at: '/audio/speech',
    model: 'speech',
    path: '/api/v1/audio/speech',
    body: { model: 'm/speech', voice: 'v', input: 'x', stream_format: 'sse' },
    reply: (junk) => sse(`{"type":"x","junk":${junk}}`, '{"type":"speech.audio.delta","audio":"AAAA"}'),
  },
};

/** Billed routes that are tried elsewhere. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  '/api/v1beta/models/{model}:batchEmbedContents': 'the reader of embedContent',
  '/api/v1/audio/transcriptions': 'worst-json-media',
  '/api/v1/audio/translations': 'the reader of transcriptions',
  '/api/v2/rerank': 'the reader of /api/v1/rerank',
  '/api/v1/rpc': 'worst-json-tools, and it leads to the other routes',
  '/api/v1/image/*': 'worst-json-media',
  '/api/v1/images*': 'worst-json-media',
  '/api/v1/video*': 'worst-json-media',
  '*mcp*': 'worst-json-tools',
  '*a2a*': 'worst-json-tools',
};

const directory = mkdtempSync(join(tmpdir(), 'tollgate-worst-'));
const socketPath = join(directory, 'loop.sock');
let reply = Buffer.alloc(0);
let upstream: Server;
let gateway: Gateway;
let key: string;

beforeAll(async () => {
  upstream = createServer((request, response) => {
    request.resume().on('end', () => {
      const isStream = reply.subarray(0, 5).toString() === 'data:';
      response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
      response.end(reply);
    });
  }).listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const base = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  const models = new Map(Object.values(KINDS).map((kind) => [kind.model, kind]));
  const toml = [...models].map(
    ([model, { wires }]) => `
[[models]]
name = "m/${model}"
provider_name = "Of ${model}"
context_length = 8000
output_modalities = ["${wires === undefined ? model : 'text'}"]
pricing = { prompt = 0, completion = 0 }
[models.params]
model = "m"
api_base = "${base}"
api_key = "std::env::TEST_UPSTREAM_KEY"
${wires === undefined ? '' : `wires = ["${wires}"]`}
`,
  );
  gateway = await startGateway({
    toml: toml.join(''),
    env: { TEST_UPSTREAM_KEY: 'upstream-key', ...watchedAt(socketPath) },
  });
  ({ key } = await gateway.openAccount('greedy', 1));
});
afterAll(async () => {
  upstream.closeAllConnections();
  upstream.close();
  await gateway?.stop();
  rmSync(directory, { recursive: true });
});

async function ask({ path, body }: Kind): Promise<void> {
  const response = await fetch(gateway.baseUrl + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await response.arrayBuffer();
}

it('every billed route has its worst replies', () => {
  const asked = Object.values(KINDS).map(({ path }) =>
    path.replace(/\?.*/, '').replace(/models\/.*:/, 'models/{model}:'),
  );
  const judged = Object.keys(ELSEWHERE).map((glob) => new RegExp(`^${glob.split('*').map(RegExp.escape).join('.*')}$`));
  const missing = BILLED_PATHS.filter((path) => !asked.includes(path) && !judged.some((one) => one.test(path)));
  expect(missing).toEqual([]);
});

describe.each(Object.entries(KINDS))('%s', (_name, kind) => {
  it.each(Object.entries(BEYOND))('with %s', async (_shape, junk) => {
    const worst = Buffer.from(kind.reply(junk()));
    const turns: number[] = [];
    // The first reply of a kind compiles code, and a machine may count the time of others.
    while (turns.length < TRIES && !turns.some((ms) => ms <= TURN_MS)) {
      reply = Buffer.from(kind.reply('0'));
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await ask(kind);
      reply = worst;
      // oxlint-disable-next-line no-await-in-loop -- as above
      await stallsAt(socketPath);
      // oxlint-disable-next-line no-await-in-loop -- as above
      await ask(kind);
      // oxlint-disable-next-line no-await-in-loop -- as above
      const { workMs } = await stallsAt(socketPath);
      turns.push(Math.round(workMs));
    }
    expect(Math.min(...turns), turns.join(', ')).toBeLessThanOrEqual(TURN_MS);
  });
});
