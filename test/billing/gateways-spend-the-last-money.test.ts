import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { audit, createLedger, createPriceBook, expireOrphans } from '#billing/compose';
import { escrowOf, treasuryOf, type Ledger } from '#billing';
import { openDatabase, type OpenDatabase } from '#store';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { contradictedBy, type Told } from '../support/killed-child.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const GATEWAYS = DEEP ? 8 : 3;
const CALLS = DEEP ? 1_000_000 : 9_000;
/** Each life of a gateway's process makes so many calls, or is killed before. */
const CALLS_OF_A_LIFE = DEEP ? 12_500 : 1_500;
const CHILD = join(import.meta.dirname, '../support/spending-child.ts');
const FUNDS: Readonly<Record<string, bigint>> = {
  rich: 10n ** 15n,
  limited: 10n ** 15n,
  'poor-1': 100_000n,
  'poor-2': 200_000n,
  'poor-3': DEEP ? 5_000_000n : 300_000n,
  'poor-4': DEEP ? 20_000_000n : 400_000n,
};
const BUDGET = { id: 'limited:all', limit: 400_000n };

let url: string;
let drop: () => Promise<void>;
let database: OpenDatabase;
let ledger: Ledger;
let folder: string;
beforeAll(async () => {
  ({ url, drop } = await freshDatabase(inject('postgresUrl')));
  database = await openDatabase({ url, dataDir: '' });
  ledger = await createLedger({ database });
  await createPriceBook(database).remember([CRASH_PRICE]);
  folder = mkdtempSync(join(tmpdir(), 'tollgate-spending-'));
  for (const [account, amount] of Object.entries(FUNDS)) {
    const [from, to] = [treasuryOf('test'), escrowOf(account)];
    await ledger.transfer({ id: `fund-${account}`, from, to, amount, memo: '' });
  }
});
afterAll(async () => {
  await ledger.close();
  await database.close();
  await drop();
  rmSync(folder, { recursive: true });
});

/** One life of a gateway. Most are killed. */
async function live(name: string): Promise<readonly Told[]> {
  const log = join(folder, `${name}.log`);
  const file = openSync(log, 'w');
  const child = spawn(process.execPath, [CHILD, url, name, `${CALLS_OF_A_LIFE}`], {
    stdio: ['ignore', file, 'inherit'],
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), Math.random() < 0.7 ? 1_000 + Math.random() * 8_000 : 600_000);
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  clearTimeout(timer);
  closeSync(file);
  // 75: the machine was too busy for its patience.
  expect([0, 75, 'SIGKILL']).toContain(code ?? signal);
  const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1);
  rmSync(log);
  const told = new Map<string, Told>();
  for (const line of lines) {
    const [state, id, charged] = line.split(' ') as [string, string, string];
    told.set(id, { id, state, charged: BigInt(charged) });
  }
  return [...told.values()];
}

test(
  'gateways that are killed spend the last money of their consumers, and no micro-USD more',
  { timeout: DEEP ? 3_600_000 : 300_000 },
  async () => {
    const told: Told[] = [];
    let life = 0;
    const gateway = async (index: number) => {
      while (told.length < CALLS) told.push(...(await live(`g${index}-${(life += 1)}`)));
    };
    await Promise.all(Array.from({ length: GATEWAYS }, (_, index) => gateway(index)));
    await expireOrphans(ledger);
    for (let at = 0; at < told.length; at += 200) {
      const some = told.slice(at, at + 200);
      expect(await contradictedBy(ledger, new Map(some.map((each) => [each.id, each])))).toEqual([]);
    }
    for (const account of Object.keys(FUNDS)) {
      const { available, locked } = (await ledger.balance(escrowOf(account)))!;
      expect(locked).toBe(0n);
      expect(available).toBeGreaterThanOrEqual(0n);
      // All of it can be spent, wherever it is.
      if (account === 'limited') continue;
      const rest = { id: `rest-${account}`, account, amount: available, prices: [CRASH_PRICE.id], detail: '{}' };
      expect(await ledger.lock({ ...rest, expiresAt: Date.now() + 600_000 })).toMatchObject({ ok: true });
    }
    const { spent, locked } = await ledger.budget(BUDGET.id);
    expect(locked).toBe(0n);
    expect(spent).toBeLessThanOrEqual(BUDGET.limit);
    const more = { id: 'one-more', account: 'limited', amount: BUDGET.limit - spent + 1n, prices: [CRASH_PRICE.id] };
    const request = { ...more, budgets: [BUDGET], expiresAt: Date.now() + 600_000, detail: '{}' };
    expect(await ledger.lock(request)).toMatchObject({ ok: false, reason: 'budget_exceeded', budget: { spent } });
    expect(await ledger.lock({ ...request, amount: more.amount - 1n })).toMatchObject({ ok: true });
    const report = await audit(database);
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
  },
);
