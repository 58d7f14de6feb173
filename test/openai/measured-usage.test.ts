import { describe, expect, test } from 'vitest';
import { imageTokensMax } from '#config';
import { chatBudget } from '../../src/openai/chat/request/chat-budget.ts';
import { cutUsage, measureUsage, overCapUsage, type UsageBounds } from '../../src/openai/chat/reply/chat-usage.ts';
import type { ChatBody, ContentPart } from '../../src/openai/chat/chat-schema.ts';
import { outputBytesMax } from '../../src/openai/chat/reply/output-bound.ts';
import { partsAt } from '../../src/openai/chat/price/priced-parts.ts';
import { measurePrompt } from '../../src/openai/chat/request/prompt-size.ts';
import { GEMINI_PASSTHROUGH } from '../../src/openai/gemini/passthrough.ts';
import { MESSAGES_PASSTHROUGH } from '../../src/openai/messages/passthrough.ts';
import { RESPONSES_PASSTHROUGH } from '../../src/openai/responses/passthrough.ts';
import { measureNative } from '../../src/openai/native/native-request.ts';
import { measureSearch, tokensMax } from '../../src/openai/rerank/search-size.ts';
import { makeOffer } from './support/offers.ts';

const model = { contextLength: 1_000_000, maxOutputTokens: 8_000, upstreamModel: 'gpt-4o-mini' };
const pricing = { prompt: 1, completion: 2, audio: 32, audio_output: 64, image_output: 30 };
const OWN = makeOffer({ model, pricing });
const DIALLED = { ...OWN, endpoint: { ...OWN.endpoint, kind: 'tunnel' } } as unknown as typeof OWN;
const PICTURE = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };

function boundsOf(parts: readonly unknown[], offer = OWN): UsageBounds {
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'x'.repeat(396) }, ...(parts as ContentPart[])] }];
  const body: ChatBody = { model: 'm', messages, max_tokens: 4_000 };
  const size = measurePrompt(body);
  const asked = {
    audio: true,
    audioOutput: true,
    cacheHour: () => false,
    webSearches: { sure: 0, open: 0 },
    webSearchesUnsaid: 0,
  };
  return {
    budget: chatBudget(body, size, offer),
    size,
    parts: partsAt(offer, () => asked),
    speech: 'pcm16',
    ...(offer === DIALLED ? { unseen: { max: 0, usual: 0 } } : {}),
  };
}
const text = (outputBytes: number) => ({ outputBytes, otherBytes: 0 });

describe('a measure at the provider of the operator', () => {
  test('has the pictures of the prompt', () => {
    const { usage } = measureUsage(boundsOf([PICTURE, PICTURE]), text(40));
    expect(usage).toEqual({ prompt: 100n + 2n * BigInt(imageTokensMax(model, true)), completion: 10n, image: 2n });
    expect(measureUsage(boundsOf([PICTURE, PICTURE], DIALLED), text(40)).usage).toMatchObject({ prompt: 100n });
  });

  test('is the bound of a prompt that has a file, because nothing else is known of it', () => {
    const file = { type: 'file', file: { file_url: 'https://example.com/a.pdf' } };
    expect(measureUsage(boundsOf([file]), text(40)).usage).toMatchObject({ prompt: 1_000_000n });
    const plain = { type: 'file', file: { file_data: `data:text/plain,${'x'.repeat(4_000)}` } };
    expect(Number(measureUsage(boundsOf([plain]), text(40)).usage!.prompt)).toBeLessThan(1_200);
  });

  test('has the sound of the prompt by its seconds, at the price of sound', () => {
    // 10 seconds of at least 8,000 bytes, in base64.
    const sound = { type: 'input_audio', input_audio: { data: 'A'.repeat(106_668), format: 'pcm16' } };
    const { usage } = measureUsage(boundsOf([sound]), text(40));
    expect(usage!.audio).toBe(321n);
    expect(Number(usage!.prompt)).toBeLessThan(200);
    const flac = { type: 'input_audio', input_audio: { data: 'ZkxhQwAA', format: 'flac' } };
    expect(measureUsage(boundsOf([flac]), text(40)).usage).toMatchObject({ prompt: 0n, audio: 1_000_000n });
  });

  test('has the sound and the pictures that came, at their own prices, within the cap', () => {
    const bounds = boundsOf([]);
    const came = { outputBytes: 40, otherBytes: 9_000_000, soundBytes: 48_000 * 60 };
    expect(measureUsage(bounds, came).usage).toEqual({ prompt: 100n, completion: 10n, audio_output: 1_500n });
    expect(measureUsage(bounds, { ...text(40), otherBytes: 9, pictures: 3 }).usage).toEqual({
      prompt: 100n,
      completion: 0n,
      image_output: 4_000n,
    });
    expect(measureUsage(boundsOf([], DIALLED), came).usage).toEqual({ prompt: 100n, completion: 10n });
  });

  test('does not replace the claim of a picture that has fewer tokens than the largest', () => {
    const cut = { reason: 'cancelled', message: 'the client left', own: true } as unknown as Parameters<
      typeof cutUsage
    >[3];
    const claim = { prompt_tokens: 50, completion_tokens: 1_290, completion_tokens_details: { image_tokens: 1_290 } };
    const output = { ...text(0), otherBytes: 400_000, pictures: 1 };
    expect(cutUsage(claim, boundsOf([]), output, cut)).toMatchObject({
      usage: { prompt: 50n, image_output: 1_290n },
      estimated: false,
    });
    const zeros = { prompt_tokens: 50, completion_tokens: 0 };
    expect(cutUsage(zeros, boundsOf([]), output, cut).usage).toEqual({
      prompt: 50n,
      completion: 0n,
      image_output: 4_000n,
    });
  });
});

