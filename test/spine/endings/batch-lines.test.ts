import { expect, test } from 'vitest';
import { begin, clientAt, ended, resultsOf } from '../../openai/batches/support/batch-client.ts';
import { type CallEnding, ENDINGS } from '../../../src/gateway/call/endings.ts';
import { modelBlock } from '../../support/spine.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';
import { records } from './ends-of-calls.ts';
import { ALL_KINDS } from './streamed-kinds.ts';
import { REPLY_BYTES_MAX, REPORTED, startVendor } from './vendor.ts';

/* Lines of batches end as calls do, and what was charged or late is not asked for again. */

const CHAT = ALL_KINDS.find(({ name }) => name === 'chat')!;
const SCRIPTS: readonly (readonly [script: string, row: CallEnding])[] = [
  ['complete', 'complete'],
  ['empty', 'empty'],
  ['thought', 'empty'],
  ['over_cap', 'over_cap'],
  ['mute', 'too_large'],
  ['too_large_midway', 'too_large_midway'],
  ['hung', 'late'],
  ['refused', 'refused'],
];
const CASES = SCRIPTS.flatMap(([script, row]) =>
  (['own', 'far'] as const).flatMap((side) =>
    [true, false].map((reported) => ({
      script,
      row,
      side,
      reported,
      id: `${side}${script}${reported ? 1 : 0}`.replaceAll('_', ''),
    })),
  ),
);

test('every row that a line can have, and how often its provider was asked', async () => {
  const vendor = await startVendor();
  const block = (side: string) => modelBlock({ name: `${side}/chat`, provider: side, url: vendor.url });
  const { spine, dialIn } = await startTunnelSpine(
    `[upstream]\ncooldown_ms = 0\nattempts_max = 1\nhead_timeout_ms = 1500\nreply_bytes_max = ${REPLY_BYTES_MAX}\n` +
      `[billing]\ndrain_ms = 700\n${block('own')}`,
  );
  await dialIn({ services: block('far') });
  const client = clientAt(`${spine.origin}/v1`, spine.key);
  const lines = CASES.map(({ side, script, reported, id }) => ({
    custom_id: id,
    method: 'POST',
    url: '/v1/chat/completions',
    body: CHAT.ask(`${side}/chat`, `!k:chat !e:${script} !u:${reported ? 1 : 0} !n:${id}`).body,
  }));
  const batch = await ended(client, (await begin(client, lines)).id);
  expect(batch.request_counts!.total).toBe(CASES.length);
  expect(await spine.faults()).toEqual([]);
  const { output, errors } = await resultsOf(client, batch);
  const requests = new Map([...output, ...errors].map(({ custom_id: id, response }) => [id, response?.request_id]));
  const found = await records(spine);
  const wrong = CASES.flatMap(({ id, side, row, reported, script }) => {
    const { cost_micro_usdc: cost, estimated } = found.get(requests.get(id) ?? '') ?? {
      cost_micro_usdc: 0,
      estimated: false,
    };
    const isReported = reported && script !== 'hung' && (side === 'own' || row !== 'too_large_midway');
    const charge = ENDINGS[row][side === 'own' ? 'own' : 'dialledIn'][isReported ? 'reported' : 'unreported'];
    const isRight =
      charge === 'usage'
        ? cost === CHAT.worth(REPORTED)
        : ['measure', 'input'].includes(charge)
          ? cost > 0 && estimated
          : cost === 0;
    const times = vendor.asked(id);
    // What a provider refuses for now is asked for again.
    const isAsked = script === 'refused' ? times > 1 : times === 1;
    return isRight && isAsked ? [] : [`${id} costs ${cost}, asked ${times} times`];
  });
  expect(wrong).toEqual([]);
});
