import { toFile } from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { mp3File, opusFile, wavFile } from './support/audio-files.ts';
import { type AudioWorld, startAudioWorld } from './support/audio-world.ts';
import { events, json } from './support/audio-upstream.ts';

// Transcriptions and translations by OpenAI's SDK as it is on npm, and what each costs at the prices of the vendors.

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
const file = (seconds = 8.5, name = 'spoken.wav') => toFile(wavFile(seconds), name);
const record = (response: Response) => world.spine.generation(response.headers.get('x-generation-id'));
const last = () => world.upstream.asked.at(-1)!;
const TOKENS = {
  type: 'tokens',
  input_tokens: 24,
  input_token_details: { text_tokens: 10, audio_tokens: 14 },
  output_tokens: 45,
  total_tokens: 69,
};

async function spent(call: () => Promise<unknown>): Promise<bigint> {
  const before = await world.spine.balance();
  await call();
  await world.spine.quiet();
  return before.available - (await world.spine.balance()).available;
}

test('whisper-1 costs 0.006 USD a minute', async () => {
  world.upstream.answer = () => json({ text: WORDS, usage: { type: 'duration', seconds: 9 } });
  const { data, response } = await world.client.audio.transcriptions
    .create({ model: 'whisper-1', file: await file(), language: 'en', temperature: 0.2 })
    .withResponse();
  expect(data).toMatchObject({ text: WORDS, usage: { type: 'duration', seconds: 9, cost: 0.0009 } });
  expect(response.headers.get('x-cost-usd')).toBe('0.0009');
  expect(await record(response)).toMatchObject({ state: 'settled', cost_micro_usdc: 900, estimated: false, flags: [] });
  expect(last()).toMatchObject({
    path: '/audio/transcriptions',
    fields: [
      ['model', 'of-whisper-1'],
      ['language', 'en'],
      ['temperature', '0.2'],
    ],
    file: { name: 'audio.wav', type: 'audio/wav' },
  });
  expect(last().file!.bytes).toEqual(wavFile(8.5));
});

test.each([
  [{ type: 'duration', seconds: 60 }, 6_000],
  [{ type: 'duration', seconds: 0 }, 6_000],
  [{ type: 'duration', seconds: 61 }, 6_100],
  // More than the minute that is in the file, and a second.
  [{ type: 'duration', seconds: 600 }, 6_100],
  [undefined, 6_000],
])('a minute of sound with the usage %j costs %i micro-USD', async (usage, cost) => {
  world.upstream.answer = () => json({ text: WORDS, usage });
  const { response } = await world.client.audio.transcriptions
    .create({ model: 'whisper-1', file: await file(60) })
    .withResponse();
  await world.spine.quiet();
  expect(await record(response)).toMatchObject({
    cost_micro_usdc: cost,
    flags: usage?.seconds === 600 ? ['usage_implausible'] : [],
    claims: usage?.seconds === 600 ? [{ meter: 'second', claimed: 600, most: 61 }] : [],
  });
});

test('sound that a file hides is paid where nobody reports its length', async () => {
  world.upstream.answer = () => ({ type: 'text/plain', pieces: [WORDS] });
  const hidden = mp3File(2_000, { disguised: true });
  const { response } = await world.client.audio.transcriptions
    .create({ model: 'whisper-1', file: await toFile(hidden, 'a.mp3'), response_format: 'text' })
    .withResponse();
  await world.spine.quiet();
  // At least the 52 seconds that a decoder plays, at 0.006 USD a minute.
  expect((await record(response)).cost_micro_usdc).toBeGreaterThan(5_200);
});

test('gpt-4o-transcribe costs 2.50 USD per million tokens in, 6 of sound, and 10 out', async () => {
  world.upstream.answer = () => json({ text: WORDS, usage: TOKENS });
  const { data, response } = await world.client.audio.transcriptions
    .create({ model: 'gpt-4o-transcribe', file: await file(), include: ['logprobs'], prompt: 'tollgate' })
    .withResponse();
  // 10 × 2.5 + 14 × 6 + 45 × 10 = 25 + 84 + 450.
  expect(data).toMatchObject({ text: WORDS, usage: { ...TOKENS, cost: 0.000559 } });
  expect(await record(response)).toMatchObject({ cost_micro_usdc: 559, tokens_prompt: 24, tokens_completion: 45 });
  expect(last().fields).toContainEqual(['include[]', 'logprobs']);
});

