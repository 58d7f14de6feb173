import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { escrowOf } from '#billing';
import type { Spine } from '../../support/spine.ts';
import { openRealtime, type RawClient } from './support/realtime-client.ts';
import { usage, type ProviderSide, type RealtimeProvider } from './support/realtime-provider.ts';
import { startVoiceGateway, type VoiceGateway } from './support/voice-gateway.ts';

const pcm = (seconds: number) => Buffer.alloc(48_000 * seconds).toString('base64');
const VAD = { session: { type: 'realtime', audio: { input: { turn_detection: { type: 'server_vad' } } } } };

/**
 * The lock of a new session: 1,024 tokens of sound at 32 and 576 of text at 4 (512 around tools, 64 around all) in, and
 * 4,096 of sound at 64 out.
 */
const FIRST_LOCK = 1_024n * 32n + 576n * 4n + 4_096n * 64n;

let gateway: VoiceGateway;
let provider: RealtimeProvider;
let spine: Spine;

beforeAll(async () => {
  gateway = await startVoiceGateway();
  ({ provider, spine } = gateway);
});
afterAll(() => gateway.stop());

const balanceOf = async (account: string) => (await spine.app.ledger.balance(escrowOf(account)))!;

async function open(key: string): Promise<{ client: RawClient; side: ProviderSide }> {
  const [client, side] = await Promise.all([openRealtime(gateway.url, key), provider.session()]);
  await client.take('session.created');
  return { client, side };
}

describe('a response that sound begins', () => {
  it('has its lock before the sound reaches the provider, and so has the next one', async () => {
    const { account, key } = await spine.tenant('vad', '10');
    const { client, side } = await open(key);
    expect((await balanceOf(account)).locked).toBe(FIRST_LOCK);
    client.send({ type: 'session.update', ...VAD });
    await client.take('session.updated');
    client.send({ type: 'input_audio_buffer.append', audio: pcm(2) });
    await side.take('input_audio_buffer.append');
    expect((await balanceOf(account)).locked).toBe(FIRST_LOCK);

    side.begin('resp_1');
    await client.take('response.created');
    client.send({ type: 'input_audio_buffer.append', audio: pcm(1) });
    await side.take('input_audio_buffer.append');
    // The sound may interrupt the first response and begin another: a second lock waits for that one.
    const two = (await balanceOf(account)).locked;
    expect(two).toBeGreaterThan(2n * FIRST_LOCK);
    side.send({ type: 'response.output_audio.delta', response_id: 'resp_1', delta: pcm(1) });
    side.done('resp_1', usage(30, 20, { input: 20, output: 20 }), {
      status: 'cancelled',
      status_details: { reason: 'turn_detected' },
    });
    side.begin('resp_2');
    side.send({ type: 'response.output_audio.delta', response_id: 'resp_2', delta: pcm(1) });
    side.done('resp_2', usage(60, 25, { input: 50, output: 20 }));
    const [first, second] = [await client.done(), await client.done()];
    // 10 × 4 + 20 × 32 + 20 × 64; then 10 × 4 + 50 × 32 + 5 × 16 + 20 × 64
    expect(first.usage.cost).toBe(0.00196);
    expect(second.usage.cost).toBe(0.003);
    client.socket.close();
    await client.closed;
    expect(await spine.faults()).toEqual([]);
    expect((await balanceOf(account)).available).toBe(10_000_000n - 1_960n - 3_000n);
  });

  it('has a lock that grows with the sound, before the sound is forwarded', async () => {
    const { account, key } = await spine.tenant('grows', '0.45');
    const { client, side } = await open(key);
    // The first lock is used up by a response that the client asks for, so none waits when sound comes.
    client.send({ type: 'response.create' });
    await side.take('response.create');
    side.say('resp_1', 'hi', usage(20, 1));
    await client.done();
    expect((await balanceOf(account)).locked).toBe(0n);
    client.send({ type: 'session.update', ...VAD });
    await client.take('session.updated');
    client.send({ type: 'input_audio_buffer.append', audio: pcm(1) });
    await side.take('input_audio_buffer.append');
    expect((await balanceOf(account)).locked).toBeGreaterThan(FIRST_LOCK);

    // A minute is at most 1,200 tokens, more than the room of 1,024 that the lock has. The larger lock would be made
    // before the smaller one is given back, and both are more than there is.
    client.send({ type: 'input_audio_buffer.append', audio: pcm(60) });
    expect(await client.take('error')).toMatchObject({ error: { code: 'insufficient_balance' } });
    expect((await client.closed).code).toBe(1008);
    await side.closed;
    expect(side.received.filter(({ type }) => type === 'input_audio_buffer.append')).toHaveLength(1);
    expect(await spine.faults()).toEqual([]);
    expect((await balanceOf(account)).available).toBe(450_000n - 96n);
  });

  it('has room for a long turn', async () => {
    const { account, key } = await spine.tenant('long-turn', '10');
    const { client, side } = await open(key);
    client.send({ type: 'session.update', ...VAD });
    await client.take('session.updated');
    for (let minute = 1; minute <= 4; minute++) {
      client.send({ type: 'input_audio_buffer.append', audio: pcm(60) });
      await side.take('input_audio_buffer.append');
      const { locked } = await balanceOf(account);
      expect(locked).toBeGreaterThanOrEqual(BigInt(minute) * 1_200n * 32n + 4_096n * 64n);
    }
    // The provider may claim all of it.
    side.begin('resp_1');
    side.send({ type: 'response.output_audio.delta', response_id: 'resp_1', delta: pcm(10) });
    side.done('resp_1', usage(4_900, 400, { input: 4_800, output: 400 }));
    // 100 × 4 + 4,800 × 32 + 400 × 64
    expect((await client.done()).usage.cost).toBe(0.1796);
    client.socket.close();
    await client.closed;
    expect(await spine.faults()).toEqual([]);
    expect((await balanceOf(account)).available).toBe(10_000_000n - 179_600n);
  });

  it('gets nothing to its client, and is cancelled, if no lock can be made for it', async () => {
    const { account, key } = await spine.tenant('one-lock', '0.4');
    const { client, side } = await open(key);
    client.send({ type: 'session.update', ...VAD });
    await client.take('session.updated');
    client.send({ type: 'input_audio_buffer.append', audio: pcm(2) });
    await side.take('input_audio_buffer.append');
    side.begin('resp_1');
    side.begin('resp_2');
    side.send({ type: 'response.output_audio.delta', response_id: 'resp_2', delta: pcm(1) });
    side.send({ type: 'response.output_text.delta', response_id: 'resp_1', delta: 'hi' });
    expect(await side.take('response.cancel')).toMatchObject({ response_id: 'resp_2' });
    const refused = await client.take('error');
    expect(refused).toMatchObject({ error: { code: 'insufficient_balance' } });
    side.done('resp_2', usage(5_000, 4_000, { output: 4_000 }));
    side.done('resp_1', usage(30, 1));
    expect((await client.done()).id).toBe('resp_1');
    expect((await client.closed).code).toBe(1008);
    expect(client.events.some((event) => JSON.stringify(event).includes('resp_2'))).toBe(false);
    expect(await spine.faults()).toEqual([]);
    // 30 × 4 + 1 × 16
    expect((await balanceOf(account)).available).toBe(400_000n - 136n);
  });
});

