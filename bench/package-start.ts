/** The processor time and the time of a start of `tollgate serve`, of several packages or checkouts. See `--help`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { percentile } from './ledger-load.ts';
import { cpuMicros, startProgram } from './program.ts';

const HELP = `node bench/package-start.ts [--starts 10] FOLDER …
  FOLDER   an unpacked package, or a checkout: what has bin/tollgate.mjs
Starts each in turn, on an empty embedded database, until it says "listening". The first start of each, which compiles,
does not count. CPU is of the process, all threads: other work of the machine does not count in it.
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { starts: { type: 'string', default: '10' }, help: { type: 'boolean' } },
});
if (values.help || positionals.length === 0) {
  process.stdout.write(HELP);
  process.exit(values.help ? 0 : 2);
}

interface Start {
  readonly wall: number;
  readonly cpu: number;
}

const folders = positionals.map((folder) => resolve(folder));
const starts = new Map<string, Start[]>(folders.map((folder) => [folder, []]));
for (let turn = 0; turn <= Number(values.starts); turn += 1)
  for (const folder of folders) {
    const start = await startOf(folder);
    if (turn > 0) starts.get(folder)!.push(start);
  }
console.log('| package | starts | CPU p50 ms | least | most | listening p50 ms | least | most |');
console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
for (const [folder, all] of starts) {
  const figures = [all.map(({ cpu }) => cpu), all.map(({ wall }) => wall)].flatMap((each) => [
    percentile(each, 0.5),
    Math.min(...each),
    Math.max(...each),
  ]);
  console.log(`| ${[folder, all.length, ...figures.map((figure) => Math.round(figure))].join(' | ')} |`);
}

async function startOf(folder: string): Promise<Start> {
  const data = mkdtempSync(join(tmpdir(), 'tollgate-start-'));
  try {
    const file = join(data, 'tollgate.toml');
    writeFileSync(file, '');
    const began = performance.now();
    const program = startProgram([join(folder, 'bin/tollgate.mjs'), 'serve', '--config', file], {
      cwd: data,
      env: { PORT: '0', TOLLGATE_DATA: join(data, 'data') },
    });
    const listening = Promise.withResolvers<Start>();
    program.child.stdout!.on('data', () => {
      if (program.output().includes('"listening"'))
        listening.resolve({ wall: performance.now() - began, cpu: cpuMicros(program.pid) / 1_000 });
    });
    program
      .until(() => program.output().includes('"listening"') || null, 'a listening gateway')
      .catch(listening.reject);
    const start = await listening.promise;
    await program.stop();
    return start;
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}
