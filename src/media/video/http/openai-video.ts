import type { Task } from '#tasks';
import type { BegunVideo } from '../run/make-videos.ts';
import type { VideoView } from '../run/video-view.ts';
import { notesOf, toVideoId, type VideoNotes } from '../video-task.ts';

const STATUS = { queued: 'queued', generating: 'in_progress', completed: 'completed', failed: 'failed' } as const;

const seconds = (at: number) => Math.floor(at / 1000);

const common = (id: string, { model, seconds: length, size }: VideoNotes, created: number) => ({
  id,
  object: 'video',
  model,
  created_at: created,
  seconds: String(length),
  size,
  prompt: null,
  remixed_from_video_id: null,
});

/** A video that was just begun, in the shape of OpenAI's API. */
export const begunVideo = ({ id, notes, callbackSecret }: BegunVideo, created: number): object => ({
  ...common(id, notes, created),
  status: 'queued',
  progress: 0,
  completed_at: null,
  expires_at: null,
  error: null,
  ...(callbackSecret === undefined ? {} : { callback_secret: callbackSecret }),
});

/**
 * A video in the shape of OpenAI's API. A video whose files are no longer stored is `completed`, and its
 * `expires_at` is in the past.
 */
export function openaiVideo(task: Task, view: VideoView): object {
  const { createdAt, updatedAt } = task;
  const files = view.status === 'completed' ? view.files : [];
  const expires = files.map(({ expiresAt }) => expiresAt);
  const isOver = view.status === 'completed' || view.status === 'expired';
  return {
    ...common(toVideoId(task), notesOf(task), seconds(createdAt)),
    status: STATUS[view.status === 'expired' ? 'completed' : view.status],
    progress: 'progress' in view ? view.progress.percent : isOver ? 100 : 0,
    completed_at: isOver ? seconds(updatedAt) : null,
    expires_at:
      view.status === 'expired' ? seconds(updatedAt) : expires.length > 0 ? seconds(Math.min(...expires)) : null,
    error: view.status === 'failed' ? view.error : null,
    ...(files.length > 1 ? { variants: files.length } : {}),
  };
}
