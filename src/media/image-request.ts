import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { interpretedFields, isObject, ambiguousKeyAt } from '#wire';
import { GatewayError } from '#errors';
import type { ReplyPiece } from '#billing/amounts';
import type { Config } from '#config';
import { readFieldRefusal } from '#config/refused-cap';
import type { Caller } from '#accounts';
import { createCheck } from '#http';
import type { Payments, PaymentAttempt } from '#payments';
import {
  withModel,
  type Payer,
  payerOf,
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
  type RequestAdapter,
} from '#call';
import { NO_REFUSALS, RefusedFields } from '#call/refused-fields';
import type { ImageRoute } from './image-route-list.ts';
import { byNameIn, withOwnNames, type EventForm, type ImageAsk, toImageAsk } from './request/image-ask.ts';
import type { ImageBody } from './request/image-fields.ts';
import {
  type EditInputs,
  editInputs,
  countedInputs,
  type FetchedInputs,
  type FetchInputs,
  inputSource,
} from './request/input-images.ts';
import { IMAGE_INPUTS, type ReadBody, readForm, readJsonBody } from './request/read-body.ts';
import { imagePrice, orderedVariant, priceAsListed, pricedQualities, tierAt, worthOf } from './image-price.ts';
import { unprocessable } from './media-error.ts';
import { type ImagesResult, imagesUsed, createImageReader, type ImageReaderContext } from './reply/image-reader.ts';
import { ADDED, wireOf } from './image-wires.ts';
import { wordTokens } from './image-words.ts';
import { createImageStreamReader } from './reply/image-stream-reader.ts';

export interface ImageRequest extends Payer {
  readonly body: ImageBody;
  /** The images to edit, not loaded yet; null for a generation. */
  readonly edit: EditInputs | null;
}

/** The part of a route that is needed to read a request. `quotes`: the images themselves are not needed. */
export type ReadRoute = Pick<ImageRoute, 'path' | 'schema' | 'edits' | 'editsAt' | 'imagesIn' | 'toOwn' | 'refuse'> & {
  readonly quotes?: true;
};

interface ReadDeps {
  readonly payments: Payments;
  readonly limits: Config['limits'];
  readonly fetchInputs: FetchInputs;
}

/** `network`: of the client; null if nothing is to be fetched for it. */
type ReadImage = (
  bytes: Buffer,
  headers: IncomingHttpHeaders,
  admitted: Caller,
  network: string | null,
) => Promise<ImageRequest>;

const FORM = /^multipart\/form-data\b/i;

/** Reads and checks a request. Rejects with GatewayError if the request is invalid. */
export function createReadImage({ payments, limits, fetchInputs }: ReadDeps, route: ReadRoute): ReadImage {
  const check = createCheck<ImageBody>(route.schema);
  const { properties } = route.schema;
  const names = interpretedFields(Object.keys(properties));
  const read = async (bytes: Buffer, headers: IncomingHttpHeaders): Promise<ReadBody> => {
    const type = headers['content-type'] ?? '';
    return route.edits && FORM.test(type)
      ? readForm(bytes, type, properties, limits)
      : readJsonBody(bytes, { inputs: IMAGE_INPUTS }, limits);
  };
  const checked = (parsed: unknown, sent: unknown): ImageBody => {
    try {
      return check(parsed);
    } catch (error) {
      throw byNameIn(sent, error);
    }
  };
  return async (bytes, headers, admitted, network) => {
    const content = await read(bytes, headers);
    const parsed = withModel(withOwnNames(route.toOwn ? route.toOwn(content.value) : content.value));
    const fault = typeof parsed === 'object' && parsed !== null ? ambiguousKeyAt(parsed, [[[], names]]) : null;
    if (fault !== null) throw new GatewayError('invalid_request', fault.message, { param: fault.param });
    const sent = checked(parsed, content.value);
    route.refuse?.(sent);
    // Images under another name are taken out, because a provider may have a field of that name.
    const { [route.imagesIn ?? 'images']: images, ...rest } = sent;
    const body = route.imagesIn === undefined ? sent : (rest as ImageBody);
    if (route.editsAt !== undefined) refuseImages(body, content.value, route.editsAt);
    // The path is part of the hash, because the same body has another answer at the other route.
    const bodyHash = () => hash('sha256', `${route.path} ${hash('sha256', bytes)}`);
    const payer = await payerOf(payments, headers, admitted, bodyHash);
    const inputs = route.quotes ? countOf : inputsOf;
    const brings = route.edits === 'if given' ? Array.isArray(images) && images.length > 0 : route.edits;
    const begin = () => fetchInputs(payer.caller.account, network);
    const edit = brings ? inputs({ ...body, images }, content, begin, route.imagesIn) : null;
    return { body, edit, ...payer };
  };
}

/** Without this, a client would pay for images of the prompt alone and believe that its own were edited. */
function refuseImages(body: ImageBody, sent: unknown, editsAt: string): void {
  for (const name of ['images', 'mask']) {
    const value = body[name] ?? null;
    if (value === null || (Array.isArray(value) && value.length === 0)) continue;
    const param = name === 'images' && isObject(sent) && !Object.hasOwn(sent, name) ? 'image' : name;
    throw new GatewayError('invalid_request', `${param} is for edits: send this request to ${editsAt}`, { param });
  }
}

