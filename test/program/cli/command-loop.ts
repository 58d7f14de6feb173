import { createRequire, enableCompileCache } from 'node:module';
import type { CommandAnswer, CommandLine } from './command-process.ts';

/*
 * Runs command lines one after the other, as `bin/tollgate.mjs` does in a process for each: in the directory and with
 * the environment that each message names. What it would print goes back with the exit code.
 */

enableCompileCache(process.env['NODE_COMPILE_CACHE']);
process.argv[1] = createRequire(import.meta.url).resolve('../../../bin/tollgate.mjs');
const { runCli } = await import('#cli');

process.on('message', (line: CommandLine) => void run(line).then((answer) => process.send!(answer)));
// Its owner is gone.
process.on('disconnect', () => process.exit());
process.send!('ready');

async function run({ args, cwd, env }: CommandLine): Promise<CommandAnswer> {
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.exitCode = undefined;
  const said = { output: '', stdout: '' };
  const streams = { stdout: process.stdout.write, stderr: process.stderr.write };
  for (const name of ['stdout', 'stderr'] as const)
    process[name].write = (chunk: string | Uint8Array, encoding?: unknown, written?: unknown) => {
      const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
      said.output += text;
      if (name === 'stdout') said.stdout += text;
      const done = typeof encoding === 'function' ? encoding : written;
      if (typeof done === 'function') process.nextTick(done);
      return true;
    };
  try {
    return { code: await runCli([process.execPath, process.argv[1]!, ...args]), ...said };
  } finally {
    process.stdout.write = streams.stdout;
    process.stderr.write = streams.stderr;
  }
}
