import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { beforeAll, expect, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { nextClientGone } from '../../support/client-gone.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { STREAMED_WIRES } from './streamed-wires.ts';
import { type AskedVendor, type LeftVendor, startVendor, WORDS_MAX } from './vendor-that-is-left.ts';

/* Each way in which the SDKs of OpenAI, Anthropic and Google stop a stream ends the request at its vendor. */

const vendor: LeftVendor = ofFile(
  () => startVendor(),
  (one) => one.stop(),
);
const spine = spineOfFile(() => ({
  toml:
    UNHURRIED +
    STREAMED_WIRES.map(({ name, params = '', lines = '' }) =>
      modelBlock({ name: `acme/${name}`, provider: 'Acme', url: vendor.url, params, lines }),
    ).join(''),
}));
let openai: OpenAI;
let anthropic: Anthropic;
let google: GoogleGenAI;
beforeAll(() => {
  openai = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: `${spine.origin}/api`, apiKey: spine.key, maxRetries: 0 });
  google = new GoogleGenAI({ apiKey: spine.key, httpOptions: { baseUrl: `${spine.origin}/api` } });
});

const MESSAGES = [{ role: 'user' as const, content: 'hello' }];
const EVENTS = 10;

/** Reads so many events, then stops. */
async function readSome(stream: AsyncIterable<unknown>, stop: () => void): Promise<void> {
  let events = 0;
  for await (const _ of stream) if (++events === EVENTS) stop();
}

/** Each stops its stream in a way that its SDK has. May reject, as an aborted stream does. */
const WAYS: readonly (readonly [sdk: string, wire: string, run: () => Promise<void>])[] = [
  [
    'OpenAI, chat: the controller of the stream',
    'chat',
    async () => {
      const stream = await openai.chat.completions.create({ model: 'acme/chat', messages: MESSAGES, stream: true });
      await readSome(stream, () => stream.controller.abort());
    },
  ],
  [
    'OpenAI, chat: its reader leaves the loop',
    'chat',
    async () => {
      const stream = await openai.chat.completions.create({ model: 'acme/chat', messages: MESSAGES, stream: true });
      let events = 0;
      for await (const _ of stream) if (++events === EVENTS) break;
    },
  ],
  [
    'OpenAI, completions: a signal',
    'completions',
    async () => {
      const leaving = new AbortController();
      const { signal } = leaving;
      const ask = { model: 'acme/completions', prompt: 'hello', stream: true } as const;
      await readSome(await openai.completions.create(ask, { signal }), () => leaving.abort());
    },
  ],
  [
    'OpenAI, responses: the helper of a stream',
    'responses',
    async () => {
      const stream = openai.responses.stream({ model: 'acme/responses', input: 'hello', store: false });
      await readSome(stream, () => stream.abort());
    },
  ],
  [
    'Anthropic, messages: the helper of a stream',
    'messages',
    async () => {
      const stream = anthropic.messages.stream({ model: 'acme/messages', max_tokens: 2_000, messages: MESSAGES });
      await readSome(stream, () => stream.abort());
    },
  ],
  [
    'Google, generateContentStream: a signal',
    'gemini',
    async () => {
      const leaving = new AbortController();
      const config = { abortSignal: leaving.signal };
      const stream = await google.models.generateContentStream({ model: 'acme/gemini', contents: 'hello', config });
      await readSome(stream, () => leaving.abort());
    },
  ],
];

test.each(WAYS)('%s', async (_sdk, wire, run) => {
  const begun = vendor.next(
    STREAMED_WIRES.find(({ name }) => name === wire)!,
    'stops',
  );
  const gone = nextClientGone(spine);
  const running = run().catch(() => {});
  const asked: AskedVendor = await begun;
  await running;
  await gone;
  const left = performance.now();
  await asked.closed;
  expect(performance.now() - left).toBeLessThan(atThisLoad(1_000));
  expect(asked.made).toBeLessThan(WORDS_MAX);
  await spine.quiet();
  const { data } = (await (await spine.get('/generations?limit=1')).json()) as { readonly data: readonly Record[] };
  const [{ tokens_prompt: prompt, tokens_completion: said, cost_micro_usdc: cost, cancelled }] = data as [Record];
  expect(cancelled).toBe(true);
  expect(cost).toBe(prompt + 2 * said);
  // Some events have no words.
  expect(said).toBeGreaterThanOrEqual(EVENTS - 4);
  expect(said).toBeLessThanOrEqual(asked.written);
});

interface Record {
  readonly tokens_prompt: number;
  readonly tokens_completion: number;
  readonly cost_micro_usdc: number;
  readonly cancelled: boolean;
}
