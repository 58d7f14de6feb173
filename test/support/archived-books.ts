import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { audit, createLedger, createPriceBook, createReceiptSigner } from '#billing/compose';
import { archivePeriod, RECENT_DAYS, type ArchiveOptions, type ArchiveRun } from '#billing/archive';
import { escrowOf, treasuryOf, type Ledger, type LockRecord } from '#billing';
import { priceId } from '#billing/amounts';
import type { OpenDatabase } from '#store';

const RATES = { completion: 150_000n };
/** 20 completion tokens cost 3 micro-USD. */
const PRICE = { id: priceId('p', 'oracle', RATES), provider: 'p', service: 'oracle', rates: RATES };

export const DAY_MS = 86_400_000;
/** The books of these tests begin here: 2026-01-01. */
export const BEGIN = Date.UTC(2026, 0, 1);
export const dayAt = (day: number): number => BEGIN + day * DAY_MS;
/** The name of a day, counted from 2026-01-01. */
export const dateOf = (day: number): string => new Date(dayAt(day)).toISOString().slice(0, 10);

/** The key of all these archives, so that a repeated one is the same. */
const KEY_TEXT = 'MC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f';
export const KEY = createPrivateKey({ key: Buffer.from(KEY_TEXT, 'base64'), format: 'der', type: 'pkcs8' });

/** A clock that tests set. */
export interface Clock {
  at: number;
  readonly now: () => number;
}

export function createClock(at = BEGIN): Clock {
  const clock = { at, now: () => clock.at };
  return clock;
}

/** The receipt of a call of these tests, whose detail names no caller. */
export const receiptOf: ArchiveOptions['receiptOf'] = (record: LockRecord) =>
  record.state !== 'settled'
    ? null
    : {
        id: record.id,
        account: record.account,
        provider: record.provider!,
        primitive: 'model',
        ...(record.parent === null ? {} : { parent: record.parent }),
        price: record.price!,
        lock: record.amount,
        usage: record.usage!,
        charged: record.charged,
        fee: record.fee,
        time: record.resolvedAt!,
      };

export const archiveOptions = (
  database: OpenDatabase,
  folder: string,
  clock: Clock,
  more: Partial<ArchiveOptions> & Pick<ArchiveOptions, 'endsAt'>,
): ArchiveOptions => ({
  database,
  folder,
  folders: [folder],
  recentDays: RECENT_DAYS,
  dryRun: false,
  keep: false,
  signer: createReceiptSigner(KEY),
  receiptOf,
  isCounted: async () => true,
  now: clock.now,
  ...more,
});

/** Archives what is before a day, counted from 2026-01-01. */
export const archiveBefore = (
  database: OpenDatabase,
  folder: string,
  clock: Clock,
  day: number,
  more: Partial<ArchiveOptions> = {},
): Promise<ArchiveRun> => archivePeriod(archiveOptions(database, folder, clock, { endsAt: dayAt(day), ...more }));

export function archiveFolder(): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-archives-'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The checks of the audit that failed. */
export async function faults(database: OpenDatabase, archives: readonly string[] = []): Promise<readonly string[]> {
  const { checks } = await audit(database, { overdueMs: null, archives });
  return checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`);
}

/** Amounts that two calls a day of these accounts cost. */
const ACCOUNTS = ['ada', 'bob'] as const;
const USAGE = '{"prompt":10,"completion":20}';

const PROCESS = `gen-${String(process.pid).padStart(12, 'A')}`;
let made = 0;
/** An id as a gateway makes it: a prefix of the process, and a counter. */
const newId = (): string => `${PROCESS}${(made++).toString(36).padStart(6, '0')}`;

/** A ledger on a clock, with a price and funded accounts. */
export async function openBooks(database: OpenDatabase, clock: Clock): Promise<Ledger> {
  const ledger = await createLedger({ database, now: clock.now });
  await createPriceBook(database, clock.now).remember([PRICE]);
  for (const account of ACCOUNTS)
    await ledger.transfer({
      id: `credit:${account}`,
      from: treasuryOf('operator'),
      to: escrowOf(account),
      amount: 10n ** 9n,
      memo: 'a beginning',
    });
  return ledger;
}

const lockOf = (id: string, account: string, clock: Clock) => ({
  id,
  account,
  amount: 1_000_000n,
  prices: [PRICE.id],
  expiresAt: clock.at + DAY_MS,
  budgets: [{ id: `${account}key:all`, limit: 10n ** 14n }],
  detail: '{"primitive":"model","service":"oracle"}',
});

export const settlementOf = (id: string, charge = 3n) => ({
  id,
  price: PRICE.id,
  provider: PRICE.provider,
  charge,
  draw: false,
  feeBps: 250,
  usage: USAGE,
  detail: '{"outcome":"complete","flags":["usage_missing"]}',
});

export async function lock(
  ledger: Ledger,
  clock: Clock,
  account = 'ada',
  more: object = {},
  id = newId(),
): Promise<string> {
  const locked = await ledger.lock({ ...lockOf(id, account, clock), ...more });
  if (!locked.ok) throw new Error(`lock ${id}: ${locked.reason}`);
  return id;
}

/**
 * One day of calls that are settled, released and expired, a run with a call under it, and a transfer. Returns their
 * ids.
 */
export async function aDay(ledger: Ledger, clock: Clock, day: number, calls = 6): Promise<readonly string[]> {
  clock.at = dayAt(day) + 1_000;
  const ids: string[] = [];
  for (let index = 0; index < calls; index += 1) {
    const id = await lock(ledger, clock, ACCOUNTS[index % 2]);
    ids.push(id);
    clock.at += 1_000;
    if (index % 3 === 2) await ledger.release({ id, detail: '{"outcome":"failed"}' });
    else await ledger.settle(settlementOf(id));
  }
  const run = await lock(ledger, clock, 'ada', { lendable: 500_000n });
  const under = await lock(ledger, clock, 'ada', { amount: 1_000n, parent: run, budgets: undefined });
  await ledger.settle(settlementOf(under));
  await ledger.release({ id: run, detail: '{"outcome":"failed"}' });
  const expired = await lock(ledger, clock, 'bob', { expiresAt: clock.at });
  clock.at += 1;
  await ledger.expire(clock.at);
  await ledger.transfer({
    id: `credit:${day}`,
    from: treasuryOf('operator'),
    to: escrowOf('ada'),
    amount: 7n,
    memo: `day ${day}`,
  });
  return [...ids, run, under, expired];
}
