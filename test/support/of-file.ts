import { afterAll, beforeAll, expect } from 'vitest';
import { startSpine, type Spine, type SpineOptions } from './spine.ts';

/**
 * What is started before the cases of a file and stopped behind them, in the opposite order. It is there from the first
 * case on: until then it has no members.
 */
export function ofFile<T extends object>(start: () => T | Promise<T>, stop: (one: T) => unknown): T {
  let started: T | undefined;
  beforeAll(async () => {
    started = await start();
  });
  afterAll(async () => {
    if (started !== undefined) await stop(started);
  });
  const real = (): T => {
    if (started === undefined) throw new Error('it is started before the first case, and not while the file is read');
    return started;
  };
  return new Proxy({} as T, {
    get(_, key) {
      const value: unknown = Reflect.get(real(), key);
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(real()) : value;
    },
    set: (_, key, value) => Reflect.set(real(), key, value),
    has: (_, key) => Reflect.has(real(), key),
  });
}

/** One gateway for the cases of a file, with an audit behind the last. */
export const spineOfFile = (options: () => SpineOptions | Promise<SpineOptions> = () => ({})): Spine =>
  ofFile(
    async () => startSpine(await options()),
    async (spine) => {
      try {
        expect(await spine.faults()).toEqual([]);
      } finally {
        await spine.stop();
      }
    },
  );
