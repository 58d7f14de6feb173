import { setTimeout as pause } from 'node:timers/promises';
import { GatewayError } from '#errors';
import { getOrInsert, UpstreamFailure } from '#wire';
import { authorise, type Pipeline } from '#call';
import type { Caller } from '#accounts';
import type { Blobs } from '#files';
import { type EndTask, type TaskPoll, type PollAtExpiry, ownerOf, type Task, type Tasks } from '#tasks';
import { askProvider, askForJson } from './run/ask-provider.ts';
import { createFetchVideos } from './run/fetch-video.ts';
import { createPollVideos } from './run/poll-videos.ts';
import { createProgressNotes, viewVideo, type VideoView } from './run/video-view.ts';
import { filesOf, fromVideoId, notesOf, resultOf, resultToText, TIME_LIMIT, type VideoResult } from './video-task.ts';
import { cancelJob } from './openai-videos.ts';

type IdParam = 'task_id' | 'id';

interface VideosOptions {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly tasks: Pick<Tasks, 'find' | 'saw' | 'forget'>;
  readonly blobs: Blobs;
  readonly downloadTimeoutMs: number;
  readonly leastPace: number;
  /** Tells the callback of a task how the task ended. It may be called twice for the same end. */
  readonly tell: (task: Task, result: VideoResult) => Promise<void>;
  readonly onUnseen: (error: unknown) => void;
  readonly now: () => number;
  readonly elapsed: () => number;
}

export interface Videos {
  readonly poll: TaskPoll;
  /** For the watch: ends a task whose time is over with the files that are here. null without files. */
  readonly pollAtExpiry: PollAtExpiry;
  /** The caller's task with this id, which came as the parameter `param`. Throws GatewayError `not_found`. */
  find(id: string, caller: Caller, param?: IdParam): Promise<Task>;
  /** The task as its provider has it now, or had it within the last 2 seconds. */
  refresh(task: Task): Promise<Task>;
  /** Waits for the end of a task, for at most half a minute. */
  wait(task: Task, gone: AbortSignal): Promise<Task>;
  view(task: Task): Promise<VideoView>;
  /**
   * Ends a running task without charge. Throws GatewayError `unprocessable` if its provider does not cancel it, or
   * if one of its videos is finished.
   */
  cancel(task: Task): Promise<Task>;
  /** Ends a running task for the operator. Its finished files are removed. */
  readonly end: EndTask;
  /** Removes an ended task with its files. Rejects with GatewayError if its charge is not settled yet. */
  remove(task: Task): Promise<void>;
  /** Called when the time of a task is over and no file of it is here. Cancels its jobs, and tells its callback. */
  gaveUp(task: Task): Promise<void>;
  close(): Promise<void>;
}

/** A client's request does not look at a task again within this time. */
const FRESH_MS = 2_000;
const WAIT_MS = 29_000;
const WAIT_STEP_MS = 500;
const CANCEL_MS = 10_000;
const LOOKED_MAX = 10_000;
/** Seconds after which a task that another gateway ended is usually settled. */
const SETTLED_S = 15;
/** The result of a cancelled task. A task that ended in another way during its cancellation keeps its own result. */
const CANCELLED = {
  files: [],
  error: { code: 'cancelled', message: 'The video was cancelled' },
  raw: {},
} as const satisfies VideoResult;

