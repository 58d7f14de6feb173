import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { UNHURRIED, type Spine } from '../../support/spine.ts';
import { openRealtime, type RawClient } from './support/realtime-client.ts';
import type { ProviderSide } from './support/realtime-provider.ts';
import { startVoiceGateway, type VoiceGateway } from './support/voice-gateway.ts';

// Events that come faster than an account may send them: none is lost, and no other account waits for them.

/** So few that a busy machine is faster. Two seconds of it pass at once. */
const PER_SECOND = 20;
const FLOOD = 100;
/** Messages in pieces. */
const PIECED = 36;

let gateway: VoiceGateway;
let spine: Spine;
beforeAll(async () => {
  gateway = await startVoiceGateway({ toml: `${UNHURRIED}realtime_events_per_second = ${PER_SECOND}\n` });
  ({ spine } = gateway);
});
afterAll(() => gateway.stop());

interface Session {
  readonly client: RawClient;
  readonly side: ProviderSide;
}

async function open(key: string, at: VoiceGateway = gateway): Promise<Session> {
  const [client, side] = await Promise.all([openRealtime(at.url, key), at.provider.session()]);
  await client.take('session.created');
  return { client, side };
}

async function close(...sessions: Session[]): Promise<void> {
  for (const { client } of sessions) client.socket.close();
  await Promise.all(sessions.flatMap(({ client, side }) => [client.closed, side.closed]));
  expect(await spine.faults()).toEqual([]);
}

const sound = (n: number) => ({ type: 'input_audio_buffer.append', event_id: `${n}`, audio: 'AAAA' });
const heard = ({ side }: Session) => side.received.filter(({ type }) => type === 'input_audio_buffer.append');

describe('a flood of a client', () => {
  it('waits in its order and is told so once, over all sessions of its account, while another account goes on', async () => {
    const { key } = await spine.tenant('greedy', '10');
    const greedy = [await open(key), await open(key)];
    const patient = await open(spine.key);
    for (let n = 0; n < FLOOD; n++) for (const { client } of greedy) client.send(sound(n));
    await Promise.all(
      greedy.map(async ({ client }) =>
        expect(await client.take('error')).toMatchObject({
          error: { type: 'rate_limit_exceeded', code: 'rate_limit_exceeded', event_id: null },
        }),
      ),
    );
    const before = greedy.map((session) => heard(session).length);
    patient.client.send({ type: 'input_audio_buffer.clear' });
    await patient.side.take('input_audio_buffer.clear');
    expect(before[0]! + before[1]!).toBeLessThan(2 * FLOOD);
    await expect
      .poll(() => greedy.map((session) => heard(session).length), { timeout: 60_000 })
      .toEqual([FLOOD, FLOOD]);
    for (const session of greedy) {
      expect(heard(session).map(({ event_id: id }) => id)).toEqual(Array.from({ length: FLOOD }, (_, n) => `${n}`));
      expect(session.client.events.filter(({ type }) => type === 'error')).toHaveLength(1);
    }
    await close(...greedy, patient);
  });

  it('of fragments without bytes weighs as much as they take', async () => {
    const other = await startVoiceGateway({ toml: `${UNHURRIED}realtime_bytes_per_second = 262144\n` });
    onTestFinished(() => other.stop());
    const session = await open(other.spine.key, other);
    const { socket } = session.client;
    // Each message is a thousand frames. What the gateway reads ahead is not counted: 128 KiB.
    for (let n = 0; n < PIECED; n++) {
      for (let part = 0; part < 1_000; part++) socket.send('', { fin: false });
      socket.send(JSON.stringify(sound(n)));
    }
    expect(await session.client.take('error')).toMatchObject({ error: { type: 'rate_limit_exceeded' } });
    expect(heard(session).length).toBeLessThan(PIECED);
    await expect.poll(() => heard(session).length, { timeout: 60_000 }).toBe(PIECED);
    await close(session);
  });
});

describe('a flood of a provider', () => {
  it('is held back, and nothing of it is lost', async () => {
    const session = await open(spine.key);
    const { client, side } = session;
    for (let n = 0; n < FLOOD; n++) side.send({ type: 'rate_limits.updated', n });
    const came = () => client.events.filter(({ type }) => type === 'rate_limits.updated');
    await expect.poll(() => came().length, { timeout: 60_000 }).toBe(FLOOD);
    expect(came().map(({ n }) => n)).toEqual(Array.from({ length: FLOOD }, (_, n) => n));
    expect(client.events.filter(({ type }) => type === 'error')).toEqual([]);
    await close(session);
  });
});
