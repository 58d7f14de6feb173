import { afterEach, beforeEach, expect, inject } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { escrowOf, treasuryOf, type Ledger, type LockRequest } from '#billing';
import { priceId } from '#billing/amounts';
import { openDatabase, type PostgresDatabase, type Step } from '#store';
import { freshDatabase } from './fresh-database.ts';
import { RATES } from './ledger-commands.ts';

export const PROVIDER = 'provider';
export const PRICE = priceId(PROVIDER, 'chat', RATES);

/** The ledger of one gateway on PostgreSQL. */
export interface WatchedGateway {
  readonly ledger: Ledger;
  readonly database: PostgresDatabase;
  /** The steps of each pipeline, by their names, and the code of its error. */
  readonly sent: string[];
  /** Audits the books, and ends the ledger and its connections. Once. */
  stop(): Promise<void>;
}

/** Changes or delays the steps of a pipeline before they are sent. */
export type Between = (steps: readonly Step[]) => Promise<readonly Step[]>;

export async function watchedGateway(
  url: string,
  between: Between = (steps) => Promise.resolve(steps),
): Promise<WatchedGateway> {
  const real = (await openDatabase({ url, dataDir: '' })) as PostgresDatabase;
  const sent: string[] = [];
  const database: PostgresDatabase = {
    ...real,
    async session(setup) {
      const session = await real.session(setup);
      return {
        get lost() {
          return session.lost;
        },
        destroy: () => session.destroy(),
        close: () => session.close(),
        async pipeline(steps) {
          const names = steps.map(({ statement }) => statement.name.replace(/^.*[ .]/, '')).join(' ');
          try {
            const rows = await session.pipeline(await between(steps));
            sent.push(names);
            return rows;
          } catch (error) {
            sent.push(`${names} ${(error as { code?: string }).code}`);
            throw error;
          }
        },
      };
    },
  };
  const ledger = await createLedger({ database });
  await createPriceBook(real).remember([{ id: PRICE, provider: PROVIDER, service: 'chat', rates: RATES }]);
  let isStopped = false;
  const stop = async () => {
    if (isStopped) return;
    isStopped = true;
    expect((await audit(real)).checks.filter(({ ok }) => !ok)).toEqual([]);
    await ledger.close();
    await real.close();
  };
  return { ledger, database: real, sent, stop };
}

/** A database for each test of the file, and a function that starts gateways on it. They are stopped after the test. */
export function watchedGateways(): {
  readonly url: () => string;
  readonly start: (between?: Between) => Promise<WatchedGateway>;
  /** Runs after the test, before what was begun earlier ends. */
  readonly afterwards: (dispose: () => Promise<unknown>) => void;
} {
  const disposals: (() => Promise<unknown>)[] = [];
  let url: string;
  beforeEach(async () => {
    const fresh = await freshDatabase(inject('postgresUrl'));
    disposals.push(fresh.drop);
    url = fresh.url;
  });
  afterEach(async () => {
    for (const dispose of disposals.splice(0).toReversed()) await dispose();
  });
  return {
    url: () => url,
    async start(between) {
      const gateway = await watchedGateway(url, between);
      disposals.push(gateway.stop);
      return gateway;
    },
    afterwards: (dispose) => void disposals.push(dispose),
  };
}

interface WithLedger {
  readonly ledger: Ledger;
}

const later = () => Date.now() + 600_000;

export const fund = ({ ledger }: WithLedger, account: string, amount = 1_000_000n) =>
  ledger.transfer({ id: `fund-${account}`, from: treasuryOf('test'), to: escrowOf(account), amount, memo: '' });

/** Locks 100 micro-USD, unless `more` says otherwise. */
export const lock = ({ ledger }: WithLedger, id: string, account: string, more: Partial<LockRequest> = {}) =>
  ledger.lock({ id, account, amount: 100n, prices: [PRICE], detail: '{}', expiresAt: later(), ...more });

export const settle = ({ ledger }: WithLedger, id: string, charge = 80n, draw = false) => {
  const rest = { price: PRICE, provider: PROVIDER, feeBps: 1_000, usage: `{"call":${charge}}`, detail: '{}' };
  return ledger.settle({ ...rest, id, charge, draw });
};

export const release = ({ ledger }: WithLedger, id: string) => ledger.release({ id, detail: '{}' });
