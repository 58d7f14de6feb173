import { isObject } from '#wire';
import { malformed } from '#wire/replies';
import type { Offer } from '#catalog';
import { FormBody } from '#http';
import type { UpstreamRequest } from '#call';
import { VIDEO_API } from '#config';
import type { MediaInput } from './request/media-input.ts';
import { sizeIn, type VideoAsk, WIRE_NAMES } from './request/video-ask.ts';
import { planAt } from './video-price.ts';
import { unprocessable } from '../media-error.ts';

/* An API that has `POST /videos`, `GET /videos/{id}`, `GET /videos/{id}/content` and `DELETE /videos/{id}`. */

export interface SeenJob {
  readonly state: 'queued' | 'generating' | 'completed' | 'failed';
  /** 0 to 100; null if the provider does not say. */
  readonly progress: number | null;
  /** The provider's error if the job failed. */
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Short values of the answer that clients know. */
  readonly raw: Readonly<Record<string, unknown>>;
}

/** Fields that an offer takes if it lists no fields at all, because most APIs of this kind take them. */
const USUAL: ReadonlySet<string> = new Set(['frame_rate', 'image_url', 'negative_prompt', 'seed']);

const STATES: Readonly<Record<string, SeenJob['state']>> = {
  queued: 'queued',
  pending: 'queued',
  in_progress: 'generating',
  processing: 'generating',
  generating: 'generating',
  completed: 'completed',
  succeeded: 'completed',
  failed: 'failed',
  error: 'failed',
  cancelled: 'failed',
  canceled: 'failed',
  expired: 'failed',
};

