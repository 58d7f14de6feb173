import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LookPlaces, type Party } from '../../../src/mcp/catalogue/look-places.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

const LONG_MS = 20;

/** Looks that get no answer, and the names of those that were given up, in their order. */
function world(longTotal: number) {
  const lost: string[] = [];
  const places = new LookPlaces({ total: 100, ofOwner: 10, longMs: LONG_MS, longTotal, onFree() {} });
  const look = (name: string, party: Party) => {
    const place = places.take(party, () => {
      lost.push(name);
      place.leave();
    });
    void place.wait(new Promise(() => {}));
  };
  return { look, lost };
}

test('a network with its share keeps an old look while those of a crowd are too young to be given up', () => {
  const { look, lost } = world(4);
  look('slow', { network: 'few', owner: 'slow' });
  vi.advanceTimersByTime(10 * LONG_MS);
  for (let at = 0; at < 6; at += 1) look(`silent${at}`, { network: 'crowd', owner: `silent${at}` });
  vi.advanceTimersByTime(2 * LONG_MS);
  expect(lost).toEqual([]);
  vi.advanceTimersByTime(10 * LONG_MS);
  expect(lost).toEqual(['silent0', 'silent1', 'silent2']);
});

test('of a network, the oldest look of the owner who has most is given up', () => {
  const { look, lost } = world(3);
  look('one', { network: 'crowd', owner: 'one' });
  look('many0', { network: 'crowd', owner: 'many' });
  look('many1', { network: 'crowd', owner: 'many' });
  look('two', { network: 'crowd', owner: 'two' });
  vi.advanceTimersByTime(10 * LONG_MS);
  expect(lost).toEqual(['many0']);
});
