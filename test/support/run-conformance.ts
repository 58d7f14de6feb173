import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { atThisLoad } from './at-this-load.ts';
import { collect, readScenarios, toScenario, type ConformanceResult, type Scenario } from './conformance-result.ts';
import { startKeyAddingProxy } from './key-adding-proxy.ts';

export type Revision = '2026-07-28' | '2025-11-25';

/** A server to be judged. */
export interface Judged {
  readonly url: string;
  /** Adds `authorization: Bearer <key>` to every request; the tool itself cannot. */
  readonly key?: string;
  /** For each process of the tool; a minute. */
  readonly timeoutMs?: number;
}

interface Scenarios {
  readonly scenarios: readonly string[];
  readonly specVersion: Revision;
}

const PACKAGE = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json'));
const CLI = join(PACKAGE, 'dist', 'index.js');
/** On a machine with nothing else to do. */
const TIMEOUT_MS = 60_000;

/** Scenarios that run at once where each is a process: they start slowly, and then mostly wait. */
const AT_ONCE = 3;

/**
 * Runs all that a revision asks of a server, and what it has beside that, in one process. The tool has time limits of
 * its own, which a busy machine does not hold: there, what fails and is not expected to (`mayFail`) runs once more,
 * alone. Rejects when the tool does not end in time.
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
 * Runs scenarios in which the tool is the server and `command` (words between single spaces) the client; the
 * server's URL becomes its last argument. A client that exits with an error, and a mere warning, fail the scenario.
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
  // The end of what it wrote says why: a check that failed, a client that failed, a warning that it does not let pass.
  const failure = {
    id: 'exit',
    status: 'FAILURE',
    errorMessage: `the tool ended with code ${code}: ${output.slice(-2_000)}`,
  };
  return { scenario: toScenario(name, true, [...scenario.checks, failure]), output };
}

/** The tool and all that it starts, ended as one when they take too long. */
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

/** The scenarios that a revision counts for servers, as the package says. */
async function requiredOf(revision: Revision): Promise<ReadonlySet<string>> {
  const text = await readFile(join(PACKAGE, 'requirements', `${revision}.yaml`), 'utf8');
  const [, list = ''] = /^server:\n((?: +- .*\n)+)/m.exec(text) ?? [];
  const names = [...list.matchAll(/^ +- (\S+)$/gm)].map((match) => match[1]!);
  if (names.length === 0) throw new Error(`no scenarios for servers in the requirements of ${revision}`);
  return new Set(names);
}