describe('a balance that runs out', () => {
  it('ends the session before it is overspent', async () => {
    const { account, key } = await spine.tenant('runs-out', '0.4');
    const { client, side } = await open(key);
    let charged = 0n;
    let responses = 0;
    const failed = client.take('error');
    for (; responses < 50; responses++) {
      client.send({ type: 'response.create' });
      const next = await Promise.race([side.take('response.create'), failed]);
      if (next['type'] === 'error') {
        expect(next).toMatchObject({ error: { code: 'insufficient_balance', type: 'insufficient_balance' } });
        break;
      }
      side.say(`resp_${responses}`, 'x'.repeat(4_000), usage(100, 1_000));
      await client.take('response.done');
      charged += 100n * 4n + 1_000n * 16n;
      const { available, locked } = await balanceOf(account);
      expect(available + locked).toBe(400_000n - charged);
    }
    // Each response leaves 16,400 less, and 1,016 tokens more in the conversation. So the fifth locks 1,024 × 32 +
    // (584 + 4 × 1,016) × 4 + 4,096 × 64 = 313,504 of 334,400. With room for a quarter more, the sixth would lock
    // 1,250 × 32 + (584 + 5 × 1,016) × 4 + 4,096 × 64 = 324,800 of 318,000.
    expect(responses).toBe(5);
    expect((await client.closed).code).toBe(1008);
    await side.closed;
    expect(side.received.filter(({ type }) => type === 'response.create')).toHaveLength(responses);
    expect(await spine.faults()).toEqual([]);
    expect((await balanceOf(account)).available).toBe(400_000n - charged);
  });

  it('lets a response that runs end, and forwards nothing more', async () => {
    const { account, key } = await spine.tenant('runs-on', '0.4');
    const { client, side } = await open(key);
    client.send({ type: 'session.update', ...VAD });
    await client.take('session.updated');
    client.send({ type: 'input_audio_buffer.append', audio: pcm(1) });
    await side.take('input_audio_buffer.append');
    side.begin('resp_1');
    side.send({ type: 'response.output_text.delta', response_id: 'resp_1', delta: 'hello' });
    expect(await client.take('error')).toMatchObject({ error: { code: 'insufficient_balance' } });
    client.send({ type: 'input_audio_buffer.append', audio: pcm(1) });
    client.send({ type: 'response.create' });
    side.done('resp_1', usage(40, 10));
    expect((await client.done()).usage.cost).toBe(0.00032);
    expect((await client.closed).code).toBe(1008);
    await side.closed;
    expect(side.received.filter(({ type }) => type !== 'session.update')).toHaveLength(1);
    expect(await spine.faults()).toEqual([]);
    expect((await balanceOf(account)).available).toBe(400_000n - 320n);
  });
});

