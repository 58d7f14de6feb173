import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

/** Runs it as a user does. `stopAt`: what it has written when Ctrl-C is pressed. */
async function run(stopAt?: string) {
  const dir = await mkdtemp(join(tmpdir(), 'tollgate-examples-'));
  try {
    // Its own group, as in a terminal, where Ctrl-C reaches npm and what npm runs.
    const child = spawn('npm', ['run', '--silent', 'demo:chain'], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      env: { PATH: process.env['PATH'], HOME: dir, TMPDIR: dir, DATABASE_URL: 'postgres://127.0.0.1:9/none' },
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
    const files = (await readdir(dir)).filter((name) => name.startsWith('tollgate-'));
    return { code, output, left: [...files, ...processesOf(dir)] };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** What a run has started and not ended: all of it has its directory in its environment. */
function processesOf(dir: string): string[] {
  if (!existsSync('/proc/self/environ')) return [];
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`TMPDIR=${dir}`);
    } catch {
      // It has ended, or is somebody else's.
      return false;
    }
  });
}

const micro = (text: string) => Math.round(Number(text) * 1e6);

it.concurrent('shows what moved on the chains: what wallets paid, treasuries and the provider have', async () => {
  const { code, output, left } = await run();
  expect(code, output).toBe(0);
  expect(output).not.toContain('\u001b[');
  expect(output.match(/^ {2}402 Insufficient balance .* USDC to \S+ will do$/gm)).toHaveLength(2);
  expect(output.match(/^ {2}200 paid in transaction \w{64,88}$/gm)).toHaveLength(2);
  expect(output.match(/^ {2}A tollgate asks for its due .*\.$/gm)).toHaveLength(2);
  expect(output.match(/^ {2}200 signed in, once more from the balance: /gm)).toHaveLength(2);

  const rows = [
    ...output.matchAll(
      /^ {2}(wallet|treasury|provider) +(.*?) {2,}(\S+) +(\d+\.\d{6}) +(\d+\.\d{6}) +([+-]\d+\.\d{6})$/gm,
    ),
  ].map(([, name, chain, , before, after, change]) => ({
    name,
    chain: chain!,
    before: micro(before!),
    after: micro(after!),
    change: micro(change!),
  }));
  expect(rows.map(({ name }) => name)).toEqual(['wallet', 'treasury', 'wallet', 'treasury', 'provider']);
  for (const { before, after, change } of rows) expect(after - before).toBe(change);
  const sums = Map.groupBy(rows, ({ chain }) => chain);
  expect(sums.size).toBe(2);
  for (const of of sums.values()) expect(of.reduce((sum, { change }) => sum + change, 0)).toBe(0);
  const changeOf = (name: string) => rows.filter((row) => row.name === name).map(({ change }) => change);
  expect(changeOf('wallet')).toEqual([-500_000, -500_000]);
  const [earned] = changeOf('provider') as [number];
  expect(earned).toBeGreaterThan(0);
  expect(changeOf('treasury')).toEqual([500_000 - earned, 500_000]);

  // The audit names the same figures: owed, held, booked.
  const audited = [...output.matchAll(/^ *(?:eip155|solana):\S+ +([\d.]+) +([\d.]+) +([\d.]+)/gm)].map((row) =>
    row.slice(1).map(micro),
  );
  expect(audited).toEqual(changeOf('treasury').map((held) => [held, held, held]));
  expect(left).toEqual([]);
});

// A second run of all of it: by day the other example is stopped.
it.concurrent.each(process.env['TOLLGATE_DEEP'] === '1' ? ['200 paid in'] : [])(
  'ends cleanly when it is stopped in between, at %s',
  async (moment) => {
    const { code, output, left } = await run(moment);
    expect(output).not.toMatch(/error/i);
    expect(output).not.toContain('On the chains');
    expect(code).toBe(0);
    expect(left).toEqual([]);
  },
);
