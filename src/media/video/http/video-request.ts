import { hash, createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { interpretedFields, isObject, ambiguousKeyAt, type JsonLimits, parseJson } from '#wire';
import { type Dialect, createCheck, formParts } from '#http';
import { GatewayError } from '#errors';
import type { ReplyPiece } from '#billing/amounts';
import type { Config } from '#config';
import type { Caller } from '#accounts';
import {
  type Payer,
  payerOf,
  withModel,
  capCost,
  type CallRequest,
  type ProviderAdapter,
  lowestCap,
  MAX_COST_HEADER,
  requestedModels,
  NO_PREFERENCES,
  requestedQuote,
  requestedSession,
  toPreferences,
  wantsReceipt,
} from '#call';
import type { Payments, PaymentAttempt } from '#payments';
import { type BodyParts, InputBytes } from '../../request/input-images.ts';
import { readJsonBody } from '../../request/read-body.ts';
import {
  clientNames,
  type FieldNames,
  VIDEO_INPUTS,
  type VideoBody,
  withOwnVideoNames,
  type VideoAsk,
} from '../request/video-ask.ts';
import { VIDEOS_MAX, type videoBodySchema } from '../request/video-fields.ts';
import { speaksOpenrouter, withOwnInputs } from './openrouter-video.ts';
import { planAt, videoPrice } from '../video-price.ts';
import { jobFields } from '../openai-videos.ts';
import type { BegunVideo } from '../run/make-videos.ts';

export interface VideoRoute {
  readonly path: string;
  readonly fields: Readonly<Record<string, object>>;
  readonly schema: ReturnType<typeof videoBodySchema>;
  readonly answerSchema: object;
  readonly described: { readonly summary: string; readonly operationId: string; readonly description: string };
  /** Its errors have a word as `code`. Default: errors as in chat. */
  readonly ownErrors?: true;
  readonly form?: object;
  answerOf(begun: BegunVideo, created: number): object;
  /** The answer to a request in the form of OpenRouter's API. Absent if the route knows no such form. */
  inOpenrouter?(begun: BegunVideo, address: string): object;
}

export interface VideoRequest extends Payer {
  readonly body: VideoBody;
  readonly parts: BodyParts;
  readonly names: FieldNames;
  readonly openrouter: boolean;
}

export const FORM = 'multipart/form-data';

const JSON_FIELDS = { inputs: VIDEO_INPUTS, othersMayBeLong: true };
/** The names of OpenRouter's API are those of `/video/queue`. */
const NOTHING_KNOWN: ReadonlySet<string> = new Set();
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
    const fields = withOwnVideoNames(checked, new Set()) as VideoBody;
    const { body, places } = takesBoth ? withOwnInputs(fields) : { body: fields, places: {} };
    const sentNames = { ...clientNames(checked, openrouter ? NOTHING_KNOWN : known), ...places };
    // The path is part of the hash, because the same body has another answer at the other route.
    const bodyHash = () => hash('sha256', `${route.path} ${form === null ? hash('sha256', bytes) : form.hash()}`);
    return { body, parts, names: sentNames, openrouter, ...(await payerOf(payments, headers, admitted, bodyHash)) };
  };
}

interface VideoContext {
  readonly caller: Caller;
  readonly payment: PaymentAttempt | null;
  readonly requestId: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly receipts: 'always' | 'on-request';
}

/**
 * Turns a checked body into a request for the pipeline. Offers that cannot serve the request are skipped, and each
 * names the field that it does not take. Throws GatewayError `invalid_request` and `unprocessable`.
 */
