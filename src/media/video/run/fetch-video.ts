import { UpstreamFailure } from '#wire';
import { checkHead, malformed, toFailure } from '#wire/replies';
import type { Pipeline, Send } from '#gateway';
import { type Blobs, type BlobWriter, FileTooLarge, type Task } from '#tasks';
import { createMp4Scan, NotMp4 } from '../files/mp4.ts';
import { fileOf, type VideoResult } from '../video-task.ts';
import { contentOfJob } from '../wires/openai-videos.ts';
import { askProvider } from './ask-provider.ts';

interface FetchVideosOptions {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly blobs: Pick<Blobs, 'write'>;
  readonly timeoutMs: number;
  /** Most downloads that run at the same time. */
  readonly max?: number;
  /** A monotonic clock in milliseconds; default `performance.now`. */
  readonly elapsed?: () => number;
  /** Called when a file is stored. */
  readonly onStored: (task: Task) => Promise<void>;
  /** Called when a download has failed. A later look tries it again. */
  readonly onError: (error: unknown, task: Task) => void;
}

/** Downloads finished videos in the background. The looks at tasks ask for them. */
export interface FetchVideos {
  /**
   * Begins the download of a job's file. Does nothing if this download runs, if too many run, or if it failed too
   * recently.
   */
  want(task: Task, place: number, job: string): void;
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

const DOWNLOADS_MAX = 8;
/** Most downloads from one provider, so that a slow provider leaves room for others. */
const OF_PROVIDER_MAX = 2;
/** The pause before a failed download is tried again. After each broken file, it is twice as long. */
const PAUSE_MS = 10_000;
/** A provider may offer a file before it is complete. A file that is broken this often is given up. */
const BROKEN_MAX = 3;
const FAILED_MAX = 10_000;

/** The failed downloads of one file. */
interface Failed {
  readonly again: number;
  /** How often the file was broken. */
  readonly broken: number;
  readonly givenUp: VideoResult['error'];
}

export function createFetchVideos({
  max = DOWNLOADS_MAX,
  elapsed = () => performance.now(),
  onStored,
  onError,
  ...deps
}: FetchVideosOptions): FetchVideos {
  const running = new Map<string, Promise<void>>();
  /** The number of running downloads, by provider. */
  const ofProvider = new Map<string, number>();
  const failures = new Map<string, Failed>();
  const closing = new AbortController();

  async function fetchOne(task: Task, source: string, job: string): Promise<void> {
    try {
      const stored = await deps.blobs.write(
        { source, account: task.account, room: task.taskId },
        async (file, lost) => {
          const seconds = await download(deps, task, job, file, AbortSignal.any([closing.signal, lost]));
          return { type: 'video/mp4', notes: JSON.stringify({ seconds }) };
        },
      );
      if (stored === null) return;
      failures.delete(source);
      await onStored(task);
    } catch (error) {
      if (failures.size >= FAILED_MAX) failures.clear();
      failures.set(source, failed(error, failures.get(source)?.broken ?? 0, elapsed()));
      if (!closing.signal.aborted) onError(error, task);
    }
  }

  return {
    want(task, place, job) {
      const source = fileOf(task, place);
      if (closing.signal.aborted || running.size >= max || running.has(source)) return;
      const others = ofProvider.get(task.provider) ?? 0;
      if (others >= OF_PROVIDER_MAX || elapsed() < (failures.get(source)?.again ?? -Infinity)) return;
      ofProvider.set(task.provider, others + 1);
      running.set(
        source,
        fetchOne(task, source, job).finally(() => {
          running.delete(source);
          const left = ofProvider.get(task.provider)! - 1;
          if (left === 0) ofProvider.delete(task.provider);
          else ofProvider.set(task.provider, left);
        }),
      );
    },
    givenUp: (task, place) => failures.get(fileOf(task, place))?.givenUp ?? null,
    async close() {
      closing.abort(new Error('the gateway stops'));
      await Promise.all(running.values());
    },
  };
}

/** The file is not a complete MP4 file. */
class BrokenFile extends Error {}

/** A failure of the provider that its file has caused. */
const brokenFile = (what: string) => malformed(what, new BrokenFile(what));

function failed(error: unknown, before: number, at: number): Failed {
  // The call to the provider wraps its errors, so the causes are searched.
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    // A file that is too large stays too large, so it is given up at once.
    if (cause instanceof UpstreamFailure && cause.tooLarge)
      return { again: Infinity, broken: before, givenUp: { code: 'file_too_large', message: told(cause) } };
    if (!(cause instanceof BrokenFile)) continue;
    const broken = before + 1;
    if (broken < BROKEN_MAX) return { again: at + PAUSE_MS * 2 ** before, broken, givenUp: null };
    return { again: Infinity, broken, givenUp: { code: 'broken_file', message: told(cause) } };
  }
  return { again: at + PAUSE_MS, broken: before, givenUp: null };
}

const told = ({ message }: Error) => `The provider's video cannot be used: ${message}`;

/** Downloads a file. Resolves with its playing time in seconds; null if the file does not state it. */
async function download(
  { pipeline, timeoutMs }: Pick<FetchVideosOptions, 'pipeline' | 'timeoutMs'>,
  task: Task,
  job: string,
  file: BlobWriter,
  signal: AbortSignal,
): Promise<number | null> {
  const seconds = await askProvider({ pipeline, task, method: 'video/content', timeoutMs, signal }, (send, requestId) =>
    passOn(send, requestId, job, file, signal),
  );
  signal.throwIfAborted();
  return seconds;
}

async function passOn(
  send: Send,
  requestId: string,
  job: string,
  file: BlobWriter,
  signal: AbortSignal,
): Promise<number | null> {
  const exchange = send(contentOfJob(job, requestId));
  const reply = await exchange.head;
  if (reply.status >= 400) throw toFailure(reply.status, Buffer.alloc(0), undefined);
  checkHead(reply.status, reply.headers);
  const scan = createMp4Scan();
  const length = Number(reply.headers['content-length'] ?? NaN);
  try {
    for (let arrived = await reply.read(); arrived !== null; arrived = await reply.read()) {
      signal.throwIfAborted();
      for (const chunk of arrived) {
        scan.push(chunk);
        // oxlint-disable-next-line no-await-in-loop -- the disk holds the provider back
        await file.write(chunk);
      }
    }
    if (length >= 0 && length !== file.bytes) throw brokenFile('its file is shorter than it said');
    return scan.end();
  } catch (error) {
    if (error instanceof NotMp4) throw brokenFile(`its file is no MP4 file: ${error.message}`);
    if (error instanceof FileTooLarge)
      throw new UpstreamFailure(`its file: ${error.message}`, { retryable: false, blame: 'nobody', tooLarge: true });
    throw error;
  }
}
