import type { Database } from '#store';
import type { RpcFaultProxy } from './rpc-fault-proxy.ts';
import type { Through } from './money-world.ts';

/** The error of every operation of a process that was killed. */
export class Killed extends Error {
  override readonly name = 'Killed';
}

export interface Mortal {
  readonly through: Through;
  /** Names of the writes and broadcasts, in order. */
  readonly steps: readonly string[];
  readonly dead: boolean;
}

export interface Death {
  readonly at: string;
  readonly when: 'before' | 'after';
}

/** Statements that only read, or that only schedule the next look. */
const ASIDE = /^(?:claim|schedule|find|list|suspended|unfinal|withdrawn|unsigned|signed[A-Z]|booked|count|ad-hoc)/;
const BROADCAST = ['eth_sendRawTransaction', 'sendTransaction'];

/**
 * Simulates a process that dies right before or after its first write or broadcast with a certain name. From then on
 * nothing of it reaches the database or the node. Cutting these connections replaces a real death, so that a whole
 * matrix of deaths takes only seconds. The tests with SIGKILL show that real deaths behave in the same way.
 */
export function createMortal(dies: Death | null, proxy: RpcFaultProxy): Mortal {
  const steps: string[] = [];
  let dead = false;
  const checkAlive = () => {
    if (dead) throw new Killed('killed');
  };
  const step = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    checkAlive();
    steps.push(name);
    const last = dies?.at === name;
    if (last && dies?.when === 'before') {
      dead = true;
      checkAlive();
    }
    const result = await work();
    if (last) dead = true;
    checkAlive();
    return result;
  };
  proxy.set(
    { when: () => dead, fault: { kind: 'refuse' } },
    {
      methods: BROADCAST,
      when: () => {
        steps.push('broadcast');
        if (dies?.at !== 'broadcast' || dies.when !== 'before') return false;
        dead = true;
        return true;
      },
      fault: { kind: 'refuse' },
    },
    {
      methods: BROADCAST,
      when: () => {
        if (dies?.at !== 'broadcast') return false;
        dead = true;
        return true;
      },
      fault: { kind: 'swallow' },
    },
  );
  return {
    steps,
    get dead() {
      return dead;
    },
    through: {
      database: (real): Database => ({
        engine: real.engine,
        query(statement, params) {
          const name = statement.name.slice(statement.name.lastIndexOf('.') + 1);
          if (!ASIDE.test(name)) return step(name, () => real.query(statement, params));
          return dead ? Promise.reject(new Killed('killed')) : real.query(statement, params);
        },
        batch: (batch) => step('batch', () => real.batch(batch)),
        snapshot: (run, temporary) => (dead ? Promise.reject(new Killed('killed')) : real.snapshot(run, temporary)),
        close: () => Promise.resolve(),
      }),
      ledger: (real) => ({
        transfer: (request) =>
          step(`transfer ${request.id.slice(0, request.id.indexOf(':'))}`, () => real.transfer(request)),
        balance: (account) => (dead ? Promise.reject(new Killed('killed')) : real.balance(account)),
      }),
    },
  };
}

/** A death right before and one right after each of these steps. */
export const deathsAt = (steps: readonly string[]): Death[] =>
  steps.flatMap((at): Death[] => [
    { at, when: 'before' },
    { at, when: 'after' },
  ]);
