import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import type { Queued } from '../../media/support/video-provider.ts';
import { FILM, FILM_VENDORS, type FilmVendor, filmBlock, PROMPT, type Studio } from './support/film-vendors.ts';
import { PICTURE } from './support/picture.ts';
import { installRouted } from './support/routed-packages.ts';
import { type ScriptedVendor, startVendor, type VendorReply, type VendorRequest } from './support/scene.ts';

// Each package that makes videos, against its vendor's wire: a task with a kept lock, as of any other provider.

let spine: Spine;
/** What a vendor does now. */
interface VendorNow extends Studio {
  /** In place of the state of a job. */
  instead: VendorReply | null;
  /** In place of a new job. */
  refusal: VendorReply | null;
}
const studios = new Map<string, VendorNow>();
const vendors = new Map<string, ScriptedVendor>();
const stops: (() => void)[] = [];
/** Milliseconds that have passed for the gateway alone: it looks at a task once in two seconds. */
let passed = 0;

beforeAll(async () => {
  const routed = installRouted(FILM_VENDORS.flatMap((vendor) => (vendor.routed ? [vendor.name] : [])));
  stops.push(() => routed.remove());
  let toml = `${UNHURRIED}[media]\nfree_bytes_min = 0\n`;
  for (const vendor of FILM_VENDORS) {
    const studio: VendorNow = { state: 'runs', instead: null, refusal: null };
    studios.set(vendor.name, studio);
    const answer = (request: VendorRequest) =>
      request.method === 'POST' && request.text.includes(PROMPT)
        ? (studio.refusal ?? vendor.answer(request, studio))
        : (studio.instead ?? vendor.answer(request, studio));
    const scripted = await startVendor(answer, (stop) => void stops.push(stop));
    vendors.set(vendor.name, scripted);
    const params = 'supported_params = ["seed", "negative_prompt", "image_url", "end_image_url"]';
    toml += filmBlock(vendor, scripted.url, 'TEST_FILM_KEY', params);
  }
  const env = { TEST_FILM_KEY: 'apiKey-secret' };
  spine = await startSpine({ toml, env, file: routed.file, now: () => Date.now() + passed });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    for (const stop of stops) stop();
  }
});

const held = async () => (await spine.balance()).locked;

/** Asks for a video when no earlier one holds a lock. */
async function begin({ name }: FilmVendor, more: object = {}) {
  await spine.quiet();
  Object.assign(studios.get(name)!, { state: 'runs', instead: null });
  const response = await spine.post('/video/queue', {
    model: `${name}/film`,
    prompt: PROMPT,
    duration: '4s',
    resolution: '720p',
    aspect_ratio: '9:16',
    ...more,
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return { id: (JSON.parse(text) as Queued).id, call: response.headers.get('x-generation-id') };
}

const look = (id: string, more: object = {}) => {
  passed += 3_000;
  return spine.post('/video/retrieve', { task_id: id, ...more });
};
const stateOf = async (id: string, more: object = {}) =>
  (await (await look(id, more)).json()) as { status: string; error?: { code: string; message: string } };
const file = async (id: string) => {
  const response = await look(id, { wait_for_final: true });
  expect(response.headers.get('content-type')).toBe('video/mp4');
  return Buffer.from(await response.arrayBuffer());
};

describe.each(FILM_VENDORS)('@ai-sdk/$name', (vendor) => {
  const { name } = vendor;

  test('makes a video, whose lock is kept until its file is here', async () => {
    const { asked } = vendors.get(name)!;
    const before = asked.length;
    const { id, call } = await begin(vendor);
    expect(asked).toHaveLength(before + 1);
    expect(asked.at(-1)!.body).toEqual(vendor.asks);
    expect(vendor.key(asked.at(-1)!.headers)).toBe(true);
    // The watch of the gateway may be looking at the task at this moment, and then this look does nothing.
    await expect.poll(async () => (await stateOf(id)).status, { timeout: 30_000 }).toBe('generating');
    expect(await held()).toBe(450_000n);

    studios.get(name)!.state = 'done';
    expect(await file(id)).toEqual(FILM);
    // Four seconds at 0.1, and 0.05.
    expect(await spine.generation(call)).toMatchObject({ cost_micro_usdc: 450_000, flags: [] });
  });

  test('fails without a charge', async () => {
    const { id, call } = await begin(vendor);
    studios.get(name)!.state = 'failed';
    const { status, error } = await stateOf(id, { wait_for_final: true });
    expect([status, error!.code]).toEqual(['failed', 'generation_failed']);
    expect(error!.message).toContain('too much rain');
    expect(await spine.generation(call)).toMatchObject({ cost_micro_usdc: 0 });
  });

  test('is not cancelled, because the AI SDK cannot, and is charged', async () => {
    const { id, call } = await begin(vendor);
    const refused = await spine.post('/video/cancel', { task_id: id });
    expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining('cannot cancel')]);
    studios.get(name)!.state = 'done';
    expect(await file(id)).toEqual(FILM);
    expect(await spine.generation(call)).toMatchObject({ cost_micro_usdc: 450_000 });
  });
});

