import { afterAll, beforeAll, expect, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { type AudioWorld, startAudioWorld } from './support/audio-world.ts';
import { events, json } from './support/audio-upstream.ts';

// Speech by OpenAI's SDK as it is on npm, and what each call costs at the prices of the vendors.

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

const SOUND = Buffer.from(Array.from({ length: 50_000 }, (_, at) => at % 251));
const sound = (type = 'audio/mpeg') => ({ type, pieces: [SOUND.subarray(0, 20_000), SOUND.subarray(20_000)] });
const delta = (part: Buffer) => ({ type: 'speech.audio.delta', audio: part.toString('base64') });
const record = (response: Response) => world.spine.generation(response.headers.get('x-generation-id'));
const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());
const last = () => world.upstream.asked.at(-1)!;

/** Reads the rest of a body. Resolves with its number of bytes. */
async function readAll(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<number> {
  let bytes = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) bytes += next.value.byteLength;
  return bytes;
}

/** What a call took from the balance, in micro-USD. */
async function spent(call: () => Promise<unknown>): Promise<bigint> {
  const before = await world.spine.balance();
  await call();
  await world.spine.quiet();
  return before.available - (await world.spine.balance()).available;
}

test('tts-1 costs 15 USD per million characters', async () => {
  world.upstream.answer = () => sound();
  let response!: Response;
  const cost = await spent(async () => {
    response = await world.client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'The gate is open.' });
    expect(await bytesOf(response)).toEqual(SOUND);
  });
  // 17 characters.
  expect(cost).toBe(255n);
  expect(response.headers.get('content-type')).toBe('audio/mpeg');
  expect(response.headers.get('x-accel-buffering')).toBe('no');
  expect(await record(response)).toMatchObject({ state: 'settled', cost_micro_usdc: 255, estimated: false, flags: [] });
  expect(await record(response)).toMatchObject({ usage_details: { character: 17 } });
  expect(last()).toMatchObject({
    path: '/audio/speech',
    json: { model: 'of-tts-1', voice: 'alloy', input: 'The gate is open.' },
  });
  expect(last().json).not.toHaveProperty('stream_format');
});

test('a character outside of the basic plane is one character', async () => {
  world.upstream.answer = () => sound();
  const ask = () => world.client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: '🚪é' });
  expect(await spent(async () => bytesOf(await ask()))).toBe(30n);
});

test('gpt-4o-mini-tts costs 0.60 USD per million tokens in and 12 out, and is asked for the events that have them', async () => {
  world.upstream.answer = () =>
    events(delta(SOUND.subarray(0, 30_000)), delta(SOUND.subarray(30_000)), {
      type: 'speech.audio.done',
      usage: { input_tokens: 14, output_tokens: 101, total_tokens: 115 },
    });
  let response!: Response;
  const cost = await spent(async () => {
    response = await world.client.audio.speech.create({
      model: 'gpt-4o-mini-tts',
      voice: 'coral',
      input: 'The gate is open.',
      instructions: 'Be solemn.',
      response_format: 'wav',
    });
    expect(await bytesOf(response)).toEqual(SOUND);
  });
  // 14 × 0.6 + 101 × 12 = 8.4 + 1212, rounded up.
  expect(cost).toBe(1221n);
  expect(response.headers.get('content-type')).toBe('audio/wav');
  expect(last().json).toMatchObject({ stream_format: 'sse', instructions: 'Be solemn.', response_format: 'wav' });
  expect(await record(response)).toMatchObject({ tokens_prompt: 14, tokens_completion: 101, flags: [] });
});

test('a usage of zeros is none, and the sound is measured', async () => {
  const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
  world.upstream.answer = () => events(delta(SOUND), { type: 'speech.audio.done', usage });
  const ask = { model: 'gpt-4o-mini-tts', voice: 'coral', input: 'x'.repeat(40) };
  const response = await world.client.audio.speech.create(ask);
  expect(await bytesOf(response)).toEqual(SOUND);
  await world.spine.quiet();
  const { cost_micro_usdc: cost, flags } = await record(response);
  expect([cost > 6, flags]).toEqual([true, ['usage_missing']]);
});

