import { OpenRouter } from '@openrouter/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { wavFile } from './support/audio-files.ts';
import { type AudioWorld, startAudioWorld } from './support/audio-world.ts';
import { json } from './support/audio-upstream.ts';

// Speech and transcriptions by OpenRouter's SDK as it is on npm.

let world: AudioWorld;
let client: OpenRouter;
beforeAll(async () => {
  world = await startAudioWorld();
  client = new OpenRouter({
    serverURL: world.spine.url,
    apiKey: world.spine.key,
    retryConfig: { strategy: 'none' },
  });
});
afterAll(async () => {
  try {
    expect(await world.spine.faults()).toEqual([]);
  } finally {
    await world.stop();
  }
});

test('speech', async () => {
  world.upstream.answer = () => ({ type: 'audio/mpeg', pieces: ['sound'] });
  const speechRequest = { model: 'tts-1', voice: 'alloy', input: 'The gate is open.', responseFormat: 'mp3' } as const;
  expect(await new Response(await client.tts.createSpeech({ speechRequest })).text()).toBe('sound');
});

test('a transcription of an uploaded file', async () => {
  world.upstream.answer = () => json({ text: 'heard', usage: { type: 'duration', seconds: 9 } });
  const file = new File([new Uint8Array(wavFile(8.5))], 'a.wav', { type: 'audio/wav' });
  const reply = await client.stt.createTranscriptionMultipart({ requestBody: { model: 'whisper-1', file } });
  expect(reply).toMatchObject({ text: 'heard', usage: { seconds: 9, cost: 0.0009 } });
});
