import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One check of a scenario. `status`: SUCCESS, FAILURE, WARNING or SKIPPED. */
export interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

export interface Scenario {
  readonly name: string;
  /** Whether the revision requires it. */
  readonly scored: boolean;
  /** At least one check succeeded and no check failed. A scenario that skips all of its checks proves nothing. */
  readonly passed: boolean;
  readonly checks: readonly Check[];
}

export interface ConformanceResult {
  readonly scenarios: readonly Scenario[];
  /** Names of all successful scenarios. */
  readonly passed: readonly string[];
  readonly failed: readonly Scenario[];
  /** The number of required scenarios that passed, and their total number. */
  readonly scored: { readonly passed: number; readonly of: number };
  readonly ms: number;
  /** The tool's output. */
  readonly output: string;
}

export interface Collected {
  readonly scenarios: readonly Scenario[];
  readonly output: string;
}

/** Gives `run` a directory for the tool's files, and summarises what `run` read there. */
export async function collect(run: (outDir: string) => Promise<Collected>): Promise<ConformanceResult> {
  const outDir = await mkdtemp(join(tmpdir(), 'tollgate-conformance-'));
  const start = performance.now();
  try {
    const { output, scenarios } = await run(outDir);
    const scored = scenarios.filter((scenario) => scenario.scored);
    return {
      scenarios,
      passed: scenarios.filter((scenario) => scenario.passed).map((scenario) => scenario.name),
      failed: scenarios.filter((scenario) => !scenario.passed),
      scored: { passed: scored.filter((scenario) => scenario.passed).length, of: scored.length },
      ms: Math.round(performance.now() - start),
      output,
    };
  } finally {
    await rm(outDir, { recursive: true, force: true });
  }
}

/**
 * Reads the tool's files: one directory per scenario, named `<prefix><scenario>-<time>`. Required scenarios without a
 * directory are added as failed.
 */
export async function readScenarios(outDir: string, prefix: string, scored: ReadonlySet<string>): Promise<Scenario[]> {
  const found = new Map<string, readonly Check[]>();
  for (const directory of await readdir(outDir)) {
    const name = directory.replace(/-\d{4}-\d{2}-\d{2}T[\d-]+Z$/, '').slice(prefix.length);
    const text = await readFile(join(outDir, directory, 'checks.json'), 'utf8').catch(() => '[]');
    // INFO entries aren't checks.
    const checks = (JSON.parse(text) as Check[]).filter((check) => check.status !== 'INFO');
    found.set(
      name,
      checks.map(({ id, status, errorMessage }) => ({
        id,
        status,
        ...(errorMessage === undefined ? {} : { errorMessage }),
      })),
    );
  }
  return [...new Set([...scored, ...found.keys()])].map((name) =>
    toScenario(name, scored.has(name), found.get(name) ?? []),
  );
}

export function toScenario(name: string, scored: boolean, checks: readonly Check[]): Scenario {
  const passed =
    checks.some((check) => check.status === 'SUCCESS') && checks.every((check) => check.status !== 'FAILURE');
  return { name, scored, passed, checks };
}
