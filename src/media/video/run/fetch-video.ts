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
  /** Downloads at once. */
  readonly max?: number;
  /** Milliseconds that only grow; default the clock of `performance`. */
  readonly elapsed?: () => number;
  /** A file is here. */
  readonly onStored: (task: Task) => Promise<void>;
  /** A download failed; it is tried again at a later look. */
  readonly onError: (error: unknown, task: Task) => void;
}

/** Downloads of finished videos, beside the looks that want them. */
export interface FetchVideos {
  /** Begins the download of a job's file, unless it runs, or as many run as may. */
  want(task: Task, place: number, job: string): void;
  /** Why the file of a job is not fetched any more: what came of it is of no use. null as long as it may come. */
  givenUp(task: Task, place: number): VideoResult['error'];
  /** Breaks off all downloads, and resolves when none runs. Another gateway, or the next start, takes them up. */
  close(): Promise<void>;
}

const DOWNLOADS_MAX = 8;
/** Of one provider, so that a slow one leaves room for the others. */
const OF_PROVIDER_MAX = 2;
/** A download that failed is not tried again so soon. After one that came and is broken, twice as late each time. */
const PAUSE_MS = 10_000;
/** A file may be there before it is whole. One that is broken so often is what the provider made. */
const BROKEN_MAX = 3;
const FAILED_MAX = 10_000;

/** Downloads of a file that failed. */
interface Failed {
  readonly again: number;
  /** How often what came was broken. */
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
  /** Downloads that run, by their providers. */
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

/** The file that came is no whole MP4 file. */
class BrokenFile extends Error {}

/** A provider's failure that its file is the reason of. */
const brokenFile = (what: string) => malformed(what, new BrokenFile(what));

function failed(error: unknown, before: number, at: number): Failed {
  // The call that asked its provider puts an error of its own around this one.
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    // One that is too large stays so.
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

/** Resolves with the seconds that the video plays; null where it does not say. */
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
