import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { escrowOf } from '#billing';
import { atThisLoad } from '../../support/at-this-load.ts';
import { UNHURRIED, type Spine } from '../../support/spine.ts';
import { openRealtime, type Json, type RawClient } from './support/realtime-client.ts';
import { usage, type ProviderSide } from './support/realtime-provider.ts';
import { startVoiceGateway, type VoiceGateway } from './support/voice-gateway.ts';

const pcm = (seconds: number) => Buffer.alloc(48_000 * seconds).toString('base64');
const balanceOf = async ({ app }: Spine, account: string) => (await app.ledger.balance(escrowOf(account)))!;

async function open(gateway: VoiceGateway, key: string): Promise<{ client: RawClient; side: ProviderSide }> {
  const [client, side] = await Promise.all([openRealtime(gateway.url, key), gateway.provider.session()]);
  await client.take('session.created');
  return { client, side };
}

/** Asks for a response, which begins. */
async function begin({ client, side }: { client: RawClient; side: ProviderSide }, id: string): Promise<void> {
  client.send({ type: 'response.create' });
  await side.take('response.create');
  side.begin(id);
  await client.take('response.created');
}

const records = async (spine: Spine, key: string): Promise<Json[]> => {
  const page = await spine.get('/generations', { authorization: `Bearer ${key}` });
  return ((await page.json()) as { readonly data: Json[] }).data;
};

let gateway: VoiceGateway;
let spine: Spine;
beforeAll(async () => {
  gateway = await startVoiceGateway({
    toml: `${UNHURRIED}realtime_sessions_max = 2\nrealtime_bytes_per_second = 100000\n[billing]\ndrain_ms = 2000\n`,
  });
  ({ spine } = gateway);
});
afterAll(() => gateway.stop());

describe('a provider that leaves', () => {
  it('is paid for what it delivered of a response, and for nothing without one', async () => {
    const { account, key } = await spine.tenant('left', '10');
    const session = await open(gateway, key);
    await begin(session, 'resp_1');
    const { client, side } = session;
    side.send({ type: 'response.output_text.delta', response_id: 'resp_1', delta: 'x'.repeat(400) });
    side.send({ type: 'response.output_audio.delta', response_id: 'resp_1', delta: pcm(2) });
    await client.take('response.output_audio.delta');
    side.socket.terminate();
    expect(await client.take('error')).toMatchObject({ error: { code: 'provider_unavailable' } });
    expect((await client.closed).code).toBe(1011);
    expect(await spine.faults()).toEqual([]);
    // 400 bytes of text are 100 tokens at 16, two seconds of sound 40 at 64,
    // and 10 bytes of instructions and tools 3 at 4.
    const measured = 100n * 16n + 40n * 64n + 3n * 4n;
    const [record] = await records(spine, key);
    expect(record).toMatchObject({
      outcome: 'cut',
      finish_reason: 'provider_left',
      estimated: true,
      flags: ['usage_missing'],
    });
    expect((await balanceOf(spine, account)).available).toBe(10_000_000n - measured);

    const idle = await open(gateway, key);
    await begin(idle, 'resp_2');
    idle.side.socket.close(1000);
    expect((await idle.client.closed).code).toBe(1000);
    expect(await spine.faults()).toEqual([]);
    expect((await balanceOf(spine, account)).available).toBe(10_000_000n - measured);
  });

  it.each([
    [1000, 1000],
    [1001, 1000],
    // Too large, restarting, busy: clients act on these.
    [1009, 1009],
    [1012, 1012],
    [1013, 1013],
    [1008, 1011],
    [4_001, 1011],
  ])('with %i closes the session with %i', async (code, seen) => {
    const { key } = await spine.tenant(`closed-${code}`, '10');
    const { client, side } = await open(gateway, key);
    side.socket.close(code, 'secret words');
    expect(await client.take('error')).toMatchObject({ error: { code: 'provider_unavailable' } });
    expect(await client.closed).toEqual({ code: seen, reason: 'The provider ended the session' });
  });

  it('that sends nonsense ends the session', async () => {
    const { key } = await spine.tenant('nonsense', '10');
    const { client, side } = await open(gateway, key);
    side.socket.send('{"type":');
    expect(await client.take('error')).toMatchObject({ error: { code: 'provider_unavailable' } });
    expect((await client.closed).code).toBe(1011);
    await side.closed;
    expect(await spine.faults()).toEqual([]);
  });
});

