import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type Charge, type CallEnding, ENDINGS } from '../../../src/gateway/call/endings.ts';
import { imageBlock } from '../../media/support/image-provider.ts';
import { modelBlock } from '../../support/spine.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';
import { ask, type CallRecord, records, ROWS } from './ends-of-calls.ts';
import type { Kind } from './kinds.ts';
import { ALL_KINDS as KINDS } from './streamed-kinds.ts';
import { REPLY_BYTES_MAX, REPORTED, startVendor } from './vendor.ts';

/* Every row of the table of endings, for each kind of model, at the operator's provider and at one that dials in. */

/** Rows that another test runs, because they need another clock or a gateway that stops. */
const ELSEWHERE: ReadonlySet<CallEnding> = new Set<CallEnding>(['late', 'late_midway', 'stopped']);

const block = (
  side: 'own' | 'far',
  { name, lines = '', pricing = '', params = '', images, noTokens }: Kind,
  url: string,
) =>
  images
    ? imageBlock({ url, name: `${side}/${name}`, provider: side, lines })
    : modelBlock({
        name: `${side}/${name}`,
        provider: side,
        url,
        lines,
        pricing,
        params,
        ...(noTokens ? { prompt: 0, completion: 0 } : {}),
      });

interface Case {
  readonly kind: Kind;
  readonly side: 'own' | 'far';
  readonly script: string;
  readonly row: CallEnding;
  readonly reported: boolean;
  readonly id: string;
}

const CASES: readonly Case[] = KINDS.flatMap((kind) =>
  (['own', 'far'] as const).flatMap((side) =>
    ROWS.filter(([, , applies]) => applies(kind)).flatMap(([script, row]) =>
      [true, false].map((reported, at) => ({
        kind,
        side,
        script,
        row,
        reported,
        id: `${side}${kind.name}${script}${at}`.replaceAll('_', ''),
      })),
    ),
  ),
);

/** What the table says of a case, and what its vendor's usage is worth; null if that does not count. */
function expected({ kind, side, row, reported, script }: Case): {
  readonly charge: Charge;
  readonly worth: number | null;
} {
  const worth = kind.worth(REPORTED);
  // Of a provider that dialled in, no more is read of what is given up.
  const isRead = side === 'own' || !['too_large', 'too_large_midway', 'deep_midway'].includes(script);
  const isReported = reported && isRead && Object.keys(kind.usage(REPORTED)).length > 0 && worth !== null;
  // A vendor that reports after its client has left has given a whole answer.
  if (reported && script.startsWith('left')) return { charge: isReported ? 'usage' : 'flag', worth };
  const charges = ENDINGS[row][side === 'own' ? 'own' : 'dialledIn'];
  return { charge: isReported ? charges.reported : charges.unreported, worth };
}

/** What is wrong with a record; null if it is right. */
function fault(one: Case, record: CallRecord | undefined): string | null {
  const { charge, worth } = expected(one);
  const { cost_micro_usdc: cost, estimated, flags, tokens_completion: said } = record ?? NONE;
  const isMeasured = cost > 0 && (estimated || worth === cost || worth === null);
  const isRight = {
    usage: cost === worth,
    measure: isMeasured,
    input: isMeasured && said === 0,
    flag: one.kind.measures ? isMeasured : cost === 0 && flags.includes('usage_missing'),
    nothing: cost === 0,
  };
  return isRight[charge] ? null : `${one.id}: ${charge} of ${worth}, but ${JSON.stringify(record)}`;
}

/** A call that failed may have no record. */
const NONE: Omit<CallRecord, 'request_id' | 'outcome'> = {
  cost_micro_usdc: 0,
  estimated: false,
  tokens_completion: 0,
  flags: [],
};

