import type { OnRefused } from '#limits';
import { hash } from 'node:crypto';
import type { ClientAnswer } from '#http';
import type { GatewayError } from '#errors';
import {
  isPromise,
  lengthOf,
  membersOf,
  RawJsonError,
  editText,
  type MarkedText,
  piecesOfText,
  wholePiece,
  parseExact,
} from '#wire';
import { errorText, resultText } from '#json-rpc';
import type { CancelSignal, ReplyPiece, SettledFrame } from '#billing/amounts';
import {
  type Call,
  type CallRequest,
  costOf,
  idempotencyError,
  openCall,
  type StartedProviderCall,
  type Pipeline,
  type RepeatKey,
  handlePaidRequest,
  type PaidRequestDeps,
  type TakenKey,
  spentOn,
  type ResponseRecord,
  type GivenReply,
  KEPT_BYTES_MAX,
} from '#call';
import { mayAsk, withContent } from '#accounts';
import { requestKey } from '#payments';
import type { KeptReplies, Around } from '#files';
import { statusInSession, toMcpError, worthTelling } from '../wire/errors-mcp.ts';
import { askToOpen, DECISION_WAIT_MS } from '../request/approval.ts';
import { contentOf, paymentRequired, requestDigest } from '../request/paid-request.ts';
import type { McpResponse, McpRequest } from '../request/mcp-request.ts';
import { withMeta } from '../wire/meta.ts';
import { X402 } from '../wire/revisions.ts';

export interface AnswerCallDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly paid: PaidRequestDeps;
  /** Stores outcomes that are too large for the database. Default: they are not stored. */
  readonly largeReplies?: KeptReplies;
  /** Called with internal errors, and with the cause of an unavailable service. */
  readonly onError: (error: unknown) => void;
  /** Told of requests that were refused before they became calls. `target`: the service, with the protocol. */
  readonly onRefused?: OnRefused | undefined;
}

/** How requests become calls, and their results answers. `R`: the call's result; `D`: what its data frames hold. */
export interface CallForm<R = unknown, D extends ReplyPiece = ReplyPiece> {
  /** Makes the call of a request, which has its `callId` and `clientGone`. Rejects with GatewayError. */
  call(request: McpRequest): CallRequest<R, D> | Promise<CallRequest<R, D>>;
  /** Turns the content of a data frame into whole events for the client; null if there is nothing to write. */
  events(data: D): Uint8Array | null;
  /** The error of a call of something that nobody offers, which is told instead of asking for money. Default: none. */
  unlisted?(request: McpRequest): Promise<GatewayError | null>;
  response(result: R | null): McpResponse | null;
  /**
   * Turns an error before the call began into a result (JSON text), if the caller of a tool can correct it. Null for a
   * JSON-RPC error.
   */
  errorResult?(error: unknown): string | null;
}

export type AnswerCall = <R, D extends ReplyPiece>(
  request: McpRequest,
  form: CallForm<R, D>,
  answer: ClientAnswer,
  gone: CancelSignal,
) => Promise<void>;

/** Runs one request as a call and writes its answer. Never rejects: an error becomes the answer. */
export function createAnswerCall({ pipeline, paid, onError, onRefused, largeReplies }: AnswerCallDeps): AnswerCall {
  /** Stores a large outcome of a charged call. If this fails, a repeated request does not get the outcome. */
  const keepLarge: KeepLarge = async ({ caller, id }, status, pieces) => {
    if (largeReplies?.takes(lengthOf(pieces)))
      await largeReplies.keep(caller.account, id, { status, headers: {} }, pieces).catch(onError);
  };
  const repeatLarge = async ({ caller, message }: McpRequest, answer: ClientAnswer, key: TakenKey) => {
    const client = largeReplies ? answer.body() : null;
    if (client === null) throw idempotencyError(key.kind);
    await largeReplies!.repeat(caller.account, key, client, aroundOutcome(message.idText));
  };
  return async <R, D extends ReplyPiece>(
    request: McpRequest,
    form: CallForm<R, D>,
    answer: ClientAnswer,
    gone: CancelSignal,
  ) => {
    let isOpen = false;
    const { idText } = request.message;
    const isFree = request.rule.billing === 'free';
    try {
      await handlePaidRequest<StartedProviderCall<R, D>>(paid, {
        caller: request.caller,
        repeats: isFree ? null : repeatsOf(request, (key) => repeatLarge(request, answer, key)),
        gone,
        async open(callId, clientGone) {
          request.callId = callId;
          request.clientGone = clientGone;
          const making = form.call(request);
          const callRequest = isPromise(making) ? await making : making;
          const asking = mayAsk(callRequest.caller) ? askable(callRequest, request) : callRequest;
          const opening = openCall(pipeline, asking, callId, clientGone);
          const call = isPromise(opening) ? await opening : opening;
          isOpen = true;
          return call;
        },
        write: (call, isKept) => write(form, call, answer, isKept ? keepLarge : null),
        replay: (reply) => answer.end(withId(idText, reply), reply.status, REPLAYED),
        async refuse(refusal) {
          const unlisted = (await form.unlisted?.(request)) ?? null;
          if (unlisted !== null) throw unlisted;
          const result = await paymentRequired(request, refusal);
          return { storedReply: () => null, charged: false, end: () => answer.end(resultText(idText, result), 200) };
        },
      });
    } catch (error) {
      // Nobody waits for the answer to a request that was cancelled, or whose session has ended.
      if (isOpen && gone.aborted) return answer.close();
      if (!isOpen) {
        const { caller, service, requestId } = request;
        onRefused?.({ error, caller, target: `MCP ${service}`, requestId });
      }
      const open = askToOpen(error, request);
      if (open !== null && 'result' in open) return answer.end(resultText(idText, open.result), 200);
      if (open !== null) return answer.end(errorText(idText, open.error), 200);
      const result = isOpen ? null : form.errorResult?.(error);
      if (typeof result === 'string') return answer.end(resultText(idText, result), 200);
      const fault = worthTelling(error);
      if (fault !== null) onError(fault);
      const more = request.payment?.receipt ? { [X402.response]: request.payment.receipt } : {};
      const reply = toMcpError(error, idText, more);
      answer.end(reply.text, request.client === 'legacy' ? statusInSession(reply) : reply.status, reply.headers);
    }
  };
}

