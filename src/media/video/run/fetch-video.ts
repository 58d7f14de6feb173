import { GatewayError } from '#errors';
import { UpstreamFailure } from '#wire';
import { checkHead, malformed, toFailure } from '#wire/replies';
import type { Pipeline, Send } from '#call';
import { type Blobs, type BlobWriter, FileTooLarge } from '#files';
import type { Task } from '#tasks';
import { createMp4Scan, type Mp4Facts, NotMp4 } from '../mp4.ts';
import { fileOf, notesOf, type VideoResult } from '../video-task.ts';
import { contentOfJob } from '../openai-videos.ts';
import { askProvider } from './ask-provider.ts';
import { createDownloadQueue, hasMadeRoom, type QueuedFile } from './download-queue.ts';

interface FetchVideosOptions {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly blobs: Pick<Blobs, 'write'>;
  readonly timeoutMs: number;
  /** A file that comes more slowly than this, in bytes a second, is not waited for. 0: no bound. */
  readonly leastPace: number;
  readonly max?: number;
  readonly slowMs?: number;
  readonly slowMax?: number;
  readonly elapsed?: () => number;
  /** Whether the file of a task is still needed when its download can begin. Default: it is. */
  readonly isNeeded?: (task: Task) => Promise<boolean>;
  readonly onStored: (task: Task) => Promise<void>;
  /** Called when a download has failed. A later look tries it again. */
  readonly onError: (error: unknown, task: Task) => void;
}

/** Downloads finished videos in the background. The looks at tasks ask for them. */
export interface FetchVideos {
  /**
   * Downloads a job's file as soon as it is its turn. Does nothing if the file waits for its turn, if its download
   * runs, or if it failed too recently.
   */
  want(task: Task, place: number, job: string): void;
  /** Whether the file of a job waits for its turn, or its download runs. */
  awaits(task: Task, place: number): boolean;
  /**
   * Why the file of a job is not fetched any more, because the provider's file is of no use; null as long as the
   * file may come.
   */
  givenUp(task: Task, place: number): VideoResult['error'];
  /**
   * Aborts all downloads, and resolves when all have stopped. Another gateway, or this one after its next start,
   * begins them again.
   */
  close(): Promise<void>;
}

/**
 * The pause before a failed download is tried again. After each file that was broken, slow or too large for its room,
 * it is twice as long.
 */
const PAUSE_MS = 10_000;
const PAUSE_MS_MAX = 5 * 60_000;
/** A provider may offer a file before it is complete. A file that is broken this often is given up. */
const BROKEN_MAX = 3;
const FAILED_MAX = 10_000;

/** The code of a file that is too large to be kept, although its provider has made it. */
export const FILE_TOO_LARGE = 'file_too_large';

interface Failed {
  readonly again: number;
  readonly broken: number;
  /** How often the file came too slowly, or was larger than its room while the store was full. */
  readonly unfit: number;
  readonly givenUp: VideoResult['error'];
}

const NONE_FAILED: Failed = { again: -Infinity, broken: 0, unfit: 0, givenUp: null };

interface WantedFile extends QueuedFile {
  readonly task: Task;
  readonly job: string;
}

export function createFetchVideos(options: FetchVideosOptions): FetchVideos {
  const { elapsed = () => performance.now(), isNeeded = async () => true, onStored, onError, blobs } = options;
  const failures = new Map<string, Failed>();
  let closing = false;

  async function fetchOne(
    { task, source, job }: WantedFile,
    ended: AbortSignal,
    course: { bytes: number },
  ): Promise<void> {
    try {
      if (!(await isNeeded(task))) return;
      const stored = await blobs.write({ source, account: task.account, room: task.taskId }, async (file, lost) => {
        const facts = await download(options, task, job, file, AbortSignal.any([ended, lost]), course);
        return { type: 'video/mp4', notes: JSON.stringify(facts) };
      });
      if (stored === null) return;
      failures.delete(source);
      await onStored(task);
    } catch (error) {
      // Its download begins again when it is its turn.
      if (hasMadeRoom(ended)) return;
      if (failures.size >= FAILED_MAX) failures.clear();
      failures.set(source, failed(error, failures.get(source) ?? NONE_FAILED, elapsed()));
      if (!closing) onError(error, task);
    }
  }

  const queue = createDownloadQueue<WantedFile>({
    run: fetchOne,
    elapsed,
    ...(options.max === undefined ? {} : { max: options.max }),
    ...(options.slowMs === undefined ? {} : { slowMs: options.slowMs }),
    ...(options.slowMax === undefined ? {} : { slowMax: options.slowMax }),
  });

  return {
    want(task, place, job) {
      const source = fileOf(task, place);
      if (elapsed() < (failures.get(source) ?? NONE_FAILED).again) return;
      const { account, provider } = task;
      queue.add({ source, account, provider, dialledIn: notesOf(task).dialledIn === true, task, job });
    },
    awaits: (task, place) => queue.has(fileOf(task, place)),
    givenUp: (task, place) => failures.get(fileOf(task, place))?.givenUp ?? null,
    close() {
      closing = true;
      return queue.close(new Error('the gateway stops'));
    },
  };
}

class BrokenFile extends Error {}

/** A failure of the provider that its file has caused. */
const brokenFile = (what: string) => malformed(what, new BrokenFile(what));

