import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { until } from './tunnel-spine.ts';
import type { FleetCommand, FleetEvent, FleetSettings } from './proxies-child.ts';

/** Proxies of many providers, in a few processes of their own. They end with this process at the latest. */
export interface ProxyFleet {
  readonly size: number;
  start(index: number): void;
  /** As SIGKILL does; its process goes on. */
  kill(index: number): void;
  /** As SIGTERM does. */
  drain(index: number): void;
  /** SIGKILL to one of the processes and all proxies in it, which are then started again in a new one. */
  killProcess(which: number): Promise<void>;
  /** Proxies that are up and say that calls can come. */
  ready(): number;
  isReady(index: number): boolean;
  allReady(ms: number): Promise<number>;
  /** Times of all dials, and of all times that a proxy became ready, in order of their telling. */
  readonly dials: readonly number[];
  readonly readies: readonly { readonly index: number; readonly at: number }[];
  /** Whatever should not have happened to a proxy. */
  readonly failures: readonly FleetEvent[];
  /** Starts of each proxy. */
  lives(index: number): number;
  stop(): Promise<void>;
}

const PROGRAM = resolve(import.meta.dirname, 'proxies-child.ts');

export async function startFleet(
  options: FleetSettings & { readonly size: number; readonly processes: number },
): Promise<ProxyFleet> {
  const { size, processes, ...settings } = options;
  const dials: number[] = [];
  const readies: { index: number; at: number }[] = [];
  const failures: FleetEvent[] = [];
  const lives = new Map<number, number>();
  /** By index, the life that is ready. */
  const ready = new Map<number, number>();
  /** Killed or drained, and not started again. */
  const down = new Set<number>();
  const processOf = (index: number) => index % processes;
  const ofProcess = (which: number) =>
    Array.from({ length: size }, (_, index) => index).filter((index) => processOf(index) === which);

  const take = (event: FleetEvent, base: number): void => {
    const { index, at } = event;
    const life = base + event.life;
    if (event.event === 'dial') dials.push(at);
    if (event.event === 'failed') failures.push(event);
    if (life !== lives.get(index) || down.has(index)) return;
    if (event.event === 'ready') {
      ready.set(index, life);
      readies.push({ index, at });
    } else if (event.event === 'lost') ready.delete(index);
  };

  const begin = async (which: number): Promise<ChildProcess> => {
    const child = fork(PROGRAM, [], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    // Lives are counted from 1 in each process.
    const base = new Map(ofProcess(which).map((index) => [index, lives.get(index) ?? 0]));
    await once(child, 'message');
    child.on('message', (event: FleetEvent) => take(event, base.get(event.index) ?? 0));
    child.send({ do: 'settings', settings } satisfies FleetCommand);
    return child;
  };
  const children = await Promise.all(Array.from({ length: processes }, (_, which) => begin(which)));
  const send = (command: Exclude<FleetCommand, { do: 'settings' }>) => {
    const child = children[processOf(command.index)]!;
    if (child.connected) child.send(command);
  };

  const fleet: ProxyFleet = {
    size,
    dials,
    readies,
    failures,
    start(index) {
      lives.set(index, (lives.get(index) ?? 0) + 1);
      ready.delete(index);
      down.delete(index);
      send({ do: 'start', index });
    },
    kill(index) {
      down.add(index);
      ready.delete(index);
      send({ do: 'kill', index });
    },
    drain(index) {
      down.add(index);
      ready.delete(index);
      send({ do: 'drain', index });
    },
    async killProcess(which) {
      const child = children[which]!;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      for (const index of ofProcess(which)) ready.delete(index);
      await gone;
      children[which] = await begin(which);
      for (const index of ofProcess(which)) fleet.start(index);
    },
    ready: () => ready.size,
    isReady: (index) => ready.has(index),
    allReady: (ms) => until(() => ready.size === size, ms),
    lives: (index) => lives.get(index) ?? 0,
    async stop() {
      await Promise.all(
        children.map(async (child) => {
          if (child.exitCode !== null || child.signalCode !== null) return;
          const gone = once(child, 'exit');
          child.kill('SIGKILL');
          await gone;
        }),
      );
    },
  };
  return fleet;
}
