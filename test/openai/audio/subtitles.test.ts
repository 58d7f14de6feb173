import { toFile } from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { wavFile } from './support/audio-files.ts';
import { type AudioWorld, startAudioWorld } from './support/audio-world.ts';
import { json } from './support/audio-upstream.ts';

// Subtitles of providers that know no `srt` and `vtt`, and answer in JSON.

let world: AudioWorld;
beforeAll(async () => {
  world = await startAudioWorld();
});
afterAll(async () => {
  try {
    expect(await world.spine.faults()).toEqual([]);
  } finally {
    await world.stop();
  }
});

const WORDS = 'What is a tollgate?';
const SEGMENTS = [
  { id: 0, start: 0, end: 2.5, text: ' What is' },
  { id: 1, start: 3_725.04, end: 3_730, text: ' a\r\n\r\ntollgate?' },
];
test.each([
  [
    'srt',
    '1\n00:00:00,000 --> 00:00:02,500\nWhat is\n\n2\n01:02:05,040 --> 01:02:10,000\na\ntollgate?\n',
    '1\n00:00:00,000 --> 00:00:02,500\nWhat is\n',
  ],
  [
    'vtt',
    'WEBVTT\n\n00:00:00.000 --> 00:00:02.500\nWhat is\n\n01:02:05.040 --> 01:02:10.000\na\ntollgate?\n',
    'WEBVTT\n\n00:00:00.000 --> 00:00:02.500\nWhat is\n',
  ],
] as const)('%s of a provider that answers in JSON is made of its segments', async (format, made, passed) => {
  const ask = async () =>
    world.client.audio.transcriptions.create({
      model: 'whisper-1',
      file: await toFile(wavFile(8.5), 'spoken.wav'),
      response_format: format,
    });
  world.upstream.answer = () => json({ text: WORDS, segments: SEGMENTS });
  expect(await ask()).toBe(made);
  world.upstream.answer = () => json({ text: passed });
  expect(await ask()).toBe(passed);
  // Words without times would be no subtitles, so the provider has failed, and the call is free.
  const { available } = await world.spine.balance();
  for (const reply of [{ text: WORDS }, { text: WORDS, segments: [{ start: 0, text: WORDS }] }]) {
    world.upstream.answer = () => json(reply);
    await expect(ask()).rejects.toMatchObject({ status: 500 });
  }
  await world.spine.quiet();
  expect((await world.spine.balance()).available).toBe(available);
});
