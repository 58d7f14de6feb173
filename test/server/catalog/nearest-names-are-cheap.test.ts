import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { nearestNames } from '#catalog';

/** Long names without common parts: each pair of characters is looked at. */
const hashed = (text: string) => createHash('sha512').update(text).digest('base64url');
const NAMES = Array.from({ length: 1_000 }, (_, name) => (hashed(`${name}`) + hashed(`${name}b`)).slice(0, 128));

function cpuMs(run: () => void): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** The same number of characters read once, as the measure of this machine. */
function readOnce(): number {
  let sum = 0;
  for (const name of NAMES) for (const pair of name.toLowerCase()) sum += pair.charCodeAt(0);
  return sum;
}

test('the names nearest to one that does not exist are found in the time of a few readings of all names', () => {
  // The clock of a thread can be as coarse as 4 ms, so both are measured over many runs.
  const often = (run: () => void) => cpuMs(() => Array.from({ length: 40 }, run));
  readOnce();
  const reading = often(readOnce);
  const wanted = `~~~~~~~~~~${NAMES[7]!.slice(3)}`;
  expect(nearestNames(wanted, NAMES)).toContain(NAMES[7]);
  const finding = often(() => nearestNames(wanted, NAMES));
  if (process.env['WORST_SHOWN'] !== undefined) console.log({ reading, finding });
  expect(finding).toBeLessThan(Math.max(20, reading) * 4);
});
