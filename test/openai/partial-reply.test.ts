import { describe, expect, it } from 'vitest';
import { outputBytesMax } from '../../src/openai/chat/reply/output-bound.ts';
import { CHAT_NAMES, nativeNames, partialCompletion, partialOf } from '../../src/openai/chat/reply/partial-reply.ts';
import { CONTEXT, USAGE } from './support/replies.ts';

const read = (text: string | Buffer) =>
  partialCompletion(CONTEXT, partialOf({ bytes: Buffer.from(text as string), names: CHAT_NAMES }));
const textsOf = (text: string | Buffer) =>
  (read(text).body['choices'] as { message: { content: string } }[]).map(({ message }) => message.content);

describe('what there is of a whole reply that was cut', () => {
  it('is its texts, each a choice that ended by its length', () => {
    const { body, outputBytes, choices } = read(
      '{"choices":[{"message":{"role":"assistant","content":"one"}},{"message":{"content" : 7,"content": "tw',
    );
    expect(body).toMatchObject({
      id: 'gen-1',
      object: 'chat.completion',
      model: 'acme/small',
      choices: [
        { index: 0, message: { role: 'assistant', content: 'one' }, finish_reason: 'length' },
        { index: 1, message: { content: 'tw' }, finish_reason: 'length' },
      ],
    });
    expect([outputBytes, choices]).toEqual([5, 2]);
  });

  it('counts thoughts and arguments, and no log probabilities', () => {
    const reply = {
      message: { reasoning: 'abcd', content: 'ef', tool_calls: [{ function: { arguments: '{}' } }] },
      logprobs: { content: [{ token: 'ef' }] },
    };
    expect(read(JSON.stringify({ choices: [reply] })).outputBytes).toBe(8);
  });

  it('counts reasoning that is given under both of its names once', () => {
    expect(
      read('{"choices":[{"message":{"reasoning":"abcd","reasoning_content":"abcd","content":"ef').outputBytes,
    ).toBe(6);
  });

  it('counts pictures and sound, as far as they came', () => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(400)}` } };
    const link = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
    const message = { content: '', images: [image, image, link], audio: { id: 'a', data: 'AAAA'.repeat(100) } };
    const whole = JSON.stringify({ choices: [{ message }] });
    expect(read(whole)).toMatchObject({ pictures: 2, soundBytes: 300, otherBytes: 2 * 422 + 400 });
    expect(read(whole.slice(0, whole.indexOf('base64') + 57))).toMatchObject({ pictures: 1, otherBytes: 72 });
    // A text that has such a key in it has none.
    expect(read(JSON.stringify({ choices: [{ message: { content: whole } }] })).pictures).toBe(0);
  });

  it.each([
    ['Gemini', { parts: [{ inlineData: { mimeType: 'image/png', data: `iVBOR${'A'.repeat(395)}` } }] }, 1, 0],
    ['Gemini, sound', { parts: [{ inlineData: { mimeType: 'audio/pcm', data: 'A'.repeat(400) } }] }, 0, 300],
    ['Responses', { output: [{ type: 'image_generation_call', result: `/9j/${'A'.repeat(396)}` }] }, 1, 0],
    [
      'Responses, a result that is no picture',
      { output: [{ type: 'web_search_call', result: 'A'.repeat(400) }] },
      0,
      0,
    ],
  ])('counts those of %s', (_wire, reply, pictures, soundBytes) => {
    expect(partialOf({ bytes: Buffer.from(JSON.stringify(reply)), names: nativeNames('usage') })).toMatchObject({
      pictures,
      soundBytes,
    });
  });

  it('gives out no more than the tokens that were asked for can be', () => {
    const { body, outputBytes } = read(`{"content":"${'x'.repeat(100_000)}","content":"more`);
    expect(JSON.stringify(body).length).toBeLessThan(outputBytesMax(CONTEXT.budget) + 500);
    expect(outputBytes).toBe(100_004);
  });

  it.each(['€', '🌍', 'a🌍'])('counts what it gives out in bytes, in whole characters: %s', (character) => {
    const most = outputBytesMax(CONTEXT.budget);
    const all = textsOf(`{"content":"${character.repeat(most)}","content":"${character.repeat(most)}"}`).join('');
    expect(Buffer.byteLength(all)).toBeLessThanOrEqual(most);
    expect(Buffer.byteLength(all)).toBeGreaterThan(most - 4);
    expect(all).not.toContain('\u{fffd}');
    expect(all.isWellFormed()).toBe(true);
  });

  it('takes no key for one that stands in a text', () => {
    const content = JSON.stringify({ content: 'no', usage: { prompt_tokens: 0 } });
    expect(textsOf(JSON.stringify({ choices: [{ message: { content } }] }))).toEqual([content]);
    expect(read(JSON.stringify({ choices: [{ message: { content } }] })).claim).toBeNull();
  });

  it('can be cut at any byte', () => {
    const content = 'a"\\\\ \n € 🌍 \u0007 \\" end';
    const whole = Buffer.from(
      JSON.stringify({ choices: [{ message: { content } }], usage: { ...USAGE, details: { reasoning_tokens: 1 } } }),
    );
    const escaped = Buffer.from(whole.toString().replace('🌍', '\\ud83c\\udf0d'));
    for (const bytes of [whole, escaped]) {
      for (let length = 0; length <= bytes.length; length++) {
        const [text] = textsOf(bytes.subarray(0, length));
        expect(
          content.replace('🌍', '\u{fffd}').startsWith(text!) || content.startsWith(text!),
          `${length}: ${text}`,
        ).toBe(true);
      }
      expect(textsOf(bytes)).toEqual([content]);
      expect(read(bytes).claim).toMatchObject(USAGE);
      expect(read(bytes.subarray(0, -2)).claim).toBeNull();
    }
  });

  it('takes time in proportion to its bytes', () => {
    const backslashes = `{"content":"${'\\'.repeat(8 * 1024 * 1024 + 1)}`;
    expect(read(backslashes).outputBytes).toBe(4 * 1024 * 1024);
    expect(read('"content":"","content":"x'.repeat(100_000)).outputBytes).toBeGreaterThan(0);
  });
});
