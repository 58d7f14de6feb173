import fc from 'fast-check';
import { describe, it } from 'vitest';
import { GatewayError } from '#errors';
import { isObject, UpstreamFailure } from '#wire';
import { createCheck } from '#http';
import type { Offer } from '#catalog';
import { createMessagesDecoder, MESSAGES_PASSTHROUGH } from '../../../src/openai/messages/passthrough.ts';
import { messagesSchema } from '../../../src/openai/messages/schema.ts';
import { nativeBody, measureNative } from '../../../src/openai/native/native-request.ts';
import { NativeReplyReader } from '../../../src/openai/native/native-reply-reader.ts';
import { createNativeStreamReader } from '../../../src/openai/native/native-stream-reader.ts';
import { capIn, type Passthrough } from '../../../src/openai/native/passthrough.ts';
import { createResponsesDecoder, RESPONSES_PASSTHROUGH } from '../../../src/openai/responses/passthrough.ts';
import { type ResponsesBody, responsesSchema } from '../../../src/openai/responses/schema.ts';
import { decodeRequest } from '../../../src/openai/responses/decode-request.ts';
import { TRUSTING, wireRequest } from '../translated/support/wire-request.ts';
import { makeOffer } from '../support/offers.ts';
import { CONTEXT, textBefore } from '../support/replies.ts';
import { anyCharacter } from '../../support/any-character.ts';
import { pooled } from '../../support/pooled.ts';
import { anyPart, weird } from './support/anything.ts';
import { geminiEvents, messageEvents, responseEvents } from './support/transcripts.ts';
import { createGeminiDecoder } from '../../../src/openai/gemini/passthrough.ts';

const deep = process.env['TOLLGATE_DEEP'] === '1';
const runs = deep ? 1_000_000 : 600;
const FOREVER = { timeout: 3_600_000 };

const isExpected = (error: unknown) => error instanceof UpstreamFailure || error instanceof GatewayError;

/** `expect` takes longer than what it looks at here, and a stack that is written out takes longest. */
function holds(condition: boolean, what: string): void {
  if (!condition) throw new Error(`This does not hold: ${what}`);
}

const usage = fc.oneof(
  weird,
  fc.record(
    {
      input_tokens: weird,
      output_tokens: weird,
      cache_read_input_tokens: weird,
      cache_creation_input_tokens: weird,
      input_tokens_details: weird,
      output_tokens_details: weird,
      total_tokens: weird,
    },
    { requiredKeys: [] },
  ),
  fc.constant({ input_tokens: 3, output_tokens: 4 }),
);
const types = [...messageEvents(), ...responseEvents(), 'event: error\n'].map((one) => one.split('\n')[0]!.slice(7));
const members = {
  index: weird,
  delta: fc.oneof(
    weird,
    fc.record(
      { type: weird, text: weird, thinking: weird, partial_json: weird, stop_reason: weird },
      { requiredKeys: [] },
    ),
  ),
  content_block: fc.oneof(weird, fc.record({ type: weird, text: weird, input: weird }, { requiredKeys: [] })),
  message: fc.oneof(weird, fc.record({ usage, model: weird, content: weird }, { requiredKeys: [] })),
  response: fc.oneof(
    weird,
    fc.record(
      { usage, model: weird, output: weird, status: weird, incomplete_details: weird, error: weird },
      { requiredKeys: [] },
    ),
  ),
  item: fc.oneof(weird, fc.record({ type: weird, encrypted_content: weird }, { requiredKeys: [] })),
  usage,
  error: weird,
  sequence_number: weird,
  stop_reason: weird,
  content: fc.oneof(
    weird,
    fc.array(fc.oneof(weird, fc.record({ type: weird, text: weird, input: weird })), { maxLength: 3 }),
  ),
  output: fc.oneof(
    weird,
    fc.array(fc.oneof(weird, fc.record({ type: weird, content: weird, summary: weird })), { maxLength: 3 }),
  ),
  status: weird,
  candidates: fc.oneof(
    weird,
    fc.array(
      fc.oneof(
        weird,
        fc.record(
          {
            content: fc.oneof(weird, fc.record({ parts: fc.oneof(weird, fc.array(anyPart(), { maxLength: 3 })) })),
            finishReason: fc.oneof(weird, fc.constantFrom('STOP', 'MAX_TOKENS')),
            finishMessage: weird,
            index: weird,
          },
          { requiredKeys: [] },
        ),
      ),
      { maxLength: 2 },
    ),
  ),
  usageMetadata: fc.oneof(
    weird,
    fc.record(
      {
        promptTokenCount: weird,
        candidatesTokenCount: weird,
        thoughtsTokenCount: weird,
        cachedContentTokenCount: weird,
        toolUsePromptTokenCount: weird,
      },
      { requiredKeys: [] },
    ),
    fc.constant({ promptTokenCount: 3, candidatesTokenCount: 4 }),
  ),
  promptFeedback: fc.oneof(weird, fc.record({ blockReason: weird })),
};