test('a service that knows no events is asked without them, and its sound is measured', async () => {
  world.upstream.answer = ({ json: body }) =>
    body!['stream_format'] === 'sse'
      ? json({ error: { message: 'Unknown field: stream_format' } }, 400)
      : { type: 'audio/pcm', pieces: [Buffer.alloc(96_000)] };
  const response = await world.client.audio.speech.create({
    model: 'gpt-4o-mini-tts',
    voice: 'coral',
    input: 'x'.repeat(40),
    response_format: 'pcm',
  });
  expect(await bytesOf(response)).toHaveLength(96_000);
  await world.spine.quiet();
  // 40 bytes are 10 tokens; 2 seconds of 24,000 samples are 42 tokens: 6 + 504.
  expect(await record(response)).toMatchObject({ cost_micro_usdc: 510, estimated: true, flags: ['usage_missing'] });
});

test('the sound comes while it is made', async () => {
  const more = Promise.withResolvers<void>();
  world.upstream.answer = () => ({ ...sound(), until: more.promise });
  const response = await world.client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'x' });
  const reader = response.body!.getReader();
  const first = await reader.read();
  expect(Buffer.from(first.value as Uint8Array)).toEqual(SOUND.subarray(0, first.value!.byteLength));
  more.resolve();
  expect(first.value!.byteLength + (await readAll(reader))).toBe(SOUND.byteLength);
  await world.spine.quiet();
});

test.each([
  ['of a service that streams them', 'gpt-4o-mini-tts', 37],
  ['made of plain sound', 'tts-1', 15],
])('events %s end with the usage and its cost', async (_what, model, cost) => {
  world.upstream.answer = () =>
    model === 'tts-1'
      ? sound()
      : events(delta(SOUND), {
          type: 'speech.audio.done',
          usage: { input_tokens: 1, output_tokens: 3, total_tokens: 4 },
        });
  const response = await world.client.audio.speech.create({ model, voice: 'alloy', input: 'x', stream_format: 'sse' });
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(response.headers.get('cache-control')).toBe('no-cache, no-transform');
  expect(response.headers.get('x-accel-buffering')).toBe('no');
  const found = (await response.text())
    .split('\n\n')
    .filter((text) => text !== '')
    .map((text) => JSON.parse(text.replace(/^data: /, '')) as { type: string; audio?: string; usage?: object });
  const done = found.pop();
  expect(Buffer.concat(found.map(({ audio }) => Buffer.from(audio!, 'base64')))).toEqual(SOUND);
  expect(done).toMatchObject({ type: 'speech.audio.done', usage: { characters: 1, cost: cost / 1e6 } });
  expect(await record(response)).toMatchObject({ cost_micro_usdc: cost });
});

test('a claim beyond the lock is cut to it, and flagged', async () => {
  world.upstream.answer = () =>
    events(delta(SOUND), { type: 'speech.audio.done', usage: { input_tokens: 9_999, output_tokens: 9_999_999 } });
  const response = await world.client.audio.speech.create({ model: 'gpt-4o-mini-tts', voice: 'a', input: 'x' });
  await bytesOf(response);
  await world.spine.quiet();
  // 1 byte and 64; 10.4 s of 25 tokens: 65 × 0.6 + 260 × 12.
  expect(await record(response)).toMatchObject({
    cost_micro_usdc: 3159,
    flags: ['usage_implausible'],
    claims: [
      { meter: 'prompt', claimed: 9_999, most: 65 },
      { meter: 'audio_output', claimed: 9_999_999, most: 260 },
    ],
  });
});

test.each([
  ['an error in place of sound', json({ error: { message: 'boom' } })],
  ['no sound', { type: 'audio/mpeg', pieces: [] }],
  ['a page', { type: 'text/html', pieces: ['<html>'] }],
  ['a failure', json({ error: { message: 'boom' } }, 500)],
  ['an error in the stream', events({ type: 'error', error: { message: 'boom' } })],
  ['a stream without an end', events(delta(Buffer.alloc(0)))],
])('%s is free', async (_what, reply) => {
  world.upstream.answer = () => reply;
  const cost = await spent(async () => {
    await expect(
      world.client.audio.speech.create({ model: 'gpt-4o-mini-tts', voice: 'alloy', input: 'x' }),
    ).rejects.toThrow(/Provider Acme failed/);
  });
  expect(cost).toBe(0n);
});

test('sound that breaks off ends with a broken connection, and is free', async () => {
  const more = Promise.withResolvers<void>();
  world.upstream.answer = () => ({ ...sound(), until: more.promise, cut: true });
  const cost = await spent(async () => {
    const response = await world.client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'x' });
    const reader = response.body!.getReader();
    await reader.read();
    more.resolve();
    await expect(readAll(reader)).rejects.toThrow();
  });
  expect(cost).toBe(0n);
});

