import { UpstreamFailure } from '#wire';
import type { Pipeline, Send } from '#call';
import { flagBeyond, NO_FLAGS } from '#call/flags';
import type { Blob, Blobs } from '#files';
import { POLL_MS, type TaskPoll, type PollAtExpiry, type Observation, type Task } from '#tasks';
import {
  billedSeconds,
  filesOf,
  notesOf,
  resultToText,
  TIME_LIMIT,
  type VideoNotes,
  type VideoResult,
} from '../video-task.ts';
import { videoVariant } from '../video-price.ts';
import { pollJob, type SeenJob, seenJob } from '../openai-videos.ts';
import { askProvider, askForJson } from './ask-provider.ts';
import { FILE_TOO_LARGE, type FetchVideos } from './fetch-video.ts';

interface PollVideosOptions {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly blobs: Pick<Blobs, 'find'>;
  readonly fetching: Pick<FetchVideos, 'want' | 'givenUp' | 'awaits'>;
  /** Called before the end of a task is noted; it may be called again for the same end. */
  readonly onEnd: (task: Task, result: VideoResult) => Promise<void>;
  /** Called when a task ends while these jobs still run. Nobody will fetch their files. */
  readonly onLeft: (task: Task, jobs: readonly string[]) => void;
  readonly onSeen: (task: Task, jobs: readonly SeenJob[]) => void;
  readonly onUnseen: (error: unknown, task: Task) => void;
  readonly now: () => number;
}

/** How long a provider has for its answers. This is shorter than a whole look, because a late result is ignored. */
const ANSWER_MS = POLL_MS - 2_000;
/** How long a poll waits for single jobs. It is shorter, so that the answers about the others count. */
const JOB_MS = ANSWER_MS - 1_000;
/** A job that its provider does not know this long after its creation is lost. */
const LOST_MS = 60_000;

/** The looks at a task of videos. Only the files that are here at its end are charged. */
interface PollVideos {
  /**
   * Looks at the jobs of a task, and has the files of finished jobs fetched. The task ends when every job has ended,
   * and the file of every finished job is here. When the time of the videos is over, it ends with the files that are
   * here, unless a file of a finished job waits for its turn or is on its way: the provider has done its part.
   */
  readonly poll: TaskPoll;
  /** Ends a task whose time is over with the files that are here. null without files. Does not ask the provider. */
  readonly pollAtExpiry: PollAtExpiry;
}

export function createPollVideos(options: PollVideosOptions): PollVideos {
  const { blobs, fetching, onEnd, onLeft, onSeen, onUnseen, now } = options;

  /** The stored files of a task by the place of their job, in this order. */
  const filesHere = async (task: Task): Promise<ReadonlyMap<number, Blob>> => {
    const sources = filesOf(task);
    const stored = (await blobs.find(sources)).filter(({ state }) => state === 'stored');
    return new Map(stored.map((blob) => [sources.indexOf(blob.source), blob]));
  };

  const poll: TaskPoll = async (task, signal) => {
    const notes = notesOf(task);
    const here = await filesHere(task);
    const places = missingPlaces(notes, here);
    let seen: Seen = places.map(() => null);
    try {
      seen = await pollJobs(options, task, notes, places, signal);
    } catch (error) {
      onUnseen(error, task);
    }
    const known = seen.filter((job) => job !== null);
    if (known.length > 0) onSeen(task, known);
    // The result of a poll that was ended is ignored, so it must not tell the callback of an end.
    if (signal.aborted) return null;
    if (seen.every((job) => job?.state === 'failed')) return end(task, notes, here, known, onEnd);
    if (now() >= (notes.dueAt ?? Infinity) && !places.some((place) => fetching.awaits(task, place)))
      return endWithoutRest(task, notes, here, known);
    return known.length === 0 ? null : goesOn(task, known, here.size);
  };

  /** Ends a task whose time is over. Its other jobs are cancelled. */
  const endWithoutRest = async (
    task: Task,
    notes: VideoNotes,
    here: ReadonlyMap<number, Blob>,
    seen: readonly SeenJob[],
  ): Promise<Observation> => {
    const observation = await end(task, notes, here, here.size === 0 ? [...seen, TOO_LATE] : seen, onEnd);
    onLeft(
      task,
      missingPlaces(notes, here).map((place) => notes.jobs[place]!),
    );
    return observation;
  };

  return {
    poll,
    async pollAtExpiry(task) {
      const notes = notesOf(task);
      const here = await filesHere(task);
      return here.size === 0 ? null : endWithoutRest(task, notes, here, []);
    },
  };
}