const ZEROS = { type: 'tokens', input_tokens: 0, output_tokens: 0, total_tokens: 0 };
test.each([{}, { usage: ZEROS }])('tokens that nobody reports are estimated: %j', async (more) => {
  world.upstream.answer = () => json({ text: ''.padEnd(400 - JSON.stringify(more).length + 2, 'x'), ...more });
  const { data, response } = await world.client.audio.transcriptions
    .create({ model: 'gpt-4o-transcribe', file: await file(10) })
    .withResponse();
  await world.spine.quiet();
  // 10 seconds of 10 tokens; the reply has 411 bytes, 103 tokens: 600 + 1030.
  expect(data).toMatchObject({ usage: { type: 'tokens', estimated: true, cost: 0.00163 } });
  expect(await record(response)).toMatchObject({ cost_micro_usdc: 1630, estimated: true, flags: ['usage_missing'] });
});

test('a claim of tokens beyond the lock is cut to it, and flagged', async () => {
  const claim = { input_tokens: 1e6, output_tokens: 1e6, input_token_details: { text_tokens: 0, audio_tokens: 1e6 } };
  world.upstream.answer = () => json({ text: WORDS, usage: { type: 'tokens', ...claim } });
  const { response } = await world.client.audio.transcriptions
    .create({ model: 'gpt-4o-transcribe', file: await file(10) })
    .withResponse();
  await world.spine.quiet();
  // 11 s of 32 tokens, and 11 s of 25 tokens and 256: 352 × 6 + 531 × 10.
  expect(await record(response)).toMatchObject({
    cost_micro_usdc: 7_422,
    flags: ['usage_implausible'],
    claims: [
      { meter: 'audio', claimed: 1e6, most: 352 },
      { meter: 'completion', claimed: 1e6, most: 531 },
    ],
  });
});

test('verbose_json has its duration, which is billed', async () => {
  const segments = [{ id: 0, start: 0, end: 8.47, text: WORDS }];
  world.upstream.answer = () =>
    json({ task: 'transcribe', language: 'english', duration: 8.470000267, text: WORDS, segments });
  const { data, response } = await world.client.audio.transcriptions
    .create({
      model: 'whisper-1',
      file: await file(),
      response_format: 'verbose_json',
      timestamp_granularities: ['segment', 'word'],
    })
    .withResponse();
  expect(data).toMatchObject({ language: 'english', segments, usage: { type: 'duration', seconds: 9 } });
  expect(await record(response)).toMatchObject({ cost_micro_usdc: 900, estimated: false });
  expect(last().fields).toEqual([
    ['model', 'of-whisper-1'],
    ['response_format', 'verbose_json'],
    ['timestamp_granularities[]', 'segment'],
    ['timestamp_granularities[]', 'word'],
  ]);
});

test.each([
  ['text', 'text/plain', `${WORDS}\n`],
  ['srt', 'text/plain', `1\n00:00:00,000 --> 00:00:08,470\n${WORDS}\n`],
  ['vtt', 'text/vtt', `WEBVTT\n\n00:00:00.000 --> 00:00:08.470\n${WORDS}\n`],
  // Silence.
  ['text', 'text/plain', ''],
  ['srt', 'text/plain', ''],
  ['vtt', 'text/vtt', ''],
] as const)('%s passes as it came, and costs the seconds of the file', async (format, type, transcript) => {
  world.upstream.answer = () => ({ type: 'text/plain; charset=utf-8', pieces: [transcript] });
  const { data, response } = await world.client.audio.transcriptions
    .create({ model: 'whisper-1', file: await file(), response_format: format })
    .withResponse();
  expect(data).toBe(transcript);
  expect(response.headers.get('content-type')).toBe(`${type}; charset=utf-8`);
  expect(await record(response)).toMatchObject({ cost_micro_usdc: 900, estimated: true, flags: [] });
});

test('diarized_json passes with its voices', async () => {
  const segments = [{ type: 'transcript.text.segment', id: 'a', start: 0, end: 8.5, speaker: 'A', text: WORDS }];
  world.upstream.answer = () => json({ task: 'transcribe', duration: 8.5, text: WORDS, segments, usage: TOKENS });
  const reply = await world.client.audio.transcriptions.create({
    model: 'gpt-4o-transcribe',
    file: await file(),
    response_format: 'diarized_json',
    chunking_strategy: { type: 'server_vad', threshold: 0.4 },
    known_speaker_names: ['agent'],
    known_speaker_references: [`data:audio/wav;base64,${wavFile(2).toString('base64')}`],
  });
  expect(reply).toMatchObject({ segments, usage: { cost: 0.000559 } });
  expect(last().fields.map(([name]) => name)).toEqual([
    'model',
    'response_format',
    'chunking_strategy[type]',
    'chunking_strategy[threshold]',
    'known_speaker_names[]',
    'known_speaker_references[]',
  ]);
});

