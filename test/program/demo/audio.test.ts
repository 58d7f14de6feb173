import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runDemoProvider, type DemoProvider } from '../../../src/program/demo/provider.ts';
import { measureAudio } from '../../../src/openai/audio/measure/measure-audio.ts';

// The demo speaks in tones, and reads the text in its own files.

let demo: DemoProvider;
let client: OpenAI;
beforeAll(async () => {
  demo = await runDemoProvider();
  client = new OpenAI({ baseURL: demo.url, apiKey: 'none', maxRetries: 0 });
});
afterAll(() => demo.close());

const WORDS = 'Ein Zöllner fragt: „Wohin?“';
const speak = async (more: object = {}) => {
  const response = await client.audio.speech.create({ model: 'demo/speech', voice: 'any', input: WORDS, ...more });
  return Buffer.from(await response.arrayBuffer());
};

test('what it says it understands', async () => {
  const file = await speak({ response_format: 'wav' });
  const heard = await client.audio.transcriptions.create({
    model: 'demo/transcription',
    file: await toFile(file, 'a.wav'),
  });
  expect(heard).toMatchObject({ text: WORDS, usage: { type: 'duration', seconds: 2 } });
  // 27 letters of 60 ms.
  expect(await measureAudio(file, 'x')).toMatchObject({ format: 'wav', seconds: expect.closeTo(1.62, 2) });
});

test('samples alone, at another speed', async () => {
  expect(await speak({ response_format: 'pcm', speed: 2 })).toHaveLength(27 * 480 * 2);
});

test.each([
  ['text', `${WORDS}\n`],
  ['verbose_json', expect.objectContaining({ text: WORDS, duration: 2 })],
] as const)('as %s', async (format, expected) => {
  const file = await toFile(await speak(), 'a.wav');
  const heard: unknown = await client.audio.transcriptions.create({
    model: 'demo/transcription',
    file,
    response_format: format,
  });
  expect(heard).toEqual(expected);
});

test('a sound of somebody else it does not understand', async () => {
  const file = await toFile(Buffer.alloc(100), 'a.wav');
  const { text } = await client.audio.transcriptions.create({ model: 'demo/transcription', file });
  expect(text).toContain('only what demo/speech says');
});

test.each([
  [{ response_format: 'mp3' as const }, /wav and pcm/],
  [{ input: '' }, /input must be/],
])('%j is refused', async (wrong, words) => {
  await expect(speak(wrong)).rejects.toThrow(words);
});
