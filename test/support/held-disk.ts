import fs from 'node:fs';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';

type Write = (file: number, bytes: Buffer, ...rest: unknown[]) => void;

/** Holds every write of a record until `release`, as a disk that does not answer. Other files are written as usual. */
export function holdWrites(dataDir: string) {
  const folder = join(dataDir, 'ledger');
  const isSegment = (file: number) => {
    const { ino } = fs.fstatSync(file);
    return readdirSync(folder).some((name) => fs.statSync(join(folder, name)).ino === ino);
  };
  const held: (() => void)[] = [];
  const real = fs.write as unknown as Write;
  const spy = vi.spyOn(fs, 'write').mockImplementation(((...args: Parameters<Write>) => {
    if (isSegment(args[0]) && args[1][0] !== 0) held.push(() => real(...args));
    else real(...args);
  }) as never);
  const release = () => {
    spy.mockRestore();
    for (const write of held.splice(0)) write();
  };
  return { held, release };
}

/** Whether a promise is still open after a while in which everything but the disk had time. */
export async function isWaiting(promise: Promise<unknown>): Promise<boolean> {
  const ended = Symbol('ended');
  const late = new Promise((resolve) => setTimeout(resolve, 50));
  return (await Promise.race([promise.then(() => ended), late])) !== ended;
}