const event = pooled(
  fc
    .record(
      { type: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...types) }, weird), ...members },
      { requiredKeys: [] },
    )
    .map((one) => `data: ${JSON.stringify(one)}\n\n`),
  deep ? 100_000 : 2_000,
);
/** A member may stand twice. */
const member = pooled(
  fc.oneof(
    ...Object.entries<fc.Arbitrary<unknown>>(members).map(([name, value]) =>
      value.map((one) => `"${name}":${JSON.stringify(one)}`),
    ),
  ),
  deep ? 100_000 : 2_000,
);
const noise = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 40 }),
  fc.constantFrom('data: ', 'data:', '\n', '\n\n', '\r\n\r\n', '{', '"', '[DONE]', ': c\n', '\uFEFF', 'event: x\n'),
);
const stream = fc
  .array(
    fc.oneof(
      { weight: 5, arbitrary: event },
      { weight: 3, arbitrary: fc.constantFrom(...messageEvents(), ...responseEvents(), ...geminiEvents()) },
      noise,
    ),
    { maxLength: 12 },
  )
  .map((parts) => Buffer.from(parts.join('')));

const SPEECHES = [
  ['messages', createMessagesDecoder],
  ['responses', createResponsesDecoder],
  ['gemini', createGeminiDecoder],
] as const;
const reply = fc.oneof(
  { weight: 8, arbitrary: fc.array(member, { maxLength: 9 }).map((some) => `{${some.join(',')}}`) },
  { weight: 1, arbitrary: fc.record(members, { requiredKeys: [] }).map((one) => JSON.stringify(one)) },
  { weight: 1, arbitrary: noise },
);

describe.each(SPEECHES)('whatever a provider of %s says', (_name, speechOf) => {
  it('in a stream ends or throws an UpstreamFailure, and what goes out is whole events', FOREVER, () => {
    fc.assert(
      fc.property(stream, fc.boolean(), (input, isCut) => {
        const reader = createNativeStreamReader(CONTEXT, speechOf('acme/small'));
        let sent = '';
        try {
          reader.head(200, { 'content-type': 'text/event-stream' });
          sent += reader.data([input])?.toString() ?? '';
          const end = isCut ? reader.cut({ reason: 'timeout', message: 'it took long', own: false }) : reader.end();
          sent += textBefore(end.result) + end.result.native!({ cost: 1 }, null);
          const { prompt = 0n, completion = 0n } = end.usage ?? {};
          holds(prompt <= 500n && completion <= 1000n && prompt >= 0n && completion >= 0n, 'what is billed');
        } catch (error) {
          if (!isExpected(error)) throw error;
        }
        for (const one of sent.split('\n\n').slice(0, -1)) {
          const [name, data] = one.split(/(?:^|\n)data: /) as [string, string];
          const { type } = JSON.parse(data) as { type: string };
          holds(name === (speechOf === createGeminiDecoder ? '' : `event: ${type}`), one);
        }
      }),
      { numRuns: runs },
    );
  });

  it('in one piece ends or throws an UpstreamFailure', FOREVER, () => {
    fc.assert(
      fc.property(reply, fc.boolean(), (input, isCut) => {
        const reader = new NativeReplyReader(CONTEXT, speechOf('acme/small'));
        try {
          reader.head(200, {});
          reader.data([Buffer.from(input)]);
          const { result } = isCut
            ? reader.cut({ reason: 'timeout', message: 'it took long', own: false })
            : reader.end();
          const end = result.native!({ cost: 1 }, null);
          holds(isObject(JSON.parse(end)), end);
        } catch (error) {
          if (!isExpected(error)) throw error;
        }
      }),
      { numRuns: runs },
    );
  });
});

