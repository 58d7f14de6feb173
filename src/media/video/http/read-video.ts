import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { interpretedFields, type Dialect, GatewayError, isObject, ambiguousKeyAt } from '#wire';
import type { Config } from '#config';
import { type Caller, createCheck, type Payer, payerOf, type Payments, refuseEncoding, withModel } from '#gateway';
import type { BodyParts } from '../../request/input-images.ts';
import { readJsonBody } from '../../request/read-body.ts';
import { type InputPlaces, VIDEO_INPUTS, type VideoBody, withOwnVideoNames } from '../request/video-ask.ts';
import { VIDEOS_MAX } from '../request/video-fields.ts';
import { speaksOpenrouter, withOwnInputs } from './openrouter-video.ts';
import { readForm } from './read-form.ts';
import type { VideoRoute } from './video-route-list.ts';

/** A request that is read and checked. Nothing has been looked up for it yet. */
export interface VideoRequest extends Payer {
  readonly body: VideoBody;
  /** The long texts and the files of the body. */
  readonly parts: BodyParts;
  /** See ReadOptions. */
  readonly places: InputPlaces;
  /** The answer is in the form of OpenRouter's API. */
  readonly openrouter: boolean;
}

export const FORM = 'multipart/form-data';

const JSON_FIELDS = { inputs: VIDEO_INPUTS, othersMayBeLong: true };
const toBytes = (text: string) => Buffer.from(text, 'utf8');

type ReadVideo = (
  bytes: Buffer,
  headers: IncomingHttpHeaders,
  admitted: Caller,
  dialect?: Dialect,
) => Promise<VideoRequest>;

/** A number of videos above the bound is a valid request that nobody serves. Throws GatewayError `unprocessable`. */
function refuseTooMany(body: unknown): void {
  const n = isObject(body) ? body['n'] : null;
  if (Number.isSafeInteger(n) && (n as number) > VIDEOS_MAX)
    throw new GatewayError('unprocessable', `n is at most ${VIDEOS_MAX}, not ${n as number}`, { param: 'n' });
}

/** Reads and checks a request. Rejects with GatewayError if the request is invalid. */
export function createReadVideo(
  payments: Payments,
  limits: Config['limits'],
  route: Pick<VideoRoute, 'path' | 'schema' | 'fields' | 'form' | 'inOpenrouter'>,
): ReadVideo {
  const check = createCheck<VideoBody>(route.schema);
  const names = interpretedFields(Object.keys(route.fields));
  const known = new Set(Object.keys(route.fields));
  return async (bytes, headers, admitted, dialect = 'own') => {
    refuseEncoding(headers);
    const type = headers['content-type'] ?? '';
    const isForm = type.startsWith(FORM);
    if (isForm && !route.form) throw new GatewayError('invalid_request', 'Send the body as application/json');
    const form = isForm ? readForm(bytes, type, route.fields, limits) : null;
    const parts = form === null ? await readJsonBody(bytes, JSON_FIELDS, limits) : { bytesOf: toBytes, ...form };
    const parsed = withModel(withOwnVideoNames(parts.value, known));
    const fault = typeof parsed === 'object' && parsed !== null ? ambiguousKeyAt(parsed, [[[], names]]) : null;
    if (fault !== null) throw new GatewayError('invalid_request', fault.message, { param: fault.param });
    refuseTooMany(parsed);
    const checked = check(parsed);
    const takesBoth = route.inOpenrouter !== undefined;
    const openrouter = takesBoth && !isForm && dialect === 'own' && speaksOpenrouter(checked, headers);
    const named = withOwnVideoNames(checked, new Set()) as VideoBody;
    const { body, places } = takesBoth ? withOwnInputs(named) : { body: named, places: {} };
    // The path is part of the hash, because the same body has another answer at the other route.
    const bodyHash = () => hash('sha256', `${route.path} ${form === null ? hash('sha256', bytes) : form.hash()}`);
    return { body, parts, places, openrouter, ...(await payerOf(payments, headers, admitted, bodyHash)) };
  };
}
