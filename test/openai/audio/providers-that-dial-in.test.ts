import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dialIn, type DialledIn } from '../../support/dial-in.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { wavFile } from './support/audio-files.ts';
import { audioBlock } from './support/audio-world.ts';
import { type AudioUpstream, events, json, startAudio } from './support/audio-upstream.ts';

// Audio through the tunnel of a provider's proxy: bytes and forms pass, claims are held against what was measured, and
// the next provider is asked while the client has no byte.

let far: AudioUpstream;
let own: AudioUpstream;
let spine: Spine;
let proxy: DialledIn;
let client: OpenAI;
beforeAll(async () => {
  [far, own] = [await startAudio(), await startAudio()];
  const both = { name: 'both/voice', output: 'speech', pricing: 'character = 15' } as const;
  const heard = { name: 'both/scribe', output: 'transcription', pricing: 'per_minute = 0.006' } as const;
  spine = await startSpine({
    toml: `${UNHURRIED}\n[upstream]\ncooldown_ms = 0\n[tunnel]\nshared_names = ["both/voice", "both/scribe"]\n${[both, heard].map((block) => audioBlock({ ...block, url: own.url })).join('')}`,
  });
  const { url } = far;
  const at = (name: string) => ({ name: `far/${name}`, url });
  const services = [
    { ...both, ...at('voice') },
    { ...at('tokens'), output: 'speech', pricing: 'audio_output = 12' } as const,
    { ...heard, ...at('scribe') },
    { ...at('listener'), output: 'transcription', pricing: 'audio = 6' } as const,
    { ...both, url },
    { ...heard, url },
  ].map((block) => audioBlock(block).replaceAll('api_key = "k"', 'api_key = ""').replace('"Acme"', '"Far"'));
  proxy = await dialIn({ router: spine.origin, services: services.join('\n') });
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});
afterAll(async () => {
  try {
    await proxy.close();
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await Promise.all([far.stop(), own.stop()]);
  }
});

const record = (response: Response) => spine.generation(response.headers.get('x-generation-id'));
const SOUND = Buffer.from(Array.from({ length: 300_000 }, (_, at) => at % 253));
const sound = { type: 'audio/mpeg', pieces: [SOUND.subarray(0, 100_000), SOUND.subarray(100_000)] };
const speak = (model: string) => client.audio.speech.create({ model, voice: 'a', input: 'ten chars.' });
const transcribe = async (model: string, seconds = 10) =>
  client.audio.transcriptions.create({ model, file: await toFile(wavFile(seconds), 'a.wav') }).withResponse();

test('speech passes byte for byte', async () => {
  far.answer = () => sound;
  const response = await speak('far/voice');
  expect(Buffer.from(await response.arrayBuffer())).toEqual(SOUND);
  await spine.quiet();
  expect(await record(response)).toMatchObject({ cost_micro_usdc: 150, provider_name: 'Far', flags: [] });
});

test('a form with a file passes byte for byte', async () => {
  far.answer = () => json({ text: 'heard' });
  const { data, response } = await transcribe('far/scribe', 60);
  expect(data).toMatchObject({ text: 'heard' });
  expect(far.asked.at(-1)).toMatchObject({ path: '/audio/transcriptions', fields: [['model', 'of-far/scribe']] });
  expect(far.asked.at(-1)!.file!.bytes).toEqual(wavFile(60));
  await spine.quiet();
  expect(await record(response)).toMatchObject({ cost_micro_usdc: 6_000, provider_name: 'Far' });
});

test('seconds that are not in the file are not paid', async () => {
  far.answer = () => json({ text: 'heard', usage: { type: 'duration', seconds: 3_600 } });
  const { response } = await transcribe('far/scribe', 60);
  await spine.quiet();
  expect(await record(response)).toMatchObject({
    cost_micro_usdc: 6_100,
    flags: ['usage_implausible'],
    claims: [{ meter: 'second', claimed: 3_600, most: 61 }],
  });
});

test('tokens of speech are held against the sound that came', async () => {
  const usage = { input_tokens: 3, output_tokens: 300, total_tokens: 303 };
  const delta = { type: 'speech.audio.delta', audio: Buffer.alloc(2_000).toString('base64') };
  far.answer = () => events(delta, { type: 'speech.audio.done', usage });
  const response = await speak('far/tokens');
  await response.arrayBuffer();
  await spine.quiet();
  // 2,000 bytes of MP3 are at most 2 seconds, and one more: 75 tokens, of which each costs 12.
  expect(await record(response)).toMatchObject({
    cost_micro_usdc: 900,
    flags: ['usage_implausible'],
    claims: [{ meter: 'audio_output', claimed: 300, most: 75 }],
  });
});

test('tokens of a transcript are held against the words that came', async () => {
  const details = { text_tokens: 0, audio_tokens: 5_000 };
  const usage = { type: 'tokens', input_tokens: 5_000, output_tokens: 9_999, input_token_details: details };
  far.answer = () => json({ text: 'heard', usage });
  const { data, response } = await transcribe('far/listener');
  await spine.quiet();
  // 11 seconds of 32 tokens, of which each costs 6. The reply has 143 bytes, and 64 tokens may stand around them.
  expect(data).toMatchObject({ usage: { input_token_details: { audio_tokens: 352 } } });
  expect(await record(response)).toMatchObject({
    cost_micro_usdc: 2_112,
    flags: ['usage_implausible'],
    claims: [
      { meter: 'audio', claimed: 5_000, most: 352 },
      { meter: 'completion', claimed: 9_999, most: 207 },
    ],
  });
});

/** The provider that dialled in is asked first. */
const FIRST = { order: ['Far'] };

test.each(['fails', 'sends a page', 'closes'])(
  'a provider that %s before its first byte has a successor',
  async (how) => {
    own.answer = (request) => (request.path === '/audio/speech' ? sound : json({ text: 'own' }));
    far.answer = () =>
      how === 'fails'
        ? json({ error: { message: 'boom' } }, 500)
        : how === 'closes'
          ? { type: 'audio/mpeg', pieces: [], cut: true }
          : { type: 'text/event-stream', pieces: ['data: <html>\n\n'] };
    const asked = far.asked.length;
    const speech = { model: 'both/voice', voice: 'a', input: 'ten chars.', provider: FIRST };
    const spoken = await client.audio.speech.create(speech);
    expect(Buffer.from(await spoken.arrayBuffer())).toEqual(SOUND);
    await spine.quiet();
    expect(await record(spoken)).toMatchObject({ cost_micro_usdc: 150, provider_name: 'Acme' });
    const upload = { model: 'both/scribe', file: await toFile(wavFile(10), 'a.wav'), provider: FIRST };
    const { response: heard } = await client.audio.transcriptions.create(upload).withResponse();
    await spine.quiet();
    expect(await record(heard)).toMatchObject({ cost_micro_usdc: 1_000, provider_name: 'Acme' });
    // A request that meets a closed connection may go out once more.
    const most = how === 'closes' ? 4 : 2;
    expect(far.asked.length - asked).toBeGreaterThanOrEqual(2);
    expect(far.asked.length - asked).toBeLessThanOrEqual(most);
  },
);
