import { inject } from 'vitest';
import { createLedger } from '#billing/compose';
import type { Ledger } from '#billing';
import { adHoc } from '../../support/ad-hoc.ts';
import { fund, makeCall, type CountedCall } from '../../support/counted-calls.ts';
import type { EngineName } from '../../support/engines.ts';
import { freshDatabase } from '../../support/fresh-database.ts';
import { startSpine, type Spine, type SpineOptions } from '../../support/spine.ts';

export const DAY_MS = 86_400_000;
/** 2026-11-21. */
export const TODAY = 20_778;

/** A gateway whose clock is set by hand, and calls of other days in its ledger. */
export interface FiguresWorld {
  readonly spine: Spine;
  readonly clock: { now: number };
  /** Calls that ended on this day (days since 1970-01-01). */
  calls(day: number, ...calls: readonly Partial<CountedCall>[]): Promise<void>;
  /** Attempts at an offer on a day. */
  attempt(day: number, offer: string, successes: number, failures: number): Promise<void>;
  /** Brings the figures up to the calls. */
  count(): Promise<void>;
  read<T>(path: string, headers?: Record<string, string>): Promise<{ readonly status: number; readonly body: T }>;
  stop(): Promise<void>;
}

const CALL: CountedCall = {
  id: '',
  account: 'tollgate:local:tester',
  key: null,
  primitive: 'model',
  service: 'test/model',
  provider: 'p1',
  end: 'settle',
  charge: 100,
  prompt: 10,
  completion: 5,
  reasoning: 0,
  firstByteMs: 200,
  durationMs: 1_000,
};

export const ACCOUNTS = ['tollgate:local:tester', 'tollgate:local:dev', 'eip155:0xabc', 'tollgate:local:other'];

export async function openFigures(engine: EngineName, options: SpineOptions = {}): Promise<FiguresWorld> {
  const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
  const clock = { now: TODAY * DAY_MS + 3_600_000 };
  const toml = `[analytics]\nevery_ms = 0\n${options.toml ?? ''}`;
  const spine = await startSpine({
    ...options,
    ...(fresh ? { databaseUrl: fresh.url } : {}),
    toml,
    now: () => clock.now,
  });
  let at = clock.now;
  const ledger: Ledger = await createLedger({ database: spine.app.database as never, now: () => at });
  await fund(spine.app.database, ledger, ACCOUNTS);
  let made = 0;
  return {
    spine,
    clock,
    async calls(day, ...calls) {
      at = day * DAY_MS + 1_000;
      for (const call of calls) {
        made += 1;
        await makeCall(ledger, { ...CALL, id: `counted-${made}`, ...call }, at);
      }
    },
    async attempt(...row) {
      const text = 'INSERT INTO offer_days (day, offer, successes, failures) VALUES ($1, $2, $3, $4)';
      await spine.app.database.query(adHoc(text), row);
    },
    async count() {
      await spine.app.analytics.rollUp.run();
      await spine.app.analytics.accounts.run();
    },
    async read(path, headers) {
      const reply = await spine.get(path, headers);
      return { status: reply.status, body: (await reply.json()) as never };
    },
    async stop() {
      await ledger.close();
      await spine.stop();
      await fresh?.drop();
    },
  };
}
