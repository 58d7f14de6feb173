import type { ClientAnswer } from '#http';
import { GatewayError } from '#errors';
import { isObject } from '#wire';
import { printable } from '#security';
import type { RequestMessage } from '#json-rpc';
import type { CancelSignal, ReplyPiece } from '#billing/amounts';
import { pinned, type Offer, nearestHint, type Catalog } from '#catalog';
import type { Access, Caller } from '#accounts';
import { capCost, type CallRequest, NO_PREFERENCES, type ProviderAdapter } from '#call';
import { LISTEN_MS } from '#limits';
import type { AnswerCall, CallForm } from './answer-call.ts';
import type { McpRequest, McpResponse } from '../request/mcp-request.ts';
import { MODERN } from '../wire/revisions.ts';
import { TOOL_NAME_MAX } from '../shapes/definitions.ts';
import { hasOwnPrice, priceOfTool } from '../request/ending.ts';
import { UpstreamAdapter, type UpstreamAdapterDeps } from './upstream-adapter.ts';
import type { ToolCatalogue } from '../catalogue/tool-catalogue.ts';
import { allWithin } from '../request/waiting.ts';

interface RunRequestDeps extends RequestCallDeps {
  readonly answerCall: AnswerCall;
  readonly unlistedTool: UnlistedTool;
}

export type RunRequest = (request: McpRequest, answer: ClientAnswer, gone: CancelSignal) => Promise<void>;

export function createRunRequest({ answerCall, unlistedTool, ...deps }: RunRequestDeps): RunRequest {
  const passed: CallForm<McpResponse | null, Uint8Array> = {
    call: (request) => requestCall(deps, request, new UpstreamAdapter(deps, request)),
    unlisted: unlistedTool,
    events: (bytes) => bytes,
    response: (result) => result,
  };
  return (request, answer, gone) => answerCall(request, passed, answer, gone);
}

export interface RequestCallDeps extends UpstreamAdapterDeps {
  /**
   * The error of a call of a tool that this provider does not have, or that it would have to list for these rules; null
   * if it may be called.
   */
  readonly refusal: (offer: Offer, tool: string, access: Access | null) => GatewayError | null;
  /** Of the offers of a target, those that may be called for a tool, or, with null, that may speak for the service. */
  readonly admitted: (offers: readonly Offer[], tool: string | null) => readonly Offer[];
}

/**
 * A client's request in the form that the pipeline takes. `adapter` takes it to a server. Throws GatewayError
 * `invalid_request` for a call that names no tool.
 */
export function requestCall<R, D extends ReplyPiece>(
  { refusal, admitted }: RequestCallDeps,
  request: McpRequest,
  adapter: ProviderAdapter<R, D>,
): CallRequest<R, D> {
  const { message, caller, continued } = request;
  const billed = request.rule.billing === 'billed';
  const tool = billed ? toolOf(message) : null;
  if (billed) refuseOtherThanObject(message);
  const callRequest: CallRequest<R, D> = {
    primitive: 'tool',
    caller,
    requestId: request.requestId,
    targets: [continued === null ? request.target : pinned(continued.offerId)],
    preferences: NO_PREFERENCES,
    stickyKey: stickyKeyOf(caller),
    images: 0,
    stream: request.events,
    adapter,
    operation: tool,
    admitted: (offers) => admitted(offers, tool),
    free: billed ? null : message.method,
    ...(request.rule.whole ? { whole: true } : {}),
    facts: () => factsOf(request),
    continues: billed ? (continued?.callId ?? null) : null,
    price: (offer) => priceOfTool(offer, tool),
    estimate(offer) {
      const refused = tool === null ? null : refusal(offer, tool, caller.key?.access ?? null);
      if (refused !== null) throw refused;
      if (continued !== null && continued.price !== priceOfTool(offer, tool).id)
        throw new GatewayError('unprocessable', PRICE_CHANGED, { param: 'params.requestState' });
      return offer.priceCap !== null && !hasOwnPrice(offer, tool) ? { costMax: offer.priceCap } : { call: 1n };
    },
    metadata: null,
    traceparent: request.traceparent,
    wantsReceipt: request.wantsReceipt,
    payment: request.payment,
    // A later round of a call keeps the price of its first round.
    quote: continued === null ? request.quote : null,
    ...(message.method === 'subscriptions/listen' ? { timeoutMs: LISTEN_CALL_MS } : {}),
  };
  return capCost(callRequest, request.cap);
}

