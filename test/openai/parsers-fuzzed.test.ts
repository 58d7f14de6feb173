import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GatewayError } from '#errors';
import { parseJson, UpstreamFailure } from '#wire';
import type { Usage } from '#billing/amounts';
import { createCheck } from '#http';
import { ChatReplyReader } from '../../src/openai/chat/reply/chat-reply-reader.ts';
import { chatSchema, type ChatBody } from '../../src/openai/chat/chat-schema.ts';
import { createChatStreamReader } from '../../src/openai/stream/chat-stream-reader.ts';
import { toCall } from '../../src/openai/call/chat-to-call.ts';
import { makeOffer } from './support/offers.ts';
import { chunkOf, CONTEXT, delta, events, feed, USAGE } from './support/replies.ts';
import { anyCharacter } from '../support/any-character.ts';
import { pooled } from '../support/pooled.ts';

const deep = process.env['TOLLGATE_DEEP'] === '1';
const runs = deep ? 1_000_000 : 400;
const STALL_MS = 100;

/** Everything that a reader or a parser may throw. To ask `expect` would take longer than they do. */
const isExpected = (error: Error | null) =>
  error === null || error instanceof UpstreamFailure || error instanceof GatewayError;

const weird = fc.oneof(
  { maxDepth: 3 },
  fc.jsonValue(),
  fc.constantFrom<unknown>(null, '', 0, -1, 1e300, [], {}, [[]], [null], 'error', true, '__proto__'),
);
const choice = fc.record(
  {
    index: weird,
    delta: fc.oneof(
      weird,
      fc.record(
        { content: weird, tool_calls: weird, role: weird, reasoning: weird, function_call: weird },
        { requiredKeys: [] },
      ),
    ),
    message: weird,
    finish_reason: weird,
  },
  { requiredKeys: [] },
);
const chunk = fc.record(
  {
    id: weird,
    choices: fc.oneof(weird, fc.array(fc.oneof(choice, weird), { maxLength: 3 })),
    usage: fc.oneof(weird, fc.constant(USAGE)),
    error: fc.option(weird, { freq: 3 }),
    finish_reason: weird,
    created: weird,
    model: weird,
  },
  { requiredKeys: [] },
);
const toolChunk = fc
  .array(
    fc.record(
      {
        index: weird,
        id: weird,
        type: weird,
        function: fc.oneof(weird, fc.record({ name: weird, arguments: weird }, { requiredKeys: [] })),
      },
      { requiredKeys: [] },
    ),
    { maxLength: 3 },
  )
  .map((tool_calls) => chunkOf([{ index: 0, delta: { tool_calls } }]));
const noise = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 40 }),
  fc.constantFrom('data: ', 'data:', '\n', '\n\n', '\r\n\r\n', '{', '"', '[DONE]', ': c\n', '\uFEFF'),
);
const POOL = deep ? 100_000 : 2_000;
const chunkEvent = pooled(
  chunk.map((item) => events(item)),
  POOL,
);
const toolEvent = pooled(
  toolChunk.map((item) => events(item)),
  POOL,
);
const bytes = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: chunkEvent },
      { weight: 2, arbitrary: toolEvent },
      { weight: 2, arbitrary: fc.constant(events(chunkOf([delta('word')]))) },
      noise,
    ),
    { maxLength: 12 },
  )
  .map((parts) => Buffer.from(parts.join('') + events(chunkOf([delta('', 'stop')]), '[DONE]')));

/** Runs and measures this thread's own CPU time: on a busy machine the clock on the wall counts what others do. */
function within<T>(run: () => T): T {
  const cpuMs = (action: () => void) => {
    const before = process.threadCpuUsage();
    action();
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  };
  let result!: T;
  const first = cpuMs(() => (result = run()));
  // Once in a while a collection of garbage falls into a run.
  if (first > STALL_MS) expect(cpuMs(run)).toBeLessThan(STALL_MS);
  return result;
}

