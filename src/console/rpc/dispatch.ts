import { createJSONRPCSuccessResponse, JSONRPCServer } from 'json-rpc-2.0';
import type { RequestMessage } from '#json-rpc';
import { isObject, NEVER_ABORTED } from '#wire';
import { MAX_COST_HEADER } from '#call';
import { nearestHint } from '#catalog';
import { CODE, toRpcFault } from './errors-rpc.ts';
import type { InnerRequester, Behalf } from './inner-request.ts';
import { DISCOVER, type RpcMethod, ownHeaders } from './method.ts';
import { streamedAt } from './method-table.ts';
import { errorOf, type Outcome, outcomeOfHttp, outcomeOfWire, resultOf } from './outcome.ts';
import { openRpc } from './open-rpc.ts';

export interface Offered {
  readonly dispatch: Dispatch;
  /** Whether a method is offered and needs a credential. */
  isClosed(method: string): boolean;
  /** Whether the answer of a method may have been paid for. */
  isBilled(method: string): boolean;
  /** Whether a method shows a page of this gateway, which waits for no provider. */
  isPage(method: string): boolean;
}

interface OfferOptions {
  readonly methods: readonly RpcMethod[];
  readonly ask: InnerRequester;
  readonly version: string;
  readonly url: string;
}

/**
 * Offers these methods and `rpc.discover`. The document of `rpc.discover` is made at the first request and then kept,
 * because routes do not change while a server runs.
 */
export function offerMethods({ methods, ask, version, url }: OfferOptions): Offered {
  let document: Promise<Outcome> | null = null;

  async function makeDocument(behalf: Behalf): Promise<Outcome> {
    // Several clients may wait for the document, so it is made even if the first client leaves.
    const page = outcomeOfHttp(await ask({ verb: 'GET', path: '/openapi.json' }, { ...behalf, gone: NEVER_ABORTED }));
    const openApi: unknown = page.kind === 'result' ? JSON.parse(page.text) : null;
    return resultOf(openRpc({ methods, openApi: isObject(openApi) ? openApi : {}, version, url }));
  }

  async function discover(behalf: Behalf): Promise<Outcome> {
    try {
      return await (document ??= makeDocument(behalf));
    } catch (error) {
      document = null;
      throw error;
    }
  }

  const closed = new Set(methods.filter(({ open }) => !open).map(({ name }) => name));
  const billed = new Set(methods.filter((method) => method.billed).map(({ name }) => name));
  const pages = new Set([DISCOVER, ...methods.filter(({ route }) => route.verb === 'GET').map(({ name }) => name)]);
  return {
    dispatch: createDispatch({ methods, ask, discover }),
    isClosed: (method) => closed.has(method),
    isBilled: (method) => billed.has(method),
    isPage: (method) => pages.has(method),
  };
}

export interface Context extends Behalf {
  /** The Idempotency-Key of the HTTP request; null in a batch. */
  readonly idempotencyKey: string | null;
  /**
   * Counts a request of a method that needs no credential, because its route does not count it. Rejects with
   * GatewayError `rate_limit_exceeded`.
   */
  readonly count: () => Promise<void>;
  /** Reports errors that clients see as `internal`. */
  readonly report: (error: unknown) => void;
}

interface DispatchOptions {
  readonly methods: readonly RpcMethod[];
  readonly ask: InnerRequester;
  /** Answers `rpc.discover`, the only method that is answered here. */
  readonly discover: (behalf: Behalf) => Promise<Outcome>;
}

/** Runs one request. Never rejects: an error is an outcome. */
type Dispatch = (message: RequestMessage, context: Context) => Promise<Outcome>;

interface Given {
  readonly message: RequestMessage;
  readonly context: Context;
}

/**
 * Runs methods through the server of json-rpc-2.0, which gets one checked request at a time. Given a whole batch, that
 * library would reject a batch that contains null, answer a batch of one without its array, run all entries at once,
 * and show clients the message of any thrown error.
 */
export function createDispatch({ methods, ask, discover }: DispatchOptions): Dispatch {
  const server = new JSONRPCServer<Given>({ errorListener: () => {} });
  // Every outcome is a result for the library, because it would send the message of a thrown error to the client.
  server.applyMiddleware(async (next, request, context) => {
    try {
      return await next(request, context);
    } catch (error) {
      const fault = toRpcFault(error);
      if (fault.error.code === CODE.internal && !context.context.gone.aborted) context.context.report(error);
      return createJSONRPCSuccessResponse(PLACE, errorOf(fault));
    }
  });
  server.handleMethodNotFound = async ({ method }) =>
    createJSONRPCSuccessResponse(PLACE, unknownMethod(method, methods));
  server.addMethod(DISCOVER, async (_params, { context }) => {
    await context.count();
    return discover(context);
  });
  for (const method of methods) {
    server.addMethod(method.name, async (_params, { message, context }: Given) => {
      const inner = method.toInner(message);
      if (method.open) await context.count();
      const headers = {
        ...inner.headers,
        ...ownHeaders(message, context.idempotencyKey, context.carried[MAX_COST_HEADER]),
      };
      const reply = await ask({ ...inner, headers }, context);
      return method.answers === 'http' ? outcomeOfHttp(reply) : outcomeOfWire(reply);
    });
  }
  return async (message, context) => {
    const { method, params } = message;
    const answer = await server.receive({ jsonrpc: '2.0', id: PLACE, method, params }, { message, context });
    return answer?.result as Outcome;
  };
}

/** The id for the library. The client's id is kept as text, because parsing could change how it is written. */
const PLACE = 0;

function unknownMethod(name: string, methods: readonly RpcMethod[]): Outcome {
  const at = streamedAt(name);
  const hint = nearestHint(
    name,
    methods.map((method) => method.name),
  );
  const message =
    at === null
      ? `There is no method ${JSON.stringify(name.slice(0, 100))}: ${DISCOVER} lists all methods${hint === '' ? '' : `. ${hint}`}`
      : `${name} answers with a stream, which a JSON-RPC reply cannot carry: ${at}`;
  return errorOf({ error: { code: CODE.methodNotFound, message }, status: 200, headers: {} });
}