test(
  'a client that leaves pays for the speech that was made for it',
  async () => {
    const more = Promise.withResolvers<void>();
    world.upstream.answer = () => ({ ...sound(), until: more.promise });
    const cost = await spent(async () => {
      const left = new AbortController();
      const response = await world.client.audio.speech.create(
        { model: 'tts-1', voice: 'alloy', input: 'ten chars.' },
        { signal: left.signal },
      );
      await response.body!.getReader().read();
      left.abort();
      more.resolve();
    });
    expect(cost).toBe(150n);
  },
  atThisLoad(30_000),
);

test.each<[object, RegExp]>([
  [{ input: '' }, /input must be a text of 1 to 100000 characters/],
  [{ voice: undefined }, /voice is required/],
  [{ response_format: 'midi' }, /response_format must be one of mp3, opus, aac, flac, wav, pcm/],
  [{ speed: 5 }, /speed must be a number from 0.25 to 4/],
  [{ stream_format: 'ndjson' }, /stream_format must be audio or sse/],
])('a request with %j is refused by name', async (wrong, words) => {
  const reply = await world.spine.post('/audio/speech', { model: 'tts-1', voice: 'a', input: 'x', ...wrong });
  expect(reply.status).toBe(400);
  expect(await reply.text()).toMatch(words);
});

test('fields that a service might speak are not sent to it', async () => {
  world.upstream.answer = () => sound();
  const unpriced = { text: 'unpriced', messages: [{ role: 'user', content: 'unpriced' }], ssml: '<speak/>' };
  const reply = await world.spine.post('/audio/speech', { model: 'tts-1', voice: 'a', input: 'x', ...unpriced });
  await reply.arrayBuffer();
  expect(reply.headers.get('x-tollgate-dropped')).toBe('text, messages, ssml');
  expect(last().json).toEqual({ model: 'of-tts-1', voice: 'a', input: 'x' });
});

test('each route names the one that a model is for', async () => {
  const { audio, chat } = world.client;
  await expect(audio.speech.create({ model: 'whisper-1', voice: 'a', input: 'x' })).rejects.toThrow(
    /422 whisper-1 transcribes files. Call it at \/audio\/transcriptions/,
  );
  await expect(audio.speech.create({ model: 'test/model', voice: 'a', input: 'x' })).rejects.toThrow(
    /422 test\/model makes no speech. Call it at \/chat\/completions/,
  );
  await expect(chat.completions.create({ model: 'tts-1', messages: [{ role: 'user', content: 'x' }] })).rejects.toThrow(
    /422 tts-1 makes speech. Call it at \/audio\/speech/,
  );
});

test('a request that comes again with its key is answered the same and charged once', async () => {
  world.upstream.answer = () => sound();
  const before = world.upstream.asked.length;
  const send = () =>
    world.spine.post(
      '/audio/speech',
      { model: 'tts-1', voice: 'a', input: 'again' },
      { 'idempotency-key': 'speech-1' },
    );
  const cost = await spent(async () => {
    expect(await bytesOf(await send())).toEqual(SOUND);
    const again = await send();
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await bytesOf(again)).toEqual(SOUND);
  });
  expect(cost).toBe(75n);
  expect(world.upstream.asked.length).toBe(before + 1);
});

test('a long recording passes whole, and is kept for a repeat', async () => {
  const recording = Buffer.alloc(12 * 1024 * 1024, 7);
  world.upstream.answer = () => ({ type: 'audio/wav', pieces: [recording.subarray(0, 100), recording.subarray(100)] });
  const body = { model: 'tts-1', voice: 'a', input: 'long', response_format: 'wav' };
  const send = () => world.spine.post('/audio/speech', body, { 'idempotency-key': 'speech-long' });
  expect((await bytesOf(await send())).equals(recording)).toBe(true);
  const again = await send();
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect((await bytesOf(again)).equals(recording)).toBe(true);
});

test('a quote is the most that the speech can cost', async () => {
  const quote = await world.spine.post('/quotes', {
    primitive: 'model',
    model: 'tts-1',
    voice: 'a',
    input: 'x'.repeat(100),
  });
  expect(await quote.json()).toMatchObject({ valid: true, price_micro_usdc: 1500 });
});

test('without money nobody is asked', async () => {
  const { key } = await world.spine.tenant('poor-speaker', '0.0001');
  const count = world.upstream.asked.length;
  const body = { model: 'tts-1', voice: 'a', input: 'x'.repeat(100) };
  expect((await world.spine.post('/audio/speech', body, { authorization: `Bearer ${key}` })).status).toBe(402);
  expect(world.upstream.asked.length).toBe(count);
});
