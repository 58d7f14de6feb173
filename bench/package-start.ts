/** The processor time, the memory and the time of a start, of several packages or checkouts. See `--help`. */
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createWallet, writeKeypairFile } from '../src/providers/proxy/wallet/index.ts';
import { percentile } from './ledger-load.ts';
import { cpuMicros, type Program, residentBytes, startProgram } from './program.ts';

const HELP = `node bench/package-start.ts [--command serve|provide] [--starts 10] FOLDER …
  FOLDER   an unpacked package, or a checkout: what has bin/tollgate.mjs, or bin/tollgate-provide.mjs
Starts each in turn. The first start of each, which compiles, does not count. CPU and memory are of the process, all
threads: other work of the machine does not count in them.
  serve    on an empty embedded database, until it says "listening"
  provide  with a wallet of Solana and one model, until it dials
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    command: { type: 'string', default: 'serve' },
    starts: { type: 'string', default: '10' },
    help: { type: 'boolean' },
  },
});
const COMMANDS = { serve: prepareServe, provide: prepareProvide } as const;
const command = Object.hasOwn(COMMANDS, values.command) ? COMMANDS[values.command as keyof typeof COMMANDS] : null;
if (values.help || positionals.length === 0 || command === null) {
  process.stdout.write(HELP);
  process.exit(values.help ? 0 : 2);
}

interface Start {
  readonly wall: number;
  readonly cpu: number;
  readonly mib: number;
}

const folders = positionals.map((folder) => resolve(folder));
const starts = new Map<string, Start[]>(folders.map((folder) => [folder, []]));
for (let turn = 0; turn <= Number(values.starts); turn += 1)
  for (const folder of folders) {
    const start = await startOf(folder, command);
    if (turn > 0) starts.get(folder)!.push(start);
  }
console.log('| package | starts | CPU p50 ms | least | most | MiB p50 | least | most | ready p50 ms | least | most |');
console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
for (const [folder, all] of starts) {
  const figures = (['cpu', 'mib', 'wall'] as const).flatMap((name) => {
    const each = all.map((start) => start[name]);
    return [percentile(each, 0.5), Math.min(...each), Math.max(...each)];
  });
  console.log(`| ${[folder, all.length, ...figures.map((figure) => Math.round(figure))].join(' | ')} |`);
}

interface Prepared {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly ready: (program: Program) => Promise<unknown>;
  readonly close: () => void;
}

async function startOf(folder: string, prepare: (data: string) => Promise<Prepared>): Promise<Start> {
  const data = mkdtempSync(join(tmpdir(), 'tollgate-start-'));
  const names = ['tollgate', 'tollgate-provide'].map((name) => join(folder, 'bin', `${name}.mjs`));
  const { args, env, ready, close } = await prepare(data);
  const began = performance.now();
  const program = startProgram([names.find((name) => existsSync(name))!, ...args], { cwd: data, env });
  try {
    await Promise.race([ready(program), program.until(() => null, 'it was ready')]);
    const wall = performance.now() - began;
    const mib = residentBytes(program.pid) / (1024 * 1024);
    return { wall, mib, cpu: cpuMicros(program.pid) / 1_000 };
  } finally {
    await program.stop();
    close();
    rmSync(data, { recursive: true, force: true });
  }
}

async function prepareServe(data: string): Promise<Prepared> {
  const file = join(data, 'tollgate.toml');
  writeFileSync(file, '');
  return {
    args: ['serve', '--config', file],
    env: { PORT: '0', TOLLGATE_DATA: join(data, 'data') },
    ready: ({ child, output }) =>
      new Promise((resolve) => {
        child.stdout!.on('data', () => output().includes('"listening"') && resolve(null));
      }),
    close() {},
  };
}

async function prepareProvide(data: string): Promise<Prepared> {
  // It takes connections and says nothing: the dial is the end of the start.
  const router = createServer().listen(0, '127.0.0.1');
  const dialled = once(router, 'connection');
  await once(router, 'listening');
  await writeKeypairFile(join(data, 'wallet.json'), (await createWallet('solana')).fileText);
  const file = join(data, 'provider.toml');
  writeFileSync(
    file,
    `[router]
url = "http://127.0.0.1:${(router.address() as AddressInfo).port}"
[router.siwx]
chain_id = "solana:mainnet"
keypair_file = "wallet.json"
[[models]]
name = "acme/small"
pricing = { prompt = 1, completion = 1 }
params = { model = "m", api_base = "http://127.0.0.1:9/v1" }
`,
  );
  return {
    args: ['provide', '--config', file],
    env: {},
    ready: () => dialled,
    close: () => void router.close(),
  };
}
