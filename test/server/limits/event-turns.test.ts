import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createEventTurns, type EventTurns } from '#limits';

const never = () => {};
const KIB = 1024;

/** Turns on a clock that stands still until it is moved. */
function turnsOf(eventsPerSecond: number, bytesPerSecond: number) {
  const clock = { ms: 0 };
  const turns = createEventTurns({ eventsPerSecond, bytesPerSecond, now: () => clock.ms });
  return { turns, clock };
}

/** A connection that sends so many events, one after the other. Each that was handled is added to `order`. */
async function send(turns: EventTurns, name: string, events: number, bytes: number, order: string[]): Promise<void> {
  for (let n = 0; n < events; n++) {
    await turns.take(name, bytes, never);
    order.push(name);
  }
}

/** The most events of others between two of `patient`. */
const longestWait = (order: readonly string[]): number =>
  Math.max(
    ...order
      .slice(0, order.lastIndexOf('patient'))
      .join(' ')
      .split('patient')
      .map((others) => others.trim().split(' ').length),
  );

describe('turns of the event loop', () => {
  it('go on at once while there is little to do', () => {
    const { turns } = turnsOf(1e6, 1e9);
    for (let n = 0; n < 20; n++) expect(turns.take('one', 100, never)).toBeNull();
  });

  it('end after a little work, and another account is served next', async () => {
    const { turns } = turnsOf(1e6, 1e9);
    const order: string[] = [];
    const greedy = Array.from({ length: 16 }, () => send(turns, 'greedy', 100, 100, order));
    const patient = send(turns, 'patient', 1, 100, order);
    await patient;
    // Of 1,600 events, what fits in the first turn and one of the next.
    expect(order.length).toBeLessThan(40);
    await Promise.all(greedy);
    expect(order).toHaveLength(1_601);
  });

  it('come after a little work of another account, whose sixteen connections count as one', async () => {
    const { turns } = turnsOf(1e6, 1e9);
    const order: string[] = [];
    const greedy = Array.from({ length: 16 }, () => send(turns, 'greedy', 100, 100, order));
    await send(turns, 'patient', 40, 100, order);
    expect(longestWait(order)).toBeLessThan(40);
    await Promise.all(greedy);
  });

  it('count large events by their bytes', async () => {
    const { turns } = turnsOf(1e6, 1e9);
    const order: string[] = [];
    const greedy = Array.from({ length: 4 }, () => send(turns, 'greedy', 4, 800 * KIB, order));
    await send(turns, 'patient', 10, 100, order);
    expect(longestWait(order)).toBeLessThan(3);
    await Promise.all(greedy);
  });

  it('leave time for everything else', async () => {
    const { turns } = turnsOf(1e6, 1e9);
    const order: string[] = [];
    const all = Array.from({ length: 40 }, (_, n) => send(turns, `account ${n}`, 10, 100, order));
    let loops = 0;
    let isDone = false;
    void Promise.all(all).then(() => (isDone = true));
    while (!isDone) {
      await turn();
      loops++;
    }
    expect(loops).toBeGreaterThan(10);
  });
});

describe('the rate of an account', () => {
  it('lets two seconds pass at once, and then what it allows', async () => {
    const { turns, clock } = turnsOf(10, 1e9);
    let limited = 0;
    const passed: number[] = [];
    const sending = (async () => {
      for (let n = 0; n < 30; n++) {
        await turns.take('fast', 10, () => limited++);
        passed.push(n);
      }
    })();
    await expect.poll(() => limited).toBe(1);
    expect(passed.length).toBe(21);
    // Its timer looks at the clock again, and nothing has passed by then.
    expect(turns.take('other', 10, never)).toBeNull();
    clock.ms = 60_000;
    await sending;
    expect(passed).toHaveLength(30);
  });

  it('counts bytes of large events', async () => {
    const { turns, clock } = turnsOf(1e6, 100 * KIB);
    let limited = 0;
    expect(turns.take('fast', 300 * KIB, () => limited++)).toBeNull();
    const waits = turns.take('fast', 10, () => limited++);
    expect(limited).toBe(1);
    clock.ms = 1_000;
    await waits;
  });

  it('end for an event whose sender has left, and those behind it move up', async () => {
    const { turns, clock } = turnsOf(1e6, 1_000);
    expect(turns.take('one', 10_000, never)).toBeNull();
    const gone = new AbortController();
    const left = turns.take('one', 10_000, never, gone.signal);
    const stays = turns.take('one', 1, never);
    gone.abort();
    await left;
    clock.ms = 9_000;
    await stays;
    // The one that left has used nothing.
    expect(turns.take('one', 1, never)).toBeNull();
  });
});
