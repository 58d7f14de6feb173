import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { atThisLoad } from './at-this-load.ts';
import { collect, readScenarios, toScenario, type ConformanceResult, type Scenario } from './conformance-result.ts';
import { startKeyAddingProxy } from './key-adding-proxy.ts';

export type Revision = '2026-07-28' | '2025-11-25';

/** The server under test. */
export interface Judged {
  readonly url: string;
  /** A key that is added to every request as `authorization: Bearer <key>`, because the tool can't send one. */
  readonly key?: string;
  /** Timeout for each process of the tool. Default: one minute. */
  readonly timeoutMs?: number;
}

interface Scenarios {
  readonly scenarios: readonly string[];
  readonly specVersion: Revision;
}

const PACKAGE = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json'));
const CLI = join(PACKAGE, 'dist', 'index.js');
/** On an idle machine. */
const TIMEOUT_MS = 60_000;

/** Number of scenario processes that run at once. They start slowly and then mostly wait. */
const AT_ONCE = 3;

/**
 * Runs all scenarios that a revision requires of a server, and the optional ones, in one process. The tool has its own
 * timeouts, which a busy machine may exceed. So on a busy machine, scenarios that fail unexpectedly (not in `mayFail`)
 * run once more, alone. Rejects if the tool doesn't end in time.
 */
export function runConformance({
  url,
  key,
  requirements,
  timeoutMs = atThisLoad(TIMEOUT_MS),
  mayFail = () => false,
}: Judged & {
  readonly requirements: Revision;
  readonly mayFail?: (scenario: Scenario) => boolean;
}): Promise<ConformanceResult> {
  return withKey(url, key, async (at) => {
    const names = await requiredOf(requirements);
    return collect(async (outDir) => {
      const { output } = await runCli(['server', '--url', at, '--requirements', requirements, '-o', outDir], timeoutMs);
      const scenarios = await readScenarios(outDir, 'server-', names);
      const isBusy = atThisLoad(1_000) > 1_000;
      for (const [index, found] of scenarios.entries()) {
        const { name, scored, passed } = found;
        if (passed || !isBusy || mayFail(found)) continue;
        const alone = { name, specVersion: requirements, outDir: join(outDir, 'again'), prefix: 'server-', timeoutMs };
        await mkdir(alone.outDir, { recursive: true });
        const { scenario } = await runOne(['server', '--url', at], alone);
        if (scenario.passed) scenarios[index] = { ...scenario, scored };
      }
      return { output, scenarios };
    });
  });
}

/** Runs single scenarios against a server. */
export function runScenarios({
  url,
  key,
  scenarios,
  specVersion,
  timeoutMs = atThisLoad(TIMEOUT_MS),
}: Judged & Scenarios): Promise<ConformanceResult> {
  return withKey(url, key, (at) =>
    runEach(scenarios, (name, outDir) =>
      runOne(['server', '--url', at], { name, specVersion, outDir, prefix: 'server-', timeoutMs }),
    ),
  );
}

/**
 * Runs scenarios in which the tool is the server. `command` (words separated by single spaces) is the client. It gets
 * the server's URL as its last argument. A scenario fails if the client exits with an error, and also if the tool
 * reports only a warning.
 */
export function runClientConformance(
  options: Scenarios & {
    readonly command: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly timeoutMs?: number;
  },
): Promise<ConformanceResult> {
  const { command, env, scenarios, specVersion, timeoutMs = atThisLoad(TIMEOUT_MS) } = options;
  return runEach(scenarios, (name, outDir) =>
    runOne(['client', '--command', command], { name, specVersion, outDir, prefix: '', timeoutMs, env }),
  );
}

async function withKey<T>(url: string, key: string | undefined, run: (at: string) => Promise<T>): Promise<T> {
  const proxy = key === undefined ? null : await startKeyAddingProxy(url, key);
  try {
    return await run(proxy?.url ?? url);
  } finally {
    await proxy?.close();
  }
}

interface Ran {
  readonly scenario: Scenario;
  readonly output: string;
}

function runEach(
  names: readonly string[],
  run: (name: string, outDir: string) => Promise<Ran>,
): Promise<ConformanceResult> {
  return collect(async (outDir) => {
    const ran = new Map<string, Ran>();
    const waiting = [...names];
    const work = async () => {
      for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
        await mkdir(join(outDir, name));
        ran.set(name, await run(name, join(outDir, name)));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    const inOrder = names.map((name) => ran.get(name)!);
    return { output: inOrder.map((one) => one.output).join('\n'), scenarios: inOrder.map((one) => one.scenario) };
  });
}

interface One {
  readonly name: string;
  readonly specVersion: Revision;
  readonly outDir: string;
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly env?: Readonly<Record<string, string>> | undefined;
}

async function runOne(
  args: readonly string[],
  { name, specVersion, outDir, prefix, timeoutMs, env }: One,
): Promise<Ran> {
  const { code, output } = await runCli(
    [...args, '--scenario', name, '--spec-version', specVersion, '-o', outDir],
    timeoutMs,
    env,
  );
  const scenario = (await readScenarios(outDir, prefix, new Set([name])))[0]!;
  if (code === 0) return { scenario, output };
  // The end of the output shows the reason: a failed check, a failed client, or a warning that the tool doesn't accept.
  const failure = {
    id: 'exit',
    status: 'FAILURE',
    errorMessage: `the tool ended with code ${code}: ${output.slice(-2_000)}`,
  };
  return { scenario: toScenario(name, true, [...scenario.checks, failure]), output };
}

/** Runs the tool. If it takes too long, the tool and all its child processes are killed. */
async function runCli(
  args: readonly string[],
  timeoutMs: number,
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, [CLI, ...args], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }, timeoutMs);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  if (late) throw new Error(`the conformance tool did not end within ${timeoutMs} ms:\n${output.slice(-4_000)}`);
  return { code, output };
}

/** The server scenarios that a revision requires, read from the package. */
async function requiredOf(revision: Revision): Promise<ReadonlySet<string>> {
  const text = await readFile(join(PACKAGE, 'requirements', `${revision}.yaml`), 'utf8');
  const [, list = ''] = /^server:\n((?: +- .*\n)+)/m.exec(text) ?? [];
  const names = [...list.matchAll(/^ +- (\S+)$/gm)].map((match) => match[1]!);
  if (names.length === 0) throw new Error(`no scenarios for servers in the requirements of ${revision}`);
  return new Set(names);
}