/**
 * A repeated request gets the outcome of the first one, with its own id. The key includes the round, because clients
 * send the same key with each round of a call and each round is a different request.
 */
function repeatsOf(request: McpRequest, onTaken: NonNullable<RepeatKey['takeKey']>): RepeatKey | null {
  const { caller, payment, idempotencyKey, continued, message, target } = request;
  const key = requestKey(caller, payment, idempotencyKey);
  if (key === null) return null;
  const round = continued === null ? '' : ` ${hash('sha256', String(message.params?.['requestState'])).slice(0, 16)}`;
  return { key: key + round, bodyHash: requestDigest(target, message, true), takeKey: onTaken };
}

function askable<R, D extends ReplyPiece>(
  call: CallRequest<R, D>,
  { service, message, elicitationAction }: McpRequest,
): CallRequest<R, D> {
  const waitMs = elicitationAction === 'accept' ? DECISION_WAIT_MS : 0;
  return { ...call, caller: withContent(call.caller, service, contentOf(message), waitMs) };
}

/** Writes events as they come. The response is the end of the answer. */
async function write<R, D extends ReplyPiece>(
  form: CallForm<R, D>,
  { call, frames }: StartedProviderCall<R, D>,
  answer: ClientAnswer,
  keepLarge: KeepLarge | null,
): Promise<ResponseRecord> {
  for await (const frame of frames) {
    if (frame.type === 'data') {
      const events = form.events(frame.data);
      if (events !== null) await answer.events(events);
    }
    if (frame.type === 'settled') return written(form.response(frame.result), call, frame, answer, keepLarge);
  }
  return { storedReply: () => null, charged: false, end: () => answer.close() };
}

type KeepLarge = (call: Call, status: number, pieces: readonly Uint8Array[]) => Promise<void>;

async function written(
  response: McpResponse | null,
  call: Call,
  frame: SettledFrame,
  answer: ClientAnswer,
  keepLarge: KeepLarge | null,
): Promise<ResponseRecord> {
  if (response === null) return { storedReply: () => null, charged: false, end: () => answer.close() };
  const { status, eventId, large, pending = false } = response;
  const marked = (text: string) => (large === undefined ? text : { text, large });
  if (call.free !== null)
    return {
      storedReply: () => null,
      charged: false,
      end: () => answer.end(marked(response.text), status, {}, eventId),
    };
  const cost = frame.pending ? null : costOf(frame);
  const headers = { 'x-generation-id': call.id, ...(cost === null ? {} : { 'x-cost-usd': cost.cost }) };
  const text = marked(withCost(response, call, cost, frame.receipt));
  const charged = spentOn(frame) > 0n || pending;
  const end = () => answer.end(text, status, headers, eventId);
  if (keepLarge === null) return { storedReply: () => null, charged, end };
  const pieces = outcomePieces(text);
  if (charged) await keepLarge(call, status, pieces);
  return { storedReply: () => keptOutcome(pieces, status), charged, end };
}

/**
 * The response of a billed call, with its cost in the `_meta` of the result. `cost` is in USDC; null while it is not
 * known. A response without a result is unchanged.
 */
function withCost(
  { text, message }: McpResponse,
  { id, payment }: Pick<Call, 'id' | 'payment'>,
  cost: ReturnType<typeof costOf> | null,
  receipt: string | null,
): string {
  const read = message?.text === text ? message : null;
  if (!(read?.members ?? membersOf(text)).has('result')) return text;
  const generation = { 'tollgate/generation': JSON.stringify({ id, ...cost }) };
  // Null removes a value that the server wrote, because it is not a receipt of this gateway.
  const meta = {
    ...generation,
    'tollgate/receipt': receipt === null ? null : JSON.stringify(receipt),
    [X402.response]: payment?.receipt ? JSON.stringify(payment.receipt) : null,
  };
  try {
    return withMeta(text, 'result', meta, read);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    // A key occurs twice. The response is already paid for, so it is parsed: the last value counts, as for most
    // readers.
    return withMeta(JSON.stringify(parseExact(text)), 'result', meta);
  }
}

/** A response without its id, as pieces: `"result":…` or `"error":…`. */
const outcomePieces = (text: string | MarkedText): readonly Uint8Array[] => piecesOfText(editText(text, outcomeOf));

/** An outcome in the form that the database stores. */
const keptOutcome = (pieces: readonly Uint8Array[], status: number): GivenReply => ({
  status,
  headers: {},
  body: wholePiece(pieces, KEPT_BYTES_MAX.charged),
});

const outcomeOf = (text: string): string =>
  [...membersOf(text)]
    .filter(([key]) => key === 'result' || key === 'error')
    .map(([key, { start, end }]) => `"${key}":${text.slice(start, end)}`)
    .join(',');

const REPLAYED = { 'idempotent-replayed': 'true' } as const;

const aroundOutcome = (idText: string): Around => ({
  before: `{"jsonrpc":"2.0","id":${idText},`,
  after: '}',
  headers: REPLAYED,
});

/** A stored outcome as the response to the repeated request with this id. */
function withId(idText: string, { body }: { readonly body: Uint8Array }): string {
  const { before, after } = aroundOutcome(idText);
  return before + Buffer.from(body).toString() + after;
}
