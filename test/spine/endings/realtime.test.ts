import { expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { openRealtime } from '../../openai/realtime/support/realtime-client.ts';
import { type ProviderSide, startRealtimeProvider, usage } from '../../openai/realtime/support/realtime-provider.ts';
import { voiceBlock } from '../../openai/realtime/support/voice-gateway.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';

/* The rows of the table of endings on responses of realtime sessions, own and dialled in. */

/** 30 × 4 + 7 × 16 micro-USD. */
const CLAIM = usage(30, 7);
const WORTH = 232;
/** The delta is of 12 bytes: 3 tokens. The conversation is the instructions and tools of 10 bytes: 3 tokens. */
const SAID = 'hello to you';
const INPUT = 3 * 4;
const CAME = INPUT + 3 * 16;
/** The instructions of a provider that dialled in are its own, so they are not measured. */
const SPOKEN = 3 * 16;

interface Way {
  readonly speaks: boolean;
  /** What its client does, and then its provider. */
  readonly ends: 'done' | 'thought' | 'cancelled' | 'failed' | 'lost' | 'gone';
  readonly reports: boolean;
  /** Micro-USD at the own provider, and at the one that dialled in. */
  readonly own: number;
  readonly far: number;
}

const way = (ends: Way['ends'], speaks: boolean, reports: boolean, own: number, far = own): Way => ({
  ends,
  speaks,
  reports,
  own,
  far,
});

const WAYS: readonly Way[] = [
  way('done', true, true, WORTH),
  way('done', true, false, CAME, SPOKEN),
  // A provider that dialled in is paid for what came.
  way('thought', false, true, WORTH, 0),
  way('thought', false, false, 0),
  way('cancelled', false, true, WORTH, 0),
  way('cancelled', false, false, INPUT, 0),
  way('cancelled', true, true, WORTH),
  way('cancelled', true, false, CAME, SPOKEN),
  way('gone', false, false, INPUT, 0),
  way('gone', true, false, CAME, SPOKEN),
  way('failed', true, true, 0),
  way('lost', false, false, 0),
  way('lost', true, false, CAME, SPOKEN),
];

test('responses of realtime sessions cost what the table says', async () => {
  const provider = await startRealtimeProvider();
  const block = (name: string) =>
    voiceBlock(provider.url).replace('"voice"', `"${name}/voice"`).replaceAll('Voices', name);
  const { spine, dialIn } = await startTunnelSpine(`[billing]\ndrain_ms = 300\n${block('own')}`);
  await dialIn({ services: block('far') });

  async function cost(side: 'own' | 'far', { speaks, ends, reports }: Way, account: string, key: string) {
    const url = `${spine.origin.replace('http', 'ws')}/v1/realtime?model=${side}/voice`;
    const [client, there] = await Promise.all([openRealtime(url, key), provider.session()]);
    await client.take('session.created');
    client.send({ type: 'response.create' });
    await there.take('response.create');
    there.begin('resp_1');
    await client.take('response.created');
    if (speaks) {
      there.send({ type: 'response.output_text.delta', response_id: 'resp_1', item_id: 'i', delta: SAID });
      await client.take('response.output_text.delta');
    }
    await end(there, client, ends, reports ? CLAIM : undefined);
    client.socket.close();
    await Promise.all([client.closed, there.closed]);
    await spine.quiet();
    return 10_000_000n - (await spine.app.ledger.balance(escrowOf(account)))!.available;
  }

  async function end(
    there: ProviderSide,
    client: Awaited<ReturnType<typeof openRealtime>>,
    ends: Way['ends'],
    claim: unknown,
  ) {
    if (ends === 'lost') return there.socket.terminate();
    if (ends === 'gone') return client.socket.terminate();
    if (ends === 'cancelled') {
      client.send({ type: 'response.cancel' });
      await there.take('response.cancel');
    }
    const status = { done: 'completed', thought: 'incomplete', cancelled: 'cancelled', failed: 'failed' }[ends];
    there.done('resp_1', claim, { status });
    await client.done();
  }

  const wrong: string[] = [];
  for (const [at, each] of WAYS.entries())
    for (const side of ['own', 'far'] as const) {
      const { account, key } = await spine.tenant(`${side}${at}`, '10');
      const found = Number(await cost(side, each, account, key));
      if (found !== each[side]) wrong.push(`${side} ${JSON.stringify(each)} cost ${found}`);
    }
  await provider.stop();
  expect(wrong).toEqual([]);
  expect(await spine.faults()).toEqual([]);
}, 120_000);
