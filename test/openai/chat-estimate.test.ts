import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GatewayError } from '#errors';
import { chatBudget, checkFits, toUsage } from '../../src/openai/chat/request/chat-budget.ts';
import type { ChatBody } from '../../src/openai/chat/chat-schema.ts';
import { PLAIN } from '../../src/openai/chat/price/priced-parts.ts';
import { measurePrompt } from '../../src/openai/chat/request/prompt-size.ts';
import { makeOffer } from './support/offers.ts';

const body = (rest: Partial<ChatBody> = {}): ChatBody => ({
  model: 'm',
  messages: [{ role: 'user', content: 'Grüße' }],
  ...rest,
});
const budget = (request: ChatBody, offer = makeOffer()) => chatBudget(request, measurePrompt(request), offer);
const picture = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
const FLAC = Buffer.from('fLaC\u0000\u0000\u0000\u0022').toString('base64');
const MP3 = Buffer.from([0xff, 0xfb, 0x90, 0]);
const TAGGED = Buffer.concat([Buffer.from('ID3'), Buffer.from([4, 0, 0, 0, 0, 0, 2, 9, 9]), MP3]).toString('base64');
/** The header of a WAV file with mono PCM of 16 bits. */
function wave(rate: number): string {
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.write('WAVEfmt ', 8);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt16LE(16, 34);
  return head.toString('base64');
}
const FEW = makeOffer({ model: { imageTokensMax: 2048 } });

