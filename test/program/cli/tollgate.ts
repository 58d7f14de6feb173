import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runInCommandProcess } from './command-process.ts';
import { PROGRAM } from '../../support/gateway.ts';
import { createKeeper, type ServerProcess } from '../../support/server-process.ts';

export const LAUNCHER = fileURLToPath(new URL('../../../bin/tollgate.mjs', import.meta.url));

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Both streams as they came. */
  readonly output: string;
  readonly stdout: string;
}

/** A directory to work in, and the CLI run in it as a process. Data is kept in `<dir>/data`; ports are free ones. */
export interface Place {
  readonly dir: string;
  readonly data: string;
  /** Gateways, providers and what has options for Node get a process; the other commands share one. */
  run(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Finished>;
  /** Runs it in a process of its own, and waits for its end. */
  runAlone(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Finished>;
  /** Starts it without waiting for anything. */
  launch(args: readonly string[], env?: NodeJS.ProcessEnv): ServerProcess;
  /** Starts a gateway and waits until it says that it listens. `shell`: as the child of one, as npm does it. */
  gateway(args: readonly string[], env?: NodeJS.ProcessEnv, under?: 'shell'): Promise<ServerProcess>;
  /** A JSON file of the data directory. */
  read(name: string): Promise<Record<string, string>>;
  clear(): Promise<void>;
}

const SHORT = ['--validate', '--reload', '--help'];
const LONG_RUNNING: ReadonlySet<string | undefined> = new Set(['serve', 'start', 'provide']);

const needsProcess = (args: readonly string[], env: NodeJS.ProcessEnv): boolean =>
  env['NODE_OPTIONS'] !== undefined || (LONG_RUNNING.has(args[0]) && !SHORT.some((option) => args.includes(option)));

export async function makePlace(): Promise<Place> {
  const dir = await mkdtemp(join(tmpdir(), 'tollgate-cli-'));
  const data = join(dir, 'data');
  const keepers: ReturnType<typeof createKeeper>[] = [];
  // Nothing of the machine that runs the tests: no Ollama, no keys, no terminal.
  const environment = (env: NodeJS.ProcessEnv) => ({
    PATH: process.env['PATH'],
    HOME: dir,
    TOLLGATE_DATA: data,
    PORT: '0',
    OLLAMA_HOST: '127.0.0.1:9',
    ...env,
  });
  const launch = (args: readonly string[], env: NodeJS.ProcessEnv, under?: 'shell') => {
    const keeper = createKeeper([]);
    keepers.push(keeper);
    return keeper.start({
      ...(under
        ? { file: '/bin/sh', args: ['-c', '"$0" "$@"; exit $?', process.execPath, LAUNCHER, ...args] }
        : { file: process.execPath, args: [...PROGRAM, ...args] }),
      cwd: dir,
      env: environment(env),
    });
  };
  const runAlone: Place['runAlone'] = async (args, env = {}) => {
    const child = launch(args, env);
    await child.exited;
    return { code: child.exitCode, signal: child.signalCode, output: child.output(), stdout: child.stdout() };
  };
  return {
    dir,
    data,
    launch: (args, env = {}) => launch(args, env),
    async run(args, env = {}) {
      if (needsProcess(args, env)) return runAlone(args, env);
      return { signal: null, ...(await runInCommandProcess({ args, cwd: dir, env: environment(env) })) };
    },
    runAlone,
    async gateway(args, env = {}, under) {
      const child = launch(args, env, under);
      await child.wrote(args[0] === 'start' ? 'Ctrl-C stops it.' : '"msg":"listening"');
      return child;
    },
    read: async (name) => JSON.parse(await readFile(join(data, name), 'utf8')) as Record<string, string>,
    async clear() {
      for (const keeper of keepers) await keeper.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** A chat call with the key of the development gateway. */
export function chat(
  gateway: { readonly base_url: string; readonly api_key: string },
  body: object,
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${gateway.base_url}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.api_key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo/echo', messages: [{ role: 'user', content: 'hello' }], ...body }),
    ...(signal ? { signal } : {}),
  });
}
