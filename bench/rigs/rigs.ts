import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../../test/support/free-port.ts';
import { startProgram } from '../program.ts';
import { passthrough, tollgate, type Target, type TargetKind } from '../targets.ts';
import type { Protocol } from './jobs.ts';

/** A gateway to measure. `install` may take minutes the first time. */
export interface Rig extends Pick<TargetKind, 'name' | 'title'> {
  readonly protocol: Protocol;
  install(): void;
  start(upstreamPort: number): Promise<Target>;
}

/** `rig.json` of a folder. All its texts may have `{port}`, `{upstream}`, `{bin}` and the other names of `placesOf`. */
interface RigFile {
  readonly title: string;
  readonly protocol: Protocol;
  /** Packages with their versions. */
  readonly install: { readonly npm?: readonly string[]; readonly pip?: readonly string[] };
  readonly start: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A path that answers, with any status, once the gateway is ready. */
  readonly ready: string;
  /** JSON that is posted once it is ready, with the headers of the calls. */
  readonly setup?: readonly { readonly path: string; readonly body: object }[];
  readonly path: string;
  /** The name that the gateway gives to the tool. Default: its own. */
  readonly tool?: string;
  readonly headers: Readonly<Record<string, string>>;
}

const HERE = fileURLToPath(new URL('.', import.meta.url));
const CACHE = fileURLToPath(new URL('../../.cache/rigs/', import.meta.url));
const START_MS = 180_000;

const nothing = () => {};
const direct = (protocol: Protocol, path: string): Rig => ({
  name: `direct-${protocol}`,
  title: 'no gateway',
  protocol,
  install: nothing,
  start: (port) => Promise.resolve({ port, pid: null, path, headers: {}, stop: () => Promise.resolve() }),
});

const TOOLS = (upstreamPort: number) => `
[[tools]]
name = "bench-tools"
provider_name = "bench"
endpoint = "http://127.0.0.1:${upstreamPort}/mcp"
[tools.pricing]
per_call = 0.0001
`;

const OWN: readonly Rig[] = [
  direct('chat', '/v1/chat/completions'),
  {
    name: 'passthrough-chat',
    title: 'Fastify + undici, bytes through',
    protocol: 'chat',
    install: nothing,
    start: (port) => passthrough('targets/fastify.ts', port),
  },
  {
    name: 'tollgate-chat',
    title: 'tollgate, billed',
    protocol: 'chat',
    install: nothing,
    start: (port) => tollgate(port),
  },
  direct('tools', '/mcp'),
  {
    name: 'tollgate-tools',
    title: 'tollgate, billed',
    protocol: 'tools',
    install: nothing,
    start: (port) => tollgate(port, { path: '/mcp/bench-tools', blocks: TOOLS(port) }),
  },
];

/** The rigs of this folder, in the order of the report. */
export function readRigs(): readonly Rig[] {
  const folders = readdirSync(HERE).filter((name) => existsSync(join(HERE, name, 'rig.json')));
  const peers = folders
    .toSorted()
    .map((name) => peerRig(name, JSON.parse(readFileSync(join(HERE, name, 'rig.json'), 'utf8')) as RigFile));
  return [...OWN, ...peers].toSorted((one, other) => one.protocol.localeCompare(other.protocol));
}

function peerRig(name: string, file: RigFile): Rig {
  const { title, protocol, install } = file;
  const digest = createHash('sha256').update(JSON.stringify(install)).digest('hex').slice(0, 12);
  // Rigs with the same packages share them.
  const home = join(CACHE, digest);
  return {
    name,
    title,
    protocol,
    install() {
      if (!existsSync(home)) installInto(home, install);
    },
    async start(upstream) {
      const port = await findFreePort();
      const work = join(CACHE, `work-${name}`);
      const places: Readonly<Record<string, string>> = {
        port: String(port),
        upstream: String(upstream),
        bin: join(home, 'bin'),
        modules: join(home, 'node_modules'),
        node: process.execPath,
        folder: work,
        rigs: HERE.replace(/\/$/, ''),
      };
      const fill = (text: string) => text.replaceAll(/\{([a-z]+)\}/g, (whole, key: string) => places[key] ?? whole);
      rmSync(work, { recursive: true, force: true });
      cpSync(join(HERE, name), work, { recursive: true });
      for (const each of readdirSync(work))
        writeFileSync(join(work, each), fill(readFileSync(join(work, each), 'utf8')));
      const {
        start,
        env = {},
        ready,
        setup = [],
        path,
        tool,
        headers,
      } = JSON.parse(fill(JSON.stringify(file))) as RigFile;
      const [command = '', ...args] = start;
      const program = startProgram(args, { file: command, cwd: work, env, startLimitMs: START_MS });
      const origin = `http://127.0.0.1:${port}`;
      const answers = () =>
        fetch(origin + ready).then(
          async (response) => (await response.body?.cancel(), true),
          () => null,
        );
      try {
        await program.until(answers, 'an answer');
        for (const { path: to, body } of setup) await post(origin + to, body, headers);
      } catch (error) {
        await program.stop();
        throw error;
      }
      return { port, pid: program.pid, path, headers, ...(tool ? { tool } : {}), stop: () => program.stop() };
    },
  };
}

async function post(url: string, body: object, headers: RigFile['headers']): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} was answered with ${response.status}: ${text.slice(0, 300)}`);
}

/** Installs from the registries that npm and pip are set up for. A folder that is there is whole. */
function installInto(home: string, { npm = [], pip = [] }: RigFile['install']): void {
  mkdirSync(CACHE, { recursive: true });
  const run = (command: string, args: readonly string[]) =>
    execFileSync(command, args, { cwd: CACHE, stdio: ['ignore', 'ignore', 'inherit'] });
  try {
    if (pip.length > 0) {
      // A virtual environment knows its own path, so it cannot be moved.
      run('python3', ['-m', 'venv', home]);
      run(join(home, 'bin', 'pip'), ['install', '--quiet', ...pip]);
      return;
    }
    const part = `${home}.part`;
    mkdirSync(part, { recursive: true });
    run('npm', ['install', '--prefix', part, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', ...npm]);
    renameSync(part, home);
  } catch (error) {
    rmSync(home, { recursive: true, force: true });
    throw error;
  }
}
