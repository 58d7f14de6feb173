import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tollgate-examples-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** Runs it as a user does. `stopAt`: what it has written when Ctrl-C is pressed. */
async function run(stopAt?: string): Promise<{ readonly code: number | null; readonly output: string }> {
  // Its own group, as in a terminal, where Ctrl-C reaches npm and what npm runs.
  const child = spawn('npm', ['run', '--silent', 'example'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: {
      PATH: process.env['PATH'],
      HOME: dir,
      TMPDIR: dir,
      OLLAMA_HOST: '127.0.0.1:9',
      DATABASE_URL: 'postgres://127.0.0.1:9/none',
    },
  });
  let output = '';
  let pressed = false;
  const closed = once(child, 'close');
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes: Buffer) => {
      output += bytes.toString();
      if (stopAt === undefined || pressed || !output.includes(stopAt)) return;
      pressed = true;
      process.kill(-child.pid!, 'SIGINT');
    });
  const [code] = (await closed) as [number | null];
  return { code, output };
}

const MONEY = String.raw`(\d+\.\d{6})`;
const micro = (text: string | undefined) => Math.round(Number(text) * 1e6);

it('shows one tree of signed receipts, whose sum is what the balance dropped by', async () => {
  const { code, output } = await run();
  expect(output).toMatch(
    /What is a tollgate\? .*\n {2}… A model writes the answer\.\n {2}… A tool weighs it\.\n\ntollgate is a gateway/,
  );
  expect(output).toContain('"seconds_aloud":');
  expect(output).not.toContain('\u001b[');
  const call = (of: string) => new RegExp(`${of} +${MONEY} .*✓ signed  gen-\\w+$`, 'm').exec(output)?.[1];
  const costs = ['^agent example/speechwriter', '^├─ model demo/chat', '^└─ tool demo/tools weigh_words'].map((of) =>
    micro(call(of)),
  );
  expect(costs).toEqual([10_000, expect.any(Number), 1_000]);
  expect(costs[1]).toBeGreaterThan(0);
  const sum = costs.reduce((all, cost) => all + cost, 0);
  expect(micro(new RegExp(`^Charged +${MONEY}`, 'm').exec(output)?.[1])).toBe(sum);
  expect(micro(new RegExp(`a drop of ${MONEY}$`, 'm').exec(output)?.[1])).toBe(sum);
  expect(output).toContain('Locked   0.050000');
  expect(output.trimEnd().split('\n').at(-1)).toBe('✓ The receipts are good, and the sums are the same.');
  expect(code).toBe(0);
  expect((await readdir(dir)).filter((name) => name.startsWith('tollgate-example-'))).toEqual([]);
});

it('ends cleanly when it is stopped in between', async () => {
  const { code, output } = await run('Gateway ');
  expect(output).not.toMatch(/error/i);
  expect(code).toBe(0);
  expect((await readdir(dir)).filter((name) => name.startsWith('tollgate-example-'))).toEqual([]);
});