describe('a client that leaves', () => {
  it(
    'while its events wait for the rate of its account, soon gives its sessions back',
    { timeout: 120_000 },
    async () => {
      const { key } = await spine.tenant('large', '10');
      // The first is taken at once, and refused. The next one waits for 70 s.
      const large = { type: 'session.update', session: { type: 'realtime', webhook_url: 'x'.repeat(7_000_000) } };
      const sessions = [(await open(gateway, key)).client, (await open(gateway, key)).client];
      for (const { send } of sessions) for (let event = 0; event < 4; event++) send(large);
      const isTold = ({ events }: RawClient) => JSON.stringify(events).includes('"rate_limit_exceeded"');
      await expect.poll(() => sessions.every(isTold), { timeout: 50_000 }).toBe(true);
      await expect(openRealtime(gateway.url, key)).rejects.toMatchObject({ status: 429 });
      for (const { socket } of sessions) socket.terminate();
      const again = () => openRealtime(gateway.url, key).catch(() => null);
      await expect.poll(again, { timeout: 50_000, interval: 200 }).not.toBeNull();
      (await gateway.provider.session()).socket.terminate();
    },
  );

  it('in the middle of a response pays what its provider then reports', async () => {
    const { account, key } = await spine.tenant('gone', '10');
    const session = await open(gateway, key);
    await begin(session, 'resp_1');
    const { client, side } = session;
    side.send({ type: 'response.output_text.delta', response_id: 'resp_1', delta: 'hello' });
    await client.take('response.output_text.delta');
    client.socket.terminate();
    expect(await side.take('response.cancel')).toMatchObject({ response_id: 'resp_1' });
    side.done('resp_1', usage(70, 3), { status: 'cancelled' });
    await side.closed;
    expect(await spine.faults()).toEqual([]);
    // 70 × 4 + 3 × 16
    expect((await balanceOf(spine, account)).available).toBe(10_000_000n - 328n);
  });

  it('pays what was measured if the provider does not report in time', async () => {
    const { account, key } = await spine.tenant('gone-silent', '10');
    const session = await open(gateway, key);
    await begin(session, 'resp_1');
    const { client, side } = session;
    side.send({ type: 'response.output_text.delta', response_id: 'resp_1', delta: 'x'.repeat(40) });
    await client.take('response.output_text.delta');
    client.socket.terminate();
    await side.closed;
    expect(await spine.faults()).toEqual([]);
    const [record] = await records(spine, key);
    expect(record).toMatchObject({ outcome: 'cut', finish_reason: 'cancelled', estimated: true, flags: [] });
    const measured = 10n * 16n + 3n * 4n;
    expect((await balanceOf(spine, account)).available).toBe(10_000_000n - measured);
  });

  it('right after it asked for a response that then begins has it cancelled, and pays what its provider reports', async () => {
    const { account, key } = await spine.tenant('gone-early', '10');
    const { client, side } = await open(gateway, key);
    client.send({ type: 'response.create' });
    await side.take('response.create');
    client.socket.terminate();
    side.begin('resp_1');
    expect(await side.take('response.cancel')).toMatchObject({ response_id: 'resp_1' });
    side.done('resp_1', usage(70, 0), { status: 'cancelled' });
    await side.closed;
    expect(await spine.faults()).toEqual([]);
    expect((await balanceOf(spine, account)).available).toBe(10_000_000n - 70n * 4n);
  });
});