/** Throws GatewayError `invalid_request` for an image that is neither base64 nor an address. */
function inputsOf(
  { images, mask }: ImageBody,
  content: ReadBody,
  begin: () => FetchedInputs,
  name = 'images',
): EditInputs {
  const sources = (images as readonly unknown[]).map((one, index) => inputSource(one, `${name}[${index}]`, content));
  return editInputs(sources, mask ? inputSource(mask, 'mask', content) : null, begin);
}

/** The inputs of a quote request, which needs only the number of images, and whether there is a mask. */
function countOf({ images, image_count: count, mask }: ImageBody): EditInputs {
  const length = Array.isArray(images) ? images.length : null;
  if (length !== null && typeof count === 'number' && count !== length)
    throw new GatewayError('invalid_request', `image_count is ${count}, and images has ${length}`, {
      param: 'image_count',
    });
  return countedInputs(length ?? (typeof count === 'number' ? count : 1), Boolean(mask));
}

interface ImageContext {
  readonly caller: Caller;
  readonly edit: EditInputs | null;
  readonly events: EventForm;
  readonly payment: PaymentAttempt | null;
  readonly requestId: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly replyBytesMax: number;
  readonly receipts: 'always' | 'on-request';
}

interface ImageCall<R, D extends ReplyPiece> {
  readonly request: CallRequest<R, D>;
  readonly ask: ImageAsk;
}

/**
 * Turns a checked body into a request for the pipeline. Offers that cannot serve the request are skipped, and each
 * names the field that it does not take. `adapterOf` makes its adapter from the requests for images: `singleRequest`,
 * or one that answers in another form. Throws GatewayError `invalid_request` and `unprocessable`.
 */
export function imageToCall<R, D extends ReplyPiece>(
  body: ImageBody,
  context: ImageContext,
  adapterOf: (native: RequestAdapter<ImagesResult>) => ProviderAdapter<R, D>,
): ImageCall<R, D> {
  const { caller, headers, requestId, replyBytesMax, payment } = context;
  const ask = toImageAsk(body, caller.account, context);
  const session = requestedSession(body, headers);
  const preferences = body.provider ? toPreferences(body.provider) : NO_PREFERENCES;
  const traceparent = headers['traceparent'];
  const request: CallRequest<R, D> = {
    primitive: 'image',
    caller,
    requestId,
    targets: requestedModels(body),
    preferences,
    stickyKey: session === null ? null : `${caller.account} ${session}`,
    images: 0,
    ...(context.edit === null ? {} : { memory: context.edit }),
    stream: ask.stream !== null,
    adapter: adapterOf(createImageRequestAdapter({ ask, requestId, replyBytesMax })),
    price(offer) {
      const price = imagePrice(ask, offer);
      const max = preferences.maxPrice?.image;
      if (max !== undefined && (price.rates.image ?? 0n) > max)
        throw unprocessable('provider.max_price.image', `${offer.provider.name} charges more for such an image`);
      return price;
    },
    priceBefore: (offer) => priceAsListed(ask, offer),
    variant: (offer) => orderedVariant(ask, offer),
    priced: (offer) => ({
      n: ask.n,
      images: ask.edit?.charged ?? null,
      resolution: tierAt(ask, offer),
      quality: pricedQualities(ask, offer).length > 0 ? ask.quality : null,
    }),
    quote: requestedQuote(body['quote_id'], headers, payment),
    estimate(offer) {
      wireOf(offer).fields(ask, offer, NO_REFUSALS);
      return imagesUsed(ask.n, ask.edit?.charged ?? 0, wordTokens(ask, offer)?.most);
    },
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
  return { request: capCost(request, cap), ask };
}

interface ImageRequestAdapterOptions {
  readonly ask: ImageAsk;
  readonly requestId: string;
  readonly replyBytesMax: number;
}

function createImageRequestAdapter({
  ask,
  requestId,
  replyBytesMax,
}: ImageRequestAdapterOptions): RequestAdapter<ImagesResult> {
  const common = { n: ask.n, inputs: ask.edit?.charged ?? 0, replyBytesMax };
  const { stream } = ask;
  const streams = stream !== null && stream.partialImages !== null;
  const accept = streams ? 'text/event-stream, application/json' : 'application/json';
  const refused = new RefusedFields();
  return {
    request(offer) {
      const { path, contentType, body } = wireOf(offer).request(ask, offer, refused);
      const headers = { 'content-type': contentType, accept, 'x-request-id': requestId };
      return { method: 'POST', path, headers, body };
    },
    reader(offer) {
      const context: ImageReaderContext = {
        ...common,
        words: wordTokens(ask, offer),
        worth: (images, words) => worthOf(ask, offer, images, words),
      };
      const whole = createImageReader(context);
      return streams ? createImageStreamReader(context, stream, whole) : whole;
    },
    reform(offer, status, body) {
      const fields = wireOf(offer).fields(ask, offer, refused);
      for (const field of ADDED) {
        // More images than one are the client's wish.
        if (!Object.hasOwn(fields, field) || (field === 'n' && ask.n > 1)) continue;
        const refusal = readFieldRefusal(status, body, field);
        if (refusal === null) continue;
        refused.add(offer, field, refusal);
        return true;
      }
      return false;
    },
    accepted: (offer) => refused.learn(offer),
  };
}
