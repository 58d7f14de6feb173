import { GatewayError, isObject, printable, type RequestMessage } from '#wire';
import {
  pinned,
  type Caller,
  capCost,
  type CallRequest,
  type CostCap,
  LISTEN_MS,
  NO_PREFERENCES,
  type Offer,
  type PaymentSlip,
  type QuoteAsked,
} from '#gateway';
import { MODERN, type MethodRule } from '../wire/revisions.ts';
import { hasOwnPrice, priceOfTool } from '../turn/tool-price.ts';
import { turnConversation, type TurnConversationDeps } from './turn-conversation.ts';
import type { Turn } from '../turn/turn.ts';

export interface TurnCallDeps extends TurnConversationDeps {
  /** Whether another provider of the service has this tool, and this one has not. */
  readonly lacks: (offer: Offer, tool: string) => boolean;
}

/** The facts that make a call of a turn, beside the turn itself. */
export interface TurnCall {
  readonly rule: MethodRule;
  readonly requestId: string;
  readonly traceparent: string | null;
  readonly wantsReceipt: boolean;
  /** The most that a billed call may cost; default no bound. */
  readonly cap?: CostCap | null;
  /** The quote that a billed call is charged by; default none. */
  readonly quote?: QuoteAsked | null;
  /** The payment that came with it; default none. */
  readonly payment?: PaymentSlip | null;
  /** Names that `prepare` resolves; the pinned form of a session's or a continuation's offer. */
  readonly target: string;
}

/** A turn as the pipeline takes it. Throws GatewayError `invalid_request` for a call that names no tool. */
export function turnCall(deps: TurnCallDeps, request: TurnCall, turn: Turn): CallRequest {
  const { message, caller, continued } = turn;
  const billed = request.rule.billing === 'billed';
  const tool = billed ? toolOf(message) : null;
  if (billed) refuseOtherThanObject(message);
  const asked: CallRequest = {
    primitive: 'tool',
    caller,
    requestId: request.requestId,
    targets: [continued === null ? request.target : pinned(continued.offerId)],
    preferences: NO_PREFERENCES,
    stickyKey: stickyKeyOf(caller),
    images: 0,
    stream: turn.events,
    exchange: turnConversation(deps, turn),
    operation: tool,
    free: billed ? null : message.method,
    facts: () => factsOf(turn),
    continues: billed ? (continued?.callId ?? null) : null,
    price: (offer) => priceOfTool(offer, tool),
    estimate(offer) {
      if (tool !== null && deps.lacks(offer, tool))
        throw new GatewayError('unprocessable', `${offer.provider.name} has no tool ${printable(tool)}`, {
          param: 'name',
        });
      if (continued !== null && continued.price !== priceOfTool(offer, tool).id)
        throw new GatewayError('unprocessable', PRICE_CHANGED, { param: 'params.requestState' });
      return offer.priceCap !== null && !hasOwnPrice(offer, tool) ? { costMax: offer.priceCap } : { call: 1n };
    },
    metadata: null,
    traceparent: request.traceparent,
    wantsReceipt: request.wantsReceipt,
    payment: request.payment ?? null,
    // Another round of a call has the price of its first.
    quote: continued === null ? (request.quote ?? null) : null,
    ...(message.method === 'subscriptions/listen' ? { timeoutMs: LISTEN_CALL_MS } : {}),
  };
  return capCost(asked, request.cap ?? null);
}

/** A stream that only listens is ended before the clock of its call ends it. */
const LISTEN_CALL_MS = LISTEN_MS + 60_000;

const PRICE_CHANGED =
  'The price of this tool has changed since the call began: make the request again from its beginning';

/** Characters of the name of a tool. */
export const TOOL_NAME_MAX = 256;

/** The tool that a call names. Throws GatewayError `invalid_request`. */
function toolOf({ params }: RequestMessage): string {
  const name = params?.['name'];
  if (typeof name === 'string' && name !== '' && name.length <= TOOL_NAME_MAX) return name;
  throw new GatewayError(
    'invalid_request',
    `params.name must be the name of a tool, 1 to ${TOOL_NAME_MAX} characters`,
    { param: 'params.name' },
  );
}

/** Servers differ in what they make of other arguments, and some run. Throws GatewayError `invalid_request`. */
function refuseOtherThanObject({ params }: RequestMessage): void {
  const given = params?.['arguments'];
  if (given === undefined || isObject(given)) return;
  const what = given === null ? 'null' : Array.isArray(given) ? 'an array' : `a ${typeof given}`;
  throw new GatewayError(
    'invalid_request',
    `params.arguments is ${what}: it must be an object, {} for a tool that takes none`,
    {
      param: 'params.arguments',
    },
  );
}

/** Attributes of the call's span, by the names of the semantic conventions. */
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

/**
 * One caller's requests for a service go to one of its providers while it is well: what one of them lists, the next
 * may not have.
 */
const stickyKeyOf = ({ account }: Caller): string => `${account} mcp`;