describe('output past its cap', () => {
  test('is bounded above the longest words at the provider of the operator', () => {
    const most = (offer: typeof OWN) => outputBytesMax({ ...boundsOf([], offer).budget, completionTokensMax: 1_000 });
    expect(most(OWN)).toBe(1_000 * 48 + 16 * 80);
    expect(most(DIALLED)).toBe(1_000 * 16 + 16 * 112);
  });

  test('costs what the provider of the operator reports, which is not flagged if it kept the cap', () => {
    const claim = { prompt_tokens: 900_000, completion_tokens: 4_000 };
    const bounds = boundsOf([{ type: 'file', file: { file_url: 'https://example.com/a.pdf' } }]);
    const { usage, flags, estimated } = overCapUsage(claim, bounds, text(300_000));
    expect({ usage: usage.usage, flags, estimated }).toEqual({
      usage: { prompt: 900_000n, completion: 4_000n },
      flags: [],
      estimated: false,
    });
    const over = overCapUsage({ ...claim, completion_tokens: 9_000 }, bounds, text(300_000));
    expect([over.usage.usage, over.flags]).toEqual([{ prompt: 900_000n, completion: 4_000n }, ['over_cap']]);
    const dialled = overCapUsage(claim, boundsOf([], DIALLED), text(300_000));
    expect([dialled.usage.usage, dialled.flags]).toEqual([{ prompt: 100n, completion: 4_000n }, ['over_cap']]);
  });
});

test.each([
  ['audio/flac', true],
  ['audio/l16;rate=24000', false],
])('a request of Gemini with %s in it hides its prompt: %s', (mimeType, hidden) => {
  const asked = { contents: [{ role: 'user', parts: [{ inlineData: { mimeType, data: 'ZkxhQwAA' } }] }] };
  expect(measureNative({ wire: GEMINI_PASSTHROUGH, text: JSON.stringify(asked), requestBody: asked })).toMatchObject({
    hidden,
  });
});

test.each([
  ['Responses', RESPONSES_PASSTHROUGH, { input: 'hi', tools: [{ type: 'web_search' }] }],
  [
    'Messages',
    MESSAGES_PASSTHROUGH,
    { messages: [{ role: 'user', content: 'hi' }], tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
  ],
  [
    'Gemini',
    GEMINI_PASSTHROUGH,
    { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], tools: [{ googleSearch: {} }] },
  ],
] as const)('a tool at a provider of %s is locked, and is no part of the measure', (_name, wire, requestBody) => {
  const size = measureNative({ wire, text: JSON.stringify(requestBody), requestBody });
  const budget = chatBudget({ model: 'm', messages: [], max_tokens: 4_000 }, size, OWN);
  expect(budget.promptTokensMax).toBe(model.contextLength);
  expect(Number(measureUsage({ ...boundsOf([]), size, budget }, text(40)).usage!.prompt)).toBeLessThan(100);
});

test('a search with pictures locks what they have at the provider of the operator', () => {
  const size = measureSearch({ model: 'm', query: 'q', documents: [{ image: 'https://example.com/a.png' }] });
  const strange = (offer: typeof OWN) =>
    tokensMax(size, { ...offer, model: { ...offer.model!, upstreamModel: 'other' } });
  expect(strange(OWN) - strange(DIALLED)).toBe(16_384 - 2_048);
});
