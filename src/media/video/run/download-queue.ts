import { Shares } from '#wire';

export interface QueuedFile {
  readonly source: string;
  readonly account: string;
  readonly provider: string;
  /** The provider dialled in: it is not from the operator's own file. */
  readonly dialledIn: boolean;
}

interface DownloadQueueOptions<W extends QueuedFile> {
  /** Downloads a file, and counts the bytes that arrive. Never rejects. It ends soon after `ended` aborts. */
  readonly run: (file: W, ended: AbortSignal, course: { bytes: number }) => Promise<void>;
  readonly max?: number;
  readonly slowMs?: number;
  readonly slowMax?: number;
  /** A monotonic clock in milliseconds. */
  readonly elapsed: () => number;
}

/** Files that wait for a slot, and the downloads that run. */
interface DownloadQueue<W extends QueuedFile> {
  /** Begins a download as soon as it is its turn. Does nothing if the file waits or is downloaded already. */
  add(file: W): void;
  has(source: string): boolean;
  /** Forgets what waits, aborts what runs with `reason`, and resolves when all of it has stopped. */
  close(reason: Error): Promise<void>;
}

/** Downloads that hold a slot. */
const SLOTS = 8;
const SLOTS_OF_ACCOUNT = 2;
const SLOTS_OF_PROVIDER = 2;
/**
 * A download that takes longer gives its slot to the next one, and goes on without a slot. So nobody waits long for a
 * slot, however slowly the files of others come. This is long enough for most videos, over 10 Mbit/s.
 */
const SLOW_MS = 10_000;
/** Slow downloads. Each costs a connection and little else. */
const SLOW_MAX = 24;
/** More files than a gateway ever has to fetch. A file that is left out is added again by the next look at its task. */
const WAITING_MAX = 10_000;

/** The download was ended so that those of others can go on. It waits for its next turn. */
class MadeRoom extends Error {
  override readonly name = 'MadeRoom';
}

export const hasMadeRoom = (signal: AbortSignal): boolean => signal.reason instanceof MadeRoom;

interface RunningDownload<W> {
  readonly file: W;
  readonly ended: AbortController;
  readonly course: { bytes: number };
  readonly startedAt: number;
  slow: boolean;
  done: Promise<void>;
}

/**
 * Shares out downloads. Accounts have their turns in rotation. An account and a provider hold at most two slots each,
 * and all providers that dialled in at most half of the slots. A download that takes long gives its slot up. If too
 * many downloads take long, one ends: the slowest of the account and the provider that have the most of them.
 */
export function createDownloadQueue<W extends QueuedFile>(options: DownloadQueueOptions<W>): DownloadQueue<W> {
  const { run, max = SLOTS, slowMs = SLOW_MS, slowMax = SLOW_MAX, elapsed } = options;
  /** By account, in the order of their turns. An account without a waiting file is absent. */
  const waiting = new Map<string, Map<string, W>>();
  const places = new Shares(WAITING_MAX);
  const running = new Map<string, RunningDownload<W>>();
  let closed = false;

  const countHolding = (is: (file: W) => boolean): number => {
    let count = 0;
    for (const { slow, file } of running.values()) if (!slow && is(file)) count += 1;
    return count;
  };

  const mayRun = ({ provider, dialledIn }: W): boolean =>
    countHolding((other) => other.provider === provider) < SLOTS_OF_PROVIDER &&
    (!dialledIn || countHolding((other) => other.dialledIn) < max / 2);

  /** Takes the next file out of the queue; null if nothing may begin. */
  const takeNext = (): W | null => {
    for (const [account, files] of waiting) {
      if (countHolding((other) => other.account === account) >= SLOTS_OF_ACCOUNT) continue;
      for (const [source, file] of files) {
        if (!mayRun(file)) continue;
        files.delete(source);
        places.leave(account);
        waiting.delete(account);
        if (files.size > 0) waiting.set(account, files);
        return file;
      }
    }
    return null;
  };

  const begin = (file: W): void => {
    const one: RunningDownload<W> = {
      file,
      ended: new AbortController(),
      course: { bytes: 0 },
      startedAt: elapsed(),
      slow: false,
      done: Promise.resolve(),
    };
    running.set(file.source, one);
    const timer = setTimeout(() => {
      one.slow = true;
      endSlowest();
      beginNext();
    }, slowMs);
    one.done = run(file, one.ended.signal, one.course).finally(() => {
      clearTimeout(timer);
      running.delete(file.source);
      if (hasMadeRoom(one.ended.signal)) add(file);
      beginNext();
    });
  };

  const beginNext = (): void => {
    while (places.all > 0 && countHolding(() => true) < max) {
      const next = takeNext();
      if (next === null) return;
      begin(next);
    }
  };

  const endSlowest = (): void => {
    const slow = [...running.values()].filter((one) => one.slow && !one.ended.signal.aborted);
    if (slow.length <= slowMax) return;
    const accounts = Map.groupBy(slow, ({ file }) => file.account);
    const providers = Map.groupBy(slow, ({ file }) => file.provider);
    const now = elapsed();
    const rank = ({ file, course, startedAt }: RunningDownload<W>) =>
      [
        -accounts.get(file.account)!.length,
        -providers.get(file.provider)!.length,
        course.bytes / Math.max(1, now - startedAt),
      ] as const;
    const [first] = slow.toSorted((a, b) => {
      const [x, y] = [rank(a), rank(b)];
      return x[0] - y[0] || x[1] - y[1] || x[2] - y[2];
    });
    first!.ended.abort(new MadeRoom('the download takes long, and the downloads of others need room'));
  };

  function add(file: W): void {
    const { source, account } = file;
    if (closed || running.has(source) || !places.mayTake(account)) return;
    const files = waiting.get(account) ?? new Map<string, W>();
    if (files.has(source)) return;
    files.set(source, file);
    waiting.set(account, files);
    places.take(account);
  }

  return {
    add(file) {
      add(file);
      beginNext();
    },
    has: (source) => running.has(source) || waiting.values().some((files) => files.has(source)),
    async close(reason) {
      closed = true;
      waiting.clear();
      for (const { ended } of running.values()) ended.abort(reason);
      await Promise.all([...running.values()].map(({ done }) => done));
    },
  };
}