test('events pass as they come, and the last one has the usage and its cost', async () => {
  const more = Promise.withResolvers<void>();
  const parts = ['What is ', 'a tollgate?'];
  world.upstream.answer = () => ({
    ...events(...parts.map((delta) => ({ type: 'transcript.text.delta', delta })), {
      type: 'transcript.text.done',
      text: WORDS,
      usage: TOKENS,
    }),
    until: more.promise,
  });
  const { data: stream, response } = await world.client.audio.transcriptions
    .create({ model: 'gpt-4o-transcribe', file: await file(), stream: true })
    .withResponse();
  const found = [];
  for await (const event of stream) {
    found.push(event);
    more.resolve();
  }
  expect(response.headers.get('cache-control')).toBe('no-cache, no-transform');
  expect(response.headers.get('x-accel-buffering')).toBe('no');
  expect(found).toMatchObject([
    { type: 'transcript.text.delta', delta: 'What is ' },
    { type: 'transcript.text.delta', delta: 'a tollgate?' },
    { type: 'transcript.text.done', text: WORDS, usage: { ...TOKENS, cost: 0.000559 } },
  ]);
  expect(await record(response)).toMatchObject({ cost_micro_usdc: 559, flags: [] });
});

test('a model that ignores the stream is read in one piece, and the client gets events', async () => {
  world.upstream.answer = () => json({ text: WORDS, usage: { type: 'duration', seconds: 9 } });
  const stream = await world.client.audio.transcriptions.create({
    model: 'whisper-1',
    file: await file(),
    stream: true,
  });
  const found = [];
  for await (const event of stream) found.push(event);
  expect(found).toMatchObject([
    { type: 'transcript.text.delta', delta: WORDS },
    { type: 'transcript.text.done', text: WORDS, usage: { type: 'duration', seconds: 9, cost: 0.0009 } },
  ]);
});

test('translations are a route of their own', async () => {
  world.upstream.answer = () => json({ text: WORDS });
  const { data, response } = await world.client.audio.translations
    .create({ model: 'whisper-1', file: await file(20, 'gesprochen.mp3'), prompt: 'Zoll' })
    .withResponse();
  expect(data).toMatchObject({ text: WORDS });
  expect(last().path).toBe('/audio/translations');
  expect(await record(response)).toMatchObject({ cost_micro_usdc: 2_000 });
});

test('a translation with stream comes in one piece, as at OpenAI', async () => {
  world.upstream.answer = () => json({ text: WORDS });
  for (const stream of ['true', 'please']) {
    const body = form([
      ['model', 'whisper-1'],
      ['stream', stream],
      ['file', named],
    ]);
    const reply = await sent(body, undefined, 'translations');
    expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(await reply.json()).toMatchObject({ text: WORDS });
    expect(reply.headers.get('x-tollgate-dropped')).toBe('stream');
    expect(last().fields).toEqual([['model', 'of-whisper-1']]);
  }
});

test('the name and the type of a file are those of its content', async () => {
  world.upstream.answer = () => json({ text: WORDS });
  await world.client.audio.transcriptions.create({ model: 'whisper-1', file: await toFile(mp3File(100), 'a.wav') });
  expect(last().file).toMatchObject({ name: 'audio.mp3', type: 'audio/mpeg' });
  const recorded = await toFile(await opusFile('webm', 100, { live: true }), 'blob');
  await world.client.audio.transcriptions.create({ model: 'whisper-1', file: recorded });
  expect(last().file).toMatchObject({ name: 'audio.webm', type: 'audio/webm' });
});

test('a file that says it is short locks and costs what it is long', async () => {
  // 300 seconds of a WAV whose header says a tenth of a second.
  const lying = await toFile(wavFile(300, { dataSize: 3_200 }), 'short.wav');
  const ask = (key: string) =>
    world.client.audio.transcriptions
      .create({ model: 'whisper-1', file: lying }, { headers: { authorization: `Bearer ${key}` } })
      .withResponse();
  const poor = await world.spine.tenant('poor-liar', '0.02');
  await expect(ask(poor.key)).rejects.toMatchObject({ status: 402 });
  world.upstream.answer = () => json({ text: WORDS, usage: { type: 'duration', seconds: 300 } });
  const { response } = await ask(world.spine.key);
  await world.spine.quiet();
  // The header and 64 KiB may be something else than sound: two seconds of 16,000 samples.
  const { cost_micro_usdc: cost } = await record(response);
  expect(cost).toBeGreaterThan(29_700);
  expect(cost).toBeLessThanOrEqual(30_000);
});

test.each([
  ['an error in place of a transcript', json({ error: { message: 'boom' } })],
  ['no text', json({ task: 'transcribe' })],
  ['nothing', { type: 'application/json', pieces: [] }],
  ['a failure', json({ error: { message: 'boom' } }, 500)],
  ['half a reply', { type: 'application/json', pieces: ['{"text":"Wha'], cut: true as const }],
  ['a stream', events({ type: 'transcript.text.done', text: WORDS })],
])('%s is free', async (_what, reply) => {
  world.upstream.answer = () => reply;
  const cost = await spent(async () => {
    await expect(world.client.audio.transcriptions.create({ model: 'whisper-1', file: await file() })).rejects.toThrow(
      /Provider Acme failed/,
    );
  });
  expect(cost).toBe(0n);
});