export function createVideos({ pipeline, tasks, blobs, tell, onUnseen, now, ...options }: VideosOptions): Videos {
  const progress = createProgressNotes(now);
  const looked = new Map<string, number>();
  const closing = new AbortController();
  const waiting = new Map<string, PromiseWithResolvers<void>>();

  /** Resolves when the end of a task is noted here, or after a short time: another gateway may have noted it. */
  async function nextNews({ taskId }: Task, signal: AbortSignal): Promise<void> {
    const news = getOrInsert(waiting, taskId, () => Promise.withResolvers<void>());
    await Promise.race([news.promise, pause(WAIT_STEP_MS, undefined, { signal }).catch(() => {})]);
  }

  function wake({ taskId }: Task): void {
    waiting.get(taskId)?.resolve();
    waiting.delete(taskId);
  }

  const unseen = (error: unknown, task: Task) => onUnseen(aboutVideo(task, error));
  const fetching = createFetchVideos({
    pipeline,
    blobs,
    timeoutMs: options.downloadTimeoutMs,
    leastPace: options.leastPace,
    elapsed: options.elapsed,
    isNeeded: (task) => runs(tasks, task),
    async onStored(task) {
      if (await runs(tasks, task)) await note(task);
    },
    onError: unseen,
  });
  const { poll: pollJobs, pollAtExpiry } = createPollVideos({
    pipeline,
    blobs,
    fetching,
    async onEnd(task, result) {
      await tell(task, result);
      await blobs.giveRoomBack(task.taskId);
      progress.ended(task);
    },
    onLeft: (task, jobs) => cancelEach(pipeline, task, jobs, closing.signal, unseen),
    onSeen: progress.seen,
    onUnseen: unseen,
    now,
  });
  const poll: TaskPoll = (task, signal) => {
    if (looked.size >= LOOKED_MAX) looked.clear();
    looked.set(task.taskId, now());
    return pollJobs(task, signal);
  };

  async function note(task: Task): Promise<void> {
    const observation = await poll(task, closing.signal);
    if (observation !== null) await tasks.saw(task, observation);
    if (observation === null || observation.end === null) return;
    looked.delete(task.taskId);
    wake(task);
  }

  const again = async (task: Task): Promise<Task> => (await tasks.find(task, task)) ?? task;
  async function refresh(task: Task): Promise<Task> {
    if (!task.live || now() - (looked.get(task.taskId) ?? -Infinity) < FRESH_MS) return task;
    await note(task);
    return again(task);
  }

  async function removeFiles(task: Task): Promise<void> {
    for (const blob of await blobs.find(filesOf(task))) await blobs.remove(blob);
  }

  return {
    poll,
    pollAtExpiry,
    refresh,
    async view(task) {
      // Another gateway may have noted the end. A task must be charged before its files are given out.
      if (!task.live) await tasks.saw(task, { state: null, end: 'complete' });
      return viewVideo({ blobs, progress, now }, task);
    },

    find: (id, caller, param = 'task_id') => findVideo(tasks, id, caller, param),

    async wait(task, gone) {
      const until = performance.now() + WAIT_MS;
      let seen = await refresh(task);
      const signal = AbortSignal.any([gone, closing.signal]);
      while (seen.live && performance.now() < until && !signal.aborted) {
        await nextNews(seen, signal);
        seen = await refresh(await again(seen));
      }
      waiting.delete(seen.taskId);
      return seen;
    },

    async cancel(task) {
      const seen = await refresh(task);
      if (!seen.live) return seen;
      await refuseFinished(blobs, seen);
      try {
        await cancelJobs(pipeline, seen, notesOf(seen).jobs, closing.signal);
      } catch (error) {
        // A provider may refuse because another request has just cancelled the job, which that one is about to store.
        await nextNews(seen, closing.signal);
        const ended = await tasks.find(seen, seen);
        // That request may have been one that deletes.
        if (ended === null) throw new GatewayError('not_found', 'There is no such video');
        if (ended.live) throw error;
        return ended;
      }
      await tasks.saw(seen, { state: 'failed', end: 'free', snapshot: resultToText(CANCELLED) });
      await blobs.giveRoomBack(seen.taskId);
      const ended = await again(seen);
      if (resultOf(ended)?.error?.code === CANCELLED.error.code) await tell(ended, CANCELLED);
      return ended;
    },

    async end(task, error) {
      const result: VideoResult = { ...CANCELLED, error: { ...CANCELLED.error, message: error } };
      const snapshot = resultToText(result);
      // What the provider finishes meanwhile must not be charged any more.
      const seen = await tasks.saw(task, { state: 'failed', end: 'free', snapshot, error });
      if (seen?.task.snapshot !== snapshot) return null;
      wake(task);
      await removeFiles(task);
      await blobs.giveRoomBack(task.taskId);
      await tell(seen.task, result);
      return async () => cancelEach(pipeline, task, notesOf(task).jobs, closing.signal, unseen);
    },

    async remove(task) {
      await removeFiles(task);
      if (!(await tasks.forget(task))) throw notSettled();
    },

    async gaveUp(task) {
      cancelEach(pipeline, task, notesOf(task).jobs, closing.signal, unseen);
      await tell(task, { files: [], error: TIME_LIMIT, raw: {} }).catch((error: unknown) => unseen(error, task));
    },

    async close() {
      closing.abort(new Error('the gateway stops'));
      await fetching.close();
    },
  };
}

/** Whether a task runs now. A deleted one does not. */
const runs = async (tasks: Pick<Tasks, 'find'>, task: Task): Promise<boolean> =>
  (await tasks.find(task, task))?.live === true;

const notSettled = () =>
  new GatewayError('service_unavailable', 'The video is not settled yet: delete it again in a few seconds', {
    retryAfterS: SETTLED_S,
  });

async function findVideo(tasks: Pick<Tasks, 'find'>, id: string, caller: Caller, param: IdParam): Promise<Task> {
  const place = fromVideoId(id);
  const task = place && (await tasks.find(place.key, ownerOf(caller)));
  if (!task || task.provider !== place.provider)
    throw new GatewayError('not_found', 'There is no such video', { param });
  // Stored tasks are shown without a call, so the authorisation of calls does not cover them.
  authorise(caller, task.primitive, task.service);
  return task;
}

const aboutVideo = ({ taskId, service }: Task, cause: unknown) =>
  new Error(`the video ${taskId} of ${service}`, { cause });

async function refuseFinished(blobs: Pick<Blobs, 'find'>, task: Task): Promise<void> {
  if ((await blobs.find(filesOf(task))).length > 0)
    throw new GatewayError('unprocessable', 'A video of this task is finished, so the task can no longer be cancelled');
}

/** Rejects with GatewayError if the provider does not confirm that its jobs are cancelled. */
async function cancelJobs(
  pipeline: Pick<Pipeline, 'prepare' | 'run'>,
  task: Task,
  jobs: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  try {
    await askProvider(
      { pipeline, task, method: 'video/cancel', timeoutMs: CANCEL_MS, signal },
      async (send, requestId) => {
        for (const job of jobs) await askForJson(send, cancelJob(job, requestId));
      },
    );
  } catch (cause) {
    if (cause instanceof GatewayError || cause instanceof UpstreamFailure)
      throw new GatewayError('unprocessable', 'The provider cannot cancel the video, so it continues', { cause });
    throw cause;
  }
}

/** Cancels jobs, each with a request of its own, because a provider that refuses one may cancel the others. */
function cancelEach(
  pipeline: Pick<Pipeline, 'prepare' | 'run'>,
  task: Task,
  jobs: readonly string[],
  signal: AbortSignal,
  onError: (error: unknown, task: Task) => void,
): void {
  for (const job of jobs) cancelJobs(pipeline, task, [job], signal).catch((error: unknown) => onError(error, task));
}