describe('claims', () => {
  it('are cut to what passed, and flagged', async () => {
    const { account, key } = await spine.tenant('claims', '10');
    const { client, side } = await open(key);
    client.send({ type: 'input_audio_buffer.append', audio: pcm(10) });
    client.send({ type: 'response.create' });
    await side.take('response.create');
    side.say('resp_1', 'hi', usage(9_000_000, 9_000_000, { input: 9_000_000, output: 9_000_000 }));
    const { usage: billed, tollgate } = await client.done();
    expect(billed.output_tokens).toBe(4_096);
    const record = await spine.generation(tollgate.generation_id, key);
    expect(record.flags).toEqual(['usage_implausible']);
    expect(record.claims).toEqual([
      { meter: 'prompt', claimed: 9_000_000, most: 786 },
      { meter: 'completion', claimed: 9_000_000, most: 2 + 32 },
      { meter: 'audio', claimed: 9_000_000, most: 200 },
    ]);
    client.socket.close();
    await client.closed;
    expect(await spine.faults()).toEqual([]);
    // Ten seconds are at most 200 tokens of sound, and the rest of the prompt 586 of text.
    expect(10_000_000n - (await balanceOf(account)).available).toBe(BigInt(record.cost_micro_usdc));
    expect(BigInt(record.cost_micro_usdc)).toBe(200n * 32n + 586n * 4n + 4_096n * 64n);
  });

  it('that are missing are measured; nonsense too', async () => {
    const { key } = await spine.tenant('no-claims', '10');
    const { client, side } = await open(key);
    for (const [index, claim] of [null, 'many', { input_tokens: -1, output_tokens: 'x' }].entries()) {
      client.send({ type: 'response.create' });
      await side.take('response.create');
      side.say(`resp_${index}`, 'x'.repeat(400), claim);
      const done = await client.done();
      expect(done.usage.output_tokens).toBe(100);
      const record = await spine.generation(done.tollgate.generation_id, key);
      expect(record.estimated).toBe(true);
      expect(record.flags).toEqual([index === 0 ? 'usage_missing' : 'usage_invalid']);
    }
    client.socket.close();
    await client.closed;
    expect(await spine.faults()).toEqual([]);
  });

  it('of a response that failed are not charged, and those of one of which nothing came are', async () => {
    const { account, key } = await spine.tenant('nothing', '10');
    const { client, side } = await open(key);
    const costs: number[] = [];
    for (const status of ['failed', 'cancelled', 'completed']) {
      client.send({ type: 'response.create' });
      await side.take('response.create');
      side.begin(`resp_${status}`);
      if (status === 'failed')
        side.send({ type: 'response.output_text.delta', response_id: 'resp_failed', delta: 'oh' });
      side.done(`resp_${status}`, usage(500, 500), { status });
      const { cost } = (await client.done()).usage;
      costs.push(cost);
    }
    const [failed, cancelled, completed] = costs as [number, number, number];
    expect(failed).toBe(0);
    expect(cancelled).toBeGreaterThan(0);
    expect(completed).toBeGreaterThan(0);
    client.socket.close();
    await client.closed;
    expect(await spine.faults()).toEqual([]);
    const paid = BigInt(Math.round((cancelled + completed) * 1_000_000));
    expect((await balanceOf(account)).available).toBe(10_000_000n - paid);
  });
});
