import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AudioReply, type AudioUpstream, json, startAudio } from '../../openai/audio/support/audio-upstream.ts';
import { wavFile } from '../../openai/audio/support/audio-files.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';

// Speech and transcriptions by packages of the AI SDK, each against its vendor's wire.

const SOUND = Buffer.from(Array.from({ length: 20_000 }, (_, at) => at % 251));
const WORDS = 'What is a tollgate?';

interface AudioVendor {
  readonly name: string;
  readonly models: { readonly voice: string; readonly scribe: string };
  readonly speaks: (sound: Buffer) => AudioReply;
  /** The reply with a transcript of 8.5 seconds. */
  readonly heard: object;
}

const VENDORS: readonly AudioVendor[] = [
  {
    name: 'openai',
    models: { voice: 'tts-1', scribe: 'whisper-1' },
    speaks: (sound) => ({ type: 'audio/mpeg', pieces: [sound] }),
    heard: {
      task: 'transcribe',
      language: 'english',
      duration: 8.5,
      text: WORDS,
      segments: [segment()],
      usage: { type: 'duration', seconds: 9 },
    },
  },
  {
    name: 'mistral',
    models: { voice: 'voxtral-mini-tts-2603', scribe: 'voxtral-mini-latest' },
    speaks: (sound) => json({ audio_data: sound.toString('base64') }),
    heard: {
      model: 'voxtral-mini-latest',
      text: WORDS,
      language: 'en',
      segments: [segment()],
      usage: { prompt_audio_seconds: 9, prompt_tokens: 4, completion_tokens: 8, total_tokens: 12 },
    },
  },
];

function segment() {
  const times = { id: 0, seek: 0, start: 0, end: 8.5, text: WORDS, tokens: [1] };
  return { ...times, temperature: 0, avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 };
}

let spine: Spine;
let client: OpenAI;
const upstreams = new Map<string, AudioUpstream>();
beforeAll(async () => {
  let toml = UNHURRIED;
  for (const vendor of VENDORS) {
    const upstream = await startAudio();
    upstream.answer = ({ path }) => (path === '/audio/speech' ? vendor.speaks(SOUND) : json(vendor.heard));
    upstreams.set(vendor.name, upstream);
    const block = (kind: string, output: string, model: string, pricing: string) => `
[[models]]
name = "${vendor.name}/${kind}"
provider_name = "${vendor.name}"
output_modalities = ["${output}"]
pricing = { prompt = 0, completion = 0, ${pricing} }
params = { model = "${model}", sdk = "@ai-sdk/${vendor.name}", sdk_settings = { baseURL = "${upstream.url}" }, sdk_secrets = { apiKey = "std::env::TEST_AUDIO_KEY" } }
`;
    toml += block('voice', 'speech', vendor.models.voice, 'character = 15');
    toml += block('scribe', 'transcription', vendor.models.scribe, 'per_minute = 0.006');
  }
  spine = await startSpine({ toml, env: { TEST_AUDIO_KEY: 'audio-secret' } });
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await Promise.all([...upstreams.values()].map((upstream) => upstream.stop()));
  }
});

const record = (response: Response) => spine.generation(response.headers.get('x-generation-id'));

describe.each(VENDORS)('@ai-sdk/$name', ({ name, models }) => {
  const asked = () => upstreams.get(name)!.asked.at(-1)!;
  const file = () => toFile(wavFile(8.5), 'a.wav');

  test('speaks', async () => {
    const response = await client.audio.speech.create({
      model: `${name}/voice`,
      voice: 'alloy',
      input: 'The gate is open.',
      response_format: 'wav',
    });
    expect(Buffer.from(await response.arrayBuffer())).toEqual(SOUND);
    expect(response.headers.get('content-type')).toBe('audio/wav');
    expect(asked()).toMatchObject({ path: '/audio/speech', json: { model: models.voice, input: 'The gate is open.' } });
    expect(asked().headers['authorization']).toBe('Bearer audio-secret');
    await spine.quiet();
    expect(await record(response)).toMatchObject({ cost_micro_usdc: 255, flags: [] });
  });

  test('transcribes', async () => {
    const { data, response } = await client.audio.transcriptions
      .create({ model: `${name}/scribe`, file: await file() })
      .withResponse();
    expect(data).toMatchObject({ text: WORDS, usage: { type: 'duration', seconds: 9, cost: 0.0009 } });
    expect(asked()).toMatchObject({ path: '/audio/transcriptions', file: { type: 'audio/wav' } });
    expect(asked().file!.bytes).toEqual(wavFile(8.5));
    expect(asked().fields).toContainEqual(['model', models.scribe]);
    await spine.quiet();
    expect(await record(response)).toMatchObject({ cost_micro_usdc: 900, flags: [] });
  });

  test.each([
    ['verbose_json', { text: WORDS, segments: [{ id: 0, start: 0, end: 8.5, text: WORDS }] }],
    ['text', WORDS],
    ['srt', `1\n00:00:00,000 --> 00:00:08,500\n${WORDS}\n`],
    ['vtt', `WEBVTT\n\n00:00:00.000 --> 00:00:08.500\n${WORDS}\n`],
  ] as const)('transcribes as %s', async (format, transcript) => {
    const reply: unknown = await client.audio.transcriptions.create({
      model: `${name}/scribe`,
      file: await file(),
      response_format: format,
    });
    if (typeof transcript === 'string') expect(reply).toBe(transcript);
    else expect(reply).toMatchObject(transcript);
  });

  test('transcribes for a client that streams', async () => {
    const stream = await client.audio.transcriptions.create({
      model: `${name}/scribe`,
      file: await file(),
      stream: true,
    });
    const found = [];
    for await (const event of stream) found.push(event);
    expect(found).toMatchObject([
      { type: 'transcript.text.delta', delta: WORDS },
      { type: 'transcript.text.done', text: WORDS, usage: { seconds: 9 } },
    ]);
  });

  test('has no translations, which are free', async () => {
    const before = await spine.balance();
    await expect(client.audio.translations.create({ model: `${name}/scribe`, file: await file() })).rejects.toThrow();
    await spine.quiet();
    expect(await spine.balance()).toEqual(before);
  });
});
