import type { Config } from '#config';
import { isOfKind, KINDS_OF_MODELS, type ModelKind } from '#config/model-kinds';
import { type Catalog, descriptionOf, listedServices } from '#catalog';
import { type Cut, type Quotable, type ReplyEnd, type ReplyReader, singleRequest, withModel } from '#call';
import {
  type TargetAdapter,
  type FilePart,
  type Part,
  type TargetRequest,
  type ContentTurn,
  type ContentResult,
  type EventBatch,
  eventBatch,
} from '#bridge';
import { createCheck } from '#http';
import { GatewayError } from '#errors';
import type { UpstreamFailure } from '#wire';
import { toCall } from './call/chat-to-call.ts';
import { KIND_ROUTES } from './kind-routes.ts';
import { chats } from './model-kinds.ts';
import { type ChatBody, type ChatMessage, type ContentPart, chatSchema } from './chat/chat-schema.ts';
import type { ChatPiece, ChatResult } from './chat/reply/chat-end.ts';
import { createToolCallIds } from './chat/reply/chat-decoder.ts';
import { ChunkEvents } from './stream/chunk-output.ts';
import { pictureOf } from './chat/request/picture-url.ts';

/* What other modules ask of models: calls in parts for their bridges, and calls that a quote is made for. */

interface ModelTargetOptions {
  readonly catalog: Pick<Catalog, 'resolve' | 'offers' | 'knows'>;
  readonly config: Pick<Config, 'upstream'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/**
 * Lets the routes of other protocols call chat models, with parts as request and reply. A model is always asked for a
 * stream, so that its text arrives while it is generated.
 */
export function createModelTarget({ catalog, config, now }: ModelTargetOptions): TargetAdapter {
  const find = (name: string) => catalog.resolve(name, 'model');
  return {
    primitive: 'model',
    has: (name) => catalog.knows(name, 'model'),
    list: (limit) =>
      listedServices(
        catalog.offers('model').filter(({ model }) => chats(model!)),
        limit,
      ),
    async about(name) {
      const { offers } = find(name);
      const [first] = offers;
      if (first === undefined) return null;
      const takes = (modality: string) =>
        offers.some(({ model }) => model?.inputModalities.includes(modality) === true);
      return {
        displayName: first.displayName,
        description: descriptionOf(offers),
        offers,
        inputModes: ['text/plain', 'application/json', ...(takes('image') ? ['image/*'] : [])],
        outputModes: ['text/plain'],
      };
    },
    async toCall(name, ask, { caller, requestId, traceparent, wantsReceipt }) {
      find(name);
      const { request, adapter } = toCall(toChatBody(name, ask), {
        caller,
        requestId,
        headers: {},
        now: now(),
        replyBytesMax: config.upstream.replyBytesMax,
        receipts: 'on-request',
        output: () => new ChunkEvents(createToolCallIds()),
      });
      const spoken = singleRequest<ContentResult, EventBatch>({
        request: (offer) => adapter.request(offer),
        reform: (offer, status, body) => adapter.reform(offer, status, body),
        accepted: (offer) => adapter.accepted(offer),
        reader: (offer) => new AnswerReader(adapter.reader(offer)),
      });
      return { ...request, adapter: spoken, stream: ask.stream, traceparent, wantsReceipt };
    },
  };
}

const IMAGE = /^image\/[a-zA-Z0-9.+-]{1,64}$/i;
const IMAGE_ENDING = /\.(?:png|jpe?g|gif|webp|avif|bmp|tiff?|heic)$/i;
const CONTEXT_ID_MAX = 256;

/**
 * Turns a request in parts into the body of a chat request. Throws GatewayError `unprocessable` for a file that no
 * chat model takes.
 */
function toChatBody(model: string, ask: TargetRequest): ChatBody {
  const body: ChatBody = { model, messages: ask.turns.map(toMessage), stream: true };
  if (ask.maxTokens !== null) body.max_tokens = ask.maxTokens;
  // A model does not store a conversation, but the same provider may have the beginning of the prompt in its cache.
  if (ask.contextId !== null && ask.contextId.length <= CONTEXT_ID_MAX) body.session_id = ask.contextId;
  return body;
}

function toMessage({ role, parts }: ContentTurn): ChatMessage {
  if (parts.every((part) => part.kind !== 'file')) return { role, content: parts.map(textOf).join('\n') };
  return {
    role,
    content: parts.map((part): ContentPart =>
      part.kind === 'file' ? toImage(part) : { type: 'text', text: textOf(part) },
    ),
  };
}

function textOf(part: Exclude<Part, FilePart>): string {
  return part.kind === 'text' ? part.text : JSON.stringify(part.data);
}

function toImage({ mediaType, name, url, bytes }: FilePart): ContentPart {
  const what = [name, mediaType].filter((word) => word !== null).map((word) => JSON.stringify(word.slice(0, 64)));
  if (bytes !== null && mediaType !== null && IMAGE.test(mediaType)) {
    const picture = pictureOf(mediaType, bytes);
    if (picture === null)
      throw new GatewayError('invalid_request', `The bytes of the file ${what.join(', ')} are not base64`);
    return { type: 'image_url', image_url: { url: picture } };
  }
  if (url !== null && isImage(mediaType, url)) return { type: 'image_url', image_url: { url } };
  throw new GatewayError(
    'unprocessable',
    `A chat model cannot take the file${what.length ? ` ${what.join(', ')}` : ''}: it takes images, as base64 with a media type such as image/png or at an https URL, and text`,
  );
}

/** Whether a URL is that of an image. Without a media type, the extension in the URL decides. */
function isImage(mediaType: string | null, url: string): boolean {
  const parsed = URL.parse(url);
  if (parsed?.protocol !== 'https:') return false;
  return mediaType === null ? IMAGE_ENDING.test(parsed.pathname) : mediaType.startsWith('image/');
}

/**
 * Wraps the reader of a chat stream, so that only what belongs to the answer of the model goes out, and its end is that
 * of any target adapter. Counting, billing and errors stay the same.
 */
class AnswerReader implements ReplyReader<ContentResult, EventBatch> {
  readonly #reader: ReplyReader<ChatResult, ChatPiece>;

