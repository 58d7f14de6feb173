import { describe, expect, it } from 'vitest';
import { ENGINES } from '../../support/engines.ts';
import { batchWorld, type BatchWorld, Life, lineOf, PRICE } from './batches-world.ts';

const LINES = ['a', 'b', 'c', 'd'].map(lineOf);
/** Lines of an account that a gateway of `batchWorld` calls at the same time. */
const AT_ONCE = 2;
/** A life in which something happens between the end of a step and what the gateway makes of it. */
class Interrupted extends Life {
  readonly #act: () => Promise<void>;
  #until: number;

  constructor(steps: number, act: () => Promise<void>) {
    super(Infinity);
    this.#until = steps;
    this.#act = act;
  }

  override async step<T>(run: () => Promise<T>): Promise<T> {
    const isNow = this.#until === 0;
    this.#until -= 1;
    const result = await run();
    if (isNow) await this.#act();
    return result;
  }
}

interface Interruption {
  /** Resolves with whether it was in time. */
  readonly act: (world: BatchWorld, id: string) => Promise<boolean>;
  /** The most lines that begin afterwards. */
  readonly begunMax: number;
  readonly isOperator?: boolean;
  /** Another gateway goes on, so the database is one of several gateways, and this one may fail. */
  readonly isTakenOver?: boolean;
}

const KINDS: Readonly<Record<string, Interruption>> = {
  'its consumer cancels at this gateway': { act: (world, id) => world.cancel(id, 'here'), begunMax: AT_ONCE },
  'its consumer cancels at another gateway': {
    act: (world, id) => world.cancel(id, 'elsewhere'),
    begunMax: LINES.length,
  },
  'the operator ends it': { act: (world, id) => world.end(id), begunMax: AT_ONCE, isOperator: true },
  'another gateway takes over a cancelled one': {
    async act(world, id) {
      const isCancelled = await world.cancel(id, 'elsewhere');
      await world.work(id);
      // Both ended one line, so that one took its claim for lost: it is free after its lease.
      while ((await world.find(id)).endedAt === null) await world.work(id);
      return isCancelled;
    },
    begunMax: LINES.length,
    isTakenOver: true,
  },
};

describe.each(ENGINES)('a batch on %s, after any of its steps', (engine) => {
  const kinds = Object.entries(KINDS).filter(([, { isTakenOver }]) => engine === 'postgres' || !isTakenOver);
  it.each(kinds)('if %s', async (_name, { act, begunMax, isOperator = false, isTakenOver = false }) => {
    const world = await batchWorld(engine);
    const { told, asked } = world;
    const seen = new Set<string>();
    let spent = 0n;
    for (let steps = 0, isOver = false; !isOver; steps += 1) {
      const after = `after ${steps} steps`;
      let isStopped = false;
      let begun: number | null = null;
      const { id } = await world.create(LINES);
      const life = new Interrupted(steps, async () => {
        isStopped = await act(world, id);
        begun = asked.length;
      });
      await world.work(id, life).catch((error: unknown) => {
        if (!isTakenOver) throw error;
      });
      // It had no such step.
      isOver = begun === null;
      const batch = await world.find(id);
      const status = isStopped ? 'cancelled' : 'completed';
      expect(batch, after).toMatchObject({ status, endedAt: expect.any(Number) });
      expect(batch.errors?.map(({ code }) => code) ?? [], after).toEqual(isStopped && isOperator ? ['call_ended'] : []);
      expect(new Set(told.splice(0)), after).toEqual(new Set([`${id} ${status}`]));
      if (isStopped) expect(asked.length - begun!, after).toBeLessThanOrEqual(begunMax);
      else expect(batch.completed + batch.failed, after).toBe(LINES.length);
      if (!isTakenOver) expect(batch.failed, after).toBe(0);
      const charges = await world.charges(batch);
      // A line that was charged just before its gateway lost the batch has no result, and its charge is given back.
      expect(batch.completed + batch.failed, after).toBeLessThanOrEqual(charges.length);
      spent += BigInt(charges.length) * PRICE;
      await world.spent(spent);
      seen.add(
        `${status} ${batch.inProgressAt === null ? 'before' : batch.finalizingAt === null ? 'in' : 'behind'} its lines`,
      );
    }
    expect([...seen].toSorted()).toEqual(
      [
        'cancelled before its lines',
        'cancelled in its lines',
        ...(isOperator ? ['cancelled behind its lines'] : []),
        'completed behind its lines',
      ].toSorted(),
    );
  });
});
