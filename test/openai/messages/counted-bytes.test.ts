import { tokenizedBytes } from '#catalog';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { messagesSchema, type MessagesBody } from '../../../src/openai/messages/schema.ts';
import { decodeRequest } from '../../../src/openai/messages/decode-request.ts';
import { measurePrompt } from '../../../src/openai/chat/request/prompt-size.ts';
import { wireRequest } from '../translated/support/wire-request.ts';
import { createReadBody } from '../../../src/openai/translated/translated-route.ts';
import { measureNative } from '../../../src/openai/native/native-request.ts';
import { MESSAGES_PASSTHROUGH } from '../../../src/openai/messages/passthrough.ts';

import { anyCharacter } from '../../support/any-character.ts';

const runs = process.env['TOLLGATE_DEEP'] === '1' ? 50_000 : 60;
const LIMITS = { jsonDepthMax: 64, jsonKeysMax: 10_000 } as Parameters<typeof createReadBody>[0];

test('the bytes of all texts of a prompt are counted, whatever they are and however they are written', async () => {
  const read = createReadBody<MessagesBody>(LIMITS, messagesSchema(100, true));
  const said = fc.array(anyCharacter, { minLength: 1, maxLength: 12 }).map((signs) => signs.join(''));
  const text = fc.tuple(said, fc.constantFrom(1, 1, 1, 300, 1_500)).map(([one, times]) => one.repeat(times));
  await fc.assert(
    fc.asyncProperty(
      text,
      fc.array(text, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      async (system, asked, escaped) => {
        const json = JSON.stringify({
          model: 'm',
          system,
          // They take turns, as messages of one role in a row become one.
          messages: asked.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content })),
        });
        const written = escaped
          ? json.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
          : json;
        const body = await read(Buffer.from(written), {});
        const { bytes, added, messages, images } = measurePrompt(decodeRequest(body, wireRequest()).body);
        const roles = ['system', ...asked.map((_one, index) => (index % 2 === 0 ? 'user' : 'assistant'))];
        const texts = [system, ...asked, ...roles].reduce((sum, one) => sum + tokenizedBytes(one), 0);
        expect({ bytes: bytes + added, messages, images }).toEqual({
          bytes: texts,
          messages: asked.length + 1,
          images: 0,
        });
      },
    ),
    { numRuns: runs },
  );
});

test.each([
  ['as it is', 'say \ufdfa'],
  ['escaped', 'say \\ufdfa'],
  ['in a pair of escapes', 'say \\ud834\\udd60'],
])('what a tokenizer adds to a body that passes as it came is counted: %s', (_how, written) => {
  const text = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"${written}"}]}`;
  const asked = JSON.parse(text) as MessagesBody & Readonly<Record<string, unknown>>;
  const said = (asked.messages[0] as { readonly content: string }).content;
  const added = tokenizedBytes(said) - Buffer.byteLength(said);
  expect(added).toBeGreaterThan(0);
  expect(measureNative({ wire: MESSAGES_PASSTHROUGH, text, requestBody: asked })).toMatchObject({
    bytes: Buffer.byteLength(text),
    added,
  });
});
