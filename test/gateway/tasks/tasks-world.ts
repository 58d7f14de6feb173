import { randomUUID } from 'node:crypto';
import { expect, onTestFinished } from 'vitest';
import type { Database } from '#store';
import { audit, createSettlePendingCall, createLedger, createPriceBook } from '#billing/compose';
import { earningsOf, escrowOf, treasuryOf, type Ledger } from '#billing';
import { priceId } from '#billing/amounts';
import { createTasks, type KeptTasks, type TasksOptions } from '../../../src/gateway/tasks/create-tasks.ts';
import type {
  ConcludedCall,
  NewTask,
  Observation,
  Task,
  TaskCall,
  TaskKey,
  TaskOwner,
} from '../../../src/gateway/tasks/task.ts';
import { exampleOffer } from '../../console/observe/example-call.ts';
import { openEngine, type EngineName } from '../../support/engines.ts';

export const MINUTE_MS = 60_000;
/** Locks of such tasks are kept for the whole time at once. */
export const TTL_MS = 48 * MINUTE_MS;
/** The longest that a lock is kept before the watch has seen its task. */
export const FIRST_KEPT_MS = 60 * MINUTE_MS;

/** Of one call of the agent, in micro-USD. */
export const PRICE = 60n;
/** What is locked for it. */
export const ESTIMATE = 200n;
const FEE_BPS = 1_000;
const OFFER = exampleOffer('demo/agent', 'Acme');

const rates = { call: PRICE * 1_000_000n };
export const price = {
  id: priceId('provider-a', 'acme/agent', rates),
  rates,
  provider: 'provider-a',
  service: 'acme/agent',
};

export const alice: TaskOwner = { account: 'alice', within: null };
export const bob: TaskOwner = { account: 'bob', within: null };

export const keyOf = (taskId: string, service = 'acme/agent'): TaskKey => ({ primitive: 'agent', service, taskId });

export function newTask(taskId: string, changes: Partial<NewTask> = {}): NewTask {
  return {
    ...keyOf(taskId),
    ...alice,
    offerId: `agent/provider-a:${changes.service ?? 'acme/agent'}`,
    provider: 'provider-a',
    contextId: 'context-1',
    state: 'submitted',
    notes: '{"revision":"1.0"}',
    ttlMs: TTL_MS,
    ...changes,
  };
}

export const working: Observation = { state: 'working', end: null };
export const completed: Observation = {
  state: 'completed',
  end: 'complete',
  usageOf: () => ({ usage: { call: 1n }, flags: [] }),
};
export const canceled: Observation = {
  state: 'canceled',
  end: 'cut',
  usageOf: () => ({ usage: { call: 1n }, flags: [] }),
};

export interface Gateway {
  readonly database: Database;
  readonly ledger: Ledger;
  readonly tasks: KeptTasks;
  /** What was told of settled calls, of tasks that began, and that ended. */
  readonly concluded: ConcludedCall[];
  readonly begun: Task[];
  readonly ended: (readonly [state: string, gaveUp: boolean])[];
}

export interface World {
  readonly clock: { now: number };
  /** Two gateways on one database: on PostgreSQL each has its own connections and its own ledger. */
  readonly one: Gateway;
  readonly two: Gateway;
  /** Locks money for a call, as billing does before it is forwarded. */
  lock(callId?: string, account?: string): Promise<TaskCall>;
  /** A gateway over this database instead: for one that fails. */
  gatewayOn(database: Database, changes?: Partial<TasksOptions>): Gateway;
  /** `[available, locked]` of an account, and what the provider earned. */
  money(account?: string): Promise<readonly [available: bigint, locked: bigint, earned: bigint]>;
  /** Fails the test unless the ledger is in order. */
  audited(): Promise<void>;
}

export async function tasksWorld(engine: EngineName): Promise<World> {
  const clock = { now: 1_700_000_000_000 };
  const now = () => clock.now;
  const opened = await openEngine(engine);
  const ledgers: Ledger[] = [];
  onTestFinished(async () => {
    await Promise.all(ledgers.map((ledger) => ledger.close()));
    await opened.dispose();
  });
  const openLedger = async (database: typeof opened.database) => {
    const ledger = await createLedger({ database, now });
    ledgers.push(ledger);
    return ledger;
  };
  const prices = createPriceBook(opened.database, now);
  await prices.remember([price]);
  const make = (database: Database, ledger: Ledger, changes: Partial<TasksOptions> = {}): Gateway => {
    const [concluded, begun, ended]: [ConcludedCall[], Task[], (readonly [string, boolean])[]] = [[], [], []];
    const tasks = createTasks({
      database,
      ledger,
      settlePendingCall: createSettlePendingCall({ ledger, prices, feeBps: FEE_BPS }),
      now,
      sinks: [
        {
          concluded: (call) => concluded.push(call),
          begun: (task) => begun.push(task),
          ended: (task, gaveUp) => ended.push([task.state, gaveUp]),
        },
      ],
      offerOf: () => OFFER,
      health: { flagged() {} },
      ...changes,
    });
    return { database, ledger, tasks, concluded, begun, ended };
  };
  const one = make(opened.database, await openLedger(opened.database));
  const second = engine === 'postgres' ? await opened.again() : opened.database;
  const two = make(second, engine === 'postgres' ? await openLedger(second) : one.ledger);
  const { ledger } = one;
  for (const account of ['alice', 'bob'])
    await ledger.transfer({
      id: `fund-${account}`,
      from: treasuryOf('test'),
      to: escrowOf(account),
      amount: 1_000_000n,
      memo: 'test',
    });

  return {
    clock,
    one,
    two,
    async lock(callId = randomUUID(), account = 'alice') {
      const result = await ledger.lock({
        id: callId,
        account,
        amount: ESTIMATE,
        prices: [price.id],
        expiresAt: clock.now + MINUTE_MS,
        detail: '{"requestId":"req-1"}',
      });
      expect(result.ok).toBe(true);
      return { callId, price: price.id };
    },
    gatewayOn: (database, changes) => make(database, ledger, changes),
    async money(account = 'alice') {
      const balance = (await ledger.balance(escrowOf(account)))!;
      return [balance.available, balance.locked, (await ledger.balance(earningsOf('provider-a')))?.available ?? 0n];
    },
    async audited() {
      const report = await audit(opened.database, { now });
      expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    },
  };
}
