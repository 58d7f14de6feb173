import { createJSONRPCSuccessResponse, JSONRPCServer } from 'json-rpc-2.0';
import type { RequestMessage } from '#wire';
import { MAX_COST_HEADER, nearestHint } from '#gateway';
import { CODE, toRpcFault } from './errors-rpc.ts';
import type { Ask, Behalf } from './inner-request.ts';
import { type Method, ownHeaders } from './method.ts';
import { streamedAt } from './method-table.ts';
import { errorOf, type Outcome, outcomeOfHttp, outcomeOfWire } from './outcome.ts';

/** Facts about the HTTP request of a method call. */
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

export interface DispatchOptions {
  readonly methods: readonly Method[];
  readonly ask: Ask;
  /** Answers `rpc.discover`, the only method that is answered here. */
  readonly discover: (behalf: Behalf) => Promise<Outcome>;
}

/** Runs one request. Never rejects: an error is an outcome. */
export type Dispatch = (message: RequestMessage, context: Context) => Promise<Outcome>;

export const DISCOVER = 'rpc.discover';

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
  server.applyMiddleware(async (next, request, given) => {
    try {
      return await next(request, given);
    } catch (error) {
      const fault = toRpcFault(error);
      if (fault.error.code === CODE.internal && !given.context.gone.aborted) given.context.report(error);
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

function unknownMethod(name: string, methods: readonly Method[]): Outcome {
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