test('every row of the table, on every kind of model, own and dialled in', async () => {
  const vendor = await startVendor();
  const { spine, dialIn } = await startTunnelSpine(
    `[upstream]\ncooldown_ms = 0\nattempts_max = 1\nreply_bytes_max = ${REPLY_BYTES_MAX}\nimages_reply_bytes_max = ${REPLY_BYTES_MAX}\n` +
      `[billing]\ndrain_ms = 700\n${KINDS.map((kind) => block('own', kind, vendor.url)).join('')}`,
  );
  await dialIn({ services: KINDS.map((kind) => block('far', kind, vendor.url)).join('') });
  const run = ({ kind, side, script, reported, id }: Case) =>
    ask({ spine, vendor, kind, model: `${side}/${kind.name}`, script, reported, id });
  const failing = new Set(['refused', 'failed', 'malformed', 'lost']);
  // What goes well first: a provider that failed may rest.
  for (const one of [
    CASES.filter(({ script }) => !failing.has(script)),
    CASES.filter(({ script }) => failing.has(script)),
  ])
    for (let at = 0; at < one.length; at += 12) await Promise.all(one.slice(at, at + 12).map((each) => run(each)));
  let found = await records(spine);
  // On a busy machine a vendor may report after the half second that it has when its client has left.
  const isLate = (one: Case) => one.script.startsWith('left') && fault(one, found.get(one.id)) !== null;
  for (const late of CASES.filter(isLate)) {
    const again = { ...late, id: `${late.id}again` };
    await run(again);
    const record = (await records(spine)).get(again.id)!;
    found = new Map(found).set(late.id, record);
  }
  expect(await spine.faults()).toEqual([]);
  expect(CASES.map((one) => fault(one, found.get(one.id))).filter((one) => one !== null)).toEqual([]);
  console.log(tableOf(found));
}, 240_000);

/** What each kind was charged for each ending, in micro-USD: own provider, then dialled in, with usage / without. */
function tableOf(found: ReadonlyMap<string, CallRecord>): string {
  const costs = new Map<string, string[]>();
  for (const { kind, row, script, id } of CASES) {
    const name = `${row.padEnd(17)} ${script.padEnd(17)} ${kind.name}`;
    costs.set(name, [...(costs.get(name) ?? []), String(found.get(id)?.cost_micro_usdc ?? 0)]);
  }
  const lines = [...costs].map(([name, [own, unsaid, far, unclaimed]]) =>
    [name.padEnd(54), `${own} / ${unsaid}`.padEnd(16), `${far} / ${unclaimed}`].join(''),
  );
  return [
    `${'row               ending            kind'.padEnd(54)}${'own'.padEnd(16)}dialled in`,
    ...lines.sort(),
  ].join('\n');
}

test('a request that waits for its connection is free, whoever has left', async () => {
  const arrived = Promise.withResolvers<void>();
  // It takes the connection, and never begins TLS.
  const deaf = createServer((socket) => {
    socket.pause().on('error', () => {});
    arrived.resolve();
  }).listen(0, '127.0.0.1');
  await once(deaf, 'listening');
  onTestFinished(() => void deaf.close());
  const url = `https://127.0.0.1:${(deaf.address() as AddressInfo).port}/v1`;
  const { spine } = await startTunnelSpine(
    `[billing]\ndrain_ms = 200\n${modelBlock({ name: 'deaf', provider: 'own', url })}`,
  );
  const leaving = new AbortController();
  const body = { model: 'deaf', max_tokens: 5, messages: [{ role: 'user', content: 'hello' }] };
  const asked = spine.post('/chat/completions', body, { 'x-request-id': 'deaf' }, leaving.signal);
  asked.catch(() => {});
  await arrived.promise;
  leaving.abort();
  expect(await spine.faults()).toEqual([]);
  expect((await records(spine)).get('deaf')?.cost_micro_usdc ?? 0).toBe(0);
});

test('no row is without a test', () => {
  const run_ = new Set(ROWS.map(([, row]) => row));
  expect(
    Object.keys(ENDINGS).filter((row) => !run_.has(row as CallEnding) && !ELSEWHERE.has(row as CallEnding)),
  ).toEqual([]);
});
