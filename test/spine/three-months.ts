import { createHash } from 'node:crypto';
import { expect, inject } from 'vitest';
import { ENDPOINTS } from '../peers/routes.ts';
import { startPeerProvider, type Deed } from '../peers/peer-provider.ts';
import { peerServices } from '../peers/services.ts';
import { adHoc } from '../support/ad-hoc.ts';
import type { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { newDataDirectory } from '../support/data-directory.ts';
import { startProvider } from '../support/provider.ts';
import { ask, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { startSpineChild, type SpineChild } from '../support/spine-child.ts';

/*
 * Three months of two accounts, by chance: calls of all kinds that succeed, fail, are cut or left, with tags of
 * requests and of keys, end users and members; credits, debits, refunds; and a gateway that is killed in the middle of
 * it.
 */

export const FIRST = '2026-09-01';
export const MONTHS = ['2026-09', '2026-10', '2026-11'];
/** No movement is later, in any time zone. */
export const LAST = '2026-12-02';

/** A charged call, as the ledger has it. */
export interface ChargedCall {
  readonly id: string;
  readonly account: string;
  readonly cost: number;
  /** When it ended, in epoch milliseconds. */
  readonly at: number;
  readonly tags: Readonly<Record<string, string>>;
  readonly model: string;
  readonly key: string | null;
  readonly member: string | null;
  readonly provider: string | null;
  readonly primitive: string;
}

/** What else moved the balance of an account. */
interface Movement {
  readonly id: string;
  readonly account: string;
  readonly at: number;
  readonly amount: number;
}

export interface ThreeMonths {
  /** The gateway after all of it. */
  readonly spine: Spine;
  readonly calls: readonly ChargedCall[];
  readonly movements: readonly Movement[];
  /** The first is an organisation with members. */
  readonly accounts: readonly { readonly account: string; readonly key: string }[];
  readonly kills: number;
  close(): Promise<void>;
}

/** Numbers from 0 to below 1, the same for a seed. */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const HOUR_MS = 3_600_000;
const PRIMITIVES = ['model', 'tool', 'agent', 'image', 'video'] as const;
const DEEDS: readonly Deed[] = ['complete', 'complete', 'complete', 'over', 'error', 'no-usage', 'slow'];
const [LOCKS, TRANSFERS] = [adHoc('SELECT * FROM locks'), adHoc('SELECT * FROM transfers')];
const END = Date.parse('2026-11-30T20:00:00Z');

/** Lives them. `hours`: the most between two acts. */
export async function liveThreeMonths(
  engine: (typeof ENGINES)[number],
  seed: number,
  hours: number,
): Promise<ThreeMonths> {
  const random = randomOf(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
  const [models, peers] = await Promise.all([startProvider(), startPeerProvider()]);
  // Costs of the second model are rounded.
  const odd = modelBlock({ name: 'odd/model', provider: 'Odd', url: '{provider}', prompt: 0.37, completion: 1.913 });
  const place = {
    dataDir: newDataDirectory(),
    toml: `${UNHURRIED}\n[analytics]\nevery_ms = 50\n[billing]\nsweep_ms = 50\n[upstream]\ncooldown_ms = 1\n${odd}${peerServices(peers)}`,
    ...(fresh === null ? {} : { databaseUrl: fresh.url }),
  };
  let at = Date.parse('2026-09-03T22:10:00Z');
  const start = () => startSpineChild({ ...place, providerUrl: models.url, at });
  let gateway: SpineChild = await start();
  let kills = 0;

  const send = async (path: string, key: string, body: object, headers: Record<string, string> = {}) =>
    fetch(gateway.origin + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const made = async (path: string, key: string, body: object, headers?: Record<string, string>) => {
    const answer = await send(path, key, body, headers);
    const json = (await answer.json()) as { readonly key: string; readonly data: { readonly hash: string } };
    expect([path, answer.status, answer.ok ? '' : json]).toEqual([path, answer.status, '']);
    return json;
  };
  const admin = (path: string, body: object) => made(`/admin/v1${path}`, gateway.adminKey, body);

  /* The accounts, their members and keys. */
  const idOf = (name: string) => `tollgate:local:${name}`;
  const keyOf = async (name: string, body: object = {}) =>
    (await admin(`/accounts/${idOf(name)}/keys`, { name: 'a key', ...body })).key;
  const credit = (name: string, micro: number, reference: string) =>
    admin(`/accounts/${idOf(name)}/credit`, { amount_micro_usdc: micro, reference });
  for (const name of ['acme', 'zeta', 'mia', 'noa']) await admin('/accounts', { name });
  for (const name of ['acme', 'zeta']) await credit(name, 50_000_000, `first-${name}`);
  const keys = [
    { name: 'acme', key: await keyOf('acme') },
    { name: 'acme', key: await keyOf('acme', { tags: { team: 'red' } }) },
    { name: 'zeta', key: await keyOf('zeta') },
  ];
  for (const member of ['mia', 'noa']) {
    const own = await keyOf(member);
    await admin(`/accounts/${idOf('acme')}/members`, { account: idOf(member), role: 'member' });
    const acting = { 'x-tollgate-account': idOf('acme') };
    keys.push({ name: 'acme', key: (await made('/api/v1/keys', own, { name: member }, acting)).key });
  }

  /** Tags of calls whose answers were seen, by their ids. */
  const seen = new Map<string, { readonly cost: number; readonly tags: Readonly<Record<string, string>> }>();
  const chat = async () => {
    const caller = pick(keys);
    const isRed = caller === keys[1];
    const tags: Record<string, string> = {};
    if (random() < 0.7) tags['team'] = isRed ? 'red' : pick(['blue', 'red', 'green']);
    if (random() < 0.3) tags['feature'] = pick(['search', 'chat']);
    const user = random() < 0.4 ? pick(['ann', 'bob']) : null;
    const words = random() < 0.1 ? '!status:500' : `hi !tokens:${1 + Math.floor(random() * 90)}`;
    const answer = await send(
      '/api/v1/chat/completions',
      caller.key,
      ask(words, { ...(random() < 0.5 ? {} : { model: 'odd/model' }), ...(user === null ? {} : { user }) }),
      Object.keys(tags).length === 0
        ? {}
        : {
            'x-tollgate-tags': Object.entries(tags)
              .map((pair) => pair.join('='))
              .join(','),
          },
    );
    const { usage } = (await answer.json()) as { readonly usage?: { readonly cost: number } };
    expect(answer.status).toBe(words === '!status:500' ? 500 : 200);
    if (isRed) tags['team'] = 'red';
    const digest = createHash('sha256')
      .update(`${idOf(caller.name)}\n${user}`)
      .digest('hex')
      .slice(0, 24);
    if (user !== null) tags['end_user'] = digest;
    if (usage) seen.set(answer.headers.get('x-generation-id')!, { cost: Math.round(usage.cost * 1e6), tags });
  };
  let count = 0;
  const peerCall = async (deed: Deed, leaves: boolean) => {
    count += 1;
    const text = `${deed} ${count}`;
    const primitive = pick(PRIMITIVES);
    const door = pick(ENDPOINTS.filter((each) => each.primitive === primitive));
    const leaving = new AbortController();
    const came = peers.came(text);
    const calling = door
      .call({ origin: gateway.origin, key: pick(keys).key, text, signal: leaving.signal })
      .catch(() => null);
    if (leaves) {
      await came;
      leaving.abort();
    }
    return { came, calling };
  };
  const anyCall = async () => {
    if (random() < 0.5) return chat();
    const deed = pick(DEEDS);
    await (
      await peerCall(deed, deed === 'slow' && random() < 0.7)
    ).calling;
  };

  const booked = new Map<string, number>();
  const move = async () => {
    const [name, micro] = [pick(['acme', 'zeta']), 1 + Math.floor(random() * 9_999)];
    const reference = `r-${at}`;
    if (random() < 0.7) await credit(name, micro, reference);
    else await admin(`/accounts/${idOf(name)}/debit`, { amount_micro_usdc: micro, reference, reason: 'a mistake' });
  };
  const refund = async () => {
    const caller = pick(keys.slice(0, 3));
    const list = (await (
      await fetch(`${gateway.origin}/api/v1/generations?limit=100`, {
        headers: { authorization: `Bearer ${caller.key}` },
      })
    ).json()) as { readonly data: readonly { readonly id: string; readonly cost_micro_usdc: number }[] };
    const open = list.data.filter(({ id, cost_micro_usdc: cost }) => cost > 0 && !booked.has(id));
    if (open.length === 0) return;
    const { id, cost_micro_usdc: cost } = pick(open);
    const micro = 1 + Math.floor(random() * cost);
    await admin(`/calls/${id}/refund`, { amount_micro_usdc: micro, reason: 'sorry' });
    booked.set(id, micro);
  };
  /** While a call hangs and others come and go. On PostgreSQL their locks wait for a clock that does not jump. */
  const kill = async () => {
    const hanging = await peerCall('hang', false);
    const others = await Promise.all([peerCall('complete', false), peerCall('slow', false)]);
    await Promise.race([hanging.came, hanging.calling]);
    await gateway.kill();
    await Promise.all([hanging, ...others].map(({ calling }) => calling));
    kills += 1;
    at += 2 * HOUR_MS;
    gateway = await start();
  };

  for (let turn = 0; at < END; turn += 1) {
    const dice = random();
    if (turn % 30 === 29) await kill();
    else if (dice < 0.83) await anyCall();
    else if (dice < 0.9) await move();
    else await refund();
    // Mostly hours, sometimes just around a midnight of one of the zones.
    at += Math.floor(random() * hours * HOUR_MS);
    if (random() < 0.3) at = Math.ceil(at / 900_000) * 900_000 + pick([-1, 0, 1]);
    at = Math.min(at, END);
    await gateway.setClock(at);
  }
  await gateway.stop();
  // Figures leave out what has just happened.
  at += HOUR_MS;

  const spine = await startSpine({ ...place, provider: models, now: () => at, elapsed: () => performance.now() });
  await spine.quiet();
  const [locks, transfers] = await Promise.all([spine.app.database.query(LOCKS), spine.app.database.query(TRANSFERS)]);
  const text = (value: unknown) => (typeof value === 'string' ? value : null);
  const calls = locks
    .filter((row) => (row['charged'] as bigint) > 0n)
    .map((row): ChargedCall => {
      const call = JSON.parse(row['lock_detail'] as string) as Readonly<Record<string, unknown>>;
      const run = JSON.parse(row['detail'] as string) as Readonly<Record<string, unknown>>;
      return {
        id: row['id'] as string,
        account: row['account'] as string,
        cost: Number(row['charged']),
        at: Number(row['resolved_at']),
        tags: (call['tags'] ?? {}) as ChargedCall['tags'],
        model: text(run['service']) ?? text(call['service'])!,
        key: text(call['key']),
        member: text(call['member']),
        provider: text(row['provider']),
        primitive: text(call['primitive'])!,
      };
    })
    .sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
  const movements = transfers.flatMap((row): Movement[] => {
    const [from, to] = [row['from_account'] as string, row['to_account'] as string];
    const amount = Number(row['amount']);
    const shared = { id: row['id'] as string, at: Number(row['at']) };
    return [
      ...(from.startsWith('escrow:') ? [{ ...shared, account: from.slice('escrow:'.length), amount: -amount }] : []),
      ...(to.startsWith('escrow:') ? [{ ...shared, account: to.slice('escrow:'.length), amount }] : []),
    ];
  });
  // What was answered is there, whatever was killed since.
  for (const [id, { cost, tags }] of seen)
    expect(calls.find((call) => call.id === id) ?? { id, cost, tags: cost === 0 ? tags : null }).toMatchObject({
      id,
      cost,
      tags,
    });
  for (const [id, amount] of booked)
    expect(movements.find((one) => one.id === `refund:${id}`)).toMatchObject({ amount });
  return {
    spine,
    calls,
    movements,
    accounts: [keys[0]!, keys[2]!].map(({ name, key }) => ({ account: idOf(name), key })),
    kills,
    async close() {
      await spine.stop();
      await Promise.all([models.stop(), peers.close()]);
      await fresh?.drop();
    },
  };
}
