import { expect, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { imageBlock } from '../../media/support/image-provider.ts';
import { modelBlock, type Spine } from '../../support/spine.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';
import { ask, records } from './ends-of-calls.ts';
import type { Kind } from './kinds.ts';
import { ALL_KINDS } from './streamed-kinds.ts';
import { REPLY_BYTES_MAX, startVendor } from './vendor.ts';

/* What the operator sees of calls that ended late: in the log, in the metrics and in the record, for each kind. */

const KINDS = ALL_KINDS.filter(({ inBackground }) => !inBackground);

const block = ({ name, lines = '', pricing = '', params = '', images, noTokens }: Kind, url: string) =>
  images
    ? imageBlock({ url, name: `own/${name}`, provider: 'own', lines })
    : modelBlock({
        name: `own/${name}`,
        provider: 'own',
        url,
        lines,
        pricing,
        params,
        ...(noTokens ? { prompt: 0, completion: 0 } : {}),
      });

const isWhole = ({ begin, type }: Kind) => begin === undefined && type.includes('json');

/** How calls end, of which kinds, and what is seen of each. */
const ENDS: readonly (readonly [script: string, code: string, status: number, of: (kind: Kind) => boolean])[] = [
  ['too_large', 'unprocessable', 422, (kind) => isWhole(kind) && kind.padded !== undefined && !kind.words],
  ['mute', 'unprocessable', 422, (kind) => isWhole(kind) && kind.padded !== undefined && kind.words === true],
  ['hung', 'unprocessable', 422, isWhole],
  ['too_large_midway', 'reply_cut', 500, (kind) => isWhole(kind) && kind.padded !== undefined && kind.words === true],
  ['left', 'client_gone', 499, () => true],
  ['lost', 'provider_unavailable', 500, ({ begin }) => begin !== undefined],
];
const CASES = ENDS.flatMap(([script, code, status, of]) =>
  KINDS.filter(of).map((kind) => ({ kind, script, code, status, id: `${kind.name}${script}`.replaceAll('_', '') })),
);

const lineOf = (spine: Spine, id: string) =>
  spine.logs
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .find((line) => line['request_id'] === id && line['msg'] === 'call');

test('the log, the metrics and the record of a call that ended late say how, for every kind of model', async () => {
  const vendor = await startVendor();
  const { spine } = await startTunnelSpine(
    `[upstream]\ncooldown_ms = 0\nattempts_max = 1\nhead_timeout_ms = ${atThisLoad(1_500)}\nreply_bytes_max = ${REPLY_BYTES_MAX}\nimages_reply_bytes_max = ${REPLY_BYTES_MAX}\n` +
      `[billing]\ndrain_ms = 200\n${KINDS.map((kind) => block(kind, vendor.url)).join('')}`,
  );
  for (let at = 0; at < CASES.length; at += 12)
    await Promise.all(
      CASES.slice(at, at + 12).map(({ kind, script, id }) =>
        ask({ spine, vendor, kind, model: `own/${kind.name}`, script, reported: false, id }),
      ),
    );
  expect(await spine.faults()).toEqual([]);
  await spine.quiet();
  const found = await records(spine);
  const seen = CASES.map(({ id }) => {
    const { error, status, reason } = lineOf(spine, id) ?? {};
    const record = found.get(id) as Record<string, unknown> | undefined;
    return {
      id,
      line: [status, error],
      record: [record?.['status'], record?.['error_code']],
      reason,
      told: record?.['error'],
    };
  });
  expect(seen.map(({ id, line, record }) => ({ id, line, record }))).toEqual(
    CASES.map(({ id, status, code }) => ({ id, line: [status, code], record: [status, code] })),
  );
  // The log and the record have the words that the client got.
  for (const { reason, told } of seen) expect(told).toBe(reason);
  const metrics = await (
    await fetch(`${spine.origin}/metrics`, { headers: { authorization: `Bearer ${spine.adminKey}` } })
  ).text();
  const ATTEMPT_ENDS: Readonly<Record<string, string>> = {
    too_large: 'too_large',
    mute: 'too_large',
    too_large_midway: 'too_large',
    hung: 'timeout',
    left: 'cancelled',
    lost: 'broken',
  };
  for (const { kind, script, code } of CASES) {
    const service = `gen_ai_request_model="own/${kind.name}"`;
    const count = (metric: string, error: string) =>
      new RegExp(`^${metric}_count\\{[^}]*${service}[^}]*,error_type="${error}"\\} [1-9]`, 'm');
    expect(metrics).toMatch(count('gen_ai_server_request_duration_seconds', code));
    expect(metrics).toMatch(count('gen_ai_client_operation_duration_seconds', ATTEMPT_ENDS[script]!));
  }
}, 120_000);
