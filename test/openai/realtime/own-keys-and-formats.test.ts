import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { escrowOf } from '#billing';
import type { Spine } from '../../support/spine.ts';
import { openRealtime } from './support/realtime-client.ts';
import { usage } from './support/realtime-provider.ts';
import { startVoiceGateway, type VoiceGateway } from './support/voice-gateway.ts';
import { SessionSettings } from '../../../src/openai/realtime/session-state.ts';

let gateway: VoiceGateway;
let spine: Spine;
beforeAll(async () => {
  gateway = await startVoiceGateway({ params: 'own_keys = true' });
  ({ spine } = gateway);
});
afterAll(() => gateway.stop());

const balanceOf = async (account: string) => (await spine.app.ledger.balance(escrowOf(account)))!.available;

describe('a consumer with a key of its own at the provider', () => {
  it('opens the session with it, and pays the operator a part of the price', async () => {
    const { account, key } = await spine.tenant('own', '10');
    const headers = { authorization: `Bearer ${key}` };
    const put = await spine.post('/provider-keys', { provider: 'Voices', key: 'sk-own-key-of-a-consumer' }, headers);
    expect(put.status).toBeLessThan(300);
    const [client, side] = await Promise.all([openRealtime(gateway.url, key), gateway.provider.session()]);
    expect(side.headers.authorization).toBe('Bearer sk-own-key-of-a-consumer');
    client.send({ type: 'response.create' });
    await side.take('response.create');
    side.say('resp_1', 'x'.repeat(400), usage(500, 100));
    // 5 % of 500 × 4 + 100 × 16
    expect((await client.done()).usage.cost).toBe(0.00018);

    // Without the key the price is another one, so the session cannot go on by it.
    expect((await spine.get('/provider-keys', headers)).status).toBe(200);
    const gone = await fetch(`${spine.url}/provider-keys/Voices`, { method: 'DELETE', headers });
    expect(gone.ok).toBe(true);
    client.send({ type: 'response.create' });
    expect(await client.take('error')).toMatchObject({ error: { code: 'service_unavailable' } });
    expect((await client.closed).code).toBe(1011);
    expect(await spine.faults()).toEqual([]);
    expect(await balanceOf(account)).toBe(10_000_000n - 180n);
  });
});

describe('settings that decide what a response can cost', () => {
  const shown = (more: object = {}) => ({
    max_output_tokens: 4_096,
    instructions: 'Be kind.',
    audio: { input: { format: { type: 'audio/pcm', rate: 24_000 }, turn_detection: null } },
    ...more,
  });
  const detecting = { audio: { input: { turn_detection: { type: 'server_vad' } } } };

  it('count at once if they can cost more, and once confirmed if they cost less', () => {
    const settings = new SessionSettings(shown(), 4_096);
    expect(settings.respondsToSound).toBe(false);
    settings.sent(detecting);
    expect(settings.respondsToSound).toBe(true);
    settings.sent({ audio: { input: { turn_detection: null } } });
    settings.confirmed(shown(detecting));
    // The second change is not confirmed yet.
    expect(settings.respondsToSound).toBe(true);
    settings.confirmed(shown());
    expect(settings.respondsToSound).toBe(false);

    settings.sent({ max_output_tokens: 100 });
    expect(settings.outputMax).toBe(4_096);
    settings.confirmed(shown({ max_output_tokens: 100 }));
    expect(settings.outputMax).toBe(100);
    settings.sent({ max_output_tokens: 3_000 });
    expect(settings.outputMax).toBe(3_000);
    settings.refused();
    expect(settings.outputMax).toBe(3_000);
  });

  it('count sound by the format with the fewest bytes, because nobody knows when a change takes effect', () => {
    const settings = new SessionSettings(shown(), 4_096);
    expect(settings.inputBytesOfSecond).toBe(48_000);
    settings.sent({ audio: { input: { format: { type: 'audio/pcmu' } } } });
    expect(settings.inputBytesOfSecond).toBe(8_000);
    settings.confirmed(shown());
    expect(settings.inputBytesOfSecond).toBe(8_000);
    expect(
      new SessionSettings({ audio: { input: { format: { type: 'audio/pcm', rate: 8_000 } } } }, 1).inputBytesOfSecond,
    ).toBe(8_000);
  });

  it('are taken as dear where a provider does not say', () => {
    const settings = new SessionSettings({}, 4_096);
    expect(settings.respondsToSound).toBe(true);
    expect(settings.outputMax).toBe(4_096);
  });

  it('keep the longest instructions and tools', () => {
    const settings = new SessionSettings(shown(), 4_096);
    expect(settings.promptBytes).toBe(8);
    settings.sent({ instructions: 'x'.repeat(100), tools: [] });
    settings.sent({ instructions: 'x' });
    settings.confirmed(shown({ instructions: 'x' }));
    expect(settings.promptBytes).toBe(102);
  });
});
