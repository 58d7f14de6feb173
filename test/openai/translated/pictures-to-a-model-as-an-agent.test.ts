import { expect, test } from 'vitest';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { completion, startTranscripts } from './support/transcript-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Pictures as clients write them, in a message to a model as an agent: its provider gets what it can read. Those of
// chat wires are in test/corpus.

const CHAT = 'acme/chat';
const upstream = ofFile(startTranscripts, (one) => one.stop());
const spine = spineOfFile(() => {
  upstream.answer = () => ({ body: completion({ content: 'ok' }) });
  const lines = 'input_modalities = ["text", "image"]';
  return {
    toml: UNHURRIED + modelBlock({ name: CHAT, provider: 'Acme', url: upstream.url, lines }),
  };
});

/** Bytes whose base64 has both characters that the alphabet of URLs replaces, and padding. */
const BYTES = Buffer.from([0xfb, 0xff, 0xbf, 0x89, 0x50, 0x4e, 0x47]);
const BASE64 = BYTES.toString('base64');

/** The URLs of the pictures that the provider got. */
const picturesSent = () =>
  (upstream.asked.at(-1)!['messages'] as { content: unknown }[])
    .flatMap(({ content }) => (Array.isArray(content) ? (content as { image_url?: { url: string } }[]) : []))
    .flatMap(({ image_url: image }) => (image === undefined ? [] : [image.url]));

const send = (mimeType: string, bytes: string) => {
  const parts = [{ kind: 'file', file: { mimeType, bytes } }];
  const message = { role: 'user', messageId: 'm', kind: 'message', parts };
  return fetch(`${spine.origin}/a2a/model/${CHAT}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } }),
  });
};

test.each([
  ['as it should be', 'image/png', BASE64, 'image/png'],
  ['with line ends', 'image/png', `${BASE64.slice(0, 4)}\r\n${BASE64.slice(4)}\n`, 'image/png'],
  ['in the alphabet of URLs, without padding', 'image/png', BYTES.toString('base64url'), 'image/png'],
  ['as image/jpg', 'image/jpg', BASE64, 'image/jpeg'],
  ['in capitals', 'IMAGE/PNG', BASE64, 'image/png'],
])('%s', async (_how, type, data, sent) => {
  const reply = await send(type, data);
  expect(reply.status, await reply.text()).toBe(200);
  expect(picturesSent()).toEqual([`data:${sent};base64,${BASE64}`]);
});
