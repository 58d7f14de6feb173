import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';

interface ReadingModule {
  run(args: unknown): Ran | Promise<Ran>;
}

interface Ran {
  readonly value: unknown;
  readonly transfer: ArrayBuffer[];
}

export interface ReadingJob {
  readonly module: string;
  readonly args: unknown;
}

export type ReadingAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

const NICENESS = 10;
// If all cores are busy, the main event loop goes first. Linux applies the priority to this thread only; other systems
// would apply it to the whole process.
if (process.platform === 'linux') setPriority(NICENESS);

const modules = new Map<string, ReadingModule>();

parentPort?.on('message', async ({ module, args }: ReadingJob) => {
  try {
    let readingModule = modules.get(module);
    if (!readingModule) modules.set(module, (readingModule = (await import(module)) as ReadingModule));
    const { value, transfer } = await readingModule.run(args);
    parentPort!.postMessage({ ok: true, value } satisfies ReadingAnswer, transfer);
  } catch (error) {
    parentPort!.postMessage({
      ok: false,
      message: error instanceof Error ? error.message : String(error),
    } satisfies ReadingAnswer);
  }
});
