import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError } from '#config';
import { type Candidate, type Confined, ENVIRONMENT, type Launch, listCandidates, withoutWall } from './candidates.ts';

/** The wall between the processes of packages and the machine that is not Node's own. */
export interface Wall {
  readonly name: string;
  /** The kernel keeps these from a package, as the probe found out. */
  readonly keeps: { readonly files: boolean; readonly signals: boolean; readonly network: boolean };
  /** Says to the operator why there is no wall; null if there is one. */
  readonly why: string | null;
  launch(confined: Confined): Launch;
}

export interface ProbeTask {
  /** Paths that it must open. */
  readonly readable: readonly string[];
  /** Paths that it must not open. */
  readonly hidden: readonly string[];
  /** A process that it must not signal. */
  readonly pid: number;
  /** A port of this machine that it must not reach. */
  readonly port: number;
}

export interface ProbeReport {
  readonly unreadable: readonly string[];
  readonly openings: readonly string[];
  readonly signals: boolean;
  readonly connects: boolean;
  readonly dataBytes: number | null;
}

/** The error of a start for which a wall is required, and `why` there is no wall. */
export const missingWall = (why: string): ConfigError =>
  new ConfigError([
    {
      file: null,
      line: null,
      key: 'params.sdk',
      wrong: `names a package, packages.wall is "required", and this machine has no wall for it: ${why}`,
      right:
        'install bubblewrap, or util-linux 2.40 or newer, whose setpriv knows Landlock; or run tollgate as root, so that packages get users of their own; or leave packages.wall out',
    },
  ]);

interface WallOptions {
  readonly readable: readonly string[];
  /** Files and folders of the gateway, such as its data directory. */
  readonly hidden: readonly string[];
  /** Default: those of this machine. */
  readonly candidates?: readonly Candidate[];
}

const PROBE = fileURLToPath(new URL('./probe.ts', import.meta.url));
const CODE = fileURLToPath(new URL('../../../', import.meta.url));
const PROBE_MS = 20_000;
/** A process that sees the whole machine begins here. It has only the program itself. */
const FOLDER = dirname(PROBE);
/**
 * Memory of one process beyond what Node itself takes when it starts, in bytes: the heap of JavaScript
 * (start-worker.ts), and buffers.
 */
const MEMORY_BYTES = 704 * 1024 * 1024;

/**
 * Finds the strongest wall that holds here, by trying each with a program that does what a package may not. A wall
 * counts if it keeps files. What it keeps of signals and the network is said as well.
 */
export async function findWall({ readable, hidden, candidates = listCandidates(FOLDER) }: WallOptions): Promise<Wall> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-wall-'));
  // A port that answers, and a file that only this user may read.
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  try {
    const secret = join(folder, 'secret');
    writeFileSync(secret, '', { mode: 0o600 });
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const task: ProbeTask = {
      readable: [...readable, ...ownFiles()],
      hidden: [secret, ...hidden],
      pid: process.pid,
      port,
    };
    const faults: string[] = [];
    for (const candidate of [...candidates, withoutWall(FOLDER)]) {
      const report = await probe(candidate, task);
      const fault = faultOf(report);
      const isWall = candidates.includes(candidate);
      if (typeof report === 'string' || (isWall && fault !== null)) {
        faults.push(`${candidate.name}: ${fault}`);
        continue;
      }
      const dataBytes = report.dataBytes === null ? null : report.dataBytes + MEMORY_BYTES;
      return {
        name: candidate.name,
        keeps: { files: report.openings.length === 0, signals: !report.signals, network: !report.connects },
        why: isWall ? null : faults.join('; ') || `this system, ${process.platform}, has none that tollgate knows`,
        launch: (confined) => candidate.launch(confined, { dataBytes }),
      };
    }
    const why = faults.join('; ');
    const plain = withoutWall(FOLDER);
    return {
      name: plain.name,
      keeps: { files: false, signals: false, network: false },
      why,
      launch: (confined) => plain.launch(confined, { dataBytes: null }),
    };
  } finally {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * The code of tollgate, because a release has that of the program in shared files. Node also looks for the nearest
 * package.json, which says how to read them.
 */
export const ownFiles = (): readonly string[] =>
  [CODE, ...ancestorsOf(CODE).map((one) => join(one, 'package.json'))].filter((path) => existsSync(path));

const ancestorsOf = (folder: string): readonly string[] => {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...ancestorsOf(above)];
};

function faultOf(report: ProbeReport | string): string | null {
  if (typeof report === 'string') return report;
  if (report.unreadable.length > 0) return `it cannot read ${report.unreadable.join(', ')}`;
  return report.openings.length > 0 ? `it opens ${report.openings.join(', ')}` : null;
}

/** Resolves with the report, or with why there is no wall. */
async function probe(candidate: Candidate, task: ProbeTask): Promise<ProbeReport | string> {
  const args = ['--disable-warning=ExperimentalWarning', PROBE];
  const { command, args: all, ...how } = candidate.launch({ args, readable: task.readable }, { dataBytes: null });
  const child = spawn(command, all, { ...how, env: ENVIRONMENT, timeout: PROBE_MS, killSignal: 'SIGKILL' });
  child.stdin.on('error', () => {}).end(JSON.stringify(task));
  let output = '';
  let complaint = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString().slice(0, 500)));
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    if (code === 0) return JSON.parse(output) as ProbeReport;
    return complaint.trim().split('\n')[0] || `it ended with ${code}`;
  } catch (error) {
    return (error as Error).message;
  }
}