describe('limits', () => {
  it('of sessions of one account', async () => {
    const { key } = await spine.tenant('sessions', '10');
    const [one, two] = [await open(gateway, key), await open(gateway, key)];
    await expect(openRealtime(gateway.url, key)).rejects.toMatchObject({ status: 429 });
    one.client.socket.close();
    await one.side.closed;
    const three = await open(gateway, key);
    for (const { client } of [two, three]) {
      client.socket.close();
      await client.closed;
    }
    expect(await spine.faults()).toEqual([]);
  });

  it('of a key: its spending limit, and its revocation', async () => {
    const { account, key, hash } = await spine.tenant('limited', '10', { limit: 370_000n });
    const { client, side } = await open(gateway, key);
    client.send({ type: 'response.create' });
    await side.take('response.create');
    side.say('resp_1', 'x'.repeat(20_000), usage(500, 4_000));
    await client.take('response.done');
    // 304,000 are left, and 1,024 × 32 + (584 + 4,016) × 4 + 4,096 × 64 = 313,312 are needed.
    client.send({ type: 'response.create' });
    expect(await client.take('error')).toMatchObject({
      error: { code: 'insufficient_balance', message: expect.stringContaining('Spending limit') as string },
    });
    expect((await client.closed).code).toBe(1008);
    const again = await open(gateway, key);
    expect((await balanceOf(spine, account)).locked).toBeGreaterThan(0n);
    await spine.app.keys.delete(account, hash);
    expect(await again.client.take('error')).toMatchObject({ error: { code: 'unauthorized' } });
    expect((await again.client.closed).code).toBe(1008);
    expect(await spine.faults()).toEqual([]);
    expect((await balanceOf(spine, account)).available).toBe(10_000_000n - 66_000n);
  });

  it('of requests: each response is one', async () => {
    const slow = await startVoiceGateway({ toml: '[limits]\nrequests_per_minute = 1\nburst = 1\n' });
    const { client, side } = await open(slow, slow.spine.key);
    // The handshake is the first, and its lock that of the first response; the second response is the second.
    for (const id of ['resp_1', 'resp_2']) {
      client.send({ type: 'response.create' });
      await side.take('response.create');
      side.say(id, 'hi', usage(20, 5));
      expect((await client.done()).id).toBe(id);
    }
    client.send({ type: 'response.create', event_id: 'third' });
    expect(await client.take('error')).toMatchObject({ error: { code: 'rate_limit_exceeded', event_id: 'third' } });
    client.socket.close();
    await side.closed;
    expect(side.received.filter(({ type }) => type === 'response.create')).toHaveLength(2);
    expect(await slow.spine.faults()).toEqual([]);
    await slow.stop();
  });

  it('of responses at the same time, each with a lock', async () => {
    const { account, key } = await spine.tenant('parallel', '10');
    const { client, side } = await open(gateway, key);
    for (let i = 0; i < 5; i++) client.send({ type: 'response.create', response: { conversation: 'none' } });
    expect(await client.take('error')).toMatchObject({ error: { code: 'rate_limit_exceeded' } });
    for (let i = 0; i < 4; i++) {
      await side.take('response.create');
      side.begin(`resp_${i}`);
      await client.take('response.created');
    }
    expect((await balanceOf(spine, account)).locked).toBeGreaterThan(4n * 4_096n * 64n);
    for (const id of ['resp_2', 'resp_0', 'resp_3', 'resp_1']) {
      side.send({ type: 'response.output_text.delta', response_id: id, delta: 'hi' });
      side.done(id, usage(20, 5));
      expect(await client.done()).toMatchObject({ id, usage: { cost: 0.00016 } });
    }
    client.socket.close();
    await client.closed;
    expect(await spine.faults()).toEqual([]);
    expect((await balanceOf(spine, account)).available).toBe(10_000_000n - 640n);
  });

  it('of the cost of a response, which the client names', async () => {
    const { key } = await spine.tenant('capped', '10');
    const headers = { 'x-max-cost': '0.2' };
    await expect(openRealtime(gateway.url, key, { headers })).rejects.toMatchObject({ status: 422 });
    expect(await spine.faults()).toEqual([]);
  });
});

describe('times', () => {
  it('a session ends when it is idle, and when it has lasted long enough', async () => {
    const quick = await startVoiceGateway({ toml: `${UNHURRIED}realtime_idle_ms = 300\n` });
    const idle = await open(quick, quick.spine.key);
    expect(await idle.client.take('error')).toMatchObject({ error: { code: 'request_timeout' } });
    expect((await idle.client.closed).code).toBe(1000);
    expect(await quick.spine.faults()).toEqual([]);
    await quick.stop();
    const short = await startVoiceGateway({ toml: `${UNHURRIED}realtime_session_ms = 1000\n` });
    const long = await open(short, short.spine.key);
    expect(await long.client.take('error')).toMatchObject({
      error: { message: expect.stringContaining('lasted') as string },
    });
    expect((await long.client.closed).code).toBe(1000);
    expect(await short.spine.faults()).toEqual([]);
    await short.stop();
  });

  it('a response that takes too long is cut and paid as far as it came, and the session goes on', async () => {
    // Long enough for the response after it.
    const toml = `${UNHURRIED}[upstream]\ncall_timeout_ms = ${atThisLoad(1_000)}\n`;
    const quick = await startVoiceGateway({ toml });
    const session = await open(quick, quick.spine.key);
    await begin(session, 'resp_1');
    const { client, side } = session;
    side.send({ type: 'response.output_text.delta', response_id: 'resp_1', delta: 'x'.repeat(40) });
    expect(await client.take('error')).toMatchObject({ error: { code: 'reply_cut' } });
    expect(await side.take('response.cancel')).toMatchObject({ response_id: 'resp_1' });
    side.done('resp_1', usage(70, 3_000), { status: 'cancelled' });
    client.send({ type: 'response.create' });
    await side.take('response.create');
    side.say('resp_2', 'hi', usage(20, 5));
    expect((await client.done()).id).toBe('resp_2');
    client.socket.close();
    await client.closed;
    expect(await quick.spine.faults()).toEqual([]);
    const measured = 10n * 16n + 3n * 4n;
    expect((await quick.spine.balance()).available).toBe(100_000_000n - measured - 160n);
    await quick.stop();
  });
});

