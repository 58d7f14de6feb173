// scratch: CPU by thread
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startGenerator } from './generator.ts';
import { jobFor, warmUp } from './measure.ts';
import { announcedPort, startProgram } from './program.ts';
import { TARGETS } from './targets.ts';
import { BURST_EVENTS, MODELS } from './upstream/replies.ts';
const [name = 'tollgate', load = 'small', seconds = '4', ...nodeArgs] = process.argv.slice(2);
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const upstream = startProgram([here('upstream/main.ts')]);
const upstreamPort = await announcedPort(upstream);
const generator = await startGenerator();
const kind = TARGETS.find((k) => k.name === name)!;
const target = await kind.start(upstreamPort, nodeArgs);
const threads = (pid: number) => {
  const out: Record<string, [number, number]> = {};
  for (const t of readdirSync(`/proc/${pid}/task`)) {
    const stat = readFileSync(`/proc/${pid}/task/${t}/stat`, 'utf8');
    const nm = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
    const f = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const key = nm;
    out[key] ??= [0, 0];
    out[key][0] += Number(f[11]);
    out[key][1] += Number(f[12]);
  }
  return out;
};
const model = load === 'burst' ? MODELS.burst : MODELS.small;
await warmUp(generator, target, 1500);
for (let i = 0; i < 2; i++) {
  const a = threads(target.pid!);
  const connections = Number(process.env['C'] ?? (load === 'burst' ? 8 : 32));
  const shape = load === 'rate' ? ({ kind: 'open', perSecond: 500, durationMs: Number(seconds) * 1000 } as const) : ({ kind: 'closed', connections, durationMs: Number(seconds) * 1000 } as const);
  const r = await generator.run(jobFor(target, model, shape));
  const b = threads(target.pid!);
  const units = r.calls * (load === 'burst' ? BURST_EVENTS : 1);
  let total = 0;
  const rows = Object.keys(b).map((k) => { const u = ((b[k]![0] - (a[k]?.[0] ?? 0)) * 10000) / units, s = ((b[k]![1] - (a[k]?.[1] ?? 0)) * 10000) / units; total += u + s; return [k, u, s] as const; }).filter((x) => x[1] + x[2] > 0.005);
  console.log(`${name} ${load}: ${r.calls} calls ${r.errors} err, total ${total.toFixed(2)} µs |`, rows.map(([k, u, s]) => `${k} ${u.toFixed(2)}u+${s.toFixed(2)}s`).join(' | '));
}
await target.stop();
generator.stop();
await upstream.stop();
process.exit(0);