const missingPlaces = ({ jobs }: VideoNotes, here: ReadonlyMap<number, Blob>): readonly number[] =>
  jobs.map((_, place) => place).filter((place) => !here.has(place));

/** The jobs that a poll has asked for; null for a job whose provider has not answered. */
type Seen = readonly (SeenJob | null)[];

/**
 * Asks for all jobs at once, and has the files of finished ones fetched. A job without an answer does not hold up the
 * others. Rejects if there is no answer at all.
 */
async function pollJobs(
  options: PollVideosOptions,
  task: Task,
  { jobs }: VideoNotes,
  places: readonly number[],
  signal: AbortSignal,
): Promise<Seen> {
  if (places.length === 0) return [];
  const { pipeline, onUnseen } = options;
  return askProvider(
    { pipeline, task, method: 'video/retrieve', timeoutMs: ANSWER_MS, signal },
    async (send, requestId) => {
      const seen: (SeenJob | null)[] = places.map(() => null);
      let failure: unknown = new Error('the provider did not answer about each of its jobs');
      const asking = places.map(async (place, at) => {
        try {
          seen[at] = await pollOne(options, task, place, jobs[place]!, send, requestId);
        } catch (error) {
          failure = error;
          throw error;
        }
      });
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, JOB_MS);
      await Promise.race([Promise.allSettled(asking), late.promise]);
      clearTimeout(timer);
      if (seen.every((job) => job === null)) await Promise.all(asking);
      else if (seen.includes(null)) onUnseen(failure, task);
      return seen;
    },
  );
}

async function pollOne(
  { fetching, now }: Pick<PollVideosOptions, 'fetching' | 'now'>,
  task: Task,
  place: number,
  job: string,
  send: Send,
  requestId: string,
): Promise<SeenJob> {
  try {
    const seen = seenJob(await askForJson(send, pollJob(job, requestId)));
    if (seen.state !== 'completed') return seen;
    const error = fetching.givenUp(task, place);
    if (error !== null) return { ...seen, state: 'failed', error };
    fetching.want(task, place, job);
    return seen;
  } catch (error) {
    const isUnknown = error instanceof UpstreamFailure && error.status === 404;
    if (!isUnknown || now() - task.createdAt <= LOST_MS) throw error;
    return LOST;
  }
}

const LOST: SeenJob = {
  state: 'failed',
  progress: null,
  error: { code: 'job_lost', message: 'The provider no longer knows the job of this video' },
  raw: {},
};

const TOO_LATE: SeenJob = { ...LOST, error: TIME_LIMIT };

/** The state of a running task. It only moves forward, whatever the provider says. */
function goesOn({ state }: Task, seen: readonly SeenJob[], here: number): Observation {
  const waits = here === 0 && seen.every((job) => job.state === 'queued' || job.state === 'failed');
  return { state: waits && state === 'queued' ? 'queued' : 'generating', end: null };
}

const ONLY_UNKEPT = { state: 'failed', end: 'cut', output: true } as const;

async function end(
  task: Task,
  notes: VideoNotes,
  here: ReadonlyMap<number, Blob>,
  seen: readonly SeenJob[],
  onEnd: PollVideosOptions['onEnd'],
): Promise<Observation> {
  const files = [...here.keys()];
  const failed = seen.find(({ error }) => error !== null);
  // The operator's own provider bills what it has made, also if the file is too large to be kept.
  const unkept = notes.dialledIn ? 0 : seen.filter(({ error }) => error?.code === FILE_TOO_LARGE).length;
  const result = { files, error: failed?.error ?? null, raw: seen[0]?.raw ?? {} };
  await onEnd(task, result);
  const snapshot = resultToText(result);
  if (files.length + unkept === 0) return { state: 'failed', end: 'free', snapshot };
  const billed = [...here.values()].map((blob) => billedSeconds(notes, blob.notes));
  const seconds = billed.reduce((sum, each) => sum + each.seconds, notes.seconds * unkept);
  const inFiles = billed.reduce((sum, each) => sum + each.inFile, 0);
  return {
    ...(files.length === 0 ? ONLY_UNKEPT : { state: 'completed', end: 'complete' }),
    snapshot,
    variant: videoVariant(notes),
    usageOf: () => ({
      usage: { second: BigInt(seconds), call: BigInt(files.length + unkept) },
      flags: flagBeyond(NO_FLAGS, 'second', notes.seconds * billed.length, inFiles),
    }),
  };
}
