import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { imageBlock, type ImageProvider, startImageProvider } from '../../media/support/image-provider.ts';
import { startVideoProvider, videoBlock, type VideoProvider } from '../../media/support/video-provider.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { run } from '../generated/tools.ts';
import { KNOWN_FAILURES } from './known-failures.ts';

// schemathesis makes requests of /openapi.json, valid and not, and looks at the answers with all its checks: with a key
// or as the operator or without. What it finds is in known-failures.ts, with the reason.

const VERSION = '4.32.5';
const CACHE = resolve(import.meta.dirname, '../../../.cache');
/** For one operation and kind of request. */
const EXAMPLES = 4;
const RUN_MS = 900_000;

interface Report {
  readonly operations: { readonly total: number; readonly tested: number };
  readonly failures: readonly {
    readonly code: string;
    readonly title: string;
    readonly operations: readonly string[];
  }[];
}

/** Why schemathesis cannot be installed here; null if it can. */
function lacking(): string | null {
  return spawnSync('python3', ['-m', 'venv', '--help']).status === 0 ? null : 'no python3 with venv on this machine';
}

/** An environment of Python with schemathesis alone. The programs in it know its path, so it is made in its place. */
function schemathesis(): string {
  const folder = join(CACHE, `schemathesis-${VERSION}`);
  const program = join(folder, 'bin/st');
  const done = join(folder, 'installed');
  if (existsSync(done)) return program;
  mkdirSync(CACHE, { recursive: true });
  rmSync(folder, { recursive: true, force: true });
  run('python3', ['-m', 'venv', folder], CACHE);
  run(join(folder, 'bin/pip'), ['install', '--quiet', `schemathesis==${VERSION}`], CACHE);
  mkdirSync(`${done}.tmp`);
  renameSync(`${done}.tmp`, done);
  return program;
}

let painter: ImageProvider;
let filmer: VideoProvider;
let spine: Spine;
let folder: string;
beforeAll(async () => {
  painter = await startImageProvider();
  filmer = await startVideoProvider();
  const media = imageBlock({ url: painter.url, params: 'edits = true' }) + videoBlock({ url: filmer.url });
  const toml = `${UNHURRIED}[sign_in]\nfailures_per_minute = 1000000\n[media]\nfree_bytes_min = 0\n${media}`;
  spine = await startSpine({ credit: '10000', toml });
  folder = mkdtempSync(join(tmpdir(), 'tollgate-schemathesis-'));
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await painter.close();
  await filmer.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs all checks. Rejects if schemathesis ends without a report. */
async function findings(program: string, name: string, key: string | null): Promise<readonly string[]> {
  const report = join(folder, `${name}.json`);
  const options = `--checks all --phases examples,coverage,fuzzing --max-examples ${EXAMPLES} --generation-deterministic
    --suppress-health-check all --no-shrink --continue-on-failure --request-timeout 30 --report json`;
  const header = key === null ? [] : ['--header', `Authorization: Bearer ${key}`];
  const address = `${spine.origin}/openapi.json`;
  const args = ['run', address, ...options.split(/\s+/), '--report-json-path', report, ...header];
  const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], timeout: RUN_MS });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => (said += bytes.toString()));
  await new Promise((ended) => child.on('close', ended));
  if (!existsSync(report)) throw new Error(`schemathesis wrote no report: ${said.slice(-3000)}`);
  const { operations, failures } = JSON.parse(readFileSync(report, 'utf8')) as Report;
  expect(operations.tested).toBeGreaterThan(100);
  return failures.flatMap(({ code, title, operations: at }) =>
    at.map((operation) => `${code} ${operation} (${title})`),
  );
}

test('schemathesis finds nothing but what is listed', { timeout: 4 * RUN_MS }, async ({ skip }) => {
  const why = lacking();
  if (why !== null) return skip(why);
  const program = schemathesis();
  const found = new Set<string>();
  for (const [name, key] of Object.entries({ consumer: spine.key, operator: spine.adminKey, nobody: null }))
    for (const one of await findings(program, name, key)) found.add(one);
  const all = [...found].sort();
  const isListed = (finding: string) => KNOWN_FAILURES.some(({ failure }) => failure.test(finding));
  expect(all.filter((finding) => !isListed(finding))).toEqual([]);
  const gone = KNOWN_FAILURES.filter(({ failure, rare }) => !rare && !all.some((finding) => failure.test(finding)));
  expect(gone.map(({ failure }) => String(failure))).toEqual([]);
});