describe('whatever comes', () => {
  it('the stream reader ends or throws an UpstreamFailure', { timeout: 3_600_000 }, () => {
    fc.assert(
      fc.property(bytes, (input) => {
        const outcome = within(() => feed(createChatStreamReader(CONTEXT), [input]));
        if (!isExpected(outcome.error)) throw outcome.error;
        // What went out is whole events of valid JSON under our own id.
        for (const event of outcome.sent.split('\n\n').slice(0, -1)) {
          const { id, model } = JSON.parse(event.slice(6)) as Record<string, unknown>;
          if (id !== 'gen-1' || model !== 'acme/small') throw new Error(`Not ours: ${event}`);
        }
      }),
      { numRuns: runs },
    );
  });

  it('the reader of whole replies ends or throws an UpstreamFailure', { timeout: 3_600_000 }, () => {
    fc.assert(
      fc.property(
        fc.oneof(
          chunk.map((item) => JSON.stringify(item)),
          noise,
        ),
        (input) => {
          const outcome = within(() => feed(new ChatReplyReader(CONTEXT), [Buffer.from(input)], {}));
          if (!isExpected(outcome.error)) throw outcome.error;
        },
      ),
      { numRuns: runs },
    );
  });

  it('a request body becomes a call or a GatewayError', { timeout: 3_600_000 }, () => {
    const check = createCheck<ChatBody>(chatSchema(2048));
    const offer = makeOffer({ model: { inputModalities: ['text', 'image', 'audio'] } });
    const part = fc.oneof(
      weird,
      fc.record(
        {
          type: fc.constantFrom('text', 'image_url', 'input_audio', 'x'),
          text: weird,
          image_url: fc.oneof(weird, fc.record({ url: weird })),
        },
        { requiredKeys: ['type'] },
      ),
    );
    const message = fc.oneof(
      weird,
      fc.record(
        {
          role: fc.constantFrom('user', 'assistant', 'tool', 'x'),
          content: fc.oneof(weird, fc.string(), fc.array(part, { maxLength: 3 })),
          tool_calls: weird,
        },
        { requiredKeys: ['role'] },
      ),
    );
    const body = fc.oneof(
      weird,
      fc.record(
        {
          model: fc.oneof(weird, fc.constant('acme/small')),
          messages: fc.oneof(weird, fc.array(message, { minLength: 1, maxLength: 3 })),
          stream: fc.oneof(weird, fc.boolean()),
          max_tokens: weird,
          n: weird,
          stop: weird,
          tools: weird,
          provider: fc.oneof(weird, fc.record({ max_price: weird, order: weird }, { requiredKeys: [] })),
          models: weird,
          metadata: weird,
          session_id: weird,
          functions: weird,
          ['__proto__']: weird,
        },
        { requiredKeys: ['model', 'messages'] },
      ),
    );
    fc.assert(
      fc.property(
        fc.oneof({ weight: 9, arbitrary: body.map((item) => JSON.stringify(item)) }, { weight: 1, arbitrary: noise }),
        (input) => {
          let failure: Error | null = null;
          try {
            within(() => {
              const parsed = check(parseJson(Buffer.from(input), { jsonDepthMax: 64, jsonKeysMax: 10_000 }));
              const { request, adapter } = toCall(parsed, {
                caller: { account: 'a', key: null, wallet: null },
                requestId: 'r',
                headers: {},
                now: 0,
                replyBytesMax: 1e6,
                receipts: 'on-request',
              });
              const usage = request.estimate(offer) as Usage;
              const { model } = JSON.parse(adapter.request(offer).body as string) as Record<string, unknown>;
              if (usage.prompt! < 0n || usage.completion! <= 0n || model !== 'upstream-small')
                throw new Error(`It asks for ${usage.prompt} and ${usage.completion} tokens of ${String(model)}`);
            });
          } catch (error) {
            failure = error as Error;
          }
          if (!isExpected(failure)) throw failure;
        },
      ),
      { numRuns: runs },
    );
  });
});
