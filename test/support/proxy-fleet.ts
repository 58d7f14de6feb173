import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { until } from './tunnel-spine.ts';
import type { FleetCommand, FleetEvent, FleetSettings } from './proxies-child.ts';

/** Proxies of many providers, in a few child processes. They end with this process at the latest. */
export interface ProxyFleet {
  readonly size: number;
  start(index: number): void;
  /** Ends the proxy like SIGKILL. Its process goes on. */
  kill(index: number): void;
  /** Drains the proxy like SIGTERM. */
  drain(index: number): void;
  /** Sends SIGKILL to one of the processes. All its proxies are started again in a new process. */
  killProcess(which: number): Promise<void>;
  /** Number of running proxies that are ready for calls. */
  ready(): number;
  isReady(index: number): boolean;
  allReady(ms: number): Promise<number>;
  /** The times of all dials, and of all moments when a proxy became ready, in the order of the reports. */
  readonly dials: readonly number[];
  readonly readies: readonly { readonly index: number; readonly at: number }[];
  /** Everything that must not happen to a proxy. */
  readonly failures: readonly FleetEvent[];
  /** Number of starts of a proxy. */
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
  /** By proxy, the number of its start that is ready. */
  const ready = new Map<number, number>();
  /** Proxies that were killed or drained and not started again. */
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
    // Each process counts the starts from 1.
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
