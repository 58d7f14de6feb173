import { afterAll, beforeAll, expect, test } from 'vitest';
import { ReadingThread } from '#wire/replies';
import { measureAudio } from '../../src/openai/audio/measure/measure-audio.ts';
import { adtsFile, wavFile } from '../openai/audio/support/audio-files.ts';
import { json } from '../openai/audio/support/audio-upstream.ts';
import { audioBlock, startAudioWorld, type AudioWorld } from '../openai/audio/support/audio-world.ts';
import { LACED, manyPackets } from '../openai/audio/support/many-packets.ts';

// Files with sound are measured before anything is locked, in threads that all accounts share.

let world: AudioWorld;
beforeAll(async () => {
  world = await startAudioWorld();
  world.upstream.answer = () => json({ text: 'Hello', usage: { type: 'duration', seconds: 1 } });
  const block = audioBlock({ name: 'free', output: 'transcription', pricing: '', url: world.upstream.url });
  free = await startAudioWorld(block.replace('completion = 0, ', 'completion = 0'));
  free.upstream.answer = world.upstream.answer;
});
let free: AudioWorld;
afterAll(async () => {
  try {
    expect([...(await world.spine.faults()), ...(await free.spine.faults())]).toEqual([]);
  } finally {
    await world.stop();
    await free.stop();
  }
});

async function transcribe(at: AudioWorld, key: string, model: string, file: Buffer) {
  const form = new FormData();
  form.set('model', model);
  form.set('file', new File([new Uint8Array(file)], 'a.webm'));
  const headers = { authorization: `Bearer ${key}` };
  const reply = await fetch(`${at.spine.url}/audio/transcriptions`, { method: 'POST', headers, body: form });
  return { status: reply.status, body: (await reply.json()) as { error?: { type: string; message: string } } };
}

const NO_SOUND = Buffer.from('What is a tollgate?');
/** Takes some tenths of a second, and is as large as a small file can be. */
const SLOW = manyPackets(100_000);

test('an account without money is refused before its file is measured, and a free model takes it', async () => {
  const { key } = await free.spine.tenant('poor', '0');
  expect(await transcribe(free, key, 'whisper-1', NO_SOUND)).toMatchObject({
    body: { error: { type: 'escrow_not_setup' } },
  });
  expect(await transcribe(free, key, 'free', NO_SOUND)).toMatchObject({
    status: 400,
    body: { error: { message: expect.stringContaining('file has no sound that can be measured') } },
  });
  expect(await transcribe(free, key, 'free', wavFile(1))).toMatchObject({ status: 200 });
});

test('an account that has less than the least is told so, as by its lock', async () => {
  const { key } = await free.spine.tenant('nearly-poor', '0.000001');
  expect(await transcribe(free, key, 'whisper-1', NO_SOUND)).toMatchObject({
    status: 402,
    body: { error: { type: 'insufficient_balance', message: expect.stringContaining('estimated cost') } },
  });
});

test('accounts without money have one turn together', async () => {
  const poor = await Promise.all(Array.from({ length: 6 }, (_, at) => free.spine.tenant(`poor-${at}`, '0')));
  let ended = 0;
  const first = Promise.withResolvers<void>();
  const sent = poor.map(({ key }) =>
    transcribe(free, key, 'free', SLOW).then((reply) => {
      ended += 1;
      first.resolve();
      return reply.status;
    }),
  );
  await first.promise;
  expect(await transcribe(free, free.spine.key, 'whisper-1', wavFile(1))).toMatchObject({ status: 200 });
  expect(ended).toBeLessThan(5);
  expect(await Promise.all(sent)).toEqual(poor.map(() => 200));
});

test('a file that takes too much of a processor is ended, and the next one has its turn', async () => {
  const thread = new ReadingThread(64);
  const module = (text: string) => new URL(`data:text/javascript,${encodeURIComponent(text)}`);
  const endless = module('export const run = async () => { for (;;); };');
  const short = module('export const run = async () => ({ value: 1, transfer: [] });');
  const first = thread.readFile('greedy', endless, new Uint8Array(1), 300);
  const next = thread.readFile('patient', short, new Uint8Array(1), 300);
  await expect(first).rejects.toThrow('it took more than 300 ms of a processor');
  expect(await next).toBe(1);
});

test('a small file does not wait for large ones', async () => {
  const large = Array.from({ length: 3 }, (_, at) => measureAudio(manyPackets(155_000), `large-${at}`));
  let ended = 0;
  for (const one of large) void one.then(() => (ended += 1));
  expect(await measureAudio(wavFile(1), 'small')).toMatchObject({ seconds: 1 });
  expect(ended).toBeLessThan(large.length - 1);
  await Promise.all(large);
});

test.each<[string, () => Buffer]>([
  ['blocks of seven bytes', () => manyPackets(4_500_000)],
  ['blocks of seven bytes behind a byte that is no element', () => manyPackets(500_000, { before: Buffer.alloc(1) })],
  ['blocks with 255 packets', () => manyPackets(2_000, { block: LACED })],
  ['frames of AAC', () => adtsFile(Array.from({ length: 460_000 }, () => 0))],
])('a file with more packets than two and a half hours have is refused: %s', async (_what, make) => {
  await expect(measureAudio(make(), 'greedy')).rejects.toMatchObject({
    code: 'invalid_request',
    cause: { message: expect.stringMatching(/it has more packets than sound has|of a processor/) },
  });
});
