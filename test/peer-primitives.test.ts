import { createLocalJWKSet, compactVerify, type JSONWebKeySet } from 'jose';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { NewKeyFields } from '#auth/keys';
import { escrowOf } from '#billing';
import type { Balance } from '../src/billing/ledger/ledger.ts';
import { ENDPOINTS, PEER, type PeerDoor, type PeerOutcome } from './peers/routes.ts';
import { peerServices } from './peers/services.ts';
import { HUGE_BYTES, startPeerProvider, USED, type Deed, type PeerProvider } from './peers/peer-provider.ts';
import { atThisLoad } from './support/at-this-load.ts';
import { startSpine, UNHURRIED, type Spine } from './support/spine.ts';

/*
 * The promise of the whole: whatever the primitive and whatever the route, a call has the same effect on the ledger.
 * One list of scenarios, every route: the rows of design "one call, every protocol". All primitives cost 1 micro-USD a
 * reported token, and at most CAP; an image and a second of a video cost as much as `USED` of them.
 */

const CAP = 5_000n;
const COST = BigInt(USED);
/** After this a call is over. Its first word has to come before, on a busy machine too. */
const CALL_S = Math.ceil(atThisLoad(300) / 1_000);
/**
 * After this a provider that says nothing in the middle of its reply has failed, at the gateway whose calls may last.
 */
const IDLE_MS = 400;

/** Made whole or not at all. */
const MADE: ReadonlySet<PeerDoor['primitive']> = new Set(['image', 'video']);

let provider: PeerProvider;
let spine: Spine;
let limited: Spine;
/** Ends no call by the clock, so that silence alone can end one. */
let lasting: Spine;
beforeAll(async () => {
  provider = await startPeerProvider();
  // A failure of one scenario is not to cool the provider down for the next.
  const upstream = `[upstream]\ncooldown_ms = 1\nreply_bytes_max = ${HUGE_BYTES / 4}\nimages_reply_bytes_max = ${HUGE_BYTES / 4}\n`;
  [spine, limited, lasting] = await Promise.all([
    startSpine({ toml: `${UNHURRIED}${upstream}call_timeout_ms = ${CALL_S}000\n${peerServices(provider)}` }),
    startSpine({ toml: `[limits]\nrequests_per_minute = 1\nburst = 1\n${upstream}${peerServices(provider)}` }),
    startSpine({ toml: `${UNHURRIED}${upstream}idle_timeout_ms = ${IDLE_MS}\n${peerServices(provider)}` }),
  ]);
});
afterAll(async () => {
  await Promise.all([spine.stop(), limited.stop(), lasting.stop()]);
  await provider.close();
});

const balanceOf = async (account: string, of = spine): Promise<Balance> =>
  (await of.app.ledger.balance(escrowOf(account))) ?? { available: 0n, locked: 0n };

interface Case {
  readonly outcome: PeerOutcome | null;
  /** What the consumer has paid. */
  readonly paid: bigint;
  readonly locked: bigint;
}

/**
 * How many failures of the last hour are held against the provider. Their share would grow by itself, whenever calls
 * without a failure get too old to count.
 */
async function failures(): Promise<number> {
  const read = async <T>(path: string) => ((await (await spine.get(path)).json()) as { readonly data: T }).data;
  const all = await read<readonly { readonly id: string; readonly name: string }[]>('/providers');
  // The list is as it was up to a quarter of a second ago; the page of one provider is of now.
  const { uptime, requests } = await read<{ readonly uptime: number | null; readonly requests: number }>(
    `/providers/${all.find(({ name }) => name === 'Peer')!.id}`,
  );
  return Math.round((1 - (uptime ?? 1)) * requests);
}

