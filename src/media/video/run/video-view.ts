import type { Blob, Blobs } from '#files';
import type { Task } from '#tasks';
import { fileOf, filesOf, resultOf, type VideoResult } from '../video-task.ts';
import type { SeenJob } from '../openai-videos.ts';

/** The state of a task's videos, for its owner. `expired`: the files are no longer stored. */
export type VideoView =
  | { readonly status: 'queued' | 'generating'; readonly progress: TaskProgress }
  | { readonly status: 'failed'; readonly error: NonNullable<VideoResult['error']>; readonly raw: VideoResult['raw'] }
  | { readonly status: 'completed'; readonly files: readonly Blob[] }
  | { readonly status: 'expired' };

const NO_REASON = { code: 'generation_failed', message: 'The provider gave no reason' };
const TOO_LATE = { code: 'time_limit', message: 'The video did not arrive in time. Nothing is charged' };

/** The view of a task. A task that was given up costs nothing, but files of it that are here are given out. */
export async function viewVideo(
  { blobs, progress, now }: { readonly blobs: Pick<Blobs, 'find'>; readonly progress: ProgressNotes; now(): number },
  task: Task,
): Promise<VideoView> {
  if (task.live)
    return { status: task.state === 'queued' ? 'queued' : 'generating', progress: progress.progressOf(task) };
  const result = resultOf(task);
  if (result !== null && result.files.length === 0)
    return { status: 'failed', error: result.error ?? NO_REASON, raw: result.raw };
  const sources = result === null ? filesOf(task) : result.files.map((place) => fileOf(task, place));
  const stored = await blobs.find(sources);
  const files = stored.filter(({ state }) => state === 'stored');
  if (result !== null) return files.length < sources.length ? { status: 'expired' } : { status: 'completed', files };
  if (stored.some(({ state, leaseUntil }) => state === 'writing' && leaseUntil > now()))
    return { status: 'generating', progress: progress.progressOf(task) };
  return files.length > 0 ? { status: 'completed', files } : { status: 'failed', error: TOO_LATE, raw: {} };
}

interface TaskProgress {
  /** From 0 to 100. */
  readonly percent: number;
  readonly secondsLeft: number;
  readonly raw: Readonly<Record<string, unknown>>;
}

/**
 * The progress that looks have seen, and the durations of earlier tasks. They are in memory, so they are lost with
 * the process.
 */
interface ProgressNotes {
  /** `jobs`: at least one. */
  seen(task: Task, jobs: readonly SeenJob[]): void;
  ended(task: Task): void;
  progressOf(task: Task): TaskProgress;
}

const TASKS_MAX = 10_000;
const DURATIONS_MAX = 32;
const OFFERS_MAX = 1_000;
/** The assumed duration for an offer without earlier tasks. */
const USUAL_MS = 60_000;
/** A running task never shows 100 percent. */
const GUESS_MAX = 95;
const TOLD_MAX = 99;
/** From this percentage on, the provider's progress tells how long the rest takes. */
const TELLING = 5;

export function createProgressNotes(now: () => number): ProgressNotes {
  const progress = new Map<string, { readonly percent: number | null; readonly raw: TaskProgress['raw'] }>();
  const durations = new Map<string, number[]>();

  /** Four fifths of an offer's latest videos took at most this long. */
  const usualMs = (offerId: string): number => {
    const known = [...(durations.get(offerId) ?? [])].sort((a, b) => a - b);
    return known.length === 0 ? USUAL_MS : known[Math.min(known.length - 1, Math.floor(known.length * 0.8))]!;
  };

  return {
    seen({ taskId }, jobs) {
      if (progress.size >= TASKS_MAX) progress.clear();
      const percents = jobs.map(({ progress, state }) => (state === 'completed' ? 100 : progress));
      const known = percents.filter((percent) => percent !== null);
      const percent = known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0) / jobs.length;
      progress.set(taskId, { percent, raw: jobs[0]!.raw });
    },
    ended({ taskId, offerId, createdAt }) {
      progress.delete(taskId);
      if (durations.size >= OFFERS_MAX) durations.clear();
      const known = durations.get(offerId) ?? [];
      known.push(now() - createdAt);
      durations.set(offerId, known.slice(-DURATIONS_MAX));
    },
    progressOf({ taskId, offerId, createdAt }) {
      const elapsed = now() - createdAt;
      const usual = usualMs(offerId);
      const { percent = null, raw = {} } = progress.get(taskId) ?? {};
      // The provider's progress of this video says more than the durations of other videos.
      const remaining =
        percent !== null && percent >= TELLING ? (elapsed * (100 - percent)) / percent : usual - elapsed;
      const guess = Math.min(GUESS_MAX, Math.floor((100 * elapsed) / usual));
      return {
        percent: percent === null ? guess : Math.min(TOLD_MAX, Math.round(percent)),
        secondsLeft: Math.max(1, Math.ceil(remaining / 1000)),
        raw,
      };
    },
  };
}
