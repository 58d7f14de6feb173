import { hash } from 'node:crypto';
import {
  type Answer,
  type Call,
  type Caller,
  type CallRequest,
  type Conversation,
  elementsOf,
  errorText,
  formatUsd,
  GatewayError,
  type Idempotency,
  idempotencyError,
  membersOf,
  newCallId,
  NO_PREFERENCES,
  type Offer,
  onceOnly,
  type PaymentTerms,
  type Pipeline,
  printable,
  RawJsonError,
  type ReplyEnd,
  type RequestMessage,
  resultText,
  type SettledFrame,
  splice,
  UpstreamFailure,
} from '#gateway';
import { asksForMoney, toMcpError, worthTelling } from './errors-mcp.ts';
import { keptOutcome, withId } from './kept-outcome.ts';
import { LISTEN_MS } from './listen-places.ts';
import { paramHeaderFault } from './param-headers.ts';
import { paymentRequired } from './payment-required.ts';
import { withMeta } from './meta.ts';
import { ERROR, MODERN, modernStatusOf, type MethodRule } from './revisions.ts';
import type { Servers } from './servers.ts';
import { hasOwnPrice, priceOfTool } from './tool-price.ts';
import type { Continued, Leg, McpTail, ServerFacts, Turn } from './turn.ts';

export interface RunTurnDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly idempotency: Idempotency;
  readonly servers: Servers;
  readonly terms: PaymentTerms;
  readonly legs: Readonly<Record<'modern' | 'legacy' | 'bare', Readonly<Record<ServerFacts['era'], Leg>>>>;
  /** Input schema of a tool; null where it is not known. */
  readonly schemaOf: (offer: Offer, tool: string) => unknown;
  /** Whether another provider of the service has this tool, and this one has not. */
  readonly lacks: (offer: Offer, tool: string) => boolean;
  /** Puts prices and pins into the result of a `tools/list`. */
  readonly decorate: (result: string, offer: Offer, turn: Turn) => string;
  /** Told of runs that fail in a way that no wire has a word for. */
  readonly onError: (error: unknown) => void;
}

/** What the door knows of a request beside the turn. */
export interface TurnRequest {
  readonly turn: Omit<Turn, 'callId'>;
  readonly rule: MethodRule;
  readonly requestId: string;
  readonly traceparent: string | null;
  readonly wantsReceipt: boolean;
  /** null without one. */
  readonly idempotencyKey: string | null;
  /** Names that `prepare` resolves; the pinned form of a session's or a continuation's offer. */
  readonly target: string;
}

export type RunTurn = (request: TurnRequest, answer: Answer, gone: AbortSignal) => Promise<void>;

/** Takes one request through the pipeline and writes its answer. Never throws: what goes wrong is the answer. */
export function createRunTurn(deps: RunTurnDeps): RunTurn {
  return async (request, answer, gone) => {
    const turn: Turn = { ...request.turn, callId: newCallId() };
    const { idText } = turn.message;
    try {
      if (request.idempotencyKey === null || request.rule.billing === 'free') await run(deps, request, turn, answer, gone);
      else await runOnce(deps, request, turn, request.idempotencyKey, answer);
    } catch (error) {
      const told = worthTelling(error);
      if (told !== null) deps.onError(told);
      const { status, headers, text } = toMcpError(error, idText);
      // Clients with a session take another status than 200 for a broken connection.
      answer.end(text, turn.client === 'legacy' ? 200 : status, headers);
    }
  };
}

async function run(deps: RunTurnDeps, request: TurnRequest, turn: Turn, answer: Answer, gone: AbortSignal): Promise<SettledFrame | null> {
  let call: Call | null = null;
  try {
    call = await deps.pipeline.prepare(toCallRequest(deps, request, turn), turn.callId);
    for await (const frame of deps.pipeline.run(call, gone)) {
      if (frame.type === 'data') await answer.events(frame.bytes);
      if (frame.type !== 'settled') continue;
      write(call, frame, answer);
      return frame;
    }
    return null;
  } catch (error) {
    if (call === null || request.rule.billing === 'free' || !asksForMoney(error)) throw error;
    const amount = call.candidates.reduce((least, { estimate }) => (estimate < least ? estimate : least), call.candidates[0]!.estimate);
    answer.end(resultText(turn.message.idText, paymentRequired(deps.terms, turn, error, amount)), 200);
    return null;
  }
}

/**
 * A request with an idempotency key runs once, to its end even when its client leaves; its outcome is repeated, under the id of whoever asks again:
 * a result, an error of the server, or what it asks. What never reached an end is not kept.
 */
