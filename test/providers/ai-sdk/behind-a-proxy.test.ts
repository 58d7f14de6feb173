import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { dialIn, type DialledIn } from '../../support/dial-in.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { type ScriptedVendor, startVendor, TEXT } from './support/scene.ts';
import { anthropicVendor } from './support/own-wires.ts';
import type { Queued } from '../../media/support/video-provider.ts';
import { FILM, FILM_VENDORS, filmBlock, PROMPT, type Studio } from './support/film-vendors.ts';

// A provider that dials in serves a model and videos by packages on its own machine.

let spine: Spine;
let vendor: ScriptedVendor;
let provider: DialledIn;
const stops: (() => void)[] = [];
const studio: Studio = { state: 'runs' };
const GOOGLE = FILM_VENDORS.find(({ name }) => name === 'google')!;
let films: ScriptedVendor;
const LONG = ' and say why, in many words, so that the prompt is as long as the tokens of its vendor'.repeat(2);

/** The variable that a provider who dials in has here. */
const UPSTREAM_KEY = 'TEST_UPSTREAM_KEY';

const block = (more: string) => `
[[models]]
name = "dialled/claude"
pricing = { prompt = 2, completion = 10, input_cache_read = 0.5, input_cache_write = 4 }
[models.params]
model = "claude-sonnet-4-5"
sdk = "@ai-sdk/anthropic"
sdk_settings = { baseURL = "${vendor.url}/v1"${more} }
sdk_secrets = { apiKey = "std::env::${UPSTREAM_KEY}" }
`;

/** A proxy has one name for the provider of all its services. */
const filmsBlock = () => filmBlock({ ...GOOGLE, provider: 'dialled' }, films.url, UPSTREAM_KEY);

beforeAll(async () => {
  vendor = await startVendor(anthropicVendor, (stop) => void stops.push(stop));
  films = await startVendor(
    (request) => GOOGLE.answer(request, studio),
    (stop) => void stops.push(stop),
  );
  spine = await startSpine({ toml: `${UNHURRIED}[media]\nfree_bytes_min = 0\n` });
  provider = await dialIn({ router: spine.origin, services: block('') + filmsBlock() });
});
afterAll(async () => {
  await provider.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  for (const stop of stops) stop();
});

async function call(more: object = {}) {
  const messages = [{ role: 'user', content: `kind=text${LONG}` }];
  const response = await spine.post('/chat/completions', {
    model: 'dialled/claude',
    messages,
    max_tokens: 500,
    ...more,
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return { text, record: await spine.generation(response.headers.get('x-generation-id')) };
}

test.each([{}, { stream: true }])('it is called and paid as a service with an address: %o', async (more) => {
  const { text, record } = await call(more);
  for (const piece of TEXT) expect(text).toContain(piece);
  // 50 tokens at 2, 40 from the cache at 0.5, 10 into it at 4, and 20 of the answer at 10.
  expect(record).toMatchObject({ cost_micro_usdc: 100 + 20 + 40 + 200, flags: [], provider_name: 'dialled' });
  expect(vendor.asked.at(-1)!.headers['x-api-key']).toBe('upstream-secret-canary');
});

test('a video is made, fetched and paid through the tunnel', async () => {
  const response = await spine.post('/video/queue', { model: 'google/film', prompt: PROMPT, duration: '4s' });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const { id } = JSON.parse(text) as Queued;
  studio.state = 'done';
  const made = await spine.post('/video/retrieve', { task_id: id, wait_for_final: true });
  const file = Buffer.from(await made.arrayBuffer());
  expect(made.headers.get('content-type'), file.toString('latin1')).toBe('video/mp4');
  expect(file).toEqual(FILM);
  const record = await spine.generation(response.headers.get('x-generation-id'));
  expect(record).toMatchObject({ cost_micro_usdc: 450_000, flags: [], provider_name: 'dialled' });
  expect(films.asked[0]!.headers['x-goog-api-key']).toBe('upstream-secret-canary');
});

test('a reload with other settings takes another process, and no log has the secret', async () => {
  await provider.reload(block(', "headers.x-org" = "acme"'));
  onTestFinished(() => expect(JSON.stringify(provider.lines)).not.toContain('upstream-secret-canary'));
  await expect
    .poll(async () => {
      await call();
      return vendor.asked.at(-1)!.headers['x-org'];
    })
    .toBe('acme');
});