const item = fc.oneof(
  weird,
  fc.record(
    {
      type: fc.constantFrom(
        'message',
        'reasoning',
        'function_call',
        'function_call_output',
        'custom_tool_call',
        'item_reference',
        'x',
      ),
      role: fc.constantFrom<unknown>('user', 'assistant', 'developer', 'system', 'tool', 1),
      content: fc.oneof(
        weird,
        fc.array(
          fc.oneof(
            weird,
            fc.record({
              type: fc.constantFrom('input_text', 'input_image', 'output_text', 'image', 'x'),
              text: weird,
              image_url: weird,
              source: weird,
            }),
          ),
          { maxLength: 3 },
        ),
      ),
      call_id: weird,
      name: weird,
      arguments: weird,
      output: weird,
      input: weird,
      encrypted_content: fc.oneof(weird, fc.constantFrom('tg2.x', 'gAAAA')),
    },
    { requiredKeys: [] },
  ),
);
const tool = fc.oneof(
  weird,
  fc.record(
    {
      type: fc.constantFrom('function', 'custom', 'namespace', 'mcp', 'web_search', 'x'),
      name: weird,
      parameters: weird,
      format: weird,
      tools: weird,
      service: weird,
      server_url: weird,
    },
    { requiredKeys: ['type'] },
  ),
);
const request = fc.record(
  {
    model: fc.constant('acme/small'),
    input: fc.oneof(weird, fc.array(item, { maxLength: 4, minLength: 1 }), fc.constant('Hi')),
    messages: fc.oneof(
      weird,
      fc.array(
        fc.record({
          role: fc.constantFrom('user', 'assistant', 'system'),
          content: fc.oneof(
            fc.constant('Hi'),
            fc.array(
              fc.record({
                type: fc.constantFrom('text', 'thinking', 'image', 'x'),
                signature: fc.constantFrom('tg1.x', 'E'),
                text: weird,
                source: weird,
              }),
              { maxLength: 3 },
            ),
          ),
        }),
        { minLength: 1, maxLength: 3 },
      ),
    ),
    max_tokens: fc.constantFrom(1, 50),
    max_output_tokens: fc.constantFrom(1, 50),
    tools: fc.oneof(weird, fc.array(tool, { maxLength: 3 })),
    tool_choice: weird,
    text: weird,
    reasoning: weird,
    thinking: weird,
    metadata: weird,
    previous_response_id: weird,
    provider: fc.constantFrom(null, {}),
    n_predict: weird,
    x: weird,
  },
  { requiredKeys: ['model', 'input', 'messages', 'max_tokens'] },
);

const offer: Offer = makeOffer();

function passes(wire: Passthrough, checked: unknown, text: string): void {
  const asked = checked as Record<string, unknown>;
  const given = {
    wire,
    text,
    requestBody: asked,
    model: 'acme/small',
    headers: {},
    isLossy: false,
    untranslatable: null,
  };
  const sent = JSON.parse(nativeBody(given, offer, { tokens: 7, isSet: true }).text) as Record<string, unknown>;
  holds(capIn(wire, sent) === 7, text);
  holds(sent['model'] === offer.model!.upstreamModel, text);
  for (const name of ['provider', 'n_predict', 'session_id']) holds(!(name in sent), text);
  const size = measureNative(given);
  holds(size.bytes >= 0 && size.images >= 0, text);
  wire.loses(text);
  wire.hidesPrompt(asked);
  wire.growsPrompt(asked);
}

describe('whatever a client asks', () => {
  it('responses for is translated and forwarded, or refused with a GatewayError', FOREVER, () => {
    const check = createCheck<ResponsesBody>(responsesSchema(100));
    fc.assert(
      fc.property(request, (asked) => {
        const text = JSON.stringify(asked);
        let checked: ResponsesBody;
        try {
          checked = check(JSON.parse(text));
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error;
          return;
        }
        passes(RESPONSES_PASSTHROUGH, checked, text);
        try {
          const { body } = decodeRequest(checked, wireRequest('m', TRUSTING));
          holds(Array.isArray(body.messages), text);
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error;
        }
      }),
      {
        numRuns: runs,
        examples: [
          [
            {
              model: 'acme/small',
              input: 'Hi',
              messages: null,
              max_tokens: 1,
              tools: [{ type: 'namespace', name: 'x', tools: [null] }],
            },
          ],
        ],
      },
    );
  });

  it('messages for is forwarded, or refused with a GatewayError', FOREVER, () => {
    const check = createCheck<object>(messagesSchema(100));
    fc.assert(
      fc.property(request, (asked) => {
        const text = JSON.stringify(asked);
        let checked: object;
        try {
          checked = check(JSON.parse(text));
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error;
          return;
        }
        passes(MESSAGES_PASSTHROUGH, checked, text);
      }),
      { numRuns: runs },
    );
  });
});