let tenants = 0;
/** Makes one call as somebody who has 1 USD and calls nothing else, and waits until its money is settled. */
async function callOnce(
  door: PeerDoor,
  deed: Deed,
  more: { readonly leaves?: boolean; readonly at?: Spine } = {},
): Promise<Case & { readonly key: string; readonly begun: bigint }> {
  tenants += 1;
  const text = `${deed} ${tenants}`;
  const { at = spine } = more;
  const { account, key } = await at.tenant(`peer-${tenants}`, '1');
  const before = await balanceOf(account, at);
  const leaving = new AbortController();
  const came = provider.came(text);
  const calling = door.call({ origin: at.origin, key, text, signal: leaving.signal }).catch(() => null);
  if (more.leaves) {
    await came;
    leaving.abort();
  }
  const outcome = await calling;
  // Others may be calling: the locks of this account alone tell that its call is over.
  await vi.waitFor(async () => expect((await balanceOf(account, at)).locked).toBe(0n), {
    timeout: 60_000,
    interval: 5,
  });
  const after = await balanceOf(account, at);
  return { outcome, paid: before.available - after.available, locked: after.locked, key, begun: begunCost(door, text) };
}

/**
 * What a model has said before its reply is cut, in bytes of text: a token for each four of them. What a tool or an
 * agent that answers at once gives is its answer, and an image is whole or nothing: there is nothing to pay before.
 */
const begunCost = (door: PeerDoor, text: string): bigint =>
  door.primitive === 'model' ? BigInt(`did ${text}`.length + 3) / 4n : 0n;

