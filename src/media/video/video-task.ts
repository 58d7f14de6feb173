import { isObject } from '#wire';
import { sourceOf, type Task, type TaskKey } from '#tasks';
import type { VideoPlan } from './video-price.ts';

/** Notes that are stored with the task of a call for videos. */
export interface VideoNotes extends VideoPlan {
  /** Ids of the provider's jobs, one for each variant. */
  readonly jobs: readonly string[];
  /** The name that was called. */
  readonly model: string;
  /** Width and height in pixels, such as `1280x720`. */
  readonly size: string;
}

/** How the videos of a task ended. */
export interface VideoResult {
  /** Indices of the jobs whose files are here. */
  readonly files: readonly number[];
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly raw: Readonly<Record<string, unknown>>;
}

export const notesToText = (notes: VideoNotes): string => JSON.stringify(notes);
export const notesOf = ({ notes }: Pick<Task, 'notes'>): VideoNotes => JSON.parse(notes) as VideoNotes;
export const resultToText = (result: VideoResult): string => JSON.stringify(result);
/** null for a running task, and for a task that was given up. */
export const resultOf = ({ snapshot }: Pick<Task, 'snapshot'>): VideoResult | null =>
  snapshot === null ? null : (JSON.parse(snapshot) as VideoResult);

export const keyOf = (service: string, taskId: string): TaskKey => ({ primitive: 'video', service, taskId });

/** The source of the file of one job. */
export const fileOf = ({ service, taskId }: Pick<Task, 'service' | 'taskId'>, place: number): string =>
  sourceOf('video', service, taskId, place);

/** The sources of all files of a task, in the order of the jobs. */
export const filesOf = (task: Pick<Task, 'service' | 'taskId' | 'notes'>): readonly string[] =>
  notesOf(task).jobs.map((_, place) => fileOf(task, place));

/** The playing time of a file in seconds, from the notes of its writer; null if it is not known. */
export function secondsIn(notes: string): number | null {
  const read: unknown = JSON.parse(notes);
  const seconds = isObject(read) ? read['seconds'] : null;
  return typeof seconds === 'number' ? seconds : null;
}

/** The id of a task for clients: `<key of the provider>:<base64url of service and task>`. */
export const toVideoId = ({ provider, service, taskId }: Pick<Task, 'provider' | 'service' | 'taskId'>): string =>
  `${provider}:${Buffer.from(JSON.stringify([service, taskId])).toString('base64url')}`;

const ID_CHARS_MAX = 2_048;

/** The inverse of toVideoId; null for any other text. */
export function fromVideoId(id: string): { readonly provider: string; readonly key: TaskKey } | null {
  const [provider, encoded, ...more] = id.length > ID_CHARS_MAX ? [] : id.split(':');
  if (provider === undefined || encoded === undefined || more.length > 0) return null;
  try {
    const read: unknown = JSON.parse(Buffer.from(encoded, 'base64url').toString('utf8'));
    if (!Array.isArray(read)) return null;
    const [service, taskId] = read as readonly unknown[];
    return typeof service === 'string' && typeof taskId === 'string' ? { provider, key: keyOf(service, taskId) } : null;
  } catch {
    return null;
  }
}
