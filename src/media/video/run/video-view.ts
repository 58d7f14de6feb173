import type { Blob, Blobs, Task } from '#tasks';
import { fileOf, filesOf, resultOf, type VideoResult } from '../video-task.ts';
import type { Progress, ProgressNotes } from './progress.ts';

/** The state of a task's videos, for its owner. `expired`: the files are no longer stored. */
export type VideoView =
  | { readonly status: 'queued' | 'generating'; readonly progress: Progress }
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
  if (task.live) return { status: task.state === 'queued' ? 'queued' : 'generating', progress: progress.of(task) };
  const result = resultOf(task);
  if (result !== null && result.files.length === 0)
    return { status: 'failed', error: result.error ?? NO_REASON, raw: result.raw };
  const sources = result === null ? filesOf(task) : result.files.map((place) => fileOf(task, place));
  const found = await blobs.find(sources);
  const files = found.filter(({ state }) => state === 'stored');
  if (result !== null) return files.length < sources.length ? { status: 'expired' } : { status: 'completed', files };
  if (found.some(({ state, leaseUntil }) => state === 'writing' && leaseUntil > now()))
    return { status: 'generating', progress: progress.of(task) };
  return files.length > 0 ? { status: 'completed', files } : { status: 'failed', error: TOO_LATE, raw: {} };
}
