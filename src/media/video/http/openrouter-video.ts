import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { toUsdNumber, type MicroUsd } from '#billing/amounts';
import { shownAddress } from '#http';
import type { Task } from '#tasks';
import type { FieldNames, VideoBody } from '../request/video-ask.ts';
import type { VideoView } from '../run/video-view.ts';
import { toVideoId } from '../video-task.ts';

/* Videos in the shape of OpenRouter's API. It has the addresses of OpenAI's, and other requests and answers. */

/** Fields that only OpenAI's API has. */
const OF_OPENAI = ['seconds', 'input_reference'];
/** Fields that only OpenRouter's API has. */
const OF_OPENROUTER = ['duration', 'frame_images', 'input_references'];
const ITS_CLIENTS = /openrouter/i;

/**
 * Whether a JSON request to `/videos` wants the answers of OpenRouter's API. Its fields say it, and if they are in both
 * APIs, the name of the client does.
 */
export function speaksOpenrouter(body: Readonly<Record<string, unknown>>, headers: IncomingHttpHeaders): boolean {
  const has = (name: string) => (body[name] ?? null) !== null;
  if (OF_OPENAI.some(has)) return false;
  return OF_OPENROUTER.some(has) || ITS_CLIENTS.test(headers['user-agent'] ?? '');
}

const FRAMES = { first_frame: 'image_url', last_frame: 'end_image_url' } as const;
const SINGLE: Readonly<Record<string, string>> = { video_url: 'video_url', audio_url: 'audio_url' };

interface Inputs {
  readonly frame_images?: readonly { readonly frame_type: keyof typeof FRAMES; readonly image_url: unknown }[] | null;
  readonly input_references?: readonly Readonly<Record<string, unknown>>[] | null;
}

const fault = (param: string, message: string) => new GatewayError('invalid_request', message, { param });

/**
 * Replaces the inputs of OpenRouter's API in a checked body by the fields of `/video/queue`. `places`: where the client
 * has them. Throws GatewayError `invalid_request` for an input of another kind, and for one that the request has twice.
 */
export function withOwnInputs(body: VideoBody): { readonly body: VideoBody; readonly places: FieldNames } {
  const { frame_images: frames, input_references: references, ...rest } = body as VideoBody & Inputs;
  const own: Record<string, unknown> = rest;
  const places: Record<string, string> = {};
  const put = (param: string, name: string, value: unknown) => {
    if ((own[name] ?? null) !== null) throw fault(param, `${param} is the same input as another field of this request`);
    own[name] = value;
    places[name] = param;
  };
  for (const [at, { frame_type: type, image_url: image }] of (frames ?? []).entries())
    put(`frame_images[${at}].image_url`, FRAMES[type], image);
  const pictures: unknown[] = [];
  for (const [at, reference] of (references ?? []).entries()) {
    const param = `input_references[${at}]`;
    const type = String(reference['type']);
    if (type === 'image_url') {
      places[`reference_image_urls[${pictures.length}]`] = `${param}.image_url`;
      pictures.push(reference['image_url']);
    } else if (Object.hasOwn(SINGLE, type)) put(`${param}.${type}`, SINGLE[type]!, reference[type]);
    else throw fault(param, `${param}.type must be image_url, video_url or audio_url`);
  }
  if (pictures.length > 0) put('input_references', 'reference_image_urls', pictures);
  return { body: own as VideoBody, places };
}

export const addressOfVideo = (request: FastifyRequest, id: string): string =>
  shownAddress(request, `/api/v1/videos/${id}`);

/** A video that was just begun. `id`: of the call. */
export const begunInOpenrouter = (videoId: string, id: string, address: string): object => ({
  id: videoId,
  generation_id: id,
  polling_url: address,
  status: 'pending',
});

/** A video as it is now. `charged`: null as long as it is not known. Members without a value are left out. */
export function openrouterVideo(task: Task, view: VideoView, address: string, charged: MicroUsd | null): object {
  return {
    id: toVideoId(task),
    generation_id: task.taskId,
    polling_url: address,
    status: statusOf(view),
    ...(view.status === 'completed'
      ? { unsigned_urls: view.files.map((_, index) => `${address}/content?index=${index}`) }
      : {}),
    ...(view.status === 'failed' ? { error: view.error.message } : {}),
    ...(charged === null ? {} : { usage: { cost: toUsdNumber(charged), is_byok: false } }),
  };
}

function statusOf(view: VideoView): string {
  if (view.status === 'failed') return view.error.code === 'cancelled' ? 'cancelled' : 'failed';
  return view.status === 'queued' ? 'pending' : view.status === 'generating' ? 'in_progress' : view.status;
}
