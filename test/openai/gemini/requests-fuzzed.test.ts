import { capIn } from '../../../src/openai/native/passthrough.ts';
import fc from 'fast-check';
import { it } from 'vitest';
import { GatewayError } from '#errors';
import { createCheck } from '#http';
import type { Offer } from '#catalog';
import { type GeminiBody, geminiSchema } from '../../../src/openai/gemini/schema.ts';
import { GEMINI_PASSTHROUGH } from '../../../src/openai/gemini/passthrough.ts';
import { placedBody, textOfPlaced } from '../../../src/openai/gemini/request-form.ts';
import { decodeRequest } from '../../../src/openai/gemini/decode-request.ts';
import { TRUSTING, wireRequest } from '../translated/support/wire-request.ts';
import { nativeBody, measureNative } from '../../../src/openai/native/native-request.ts';
import { anyPart, weird } from '../native/support/anything.ts';
import { makeOffer } from '../support/offers.ts';

const runs = process.env['TOLLGATE_DEEP'] === '1' ? 1_000_000 : 600;

/** `expect` takes longer than what it looks at here. */
function holds(condition: boolean, what: string): void {
  if (!condition) throw new Error(`This does not hold: ${what}`);
}

const geminiRequest = fc.record(
  {
    contents: fc.oneof(
      weird,
      fc.array(
        fc.record(
          {
            role: fc.constantFrom<unknown>('user', 'model', 'function', null),
            parts: fc.array(anyPart(), { maxLength: 3 }),
          },
          { requiredKeys: [] },
        ),
        { minLength: 1, maxLength: 3 },
      ),
    ),
    system_instruction: fc.oneof(weird, fc.record({ parts: fc.array(anyPart(), { maxLength: 2 }) })),
    tools: fc.oneof(
      weird,
      fc.array(
        fc.record(
          {
            functionDeclarations: fc.oneof(
              weird,
              fc.array(fc.record({ name: weird, description: weird, parameters: weird }), { maxLength: 2 }),
            ),
            mcpServers: fc.oneof(weird, fc.array(fc.record({ streamableHttpTransport: weird }), { maxLength: 2 })),
            googleSearch: weird,
          },
          { requiredKeys: [] },
        ),
        { maxLength: 2 },
      ),
    ),
    toolConfig: fc.oneof(
      weird,
      fc.record({
        functionCallingConfig: fc.oneof(
          weird,
          fc.record({ mode: fc.constantFrom<unknown>('AUTO', 'ANY', 'x', 1), allowedFunctionNames: weird }),
        ),
      }),
    ),
    generationConfig: fc.oneof(
      weird,
      fc.record(
        {
          maxOutputTokens: fc.constantFrom<unknown>(1, 50, 1e9, null),
          max_output_tokens: fc.constant(9),
          thinkingConfig: weird,
          responseSchema: weird,
          responseJsonSchema: weird,
          responseMimeType: fc.constantFrom<unknown>('application/json', 'x', null),
          responseModalities: weird,
          x: weird,
        },
        { requiredKeys: [] },
      ),
    ),
    cachedContent: weird,
    provider: fc.constantFrom(null, {}),
    n_predict: weird,
  },
  { requiredKeys: ['contents'] },
);

const offer: Offer = makeOffer();

function passes(checked: GeminiBody, text: string): void {
  const asked: Record<string, unknown> = { ...checked };
  const wire = GEMINI_PASSTHROUGH;
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
  holds(sent['model'] === (wire === GEMINI_PASSTHROUGH ? undefined : offer.model!.upstreamModel), text);
  for (const name of ['provider', 'n_predict', 'session_id']) holds(!(name in sent), text);
  const size = measureNative(given);
  holds(size.bytes >= 0 && size.images >= 0, text);
  wire.loses(text);
  wire.hidesPrompt(asked);
  wire.growsPrompt(asked);
}

it(
  'whatever a client asks the Gemini API is translated and forwarded, or refused with a GatewayError',
  { timeout: 3_600_000 },
  () => {
    const check = createCheck<GeminiBody>(geminiSchema(100));
    fc.assert(
      fc.property(geminiRequest, (asked) => {
        const text = JSON.stringify(asked);
        let checked: GeminiBody;
        try {
          checked = check(placedBody(JSON.parse(text), 'acme/small', null));
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error;
          return;
        }
        passes(checked, textOfPlaced(checked, Buffer.from(text)).toString());
        try {
          holds(Array.isArray(decodeRequest(checked, wireRequest(checked.model, TRUSTING)).body.messages), text);
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error;
        }
      }),
      { numRuns: runs },
    );
  },
);
