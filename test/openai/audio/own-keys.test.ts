import OpenAI, { toFile } from 'openai';
import { beforeAll, expect, test } from 'vitest';
import { UNHURRIED } from '../../support/spine.ts';
import { wavFile } from './support/audio-files.ts';
import { audioBlock } from './support/audio-world.ts';
import { json, startAudio } from './support/audio-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Audio with a consumer's own key at the provider: the key goes out, and a part of the price is charged.

const OWN = 'sk-own-0123456789-abcdefgh-WXYZ';
let client: OpenAI;
const upstream = ofFile(startAudio, (one) => one.stop());
const spine = spineOfFile(() => {
  const block = { url: upstream.url, params: ', own_keys = true' };
  return {
    toml: [
      UNHURRIED,
      audioBlock({ ...block, name: 'acme/voice', output: 'speech', pricing: 'character = 15' }),
      audioBlock({ ...block, name: 'acme/scribe', output: 'transcription', pricing: 'per_minute = 0.006' }),
    ].join('\n'),
  };
});
beforeAll(async () => {
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
  expect((await spine.post('/provider-keys', { provider: 'Acme', key: OWN })).status).toBeLessThan(300);
});

const record = (response: Response) => spine.generation(response.headers.get('x-generation-id'));

test('speech', async () => {
  upstream.answer = () => ({ type: 'audio/mpeg', pieces: ['sound'] });
  const response = await client.audio.speech.create({ model: 'acme/voice', voice: 'a', input: 'x'.repeat(100) });
  await response.arrayBuffer();
  await spine.quiet();
  expect(upstream.asked.at(-1)!.headers['authorization']).toBe(`Bearer ${OWN}`);
  // 5 % of 1,500.
  expect(await record(response)).toMatchObject({ cost_micro_usdc: 75, fee_micro_usdc: 75, is_byok: true });
});

test('a transcription', async () => {
  upstream.answer = () => json({ text: 'heard', usage: { type: 'duration', seconds: 60 } });
  const { response } = await client.audio.transcriptions
    .create({ model: 'acme/scribe', file: await toFile(wavFile(60), 'a.wav') })
    .withResponse();
  await spine.quiet();
  expect(upstream.asked.at(-1)!.headers['authorization']).toBe(`Bearer ${OWN}`);
  // 5 % of 6,000.
  expect(await record(response)).toMatchObject({ cost_micro_usdc: 300, fee_micro_usdc: 300, is_byok: true });
});
