import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import {
  call,
  chunk,
  completion,
  startTranscripts,
  type TranscriptUpstream,
  usage,
} from './support/transcript-upstream.ts';

// A provider ends a reply inside the arguments of a call, or names calls that are not there. No client gets a call that
// its model has not written: clients run calls.

const MODEL = 'acme/small';
let upstream: TranscriptUpstream;
let spine: Spine;
let anthropic: Anthropic;
let google: GoogleGenAI;
let openai: OpenAI;
beforeAll(async () => {
  upstream = await startTranscripts();
  spine = await startSpine({ toml: UNHURRIED + modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url }) });
  openai = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: `${spine.origin}/api`, apiKey: spine.key, maxRetries: 0 });
  google = new GoogleGenAI({ apiKey: spine.key, httpOptions: { baseUrl: `${spine.origin}/api` } });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await upstream.stop();
  }
});

/** A reply with calls of `f` with these arguments. */
function tell(given: readonly string[], finish: string): void {
  const calls = given.map((args, index) => ({
    id: `c${index}`,
    type: 'function',
    function: { name: 'f', arguments: args },
  }));
  upstream.answer = ({ stream }) =>
    stream === true
      ? {
          chunks: [
            chunk({ content: 'Hm' }),
            ...given.map((args, index) => call(index, { id: `c${index}`, name: 'f', args })),
            chunk({}, finish),
            usage(),
          ],
        }
      : { body: completion({ content: 'Hm', ...(calls.length > 0 ? { tool_calls: calls } : {}) }, finish) };
}

const WHOLE = '{"a":1}';
const HALF = '{"path":"a.txt","text":"half';

/** The reasons and the arguments of the calls that clients of Gemini, Responses and Messages get. */
const CASES: readonly {
  readonly given: readonly string[];
  readonly finish: string;
  readonly gemini: readonly [string, number];
  readonly responses: readonly [string, readonly string[]];
  readonly messages: readonly [string, number];
}[] = [
  {
    given: [HALF],
    finish: 'length',
    gemini: ['MAX_TOKENS', 0],
    responses: ['incomplete', ['incomplete']],
    messages: ['max_tokens', 0],
  },
  {
    given: [WHOLE, HALF],
    finish: 'length',
    gemini: ['MAX_TOKENS', 1],
    responses: ['incomplete', ['completed', 'incomplete']],
    messages: ['max_tokens', 1],
  },
  {
    given: [''],
    finish: 'length',
    gemini: ['MAX_TOKENS', 0],
    responses: ['incomplete', ['incomplete']],
    messages: ['max_tokens', 0],
  },
  {
    given: [HALF],
    finish: 'content_filter',
    gemini: ['SAFETY', 0],
    responses: ['incomplete', ['incomplete']],
    messages: ['refusal', 0],
  },
  // Its provider says that all is well.
  {
    given: [HALF],
    finish: 'tool_calls',
    gemini: ['MALFORMED_FUNCTION_CALL', 0],
    responses: ['incomplete', ['incomplete']],
    messages: ['max_tokens', 0],
  },
  {
    given: [WHOLE, ''],
    finish: 'tool_calls',
    gemini: ['STOP', 2],
    responses: ['completed', ['completed', 'completed']],
    messages: ['tool_use', 2],
  },
  // It ends with calls, but there are none.
  { given: [], finish: 'tool_calls', gemini: ['STOP', 0], responses: ['completed', []], messages: ['end_turn', 0] },
];

for (const stream of [false, true])
  test.each(CASES)(`${stream ? 'streamed' : 'whole'}: $given that ends by $finish`, async (one) => {
    tell(one.given, one.finish);
    const ask = { model: MODEL, contents: 'x', config: { tools: [{ functionDeclarations: [{ name: 'f' }] }] } };
    const events = stream
      ? await Array.fromAsync(await google.models.generateContentStream(ask))
      : [await google.models.generateContent(ask)];
    const calls = events.flatMap(({ functionCalls }) => functionCalls ?? []);
    expect([events.at(-1)!.candidates![0]!.finishReason, calls.length]).toEqual(one.gemini);
    expect(JSON.stringify(events)).not.toContain('half');

    const f = { type: 'function', name: 'f', parameters: { type: 'object' }, strict: false } as const;
    const asked = { model: MODEL, input: 'x', tools: [f] };
    const response = stream
      ? await openai.responses.stream(asked).finalResponse()
      : await openai.responses.create(asked);
    const statuses = response.output.flatMap((item) => (item.type === 'function_call' ? [item.status] : []));
    expect([response.status, statuses]).toEqual(one.responses);

    const tools = [{ name: 'f', input_schema: { type: 'object' as const } }];
    const message = { model: MODEL, max_tokens: 50, tools, messages: [{ role: 'user' as const, content: 'x' }] };
    const said = stream
      ? await anthropic.messages.stream(message).finalMessage()
      : await anthropic.messages.create(message);
    expect(said.stop_reason).toBe(one.messages[0]);
    // A stream of this API has the part of the arguments that came, as Anthropic's own has.
    const whole = stream ? one.given.length : one.messages[1];
    expect(said.content.filter(({ type }) => type === 'tool_use')).toHaveLength(whole);
  });