export function videoToCall<R, D extends ReplyPiece>(
  body: VideoBody,
  ask: VideoAsk,
  adapter: ProviderAdapter<R, D>,
  context: VideoContext,
): CallRequest<R, D> {
  const { caller, headers, requestId, payment } = context;
  const session = requestedSession(body, headers);
  const traceparent = headers['traceparent'];
  const request: CallRequest<R, D> = {
    primitive: 'video',
    caller,
    requestId,
    targets: requestedModels(body),
    preferences: body.provider ? toPreferences(body.provider) : NO_PREFERENCES,
    stickyKey: session === null ? null : `${caller.account} ${session}`,
    images: 0,
    stream: false,
    adapter,
    price: (offer) => videoPrice(ask, offer),
    estimate(offer) {
      jobFields(ask, offer);
      const { seconds } = planAt(ask, offer);
      return { second: BigInt(seconds * ask.n), call: BigInt(ask.n) };
    },
    priced: (offer) => ({ n: ask.n, ...planAt(ask, offer) }),
    quote: requestedQuote(body['quote_id'], headers, payment),
    metadata: body.metadata ?? null,
    endUser: typeof body.user === 'string' ? body.user : null,
    traceparent: typeof traceparent === 'string' ? traceparent : null,
    wantsReceipt: wantsReceipt(false, context),
    ...(payment ? { payment } : {}),
  };
  const cap = lowestCap([
    ['max_cost', body.max_cost],
    [MAX_COST_HEADER, headers[MAX_COST_HEADER]],
  ]);
  return capCost(request, cap);
}

const MEMBER = /^([a-z_]{1,64})\[(?:image_url|url|file_id)\]$/;
const FILE = '\u0000file ';

interface ReadForm {
  /** The body that the same request would have in JSON. A file is a text for which `fileOf` finds the file. */
  readonly value: Readonly<Record<string, unknown>>;
  fileOf(text: string): Buffer | null;
  /** SHA-256 in hex of the fields and files. The bytes of a form differ each time. */
  readonly hash: () => string;
}

/**
 * Reads a form. Values become numbers and booleans where `schema` says so, and JSON where their part says so. Throws
 * GatewayError `invalid_request` if the bytes are not a form.
 */
function readForm(
  bytes: Buffer,
  contentType: string,
  schema: Readonly<Record<string, object>>,
  limits: JsonLimits,
): ReadForm {
  const value: Record<string, unknown> = {};
  const files: Buffer[] = [];
  for (const { name: written, isFile, isJson, content } of formParts(bytes, contentType)) {
    const name = MEMBER.exec(written)?.[1] ?? written;
    if (Object.hasOwn(value, name)) throw new GatewayError('invalid_request', `${name} occurs twice`, { param: name });
    const text = isFile ? `${FILE}${files.length}` : content.toString('utf8');
    if (isFile) files.push(content);
    value[name] = isFile ? text : isJson ? parseJson(content, limits) : valueOf(text, schema[name]);
  }
  const fileOf = (text: string) => (text.startsWith(FILE) ? (files[Number(text.slice(FILE.length))] ?? null) : null);
  return { value, fileOf, hash: () => hashOf(value, fileOf) };
}

/** The hash of the body as JSON with the files as data URLs, but no file becomes a text for it. */
function hashOf(value: ReadForm['value'], fileOf: ReadForm['fileOf']): string {
  const sum = createHash('sha256').update('{');
  for (const [index, [name, member]] of Object.entries(value).entries()) {
    sum.update(`${index === 0 ? '' : ','}${JSON.stringify(name)}:`);
    const file = typeof member === 'string' ? fileOf(member) : null;
    if (file === null) {
      sum.update(JSON.stringify(member));
      continue;
    }
    sum.update('"data:;base64,');
    for (const piece of InputBytes.ofFile(file).base64) sum.update(piece);
    sum.update('"');
  }
  return sum.update('}').digest('hex');
}

/** Converts a value by the type of its field, because every value in a form is text. */
function valueOf(text: string, field: object | undefined): unknown {
  const { type } = (field ?? {}) as { readonly type?: unknown };
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true';
  const isNumber = (types.includes('integer') || types.includes('number')) && !types.includes('string');
  if (isNumber && /^-?\d{1,12}(?:\.\d{1,6})?$/.test(text)) return Number(text);
  return text;
}