/** Longer than LISTEN_MS, so that the listening stream ends before the timeout of its call. */
const LISTEN_CALL_MS = LISTEN_MS + 60_000;

const PRICE_CHANGED =
  'The price of this tool has changed since the call began. Repeat the request without requestState';

/** The tool that a call names. Throws GatewayError `invalid_request` without a valid name. */
function toolOf({ params }: RequestMessage): string {
  const name = params?.['name'];
  if (typeof name === 'string' && name !== '' && name.length <= TOOL_NAME_MAX) return name;
  throw new GatewayError(
    'invalid_request',
    `params.name must be the name of a tool, 1 to ${TOOL_NAME_MAX} characters`,
    { param: 'params.name' },
  );
}

/**
 * Refuses arguments that are not an object, because servers treat them differently and some run the tool. Throws
 * GatewayError `invalid_request`.
 */
function refuseOtherThanObject({ params }: RequestMessage): void {
  const args = params?.['arguments'];
  if (args === undefined || isObject(args)) return;
  const what = Array.isArray(args) ? 'an array' : `a ${typeof args}`;
  throw new GatewayError(
    'invalid_request',
    `params.arguments is ${what}: it must be an object, {} for a tool that takes none`,
    {
      param: 'params.arguments',
    },
  );
}

/** Attributes of the call's span. The names are those of the semantic conventions. */
function factsOf({
  client,
  message: { idText, method, params },
  session,
}: McpRequest): Readonly<Record<string, string>> {
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
 * A caller's requests for a service go to the same provider as long as it is healthy, because another provider may list
 * other things.
 */
const stickyKeyOf = ({ account }: Caller): string => `${account} mcp`;

interface UnlistedToolDeps {
  readonly catalog: Pick<Catalog, 'resolve'>;
  readonly catalogue: Pick<ToolCatalogue, 'listingOf' | 'renewed'>;
}

/**
 * The error of a call of a tool that no provider of the target lists; null if one lists it, or may have it beyond the
 * lists that are known here. For calls that are refused because money is missing: nobody should pay to learn that there
 * is no such tool. All other calls go to the server, which knows better.
 */
type UnlistedTool = (request: Pick<McpRequest, 'target' | 'message'>) => Promise<GatewayError | null>;

/** How long a refusal waits for servers that are asked for their lists again. */
const RENEWED_WITHIN_MS = 3_000;

export function createUnlistedTool({ catalog, catalogue }: UnlistedToolDeps): UnlistedTool {
  const lacks = (offer: Offer, tool: string) => {
    const listing = catalogue.listingOf(offer);
    return listing !== null && !listing.truncated && !listing.tools.has(tool);
  };
  return async ({ target, message: { params } }) => {
    const tool = String(params?.['name']);
    const { offers } = catalog.resolve(target, 'tool');
    const isUnlisted = () => offers.every((offer) => lacks(offer, tool));
    if (!isUnlisted()) return null;
    // The tool may be newer than the lists.
    await allWithin(RENEWED_WITHIN_MS, offers.map(catalogue.renewed));
    if (!isUnlisted()) return null;
    const names = new Set(offers.flatMap((offer) => [...(catalogue.listingOf(offer)?.tools.keys() ?? [])]));
    const hint = nearestHint(tool, names) || 'tools/list shows all';
    return new GatewayError('invalid_request', `There is no tool ${printable(tool)} here. ${hint}`, {
      param: 'params.name',
    });
  };
}
