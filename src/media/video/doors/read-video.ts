import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { actedOn, GatewayError, lookAlikeAt, readJson } from '#wire';
import type { Config } from '#config';
import { type Caller, createCheck, type Payer, payerOf, type Payments, refuseEncoding, withModel } from '#gateway';
import { type VideoBody, withOwnVideoNames } from '../request/video-ask.ts';
import { readForm } from './read-form.ts';
import type { VideoDoor } from './video-doors.ts';

/** A request that is read and checked. Nothing has been looked up for it yet. */
export interface VideoRequest extends Payer {
  readonly body: VideoBody;
}

export const FORM = 'multipart/form-data';

type ReadVideo = (bytes: Buffer, headers: IncomingHttpHeaders, admitted: Caller) => Promise<VideoRequest>;

/** Reads and checks a request. Rejects with GatewayError if the request is invalid. */
export function createReadVideo(
  payments: Payments,
  limits: Config['limits'],
  door: Pick<VideoDoor, 'path' | 'schema' | 'fields' | 'forms'>,
): ReadVideo {
  const check = createCheck<VideoBody>(door.schema);
  const names = actedOn(Object.keys(door.fields));
  const known = new Set(Object.keys(door.fields));
  return async (bytes, headers, admitted) => {
    refuseEncoding(headers);
    const type = headers['content-type'] ?? '';
    const isForm = type.startsWith(FORM);
    if (isForm && !door.forms) throw new GatewayError('invalid_request', 'Send the body as application/json');
    const read = isForm ? readForm(bytes, type, door.fields) : await readJson(bytes, limits);
    const parsed = withModel(withOwnVideoNames(read, known));
    const fault = typeof parsed === 'object' && parsed !== null ? lookAlikeAt(parsed, [[[], names]]) : null;
    if (fault !== null) throw new GatewayError('invalid_request', fault.message, { param: fault.param });
    const body = withOwnVideoNames(check(parsed), new Set()) as VideoBody;
    // The path is part of the hash, because the same body has another answer at the other door. Of a form the fields
    // are hashed, because its bytes differ each time.
    const said = () => (isForm ? hash('sha256', JSON.stringify(read)) : hash('sha256', bytes));
    const bodyHash = () => hash('sha256', `${door.path} ${said()}`);
    return { body, ...(await payerOf(payments, headers, admitted, bodyHash)) };
  };
}
