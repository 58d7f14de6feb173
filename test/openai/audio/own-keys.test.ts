import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { wavFile } from './support/audio-files.ts';
import { audioBlock } from './support/audio-world.ts';
import { type AudioUpstream, json, startAudio } from './support/audio-upstream.ts';

// Audio with a consumer's own key at the provider: the key goes out, and a part of the price is charged.

const OWN = 'sk-own-0123456789-abcdefgh-WXYZ';
let upstream: AudioUpstream;
let spine: Spine;
let client: OpenAI;
beforeAll(async () => {
  upstream = await startAudio();
  const block = { url: upstream.url, params: ', own_keys = true' };
  spine = await startSpine({
    toml: [
      UNHURRIED,
      audioBlock({ ...block, name: 'acme/voice', output: 'speech', pricing: 'character = 15' }),
      audioBlock({ ...block, name: 'acme/scribe', output: 'transcription', pricing: 'per_minute = 0.006' }),
    ].join('\n'),
  });
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
  expect((await spine.post('/provider-keys', { provider: 'Acme', key: OWN })).status).toBeLessThan(300);
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await upstream.stop();
  }
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
