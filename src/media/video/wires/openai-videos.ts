import { isObject } from '#wire';
import { malformed } from '#wire/replies';
import type { Offer, UpstreamRequest } from '#gateway';
import { VIDEOS_PATH } from '#config';
import type { MediaInput } from '../request/media-input.ts';
import { sizeIn, type VideoAsk } from '../request/video-ask.ts';
import { planAt, unprocessable } from '../video-price.ts';

/* An API that has `POST /videos`, `GET /videos/{id}`, `GET /videos/{id}/content` and `DELETE /videos/{id}`. */

/** One job of a provider, as a look has seen it. */
export interface SeenJob {
  readonly state: 'queued' | 'generating' | 'completed' | 'failed';
  /** 0 to 100; null if the provider does not say. */
  readonly progress: number | null;
  /** The provider's error if the job failed. */
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Short values of the answer that clients know. */
  readonly raw: Readonly<Record<string, unknown>>;
}

/** Our names of fields, with the names that such an API has for them. */
const WIRE_NAMES: Readonly<Record<string, string>> = {
  frame_rate: 'fps',
  image_url: 'input_reference',
  end_image_url: 'end_image',
  reference_image_urls: 'reference_images',
  video_url: 'video_reference',
  audio_url: 'audio_reference',
};

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

type Value = string | number | boolean | MediaInput | readonly MediaInput[];

/**
 * Fields of one job for an offer. Throws GatewayError `unprocessable` for the first field that the offer does not
 * take.
 */
export function jobFields(ask: VideoAsk, offer: Offer): Readonly<Record<string, Value>> {
  const facts = offer.media!;
  const { must, lists } = takenBy(offer);
  const plan = planAt(ask, offer);
  const { width, height } = ask.size ?? sizeIn(plan.resolution, ratioAt(ask, offer));
  const fields: Record<string, Value> = {
    model: facts.upstreamModel,
    seconds: String(plan.seconds),
    size: `${width}x${height}`,
  };
  if (ask.prompt !== null) fields['prompt'] = ask.prompt;
  if (lists('resolution')) fields['resolution'] = plan.resolution;
  if (lists('aspect_ratio') && ask.aspectRatio !== null) fields['aspect_ratio'] = ask.aspectRatio;
  if (ask.audio) must('generate_audio');
  if (lists('generate_audio')) fields['generate_audio'] = ask.audio;
  const put = (name: string, value: Value) => {
    must(name);
    fields[WIRE_NAMES[name] ?? name] = value;
  };
  if (ask.seed !== null) put('seed', ask.seed);
  for (const [name, input] of Object.entries(ask.inputs)) put(name, input);
  if (ask.references.length > 0) put('reference_image_urls', ask.references);
  for (const [name, value] of Object.entries(ask.more)) {
    if (name === 'user') fields['user'] = value as string;
    else put(name, value as Value);
  }
  return fields;
}

function takenBy({ media, provider, service }: Offer) {
  const listed = media!.supportedParams;
  const lists = (name: string) => listed.includes(name) || listed.includes(WIRE_NAMES[name] ?? name);
  return {
    lists,
    must(name: string) {
      if (lists(name) || (listed.length === 0 && USUAL.has(name))) return;
      const known = listed.length === 0 ? '' : `; it takes ${listed.join(', ')}`;
      throw unprocessable(name, `${name} is not taken by ${service} of ${provider.name}${known}`);
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

const isInput = (value: Value): value is MediaInput => typeof value === 'object' && !Array.isArray(value);

/** Whether the API has to be sent a form, because it does not read files in JSON. */
export const hasFiles = (fields: Readonly<Record<string, Value>>): boolean =>
  Object.values(fields).some((value) =>
    isInput(value) ? value.file !== null : Array.isArray(value) && value.some(({ file }: MediaInput) => file !== null),
  );

/** The request that creates a job, as JSON. */
export function createAsJson(fields: Readonly<Record<string, Value>>, requestId: string): UpstreamRequest {
  const asJson = (value: Value): unknown =>
    Array.isArray(value)
      ? value.map(({ url }: MediaInput) => ({ image_url: url }))
      : isInput(value)
        ? { image_url: value.url }
        : value;
  const body = JSON.stringify(Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, asJson(value)])));
  return { method: 'POST', path: VIDEOS_PATH, headers: headersOf(requestId, 'application/json'), body };
}

/** The same request as a form, with files as raw bytes. */
export async function createAsForm(
  fields: Readonly<Record<string, Value>>,
  requestId: string,
): Promise<UpstreamRequest> {
  const form = new FormData();
  const append = (name: string, value: Value) => {
    if (Array.isArray(value)) for (const one of value as readonly MediaInput[]) append(`${name}[]`, one);
    else if (!isInput(value)) form.append(name, String(value));
    else if (value.file === null) form.append(`${name}[image_url]`, value.url);
    else {
      const { bytes, type } = value.file;
      form.append(name, new File([new Uint8Array(bytes)], `input.${type.split('/')[1]}`, { type }));
    }
  };
  for (const [name, value] of Object.entries(fields)) append(name, value);
  const encoded = new Response(form);
  const body = Buffer.from(await encoded.arrayBuffer());
  return {
    method: 'POST',
    path: VIDEOS_PATH,
    headers: headersOf(requestId, encoded.headers.get('content-type')!),
    body,
  };
}

const headersOf = (requestId: string, type: string) => ({
  'content-type': type,
  accept: 'application/json',
  'x-request-id': requestId,
});

const asked = (requestId: string) => ({ accept: 'application/json', 'x-request-id': requestId });

export const lookAtJob = (job: string, requestId: string): UpstreamRequest => ({
  method: 'GET',
  path: `/videos/${job}`,
  headers: asked(requestId),
  body: null,
});

export const contentOfJob = (job: string, requestId: string): UpstreamRequest => ({
  method: 'GET',
  path: `/videos/${job}/content`,
  headers: { ...asked(requestId), accept: 'video/mp4, */*' },
  body: null,
});

export const cancelJob = (job: string, requestId: string): UpstreamRequest => ({
  method: 'DELETE',
  path: `/videos/${job}`,
  headers: asked(requestId),
  body: null,
});

const JOB_ID = /^[\w-]{1,128}$/;

/** The id of a created job. Throws UpstreamFailure if the reply has no valid id. */
export function createdJob(reply: unknown): string {
  const id = isObject(reply) ? reply['id'] : undefined;
  if (typeof id !== 'string' || !JOB_ID.test(id))
    throw malformed('its job has no id of 1 to 128 letters, digits, "_" and "-"');
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