describe('the estimate of a chat call', () => {
  it('bounds the prompt by its bytes', () => {
    // Role and content, what stands around a message, what stands around a call.
    expect(budget(body()).promptTokensMax).toBe(4 + 7 + 16 + 64);
    const tools = [{ type: 'function', function: { name: 'f', parameters: {} } }];
    expect(budget(body({ tools })).promptTokensMax).toBe(4 + 7 + 16 + 64 + 512 + JSON.stringify(tools).length);
    expect(budget(body({ response_format: { type: 'text' } })).promptTokensMax).toBe(4 + 7 + 16 + 64 + 15);
    const seen = body({ messages: [{ role: 'user', content: [picture, { type: 'text', text: 'abc' }] }] });
    expect(budget(seen, FEW).promptTokensMax).toBe(4 + 3 + 16 + 64 + 2048);
  });

  it('counts everything in a message that is text', () => {
    const calls = [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"long":"argument"}' } }];
    const size = measurePrompt(
      body({ messages: [{ role: 'assistant', content: null, name: 'bob', tool_calls: calls }] }),
    );
    expect(size.bytes).toBe(9 + 3 + JSON.stringify(calls).length);
  });

  it('counts text in fields that are passed through: some servers put it before the model', () => {
    const request = body({
      documents: ['a page'],
      chat_template: '{{ long }}',
      seed: 7,
      logprobs: true,
      user: 'bob',
      stop: ['end'],
    });
    expect(measurePrompt(request).bytes).toBe(measurePrompt(body()).bytes + '["a page"]'.length + '{{ long }}'.length);
    const content = [
      { type: 'text', text: 'abc', context: 'more' },
      { ...picture, text: 'caption', extra: { a: 1 } },
    ];
    expect(measurePrompt(body({ messages: [{ role: 'user', content }] })).bytes).toBe(4 + 3 + 4 + 7 + '{"a":1}'.length);
  });

  it('never exceeds the context', () => {
    expect(budget(body({ messages: [{ role: 'user', content: 'x'.repeat(100_000) }] })).promptTokensMax).toBe(8192);
  });

  it.each([
    ['a file at an address', { type: 'file', file: { file_data: 'https://a.example/x.pdf' } }],
    ['a file at an address of its own name', { type: 'file', file: { file_url: 'https://a.example/x.pdf' } }],
    ['a PDF', { type: 'file', file: { filename: 'x.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } }],
    ['base64 of any type', { type: 'file', file: { file_data: 'JVBERi0=' } }],
    [
      'a text with an address',
      { type: 'file', file: { file_data: 'data:text/plain,a', file_url: 'https://a.example' } },
    ],
    ['a file in a text', { type: 'text', text: 'hi', file: { file_data: 'JVBERi0=' } }],
    ['a video at an address', { type: 'video_url', video_url: { url: 'https://a.example/x.mp4' } }],
    ['a video', { type: 'video_url', video_url: { url: 'data:video/mp4;base64,AAAA' } }],
    ['a sound at an address', { type: 'audio_url', audio_url: { url: 'https://a.example/x.mp3' } }],
    ['a sound at the address of a store', { type: 'input_audio', input_audio: { data: 's3://a/x.mp3' } }],
    ['FLAC', { type: 'input_audio', input_audio: { data: FLAC, format: 'flac' } }],
    ['FLAC that is named WAV', { type: 'input_audio', input_audio: { data: FLAC, format: 'wav' } }],
    ['FLAC in its URL', { type: 'audio_url', audio_url: { url: `data:audio/mp3;base64,${FLAC}` } }],
    ['WAV of one sample a second', { type: 'input_audio', input_audio: { data: wave(1), format: 'wav' } }],
    [
      'raw sound of one sample a second',
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'audio/l16;rate=1' } },
    ],
    ['MP3 beside FLAC', { type: 'input_audio', input_audio: { data: TAGGED, more: FLAC, format: 'mp3' } }],
  ])('is the context for %s, because the request does not show its tokens', (_what, part) => {
    const request = body({
      max_tokens: 7,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }, part] }],
    });
    expect(budget(request)).toMatchObject({ promptTokensMax: 8192, completionCap: 7 });
    // As before, a cap of the model itself is sent.
    expect(budget({ ...request, max_tokens: null }).keptBy).toBe('provider');
  });

  it.each([
    ['a text', { type: 'file', file: { filename: 'x.txt', file_data: 'data:text/plain;base64,SGk=' } }],
    ['WAV', { type: 'input_audio', input_audio: { data: wave(24_000), format: 'wav' } }],
    ['MP3 in its URL', { type: 'audio_url', audio_url: { url: `data:audio/mp3;base64,${MP3.toString('base64')}` } }],
    ['MP3 after a tag', { type: 'input_audio', input_audio: { data: TAGGED, format: 'mp3' } }],
    ['raw sound', { type: 'input_audio', input_audio: { data: 'AAAA', format: 'pcm16' } }],
    ['nothing', { type: 'text', text: 'hi', file: null, video: null, audio: null }],
    ['only a name', { type: 'text', text: 'hi', filename: 'x.pdf' }],
  ])('is the bytes for a file with %s in it', (_what, part) => {
    expect(budget(body({ messages: [{ role: 'user', content: [part] }] })).promptTokensMax).toBeLessThan(250);
  });

  it('bounds an image by what the model declares', () => {
    const request = body({ messages: [{ role: 'user', content: [picture, picture] }] });
    const model = { contextLength: 128_000, imageTokensMax: 26_000 };
    expect(budget(request, makeOffer({ model })).promptTokensMax).toBe(4 + 16 + 64 + 52_000);
    expect(budget(request, makeOffer({ model: { imageTokensMax: 1_000_000 } })).promptTokensMax).toBe(8192);
  });

  it.each([
    ['gpt-4o-mini-2024-07-18', 48_169],
    ['openai/gpt-4o-mini', 48_169],
    ['gpt-4.1-nano', 26_000],
    ['o4-mini', 26_000],
    ['gpt-4o', 12_000],
    ['us.anthropic.claude-haiku-4-5', 6_000],
    ['gemini-2.5-flash', 4_096],
    ['ministral-8b', 16_384],
  ])('bounds an image of %s by the rule of its vendor, and one of a provider that dials in by 2,048', (name, most) => {
    const request = body({ messages: [{ role: 'user', content: [picture] }] });
    const model = { contextLength: 128_000, upstreamModel: name };
    expect(budget(request, makeOffer({ model })).promptTokensMax).toBe(4 + 16 + 64 + most);
    const endpoint = { kind: 'tunnel', provider: 'x', basePath: '/x' } as const;
    expect(budget(request, { ...makeOffer({ model }), endpoint }).promptTokensMax).toBe(4 + 16 + 64 + 2_048);
  });

  it('caps the completion by the client, else by the model, else by the context', () => {
    expect(budget(body({ max_tokens: 7 })).completionCap).toBe(7);
    expect(budget(body({ max_tokens: 9, max_completion_tokens: 8 })).completionCap).toBe(8);
    expect(budget(body()).completionCap).toBe(1000);
    const boundless = makeOffer({ model: { maxOutputTokens: null } });
    expect(budget(body(), boundless).completionCap).toBe(8192 - Math.ceil((4 + 7) / 4));
    // Four bytes a token are likely.
    const long = body({ messages: [{ role: 'user', content: 'x'.repeat(8188) }] });
    expect(budget(long, boundless).completionCap).toBe(8192 - 2048);
    const endless = body({ messages: [{ role: 'user', content: 'x'.repeat(100_000) }] });
    expect(budget(endless, boundless).completionCap).toBe(8192 / 8);
  });

  it('cuts a cap to what the model gives, and to what the context leaves', () => {
    expect(budget(body({ max_tokens: 32_000 }))).toMatchObject({ completionCap: 1000, keptBy: 'provider' });
    expect(budget(body({ max_completion_tokens: 32_000, n: 2 }))).toMatchObject({
      completionCap: 1000,
      completionTokensMax: 2000,
    });
    expect(budget(body({ max_tokens: 8192 }), makeOffer({ model: { maxOutputTokens: null } })).completionCap).toBe(
      8192 - 3,
    );
  });

  it.each([
    // What the client asked for is sent, where anything can be.
    [{ max_tokens: 7 }, {}, 'provider'],
    [{ max_tokens: 7 }, { maxOutputTokens: null }, 'provider'],
    [{ max_tokens: 7 }, { cap: 'max_completion_tokens' }, 'provider'],
    [{ max_tokens: 7 }, { cap: 'none' }, 'gateway'],
    // Of the model's own bound: where it fits beside the longest that the prompt can be.
    [{}, {}, 'provider'],
    [{}, { contextLength: 1050 }, 'model'],
    [{}, { maxOutputTokens: null }, 'model'],
    [{}, { cap: 'none' }, 'model'],
  ] as const)('with %j at %j its cap is kept by the %s', (asked, model, keptBy) => {
    expect(budget(body(asked), makeOffer({ model })).keptBy).toBe(keptBy);
  });

  it('counts every completion and every image', () => {
    const request = body({ n: 3, max_tokens: 10, messages: [{ role: 'user', content: [picture, picture] }] });
    expect(toUsage(budget(request, FEW), measurePrompt(request), PLAIN)).toEqual({
      prompt: BigInt(4 + 16 + 64 + 4096),
      completion: 30n,
      image: 2n,
    });
    expect(toUsage(budget(body()), measurePrompt(body()), PLAIN)).not.toHaveProperty('image');
  });

  it('is at least what any tokenizer that works on bytes makes of the prompt', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }), { minLength: 1 }), (texts) => {
        const request = body({ messages: texts.map((content) => ({ role: 'user', content })) });
        const bytes = texts.reduce((sum, text) => sum + new TextEncoder().encode(text).length, 0);
        expect(budget(request, makeOffer({ model: { contextLength: 1e9 } })).promptTokensMax).toBeGreaterThanOrEqual(
          bytes + 4 * texts.length,
        );
      }),
    );
  });
});