const form = (parts: readonly (readonly [string, string | Blob])[]): FormData => {
  const made = new FormData();
  for (const [name, value] of parts) made.append(name, value);
  return made;
};
const sent = (body: FormData | string, type?: string, route = 'transcriptions') =>
  fetch(`${world.spine.url}/audio/${route}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.spine.key}`, ...(type ? { 'content-type': type } : {}) },
    body,
  });
const WAV = new Blob([new Uint8Array(wavFile(1))], { type: 'audio/wav' });
const named = new File([WAV], 'a.wav');

test.each<[string, FormData | string, RegExp]>([
  ['JSON', '{"model":"whisper-1"}', /must be a form/],
  ['no file', form([['model', 'whisper-1']]), /file is missing/],
  [
    'a text in place of the file',
    form([
      ['model', 'whisper-1'],
      ['file', 'x'],
    ]),
    /file must be a file/,
  ],
  [
    'two files',
    form([
      ['model', 'whisper-1'],
      ['file', named],
      ['file', named],
    ]),
    /file occurs more than once/,
  ],
  [
    'a file of another name',
    form([
      ['model', 'whisper-1'],
      ['audio', named],
    ]),
    /audio is a file; the file is called file/,
  ],
  ['no model', form([['file', named]]), /model is required/],
  [
    'two models',
    form([
      ['model', 'a'],
      ['model', 'b'],
      ['file', named],
    ]),
    /model occurs more than once/,
  ],
  [
    'another spelling',
    form([
      ['model', 'a'],
      ['Model', 'b'],
      ['file', named],
    ]),
    /Model/,
  ],
  [
    'a format',
    form([
      ['model', 'a'],
      ['response_format', 'docx'],
      ['file', named],
    ]),
    /response_format must be one of json/,
  ],
  [
    'a stream of subtitles',
    form([
      ['model', 'a'],
      ['response_format', 'srt'],
      ['stream', 'true'],
      ['file', named],
    ]),
    /stream needs the response_format json/,
  ],
  [
    'no sound',
    form([
      ['model', 'whisper-1'],
      ['file', new File(['What is it?'], 'a.wav')],
    ]),
    /file has no sound that can be measured/,
  ],
])('a request with %s is refused by name', async (_what, body, words) => {
  const reply = await sent(body, typeof body === 'string' ? 'application/json' : undefined);
  expect(await reply.text()).toMatch(words);
  expect(reply.status).toBe(400);
});

test('a service is not told of another file', async () => {
  world.upstream.answer = () => json({ text: WORDS });
  const reply = await sent(
    form([
      ['model', 'whisper-1'],
      ['url', 'https://example.com/a.mp3'],
      ['file', named],
    ]),
  );
  expect(reply.status).toBe(200);
  expect(reply.headers.get('x-tollgate-dropped')).toBe('url');
  expect(last().fields).toEqual([['model', 'of-whisper-1']]);
});

test('preferences of a provider are members of a form, or JSON', async () => {
  world.upstream.answer = () => json({ text: WORDS });
  const ask = async (more: object) =>
    world.client.audio.transcriptions.create({ model: 'whisper-1', file: await file(), ...more });
  for (const provider of [{ only: ['Acme'], allow_fallbacks: false }, '{"only":["Acme"]}']) {
    expect(await ask({ provider })).toMatchObject({ text: WORDS });
    expect(last().fields).toEqual([['model', 'of-whisper-1']]);
  }
  await expect(ask({ provider: { only: ['Nobody'] } })).rejects.toThrow(/Nobody|provider/);
  await expect(ask({ provider: { olny: ['Acme'] } })).rejects.toThrow(/400 .*olny/);
  await expect(ask({ max_cost: '0.0001' })).rejects.toThrow(/max_cost/);
});

test('a form that comes again with its key is answered the same, whatever separates its parts', async () => {
  world.upstream.answer = () => json({ text: WORDS });
  const before = world.upstream.asked.length;
  const ask = async () =>
    world.client.audio.transcriptions.create(
      { model: 'whisper-1', file: await file() },
      { headers: { 'idempotency-key': 'transcription-1' } },
    );
  const cost = await spent(async () => {
    expect(await ask()).toEqual(await ask());
  });
  expect(cost).toBe(900n);
  expect(world.upstream.asked.length).toBe(before + 1);
});

test('a quote says what sound of a length costs at most', async () => {
  const quote = await world.spine.post('/quotes', { primitive: 'model', model: 'whisper-1', seconds: 59.5 });
  // A minute, and a second that a decoder may add.
  expect(await quote.json()).toMatchObject({ valid: true, price_micro_usdc: 6_100 });
});
