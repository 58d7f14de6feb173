import { expect, test } from 'vitest';
import { modelBlock } from '../../support/spine.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';
import { ask, records } from './ends-of-calls.ts';
import { ALL_KINDS } from './streamed-kinds.ts';
import { REPLY_BYTES_MAX, startVendor } from './vendor.ts';

/* With a consumer's own key, a call costs a part of what it costs without one, however it ends. */

const BPS = 500;
const CHAT = ['chat', 'chatstream', 'messages'].map((name) => ALL_KINDS.find((kind) => kind.name === name)!);
const SCRIPTS = ['complete', 'empty', 'left', 'over_cap', 'refused', 'failed'];
const CASES = CHAT.flatMap((kind) =>
  [...SCRIPTS, ...(kind.type === 'application/json' ? ['mute', 'too_large_midway', 'hung'] : [])].flatMap((script) =>
    [true, false].map((reported) => ({
      kind,
      script,
      reported,
      id: `${kind.name}${script}${reported ? 1 : 0}`.replaceAll('_', ''),
    })),
  ),
);

test('every row costs its part', async () => {
  const vendor = await startVendor();
  const block = (name: string, params: string) =>
    CHAT.map((kind) =>
      modelBlock({
        name: `${name}/${kind.name}`,
        provider: name,
        url: vendor.url,
        prompt: 100,
        completion: 200,
        params: `${kind.params ?? ''}\n${params}`,
      }),
    ).join('');
  const { spine } = await startTunnelSpine(
    `[upstream]\ncooldown_ms = 0\nattempts_max = 1\nhead_timeout_ms = 1500\nreply_bytes_max = ${REPLY_BYTES_MAX}\n` +
      `[billing]\ndrain_ms = 700\nown_key_bps = ${BPS}\n${block('usual', '')}${block('keyed', 'own_keys = true')}`,
  );
  const stored = await spine.post('/provider-keys', { provider: 'keyed', key: 'sk-of-a-consumer' });
  expect([stored.status, await stored.text()]).toEqual([201, expect.any(String)]);
  for (const side of ['usual', 'keyed'])
    for (let at = 0; at < CASES.length; at += 12)
      await Promise.all(
        CASES.slice(at, at + 12).map(({ kind, id, ...one }) =>
          ask({ spine, vendor, kind, ...one, model: `${side}/${kind.name}`, id: `${side}${id}` }),
        ),
      );
  expect(await spine.faults()).toEqual([]);
  const found = await records(spine);
  const costs = CASES.map(({ id }) => {
    const [usual, keyed] = ['usual', 'keyed'].map((side) => found.get(`${side}${id}`)?.cost_micro_usdc ?? 0);
    return { id, usual: usual!, keyed: keyed! };
  });
  expect(costs.filter(({ usual, keyed }) => keyed !== Math.ceil((usual * BPS) / 10_000))).toEqual([]);
  expect(costs.filter(({ usual }) => usual > 0).length).toBeGreaterThan(CASES.length / 2);
});