it('the sound of a cut response is paid once, and is a part of the next prompt', async () => {
  const toml = `${UNHURRIED}[upstream]\ncall_timeout_ms = ${atThisLoad(1_000)}\n`;
  const quick = await startVoiceGateway({ toml });
  onTestFinished(() => quick.stop());
  const session = await open(quick, quick.spine.key);
  await begin(session, 'resp_1');
  const { client, side } = session;
  const text = { type: 'response.output_audio_transcript.delta', response_id: 'resp_1', delta: 'x'.repeat(12_000) };
  const sound = { type: 'response.output_audio.delta', response_id: 'resp_1', delta: pcm(2) };
  side.send(text);
  side.send(sound);
  expect(await client.take('error')).toMatchObject({ error: { code: 'reply_cut' } });
  await side.take('response.cancel');
  // What comes after the cut is not passed on and not paid.
  side.send(sound);
  side.done('resp_1', usage(70, 4_000, { output: 4_000 }), { status: 'cancelled' });
  // 12,000 bytes of text are 3,000 tokens at 16, two seconds of sound 40 at 64, and 10 bytes of instructions 3 at 4.
  const measured = 3_000n * 16n + 40n * 64n + 3n * 4n;
  await quick.spine.quiet();
  expect((await quick.spine.balance()).available).toBe(100_000_000n - measured);
  client.send({ type: 'response.create' });
  await side.take('response.create');
  side.say('resp_2', 'hi', usage(3_050, 5, { input: 40 }));
  const { tollgate } = await client.done();
  client.socket.close();
  await client.closed;
  expect(await quick.spine.faults()).toEqual([]);
  const second = 3_010n * 4n + 40n * 32n + 5n * 16n;
  expect((await quick.spine.balance()).available).toBe(100_000_000n - measured - second);
  expect(await quick.spine.generation(tollgate.generation_id)).toMatchObject({ flags: [] });
});

describe('a gateway that stops', () => {
  it('lets a running response end, and closes idle sessions at once', async () => {
    const stopping = await startVoiceGateway();
    const { spine: here } = stopping;
    const busy = await open(stopping, here.key);
    const idle = await open(stopping, here.key);
    await begin(busy, 'resp_1');
    busy.side.send({ type: 'response.output_text.delta', response_id: 'resp_1', delta: 'hello' });
    await busy.client.take('response.output_text.delta');
    const stopped = here.app.close();
    expect(await idle.client.take('error')).toMatchObject({ error: { code: 'service_unavailable' } });
    expect((await idle.client.closed).code).toBe(1001);
    busy.side.done('resp_1', usage(50, 2));
    // 50 × 4 + 2 × 16
    expect((await busy.client.done()).usage.cost).toBe(0.000232);
    expect((await busy.client.closed).code).toBe(1001);
    await stopped;
    await stopping.provider.stop();
  });

  it('cuts a response that does not end in time', async () => {
    const stopping = await startVoiceGateway({ toml: `${UNHURRIED}drain_on_shutdown_ms = 300\n` });
    const { spine: here } = stopping;
    const busy = await open(stopping, here.key);
    await begin(busy, 'resp_1');
    await here.app.close();
    expect((await busy.client.closed).code).toBe(1001);
    await busy.side.closed;
    await stopping.provider.stop();
  });
});