async function runOnce(deps: RunTurnDeps, request: TurnRequest, turn: Turn, key: string, answer: Answer): Promise<void> {
  const { idempotency } = deps;
  const { idText } = turn.message;
  const use = {
    account: turn.caller.account,
    key: roundOf(key, turn.continued, turn.message),
    callId: turn.callId,
    bodyHash: digestOf(request, turn),
  };
  const beginning = await idempotency.begin(use);
  if (beginning.kind === 'replay') return answer.end(withId(idText, beginning), beginning.status, { 'idempotent-replayed': 'true' });
  if (beginning.kind !== 'new') throw idempotencyError(beginning.kind);
  const kept: { last: Parameters<Answer['end']> | null } = { last: null };
  const recording: Answer = {
    events: (bytes) => answer.events(bytes),
    end(...last) {
      kept.last = last;
    },
    close: () => {},
  };
  let settled: SettledFrame | null;
  try {
    settled = await run(deps, request, turn, recording, new AbortController().signal);
  } catch (error) {
    await idempotency.abandon(use);
    throw error;
  }
  if (settled && kept.last) await idempotency.finish(use, keptOutcome(kept.last[0], kept.last[1], settled.settlement.charged > 0n));
  else await idempotency.abandon(use);
  if (kept.last) answer.end(...kept.last);
  else answer.close();
}

/** A client sends its key again with each round of one call; each is another request. */
function roundOf(key: string, continued: Continued | null, { params }: RequestMessage): string {
  return continued === null ? key : `${key} ${hash('sha256', String(params?.['requestState'])).slice(0, 16)}`;
}

/** What makes two requests the same: the tool and its arguments as they are written, and what the client answers to a round. Ids and tokens differ. */
function digestOf({ target }: TurnRequest, { message }: Turn): string {
  const whole = message.members.get('params');
  const params = whole && membersOf(message.text, whole.start);
  const parts = ['name', 'arguments', 'inputResponses'].map((key) => {
    const member = params?.get(key);
    return member ? message.text.slice(member.start, member.end) : null;
  });
  return hash('sha256', JSON.stringify([target, message.method, ...parts]));
}

function toCallRequest(deps: RunTurnDeps, request: TurnRequest, turn: Turn): CallRequest {
  const { message, caller, continued } = turn;
  const billed = request.rule.billing === 'billed';
  const tool = billed ? toolOf(message) : null;
  return {
    primitive: 'tool',
    caller,
    requestId: request.requestId,
    targets: [continued === null ? request.target : pinned(continued.offerId)],
    preferences: NO_PREFERENCES,
    stickyKey: stickyKeyOf(caller),
    images: 0,
    stream: turn.events,
    exchange: conversationOf(deps, turn),
    operation: tool,
    free: billed ? null : message.method,
    facts: factsOf(turn),
    continues: billed ? (continued?.callId ?? null) : null,
    price: (offer) => priceOfTool(offer, tool),
    estimate(offer) {
      if (tool !== null && deps.lacks(offer, tool))
        throw new GatewayError('unprocessable', `${offer.provider.name} has no tool ${printable(tool)}`, { param: 'name' });
      if (continued !== null && continued.price !== priceOfTool(offer, tool).id)
        throw new GatewayError('unprocessable', PRICE_CHANGED, { param: 'params.requestState' });
      return offer.priceCap !== null && !hasOwnPrice(offer, tool) ? { costMax: offer.priceCap } : { call: 1n };
    },
    metadata: null,
    traceparent: request.traceparent,
    wantsReceipt: request.wantsReceipt,
    ...(message.method === 'subscriptions/listen' ? { timeoutMs: LISTEN_CALL_MS } : {}),
  };
}

/** A stream that only listens is ended before the clock of its call ends it. */
const LISTEN_CALL_MS = LISTEN_MS + 60_000;

const PRICE_CHANGED = 'The price of this tool has changed since the call began: make the request again from its beginning';

const TOOL_NAME_MAX = 256;

/** The tool that a call names. Throws GatewayError `invalid_request`. */
function toolOf({ params }: RequestMessage): string {
  const name = params?.['name'];
  // Its end would never be seen here, and what is done in between would be nobody's to pay.
  if (params?.['task'] !== undefined)
    throw new GatewayError('invalid_request', 'Tasks are not carried: call the tool without params.task', { param: 'params.task' });
  if (typeof name === 'string' && name !== '' && name.length <= TOOL_NAME_MAX) return name;
  throw new GatewayError('invalid_request', `params.name must be the name of a tool, 1 to ${TOOL_NAME_MAX} characters`, { param: 'params.name' });
}

