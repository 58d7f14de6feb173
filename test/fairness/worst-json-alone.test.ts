import { describe, expect, it } from 'vitest';
import { BOUNDS, foreignObject, readForeign } from '#wire';
import { BEYOND, within } from './support/worst/shapes.ts';
import { shortTurn } from './support/worst/world.ts';

/* The worst JSON for readers that a gateway of the other tests does not have: by themselves, as those call them. */

/** Those that are read at once, and those that are read in turns if they are large. */
const AT_ONCE = ['receiver', 'providerBatch'] as const;
const IN_TURNS = ['chain', 'batchAnswer', 'fileLine'] as const;

/** The most CPU time of one turn of the event loop until `read` has ended, in milliseconds. */
async function longestTurn(read: () => unknown): Promise<number> {
  let most = 0;
  let isOver = false;
  const cpu = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let last = cpu();
  const look = () => {
    const now = cpu();
    most = Math.max(most, now - last);
    last = now;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  await Promise.resolve(read()).catch(() => {});
  await new Promise((done) => void setImmediate(done));
  isOver = true;
  return most;
}

const readers = [
  ...AT_ONCE.map((name) => [name, (text: Buffer) => foreignObject(text, BOUNDS[name])] as const),
  ...IN_TURNS.map((name) => [name, (text: Buffer) => readForeign(text, BOUNDS[name])] as const),
];
describe.each(readers)('%s', (name, read) => {
  const shapes = Object.entries({ ...BEYOND, ...within(BOUNDS[name]) });
  it.each(shapes)('with %s', async (_shape, make) => {
    const text = Buffer.from(`{"x":${make()}}`);
    const { isShort, turns } = await shortTurn(() => longestTurn(() => read(text)));
    if (process.env['WORST_SHOWN'] === '1') console.log(`@@ ${name} | ${_shape} | ${turns.join(' ')} | `);
    expect(isShort, turns.join(', ')).toBe(true);
  });
});
