/** Checks whether a gateway's memory grows with the number of answered calls. See `--help`. */
import { parseArgs } from 'node:util';
import { startGenerator } from './generator.ts';
import { MCP_TARGETS, mcpJobFor } from './mcp-targets.ts';
import { jobFor } from './measure.ts';
import { SMALL_CONNECTIONS } from './plan.ts';
import { announcedPort, residentBytes, startProgram } from './program.ts';
import { TARGETS } from './targets.ts';
import { TOOLS } from './upstream/mcp-replies.ts';
import { MODELS } from './upstream/replies.ts';

const HELP = `node bench/memory.ts [--load chat|tool] [--calls 1000000]
  Makes so many calls at ${SMALL_CONNECTIONS} connections. For each tenth of them it prints the least and the most
  resident memory of the gateway's process, which it reads once a second.
`;

const LOADS = {
  chat: { kinds: TARGETS, name: 'tollgate', job: jobFor, of: MODELS.small },
  tool: { kinds: MCP_TARGETS, name: 'mcp-tollgate', job: mcpJobFor, of: TOOLS.small },
} as const;

const MOMENT_MS = 1_000;
const MIB = 1024 * 1024;

const { values } = parseArgs({
  options: {
    load: { type: 'string', default: 'chat' },
    calls: { type: 'string', default: '1000000' },
    help: { type: 'boolean' },
  },
});
const load = Object.hasOwn(LOADS, values.load) ? LOADS[values.load as keyof typeof LOADS] : null;
const calls = Number(values.calls);
if (values.help || load === null || !Number.isSafeInteger(calls) || calls < 10) process.stdout.write(HELP);
else await measure(load);

async function measure({ kinds, name, job, of }: (typeof LOADS)[keyof typeof LOADS]): Promise<void> {
  const upstream = startProgram([new URL('upstream/main.ts', import.meta.url).pathname]);
  const generator = startGenerator();
  try {
    const target = await kinds.find((kind) => kind.name === name)!.start(await announcedPort(upstream));
    try {
      const shape = { kind: 'closed', connections: SMALL_CONNECTIONS, durationMs: MOMENT_MS } as const;
      let done = 0;
      for (let tenth = 1; tenth <= 10; tenth++) {
        let [least, most] = [Infinity, 0];
        while (done < (calls * tenth) / 10) {
          const moment = await generator.run(job(target, of, shape));
          if (moment.errors > 0) throw new Error(moment.firstError);
          done += moment.calls;
          const resident = residentBytes(target.pid!) / MIB;
          [least, most] = [Math.min(least, resident), Math.max(most, resident)];
        }
        if (most > 0)
          process.stdout.write(`${String(done).padStart(9)} calls  ${least.toFixed(0)} to ${most.toFixed(0)} MiB\n`);
      }
    } finally {
      await target.stop();
    }
  } finally {
    generator.stop();
    await upstream.stop();
  }
}