describe('a request that a model cannot serve', () => {
  const refusal = (request: ChatBody, offer = makeOffer()) => {
    try {
      checkFits(measurePrompt(request), offer);
      return null;
    } catch (error) {
      return error as GatewayError;
    }
  };
  it.each([
    [
      body({ messages: [{ role: 'user', content: [picture] }] }),
      undefined,
      'messages',
      'takes no image input; it takes text',
    ],
    [
      body({ messages: [{ role: 'user', content: [{ type: 'input_audio' }] }] }),
      { inputModalities: ['text', 'image'] },
      'messages',
      'takes no audio input; it takes text, image',
    ],
    [
      body({
        messages: [
          { role: 'user', content: [{ type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=' } }] },
        ],
      }),
      undefined,
      'messages',
      'takes no file input; it takes text',
    ],
  ])('is unprocessable', (request, model, param, words) => {
    const error = refusal(request, makeOffer({ model: model ?? {} }));
    expect(error).toMatchObject({ code: 'unprocessable', param });
    expect(error!.message).toContain(words);
  });

  it('is none when the model can', () => {
    expect(refusal(body({ max_tokens: 32_000 }))).toBeNull();
    expect(
      refusal(
        body({ messages: [{ role: 'user', content: [picture] }] }),
        makeOffer({ model: { inputModalities: ['text', 'image'] } }),
      ),
    ).toBeNull();
  });
});