  constructor(reader: ReplyReader<ChatResult, ChatPiece>) {
    this.#reader = reader;
  }

  get finished(): boolean {
    return this.#reader.finished ?? false;
  }

  get storedBytes(): number | undefined {
    return this.#reader.storedBytes;
  }

  head(status: number, headers: Parameters<ReplyReader['head']>[1]): void {
    this.#reader.head(status, headers);
  }

  failure(status: number, body: Uint8Array): UpstreamFailure {
    return this.#reader.failure(status, body);
  }

  data(chunks: readonly Uint8Array[]): EventBatch | null {
    return answerOf(this.#reader.data(chunks));
  }

  end(): AnswerEnd {
    return toEnd(this.#reader.end());
  }

  cut(cut: Cut): AnswerEnd {
    return toEnd(this.#reader.cut(cut));
  }
}

type AnswerEnd = ReturnType<ReplyReader<ContentResult, EventBatch>['end']>;

function toEnd(end: ReplyEnd<ChatResult>): AnswerEnd {
  const { before, usage, cut } = end.result;
  return { ...end, rest: answerOf(before), result: toContentResult(end, usage, cut) };
}

function answerOf(piece: ChatPiece | null): EventBatch | null {
  if (piece === null || piece instanceof Uint8Array) return null;
  return eventBatch(
    piece.events.filter(({ type }) => type === 'text-delta' || type === 'file'),
    piece.byteLength,
  );
}

function toContentResult(
  { outcome, finishReason }: ReplyEnd,
  usage: ChatResult['usage'],
  cut: ChatResult['cut'],
): ContentResult {
  const failed = outcome === 'free';
  const ended = outcome === 'over_cap' || finishReason === 'length' ? 'length' : 'stop';
  return {
    finish: failed ? 'failed' : cut ? 'cut' : ended,
    error: failed
      ? finishReason === 'error'
        ? 'the model ended with an error'
        : 'the model returned no output'
      : (cut?.message ?? null),
    taskId: null,
    contextId: null,
    promptTokens: count(usage['prompt_tokens']),
    completionTokens: count(usage['completion_tokens']),
  };
}

const count = (value: unknown) => (typeof value === 'number' ? value : 0);

interface QuotableDeps {
  readonly config: Pick<Config, 'limits' | 'upstream' | 'billing'>;
  readonly catalog: Pick<Catalog, 'knows' | 'resolve'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/**
 * Turns the body of a call of a model, of chat or of a kind that has quotes, into a call that a quote can be made for.
 * Throws GatewayError.
 */
export function quotableModel({ config, catalog, now }: QuotableDeps): Quotable {
  const checkChat = createCheck<ChatBody>(chatSchema(config.limits.messagesMax));
  const { replyBytesMax } = config.upstream;
  const { receipts } = config.billing;
  return (body, quotable) => {
    const context = { ...quotable, replyBytesMax, receipts, payment: null };
    const kind = quotedKind(body, catalog);
    if (kind !== null) return KIND_ROUTES[kind].quoted(body, context);
    return toCall(checkChat(withModel(body)), { ...context, now: now() }).request;
  };
}

/**
 * The kind of which a body lacks the fewest fields, and of these the one of which it has most; null for chat. Of kinds
 * with the same fields it is that of the model.
 */
function quotedKind(body: Readonly<Record<string, unknown>>, catalog: QuotableDeps['catalog']): ModelKind | null {
  if (Object.hasOwn(body, 'messages')) return null;
  const kinds = KINDS_OF_MODELS.map(([kind, { quotedBy = [] }]) => {
    const has = quotedBy.filter((field) => Object.hasOwn(body, field)).length;
    return { kind, has, lacks: quotedBy.length - has };
  })
    .filter(({ has }) => has > 0)
    .toSorted((one, other) => one.lacks - other.lacks || other.has - one.has);
  const alike = kinds.filter(({ has, lacks }) => has === kinds[0]!.has && lacks === kinds[0]!.lacks);
  const name = body['model'];
  if (alike.length < 2 || typeof name !== 'string' || !catalog.knows(name, 'model')) return alike[0]?.kind ?? null;
  const { model } = catalog.resolve(name, 'model').offers[0]!;
  return (alike.find(({ kind }) => isOfKind(model!, kind)) ?? alike[0]!).kind;
}
