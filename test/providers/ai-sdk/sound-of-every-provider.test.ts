import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { wavFile } from '../../openai/audio/support/audio-files.ts';
import { events, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { installRouted } from './support/routed-packages.ts';
import { type ScriptedVendor, startVendor } from './support/scene.ts';
import { FILE_S, PRICES, SOUND, SOUND_VENDORS, type SoundVendor, WAV, WORDS } from './support/sound-vendors.ts';

// Each package that speaks, or writes down speech, against its vendor's wire: what arrives there, what the client gets,
// and the cost.

const INPUT = 'The gate is open.';

let spine: Spine;
let client: OpenAI;
const vendors = new Map<string, ScriptedVendor>();
const stops: (() => void)[] = [];

function blocksOf({ name, sdk, settings, secrets = {}, speaks, hears }: SoundVendor, url: string): string {
  const given = Object.entries(settings(url)).map(([key, value]) => `"${key}" = ${JSON.stringify(value)}`);
  const hidden = secretsOf({ secrets }).map(([key]) => `"${key}" = "std::env::${variableOf(name, key)}"`);
  const block = (kind: string, output: string, { model, pays }: NonNullable<SoundVendor['hears']>) => `
[[models]]
name = "${name}/${kind}"
provider_name = "${name}"
output_modalities = ["${output}"]
pricing = { ${PRICES[pays]} }
params = { model = "${model}", sdk = "${sdk ?? `@ai-sdk/${name}`}", sdk_settings = { ${given.join(', ')} }, sdk_secrets = { ${hidden.join(', ')} } }
`;
  return (speaks ? block('voice', 'speech', speaks) : '') + (hears ? block('scribe', 'transcription', hears) : '');
}

const secretsOf = ({ secrets }: Pick<SoundVendor, 'secrets'>) =>
  Object.keys(secrets ?? {}).length === 0 ? ([['apiKey', 'apiKey-secret']] as const) : Object.entries(secrets!);
const variableOf = (name: string, key: string) => `TEST_${name}_${key}`.replace(/\W/g, '_').toUpperCase();

beforeAll(async () => {
  const routed = installRouted(SOUND_VENDORS.flatMap((vendor) => (vendor.routed ? [vendor.name] : [])));
  stops.push(() => routed.remove());
  const env: Record<string, string> = {};
  let toml = UNHURRIED;
  for (const vendor of SOUND_VENDORS) {
    const scripted = await startVendor(vendor.answer, (stop) => void stops.push(stop));
    vendors.set(vendor.name, scripted);
    toml += blocksOf(vendor, scripted.url);
    for (const [key, secret] of secretsOf(vendor)) env[variableOf(vendor.name, key)] = secret;
  }
  spine = await startSpine({ toml, env, file: routed.file });
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    for (const stop of stops) stop();
  }
});

async function costOf(response: Response) {
  await spine.quiet();
  return spine.generation(response.headers.get('x-generation-id'));
}

describe.each(SOUND_VENDORS.filter(({ speaks }) => speaks))('@ai-sdk/$name', ({ name, speaks, key }) => {
  test('speaks', async () => {
    const before = vendors.get(name)!.asked.length;
    const response = await client.audio.speech.create({ model: `${name}/voice`, voice: 'alloy', input: INPUT });
    const made = speaks!.makes === 'wav' ? WAV : SOUND;
    expect(Buffer.from(await response.arrayBuffer())).toEqual(made);
    // What the vendor made, although MP3 was asked for.
    expect(response.headers.get('content-type')).toBe(speaks!.makes === 'wav' ? 'audio/wav' : 'audio/mpeg');
    expect(await costOf(response)).toMatchObject({ cost_micro_usdc: speaks!.cost, flags: [] });
    const asked = vendors.get(name)!.asked.slice(before);
    const sent = asked.find(({ text }) => text.includes(INPUT))!;
    expect(key(sent.headers)).toBe(true);
  });
});

describe.each(SOUND_VENDORS.filter(({ hears }) => hears))('@ai-sdk/$name', ({ name, hears, key }) => {
  test('writes down', async () => {
    const before = vendors.get(name)!.asked.length;
    const file = wavFile(FILE_S);
    const { data, response } = await client.audio.transcriptions
      .create({ model: `${name}/scribe`, file: await toFile(file, 'a.wav') })
      .withResponse();
    expect(data).toMatchObject({ text: WORDS, usage: { cost: hears!.cost / 1e6 } });
    expect(await costOf(response)).toMatchObject({ cost_micro_usdc: hears!.cost, flags: [] });
    const asked = vendors.get(name)!.asked.slice(before);
    const sent = asked.find(({ bytes, text }) => bytes.includes(file) || text.includes(file.toString('base64')))!;
    expect(key(sent.headers)).toBe(true);
  });
});

/** One vendor that tells no usage, and one that tells tokens. */
const STREAMED = ['openai', 'google'].map((name) => SOUND_VENDORS.find((vendor) => vendor.name === name)!);

describe.each(STREAMED)('@ai-sdk/$name, to a client that streams', ({ name, speaks, hears }) => {
  // The streams of the interface are for live sound, by WebSocket. The answer comes as a whole, in the same events.
  test('speaks', async () => {
    const response = await spine.post('/audio/speech', {
      model: `${name}/voice`,
      voice: 'alloy',
      input: INPUT,
      stream_format: 'sse',
    });
    const found = events(await response.text()) as { type: string; audio?: string; usage?: object }[];
    const done = found.pop()!;
    expect(done).toMatchObject({ type: 'speech.audio.done', usage: { cost: speaks!.cost / 1e6 } });
    expect(found.every(({ type }) => type === 'speech.audio.delta')).toBe(true);
    const made = Buffer.concat(found.map(({ audio }) => Buffer.from(audio!, 'base64')));
    expect(made).toEqual(speaks!.makes === 'wav' ? WAV : SOUND);
    expect(await costOf(response)).toMatchObject({ cost_micro_usdc: speaks!.cost, flags: [] });
  });

  test('writes down', async () => {
    const { data: stream, response } = await client.audio.transcriptions
      .create({ model: `${name}/scribe`, file: await toFile(wavFile(FILE_S), 'a.wav'), stream: true })
      .withResponse();
    const found = [];
    for await (const event of stream) found.push(event);
    expect(found).toMatchObject([
      { type: 'transcript.text.delta', delta: WORDS },
      { type: 'transcript.text.done', text: WORDS, usage: { cost: hears!.cost / 1e6 } },
    ]);
    expect(await costOf(response)).toMatchObject({ cost_micro_usdc: hears!.cost, flags: [] });
  });
});