/** What the span of the call says of the protocol, by the names of the semantic conventions. */
function factsOf({ client, message: { idText, method, params }, session }: Turn): Readonly<Record<string, string>> {
  const uri = params?.['uri'];
  const prompt = method === 'prompts/get' ? params?.['name'] : undefined;
  return {
    'jsonrpc.request.id': idText.replace(/^"(.*)"$/, '$1'),
    'mcp.protocol.version': session?.revision ?? (client === 'modern' ? MODERN : 'none'),
    ...(session ? { 'mcp.session.id': session.id } : {}),
    ...(typeof uri === 'string' ? { 'mcp.resource.uri': uri } : {}),
    ...(typeof prompt === 'string' ? { 'gen_ai.prompt.name': prompt } : {}),
  };
}

/** One caller's requests for a service go to one of its providers while it is well: what one of them lists, the next may not have. */
const stickyKeyOf = ({ account }: Caller): string => `${account} mcp`;

/** The direct form of an offer's name, which is its id without the primitive. */
export const pinned = (offerId: string): string => offerId.slice(offerId.indexOf('/') + 1);

function conversationOf({ servers, legs, schemaOf, decorate }: RunTurnDeps, turn: Turn): Conversation {
  return {
    async *converse(offer, send, signal, detached) {
      const { message, client } = turn;
      if (client === 'modern' && turn.paramHeaders !== null && message.method === 'tools/call') {
        const fault = paramHeaderFault(schemaOf(offer, String(message.params?.['name'])), message.params?.['arguments'], turn.paramHeaders);
        if (fault) return refusal(turn, ERROR.headerMismatch, `Header mismatch: ${fault}`);
      }
      const facts = await servers.facts(offer, send, signal);
      let end: ReplyEnd;
      try {
        end = yield* legs[client][facts.era](turn, { offer, facts, send, detached, signal });
      } catch (error) {
        throw message.method === 'tools/call' ? onceOnly(readable(error)) : readable(error);
      }
      return message.method === 'tools/list' ? decorated(end, (result) => decorate(result, offer, turn)) : end;
    },
  };
}

/** What a leg could not read is its server's failure. */
function readable(error: unknown): unknown {
  if (!(error instanceof RawJsonError)) return error;
  return new UpstreamFailure(`the provider's answer is no MCP: ${error.message}`, { retryable: false, blame: 'provider', cause: error });
}

/** An error that the gateway itself gives in the middle of a call. */
function refusal({ message }: Turn, code: number, text: string): ReplyEnd {
  const tail: McpTail = { text: errorText(message.idText, { code, message: text }), status: modernStatusOf(code) };
  return { usage: null, outcome: 'free', estimated: false, finishReason: `error ${code}`, flags: [], tail };
}

function decorated(end: ReplyEnd, change: (result: string) => string): ReplyEnd {
  const tail = end.tail as McpTail | null;
  const result = tail === null ? undefined : membersOf(tail.text).get('result');
  if (!tail || !result) return end;
  const given = tail.text.slice(result.start, result.end);
  checkList(given);
  return { ...end, tail: { ...tail, text: splice(tail.text, [{ ...result, text: change(given) }]) } };
}

/** What cannot be read is not passed on, as a server could say in it that its tools cost something else. Throws UpstreamFailure. */
function checkList(result: string): void {
  try {
    const tools = membersOf(result).get('tools');
    if (!tools || result[tools.start] !== '[' || elementsOf(result, tools.start, TOOLS_MAX + 1).length <= TOOLS_MAX) return;
  } catch (error) {
    throw readable(error);
  }
  throw new UpstreamFailure(`it lists more than ${TOOLS_MAX} tools at once`, { retryable: false, blame: 'provider' });
}

const TOOLS_MAX = 10_000;

/** The response after its settlement; that of a billed call says in `_meta` what it cost. */
function write(call: Call, frame: SettledFrame, answer: Answer): void {
  const tail = frame.tail as McpTail | null;
  if (tail === null) return answer.close();
  if (call.free !== null) return answer.end(tail.text, tail.status, {}, tail.eventId);
  const cost = formatUsd(frame.settlement.charged);
  answer.end(withCost(tail, call, cost, frame.receipt), tail.status, { 'x-generation-id': call.id, 'x-cost-usd': cost }, tail.eventId);
}

function withCost({ text, message }: McpTail, { id }: Call, cost: string, receipt: string | null): string {
  const read = message?.text === text ? message : null;
  if (!(read?.members ?? membersOf(text)).has('result')) return text;
  const generation = { 'tollgate/generation': JSON.stringify({ id, cost, currency: 'USDC' }) };
  // What a server writes there itself is no receipt of this gateway.
  const told = { ...generation, 'tollgate/receipt': receipt === null ? null : JSON.stringify(receipt) };
  try {
    return withMeta(text, 'result', told, read);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    // A key stands twice in what is paid for by now: the last counts, as for most who read it.
    return withMeta(JSON.stringify(JSON.parse(text)), 'result', told);
  }
}