describe.each(ENDPOINTS)('$name', (door) => {
  const slug = door.name.replaceAll(/\W+/g, '-').toLowerCase();

  test('a call that is complete costs what it used', async () => {
    const { outcome, paid, locked } = await callOnce(door, 'complete');
    expect(outcome).toMatchObject({ kind: 'answered', said: expect.stringContaining('did complete') as string });
    expect([paid, locked]).toEqual([COST, 0n]);
  });

  test('a call whose provider reports no usage is free', async () => {
    const { paid, locked } = await callOnce(door, 'no-usage');
    expect([paid, locked]).toEqual([0n, 0n]);
  });

  test('a call whose client left midway costs what was produced', async () => {
    const { outcome, paid, locked } = await callOnce(door, 'slow', { leaves: true });
    expect(outcome).toBeNull();
    expect([paid, locked]).toEqual([COST, 0n]);
  });

  test('a call whose provider fails is free', async () => {
    const { outcome, paid, locked } = await callOnce(door, 'error');
    expect(outcome?.kind).toBe('failed');
    expect([paid, locked]).toEqual([0n, 0n]);
  });

  test('a call whose reply is too large costs what was produced, and says so; its provider is not blamed', async () => {
    const before = await failures();
    const { outcome, paid, locked, begun } = await callOnce(door, 'huge');
    // Of a tool and an agent it is the answer itself that is too large. An image was made,
    // and a job has no part that could be given out.
    const produced = { model: begun, image: CAP, video: 0n, tool: CAP, agent: CAP };
    expect([paid, locked]).toEqual([produced[door.primitive], 0n]);
    expect(outcome!.raw).toMatch(/(larger|longer|more) than \d+ bytes/);
    expect(await failures()).toBeLessThanOrEqual(before);
  });

  test('a call that runs past its budget costs the budget', async () => {
    const { paid, locked } = await callOnce(door, 'over');
    expect([paid, locked]).toEqual([CAP, 0n]);
  });

  test('a kept reply is only for who asked for it, and for keys of the account without restrictions', async () => {
    const name = `tenant-${slug}`;
    const { key } = await spine.tenant(name, '1');
    const service = door.service ?? PEER;
    const restricted = async (fields: Partial<NewKeyFields>) => (await spine.tenant(name, '0', fields)).key;
    const call = async (with_: string, once: string) =>
      door.call({ origin: spine.origin, key: with_, text: 'complete', once: `${once}-${slug}` });
    const answered = { kind: 'answered', said: expect.stringContaining('did complete') as string };
    expect(await call(key, 'kept')).toMatchObject(answered);
    const calls = provider.calls();
    const refused = await call(await restricted({ allowedServices: ['peer/other'] }), 'kept');
    // The aggregate shows such a key no tool that would ask the service.
    expect(refused.kind).not.toBe('answered');
    expect(refused.raw).not.toContain('did complete');
    expect(await call(await restricted({}), 'kept')).toMatchObject(answered);
    expect(provider.calls()).toBe(calls);

    // Each restricted key has its own idempotency keys, and pays once for each.
    const limited = [await restricted({ allowedServices: [service] }), await restricted({ limit: 1_000_000n })];
    for (const [index, one] of limited.entries())
      for (const _ of ['first', 'again']) {
        expect(await call(one, 'kept')).toMatchObject(answered);
        expect(provider.calls()).toBe(calls + index + 1);
      }
    expect(await call(limited[0]!, 'own')).toMatchObject(answered);
    expect(await call(key, 'own')).toMatchObject(answered);
    expect(provider.calls()).toBe(calls + 4);
    expect(await spine.faults()).toEqual([]);
  });

  test('a caller without money is told so, and nothing is sent', async () => {
    const { account, key } = await spine.tenant(`poor-${slug}`, '0');
    const calls = provider.calls();
    expect((await door.call({ origin: spine.origin, key, text: 'complete' })).kind).toBe('refused');
    expect(provider.calls()).toBe(calls);
    expect(await balanceOf(account)).toEqual({ available: 0n, locked: 0n });
  });

  test('a frozen account is refused, and nothing is sent', async () => {
    const { account, key } = await spine.tenant(`frozen-${slug}`, '1');
    const become = async (state: 'freeze' | 'unfreeze') => {
      const path = `/admin/v1/accounts/${encodeURIComponent(account)}/${state}`;
      const headers = { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' };
      const answer = await fetch(spine.origin + path, { method: 'POST', headers, body: '{"reason":"a test"}' });
      expect(answer.status).toBe(200);
    };
    const call = () => door.call({ origin: spine.origin, key, text: 'complete' });
    await become('freeze');
    const calls = provider.calls();
    const refused = await call();
    expect(refused.kind).not.toBe('answered');
    expect(refused.raw).toContain('This account is frozen by the operator of this gateway');
    expect(provider.calls()).toBe(calls);
    expect(await balanceOf(account)).toEqual({ available: 1_000_000n, locked: 0n });
    await become('unfreeze');
    expect((await call()).kind).toBe('answered');
    expect((await balanceOf(account)).available).toBe(1_000_000n - COST);
  });

  test('a repeated call is made once', async () => {
    const { account, key } = await spine.tenant(`repeats-${slug}`, '1');
    const calls = provider.calls();
    const call = { origin: spine.origin, key, text: 'complete', once: `once-${slug}` };
    const first = await door.call(call);
    const again = await door.call(call);
    expect([first.kind, again.kind]).toEqual(['answered', 'answered']);
    expect(again.said).toBe(first.said);
    expect(provider.calls()).toBe(calls + 1);
    expect((await balanceOf(account)).available).toBe(1_000_000n - COST);
  });

  test("a call is nobody else's to see", async () => {
    const { outcome, key } = await callOnce(door, 'complete');
    const stranger = await spine.tenant(`stranger-${slug}`, '1');
    const id = outcome!.id!;
    expect(await spine.generation(id, key)).toMatchObject({
      id,
      state: 'settled',
      cost_micro_usdc: USED,
      primitive: door.primitive,
    });
    const response = await spine.get(`/generation?id=${id}`, { authorization: `Bearer ${stranger.key}` });
    expect(response.status).toBe(404);
  });

  test('a receipt says what was paid, and verifies', async () => {
    const { key, account } = await spine.tenant(`receipts-${slug}`, '1');
    const { receipt, id } = await door.call({ origin: spine.origin, key, text: 'complete', receipt: true });
    const jwks = (await (await fetch(`${spine.origin}/.well-known/jwks.json`)).json()) as JSONWebKeySet;
    const { payload } = await compactVerify(receipt!, createLocalJWKSet(jwks));
    expect(JSON.parse(Buffer.from(payload).toString())).toMatchObject({
      id,
      account,
      primitive: door.primitive,
      charged: String(USED),
      lock: String(CAP),
    });
  });

  test('a caller who calls too often is told to wait, and pays for what was done alone', async () => {
    const { account, key } = await limited.tenant(`hasty-${slug}`, '1');
    const kinds: string[] = [];
    for (let call = 0; call < 4; call++) {
      kinds.push((await door.call({ origin: limited.origin, key, text: 'complete' })).kind);
    }
    expect(kinds).toContain('answered');
    expect(kinds).toContain('refused');
    const answered = BigInt(kinds.filter((kind) => kind === 'answered').length);
    expect((await balanceOf(account, limited)).available).toBe(1_000_000n - answered * COST);
  });
});

/*
 * Calls that the clock ends wait for it: several routes do so at a time. None of the first group is held against the
 * provider, so that they can wait together.
 */
describe('a call that the clock ends', () => {
  test.concurrent.each(ENDPOINTS.filter(({ primitive }) => primitive !== 'video'))(
    '$name: whose client left and whose provider goes on for ever costs what was produced',
    async (door) => {
      const { outcome, paid, locked, begun } = await callOnce(door, 'endless', { leaves: true });
      expect(outcome).toBeNull();
      // What was ordered is made by an own provider, and billed.
      expect([paid, locked]).toEqual([door.primitive === 'image' ? CAP : begun, 0n]);
    },
  );

  test.concurrent.each(ENDPOINTS.filter(({ primitive }) => !MADE.has(primitive)))(
    '$name: costs what was produced, and says so; its provider is not blamed',
    async (door) => {
      const before = await failures();
      const { outcome, paid, locked, begun } = await callOnce(door, 'endless');
      expect([paid, locked]).toEqual([begun, 0n]);
      expect(outcome!.kind).toBe(begun > 0n ? 'answered' : 'failed');
      if (begun > 0n) expect(outcome!.raw).toContain(`longer than ${CALL_S} s`);
      expect(await failures()).toBeLessThanOrEqual(before);
    },
  );

  test.concurrent.each(ENDPOINTS)('$name: whose provider falls silent in the middle is free', async (door) => {
    const { outcome, paid, locked } = await callOnce(door, 'silent', { at: lasting });
    expect(outcome?.kind).toBe('failed');
    expect([paid, locked]).toEqual([0n, 0n]);
  });
});

// Only the provider can be what an image or a job waited for: it is held against it, so these calls come after the
// others.
describe('a call for images or videos that the clock ends', () => {
  test.concurrent.each(ENDPOINTS.filter(({ primitive }) => primitive === 'video'))(
    '$name: whose client left and whose provider goes on for ever is free',
    async (door) => {
      const { outcome, paid, locked } = await callOnce(door, 'endless', { leaves: true });
      expect(outcome).toBeNull();
      expect([paid, locked]).toEqual([0n, 0n]);
    },
  );

  test.concurrent.each(ENDPOINTS.filter(({ primitive }) => MADE.has(primitive)))(
    '$name: costs what it ordered, if it is an image',
    async (door) => {
      const { outcome, paid, locked } = await callOnce(door, 'endless');
      expect(outcome?.kind).toBe('failed');
      expect([paid, locked]).toEqual([door.primitive === 'image' ? CAP : 0n, 0n]);
    },
  );
});

describe('a call that takes too long before anything came', () => {
  // Tokens of prompts are free here.
  test.concurrent.each(ENDPOINTS)('$name: costs the input of an answer in one piece', async (door) => {
    const { outcome, paid, locked } = await callOnce(door, 'hang');
    expect([outcome?.kind, outcome?.raw]).toEqual(['failed', expect.anything()]);
    expect([paid, locked]).toEqual([door.primitive === 'image' ? CAP : 0n, 0n]);
  });
});

test('the books are in order after all of it', async () => {
  expect(await spine.faults()).toEqual([]);
  expect(await limited.faults()).toEqual([]);
  expect(await lasting.faults()).toEqual([]);
});
