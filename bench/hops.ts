import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { announcedPort, startProgram, type Program } from './program.ts';
import { modelsText, type Target, type TargetKind } from './targets.ts';

/** A server with only one of the gateway's ways to an upstream. */
export interface Hop extends Target {
  readonly pid: number;
  /** Other processes on the way. Their CPU time doesn't count as the gateway's. */
  readonly proxyPid: number | null;
  readonly otherGatewayPid: number | null;
}

export interface HopKind extends TargetKind {
  start(upstreamPort: number, nodeArgs?: readonly string[]): Promise<Hop>;
}

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const HOP = here('targets/hop.ts');

/** All ways. The others are compared with the first one. */
export const HOPS: readonly HopKind[] = [
  {
    name: 'hop-direct',
    title: 'straight to the upstream',
    start: (port, nodeArgs) => withAll((all) => direct(all, port, nodeArgs)),
  },
  {
    name: 'hop-tunnel',
    title: "through a provider's tunnel",
    start: (port, nodeArgs) => withAll((all) => tunnel(all, port, nodeArgs)),
  },
  {
    name: 'hop-peer',
    title: 'through another gateway and its tunnel',
    start: (port, nodeArgs) => withAll((all) => peer(all, port, nodeArgs)),
  },
];

/** Stops everything that was started, newest first, when the hop is stopped or if its start fails. */
async function withAll(start: (all: (() => unknown)[]) => Promise<Omit<Hop, 'stop'>>): Promise<Hop> {
  const all: (() => unknown)[] = [];
  const stop = async () => {
    for (const end of all.splice(0).reverse()) await end();
  };
  try {
    return { ...(await start(all)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function run(all: (() => unknown)[], args: readonly string[]): Program {
  const program = startProgram(args);
  all.push(() => program.stop());
  return program;
}

async function hopOf(program: Program): Promise<Omit<Hop, 'stop'>> {
  const port = await announcedPort(program);
  return { port, pid: program.pid, path: '/v1/chat/completions', headers: {}, proxyPid: null, otherGatewayPid: null };
}

async function direct(
  all: (() => unknown)[],
  upstreamPort: number,
  nodeArgs: readonly string[] = [],
): Promise<Omit<Hop, 'stop'>> {
  return hopOf(run(all, [...nodeArgs, HOP, '--upstream', `http://127.0.0.1:${upstreamPort}/v1`]));
}

async function tunnel(all: (() => unknown)[], upstreamPort: number, nodeArgs: readonly string[] = []) {
  const program = run(all, [...nodeArgs, HOP]);
  const hop = await hopOf(program);
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  all.push(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'provider.toml');
  writeFileSync(
    file,
    `[router]\nurl = "${lineOf(program, 'dial')}"\napi_key = "bench-key-of-the-provider"\n${modelsText(upstreamPort)}`,
  );
  const proxy = run(all, [here('../bin/tollgate.mjs'), 'provide', '--config', file]);
  await proxy.until(() => (proxy.output().includes('ready: calls can come') ? true : null), 'a ready proxy');
  return { ...hop, proxyPid: proxy.pid, peers: lineOf(program, 'peers') };
}

async function peer(
  all: (() => unknown)[],
  upstreamPort: number,
  nodeArgs: readonly string[] = [],
): Promise<Omit<Hop, 'stop'>> {
  const far = await tunnel(all, upstreamPort);
  const hop = await hopOf(run(all, [...nodeArgs, HOP, '--peer', far.peers]));
  return { ...hop, proxyPid: far.proxyPid, otherGatewayPid: far.pid };
}

function lineOf(program: Program, name: string): string {
  const found = new RegExp(`^\\{"${name}":"([^"]+)"\\}$`, 'm').exec(program.output());
  if (!found) throw new Error(`the hop did not say its ${name}:\n${program.output()}`);
  return found[1]!;
}