const [google, , , replicate] = FILM_VENDORS as [FilmVendor, FilmVendor, FilmVendor, FilmVendor];

test('pictures and options reach the vendor', async () => {
  const picture = `data:image/png;base64,${PICTURE.toString('base64')}`;
  const more = { image_url: picture, end_image_url: picture, negative_prompt: 'snow', seed: 7 };
  const sent = async (vendor: FilmVendor) => {
    const { id } = await begin(vendor, more);
    const { body } = vendors.get(vendor.name)!.asked.findLast(({ text }) => text.includes(PROMPT))!;
    studios.get(vendor.name)!.state = 'done';
    expect(await file(id)).toEqual(FILM);
    return body;
  };
  const image = { bytesBase64Encoded: PICTURE.toString('base64'), mimeType: 'image/png' };
  expect(await sent(google)).toMatchObject({
    instances: [{ image, lastFrame: image }],
    parameters: { seed: 7, negativePrompt: 'snow' },
  });
  expect(await sent(replicate)).toMatchObject({ input: { image: picture, seed: 7, negative_prompt: 'snow' } });
});

test('a refusal of the vendor is that of the call, and the vendor is asked once', async () => {
  const studio = studios.get('google')!;
  studio.refusal = { json: { error: { code: 400, message: 'no rain', status: 'INVALID_ARGUMENT' } }, status: 400 };
  const { asked } = vendors.get('google')!;
  const before = asked.length;
  const refused = await spine.post('/video/queue', { model: 'google/film', prompt: PROMPT, duration: '4s' });
  studio.refusal = null;
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('no rain')]);
  expect(asked).toHaveLength(before + 1);
});

test('a reply without the video that it promises is the end of the job', async () => {
  const { id, call } = await begin(google);
  studios.get('google')!.instead = { json: { done: true, response: { raiMediaFilteredReasons: ['rain'] } } };
  expect(await stateOf(id, { wait_for_final: true })).toMatchObject({ status: 'failed' });
  expect(await spine.generation(call)).toMatchObject({ cost_micro_usdc: 0 });
});

test('a vendor that cannot be asked now is asked again', async () => {
  const { id, call } = await begin(google);
  const studio = studios.get('google')!;
  studio.instead = { json: { error: { code: 503, message: 'later', status: 'UNAVAILABLE' } }, status: 503 };
  const { asked } = vendors.get('google')!;
  const before = asked.length;
  const isAsked = async () => [(await stateOf(id)).status, asked.length > before];
  await expect.poll(isAsked, { timeout: 30_000 }).toEqual([expect.stringMatching(/queued|generating/), true]);
  Object.assign(studio, { state: 'done', instead: null });
  expect(await file(id)).toEqual(FILM);
  expect(await spine.generation(call)).toMatchObject({ cost_micro_usdc: 450_000 });
});
