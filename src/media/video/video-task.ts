import { isObject } from '#wire';
import { sourceOf } from '#files';
import type { Task, TaskKey } from '#tasks';
import type { VideoPlan } from './video-price.ts';

export interface VideoNotes extends VideoPlan {
  /** Ids of the provider's jobs, one for each variant. */
  readonly jobs: readonly string[];
  readonly model: string;
  /** Width and height in pixels, such as `1280x720`. */
  readonly size: string;
  /** The provider dialled in. Absent for a provider of the operator's own file. */
  readonly dialledIn?: true;
  /**
   * When the time of the videos is over, in epoch milliseconds. The task itself lasts longer, so that a file that is
   * finished by then can still be fetched. Absent in tasks of earlier versions: the task ends then.
   */
  readonly dueAt?: number;
  /** The request was in the form of OpenRouter's API, so its videos are shown in that form. */
  readonly openrouter?: true;
}

export interface VideoResult {
  /** Indices of the jobs whose files are here. */
  readonly files: readonly number[];
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly raw: Readonly<Record<string, unknown>>;
}

/** The error of a task without a file when its time is over. */
export const TIME_LIMIT = { code: 'time_limit', message: 'The video did not arrive in time' };

export const notesToText = (notes: VideoNotes): string => JSON.stringify(notes);
export const notesOf = ({ notes }: Pick<Task, 'notes'>): VideoNotes => JSON.parse(notes) as VideoNotes;
export const resultToText = (result: VideoResult): string => JSON.stringify(result);
/** null for a running task, and for a task that was given up. */
export const resultOf = ({ snapshot }: Pick<Task, 'snapshot'>): VideoResult | null =>
  snapshot === null ? null : (JSON.parse(snapshot) as VideoResult);

export const keyOf = (service: string, taskId: string): TaskKey => ({ primitive: 'video', service, taskId });

export const wantsSeveral = (task: Pick<Task, 'notes'>): boolean => notesOf(task).jobs.length > 1;

export const fileOf = ({ service, taskId }: Pick<Task, 'service' | 'taskId'>, place: number): string =>
  sourceOf('video', service, taskId, place);

/** The sources of all files of a task, in the order of the jobs. */
export const filesOf = (task: Pick<Task, 'service' | 'taskId' | 'notes'>): readonly string[] =>
  notesOf(task).jobs.map((_, place) => fileOf(task, place));

/** The facts of a file, from the notes of its writer. Notes of earlier versions do not have `filmBytes`. */
function factsIn(text: string): { readonly seconds: number | null; readonly filmBytes: number } {
  const read: unknown = JSON.parse(text);
  const { seconds, filmBytes } = isObject(read) ? read : {};
  return {
    seconds: typeof seconds === 'number' ? seconds : null,
    filmBytes: typeof filmBytes === 'number' ? filmBytes : Infinity,
  };
}

/** A video shorter than this part of the requested length is charged by its actual length. */
const SHORT = 0.8;
/** No film has fewer bytes for a second. A still picture without sound has hundreds of them. */
const FILM_BYTES_PER_SECOND_MIN = 16;

interface BilledSeconds {
  readonly seconds: number;
  /** Seconds that the file shows: the requested ones if it is what was ordered. */
  readonly inFile: number;
}

/**
 * The seconds that are charged for one file of a task: the requested length, or the length of the film if that is much
 * shorter. A film cannot play longer than its bytes allow. A file that does not state its length shows no second. It
 * counts as whole if the provider is the operator's own; otherwise only its base price is charged.
 */
export function billedSeconds(
  { seconds: requested, dialledIn }: Pick<VideoNotes, 'seconds' | 'dialledIn'>,
  writerNotes: string,
): BilledSeconds {
  const { seconds: stated, filmBytes } = factsIn(writerNotes);
  const possible = filmBytes / FILM_BYTES_PER_SECOND_MIN;
  const plays = Math.min(stated ?? (dialledIn ? 0 : requested), possible);
  const seconds = plays >= requested * SHORT ? requested : Math.ceil(plays);
  return { seconds, inFile: stated === null ? 0 : seconds };
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