/** The file needs more room than was reserved for it, and the store is full. */
const isFull = (error: Error): boolean =>
  error instanceof GatewayError && (error.code === 'rate_limit_exceeded' || error.code === 'service_unavailable');

const pauseAfter = (times: number) => Math.min(PAUSE_MS_MAX, PAUSE_MS * 2 ** times);

function failed(error: unknown, before: Failed, at: number): Failed {
  // The call to the provider wraps its errors, so the causes are searched.
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    // A file that is too large stays too large, so it is given up at once.
    if (cause instanceof UpstreamFailure && cause.tooLarge)
      return { ...before, again: Infinity, givenUp: { code: FILE_TOO_LARGE, message: failureText(cause) } };
    if (cause instanceof TooSlow || isFull(cause))
      return { ...before, again: at + pauseAfter(before.unfit), unfit: before.unfit + 1 };
    if (!(cause instanceof BrokenFile)) continue;
    const broken = before.broken + 1;
    if (broken < BROKEN_MAX) return { ...before, again: at + pauseAfter(before.broken), broken };
    return { ...before, again: Infinity, broken, givenUp: { code: 'broken_file', message: failureText(cause) } };
  }
  return { ...before, again: at + PAUSE_MS };
}

const failureText = ({ message }: Error) => `The provider's video cannot be used: ${message}`;

async function download(
  options: Pick<FetchVideosOptions, 'pipeline' | 'timeoutMs' | 'leastPace'>,
  task: Task,
  job: string,
  file: BlobWriter,
  ended: AbortSignal,
  course: { bytes: number },
): Promise<Mp4Facts> {
  const { pipeline, timeoutMs } = options;
  const pace = watchPace(options, course);
  const signal = AbortSignal.any([ended, pace.tooSlow]);
  try {
    const facts = await askProvider({ pipeline, task, method: 'video/content', timeoutMs, signal }, (send, requestId) =>
      passOn(send, requestId, job, file, signal, pace),
    );
    signal.throwIfAborted();
    return facts;
  } catch (error) {
    // The reason says more than the error of a request that was ended.
    signal.throwIfAborted();
    throw error;
  } finally {
    pace.stop();
  }
}

async function passOn(
  send: Send,
  requestId: string,
  job: string,
  file: BlobWriter,
  signal: AbortSignal,
  pace: Pace,
): Promise<Mp4Facts> {
  const exchange = send(contentOfJob(job, requestId));
  const reply = await exchange.head;
  if (reply.status >= 400) throw toFailure(reply.status, Buffer.alloc(0), undefined);
  checkHead(reply.status, reply.headers);
  const scan = createMp4Scan();
  const length = Number(reply.headers['content-length'] ?? NaN);
  const next = async () => {
    pace.waits(true);
    const arrived = await reply.read();
    pace.waits(false);
    return arrived;
  };
  pace.begin();
  try {
    for (let arrived = await next(); arrived !== null; arrived = await next()) {
      signal.throwIfAborted();
      for (const chunk of arrived) {
        pace.arrived(chunk.byteLength);
        scan.push(chunk);
        await file.write(chunk);
      }
    }
    if (length >= 0 && length !== file.bytes) throw brokenFile('its file is shorter than it said');
    return scan.end();
  } catch (error) {
    if (error instanceof NotMp4) throw brokenFile(`its file is no MP4 file: ${error.message}`);
    if (error instanceof FileTooLarge)
      throw new UpstreamFailure(`its file: ${error.message}`, {
        retryable: false,
        attributedTo: 'nobody',
        tooLarge: true,
      });
    throw error;
  }
}

class TooSlow extends Error {}

const PACE_MS = 30_000;

interface Pace {
  /** Aborts with TooSlow. */
  readonly tooSlow: AbortSignal;
  /** The file begins to arrive. Before that, nothing is measured. */
  begin(): void;
  /** The gateway waits for the provider, or does not: the time of its own disk or store does not count. */
  waits(isWaiting: boolean): void;
  arrived(bytes: number): void;
  stop(): void;
}

interface PaceOptions {
  /** In bytes a second; 0 for none. */
  readonly leastPace: number;
  readonly paceMs?: number;
}

/** Measures how fast a file comes, over one period after the other. `course` gets the bytes that have arrived. */
export function watchPace({ leastPace, paceMs = PACE_MS }: PaceOptions, course: { bytes: number }): Pace {
  const aborting = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let [bytes, waitedMs] = [0, 0];
  let since: number | null = null;
  const note = () => {
    const at = performance.now();
    if (since !== null) waitedMs += at - since;
    return at;
  };
  const check = () => {
    const at = note();
    // A period that was spent on the gateway's own disk or store says nothing about the provider.
    if (waitedMs >= paceMs / 2 && bytes < (leastPace * waitedMs) / 1000)
      aborting.abort(new TooSlow(`its file comes more slowly than ${leastPace} bytes a second`));
    [bytes, waitedMs] = [0, 0];
    if (since !== null) since = at;
  };
  return {
    tooSlow: aborting.signal,
    begin() {
      if (leastPace > 0) timer = setInterval(check, paceMs);
    },
    waits(isWaiting) {
      const at = note();
      since = isWaiting ? at : null;
    },
    arrived(more) {
      bytes += more;
      course.bytes += more;
    },
    stop: () => clearInterval(timer),
  };
}