/** The fields of one job, by the names of the API. */
interface JobFields {
  /** JSON of any type. A client may send any value in a field that the offer lists. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly inputs: Readonly<Record<string, MediaInput | readonly MediaInput[]>>;
}

/**
 * Fields of one job for an offer. Throws GatewayError `unprocessable` for the first field that the offer does not
 * take.
 */
export function jobFields(ask: VideoAsk, offer: Offer): JobFields {
  const facts = offer.media!;
  const { must, lists } = takenBy(offer, ask.names);
  const plan = planAt(ask, offer);
  const inputs: Record<string, MediaInput | readonly MediaInput[]> = {};
  const values: Record<string, unknown> = {
    model: facts.upstreamModel,
    seconds: String(plan.seconds),
    size: sizeAt(ask, offer),
  };
  if (ask.prompt !== null) values['prompt'] = ask.prompt;
  if (lists('resolution')) values['resolution'] = plan.resolution;
  if (lists('aspect_ratio') && ask.aspectRatio !== null) values['aspect_ratio'] = ask.aspectRatio;
  if (ask.audio) must('generate_audio');
  if (lists('generate_audio')) values['generate_audio'] = ask.audio;
  const put = <T>(fields: Record<string, T>, name: string, value: T) => {
    must(name);
    fields[WIRE_NAMES[name] ?? name] = value;
  };
  if (ask.seed !== null) put(values, 'seed', ask.seed);
  for (const [name, input] of Object.entries(ask.inputs)) put(inputs, name, input);
  if (ask.references.length > 0) put(inputs, 'reference_image_urls', ask.references);
  for (const [name, value] of Object.entries(ask.more)) {
    if (name === 'user') values['user'] = value;
    else put(values, name, value);
  }
  return { values, inputs };
}

/**
 * The size that an offer is asked for, such as `1280x720`. Throws GatewayError `unprocessable` for a ratio that the
 * offer does not make.
 */
export function sizeAt(ask: VideoAsk, offer: Offer): string {
  const { width, height } = ask.size ?? sizeIn(planAt(ask, offer).resolution, ratioAt(ask, offer));
  return `${width}x${height}`;
}

function takenBy({ media, provider, service }: Offer, names: VideoAsk['names']) {
  const listed = media!.supportedParams;
  const lists = (name: string) => listed.includes(name) || listed.includes(WIRE_NAMES[name] ?? name);
  return {
    lists,
    must(name: string) {
      if (lists(name) || (listed.length === 0 && USUAL.has(name))) return;
      const known = listed.length === 0 ? '' : `; it takes ${listed.join(', ')}`;
      const sent = names[name] ?? name;
      throw unprocessable(sent, `${sent} is not taken by ${service} of ${provider.name}${known}`);
    },
  };
}

function ratioAt({ aspectRatio }: VideoAsk, { media, provider }: Offer): string | null {
  const { aspectRatios } = media!;
  if (aspectRatio === null) return aspectRatios.length === 0 || aspectRatios.includes('16:9') ? null : aspectRatios[0]!;
  if (aspectRatios.length === 0 || aspectRatios.includes(aspectRatio)) return aspectRatio;
  throw unprocessable(
    'aspect_ratio',
    `aspect_ratio ${aspectRatio} is not made by ${provider.name}; it makes ${aspectRatios.join(', ')}`,
  );
}

const listOf = (input: MediaInput | readonly MediaInput[]): readonly MediaInput[] =>
  'file' in input ? [input] : input;

/** Whether the API has to be sent a form, because it does not read files in JSON. */
export const hasFiles = ({ inputs }: JobFields): boolean =>
  Object.values(inputs).some((input) => listOf(input).some(({ file }) => file !== null));

export function createAsJson({ values, inputs }: JobFields, requestId: string): UpstreamRequest {
  const entries = Object.entries(inputs).map(([name, input]) => {
    const addresses = listOf(input).map(({ url }) => ({ image_url: url }));
    return [name, 'file' in input ? addresses[0] : addresses];
  });
  const body = JSON.stringify({ ...values, ...Object.fromEntries(entries) });
  return { method: 'POST', path: VIDEO_API.path, headers: headersOf(requestId, 'application/json'), body };
}

export function createAsForm({ values, inputs }: JobFields, requestId: string): UpstreamRequest {
  const form = new FormBody();
  for (const [name, value] of Object.entries(values)) form.field(name, value);
  for (const [name, input] of Object.entries(inputs))
    for (const { url, file } of listOf(input)) {
      const field = 'file' in input ? name : `${name}[]`;
      if (file === null) form.field(`${field}[image_url]`, url);
      else form.file(field, `input.${file.type.split('/')[1]}`, file.type, file.content.file);
    }
  return { method: 'POST', path: VIDEO_API.path, headers: headersOf(requestId, form.contentType), body: form.end() };
}

const headersOf = (requestId: string, type: string) => ({
  'content-type': type,
  accept: 'application/json',
  'x-request-id': requestId,
});

const headers = (requestId: string) => ({ accept: 'application/json', 'x-request-id': requestId });

export const pollJob = (job: string, requestId: string): UpstreamRequest => ({
  method: 'GET',
  path: `/videos/${job}`,
  headers: headers(requestId),
  body: null,
});

export const contentOfJob = (job: string, requestId: string): UpstreamRequest => ({
  method: 'GET',
  path: `/videos/${job}/content`,
  headers: { ...headers(requestId), accept: 'video/mp4, */*' },
  body: null,
});

export const cancelJob = (job: string, requestId: string): UpstreamRequest => ({
  method: 'DELETE',
  path: `/videos/${job}`,
  headers: headers(requestId),
  body: null,
});

const JOB_ID = new RegExp(`^${VIDEO_API.jobId}$`);

/** The id of a created job. Throws UpstreamFailure if the reply has no valid id. */
export function createdJob(reply: unknown): string {
  const id = isObject(reply) ? reply['id'] : undefined;
  if (typeof id !== 'string' || !JOB_ID.test(id))
    throw malformed('its job has no id of 1 to 1,024 letters, digits, "_" and "-"');
  return id;
}

const RAW = ['status', 'progress', 'created_at', 'completed_at', 'expires_at', 'seconds', 'size', 'model'];
const MESSAGE_CHARS_MAX = 300;

/**
 * The state of a job. An unknown status means that the job goes on. Throws UpstreamFailure if the reply has no
 * status.
 */
export function seenJob(reply: unknown): SeenJob {
  if (!isObject(reply) || typeof reply['status'] !== 'string') throw malformed('its job has no status');
  const { progress } = reply;
  const raw: Record<string, unknown> = {};
  for (const name of RAW) {
    const value = reply[name];
    if (typeof value === 'number' || (typeof value === 'string' && value.length <= 64)) raw[name] = value;
  }
  const state = STATES[reply['status'].toLowerCase()] ?? 'generating';
  return {
    state,
    progress: typeof progress === 'number' && progress >= 0 && progress <= 100 ? progress : null,
    error: state === 'failed' ? errorOf(reply['error']) : null,
    raw,
  };
}

function errorOf(error: unknown): SeenJob['error'] {
  const { code, message } = isObject(error) ? error : {};
  const words = typeof error === 'string' ? error : message;
  return {
    code: typeof code === 'string' && code.length <= 64 ? code : 'generation_failed',
    message: typeof words === 'string' ? words.slice(0, MESSAGE_CHARS_MAX) : 'The provider gave no reason',
  };
}
