import type { InjectOptions } from 'fastify';
import { isObject } from '#wire';
import { GatewayError, GatewayStopping } from '#errors';
import type { Caller } from '#accounts';
import { type Admission, UNLIMITED } from '#limits';
import { type Call, newCallId, type Pipeline } from '#gateway';
import type { MicroUsd } from '#billing/amounts';
import type { Batch, LineCalls, LineError, LineReply } from '#batches';

interface LineCallsOptions {
  readonly pipeline: Pipeline;
  /** The caller as whom the lines of a batch are called. Rejects with GatewayError. */
  readonly callerOf: (batch: Batch) => Promise<Caller>;
  /** The most that a prepared call may cost. The call is not made. */
  readonly mostOf: (call: Call) => MicroUsd;
  /** Makes a request to the routes that have `pipeline`, at a server that nobody else reaches. */
  readonly inject: (
    request: InjectOptions,
  ) => Promise<{ readonly statusCode: number; readonly payload: string; readonly headers: object }>;
}

/** The calls of lines, and the pipeline for the routes that answer them. */
interface LineRoutes {
  readonly calls: LineCalls;
  readonly pipeline: Pipeline;
}

/** A request of a line while its route answers it. */
interface OpenLine {
  readonly caller: Caller;
  /** Set if its call is only prepared: gets the prepared call. null if the call is to be made. */
  readonly measure: { call: Call | null } | null;
}

/** The header by which a route finds the line of a request. Nobody outside of this process can send one. */
const LINE = 'x-line';
const REQUEST_ID = 'x-request-id';

const FREE: Admission['rate']['requests'] = { perMinute: UNLIMITED, limit: UNLIMITED, remaining: UNLIMITED, resetS: 0 };
const UNCOUNTED: Admission['rate'] = { allowed: true, retryAfterS: 0, requests: FREE, tokens: FREE };

/** The names that OpenAI's batches have for errors, where they differ. */
const CODES: Readonly<Record<string, string>> = { invalid_model: 'model_not_found' };

/**
 * Makes the requests of lines at the routes of this gateway, so that a line is read, routed and billed as any request.
 * The routes are at a server of their own: its requests have no credential, and use nothing of the rates of their
 * account.
 */
export function createLineCalls({ pipeline, callerOf, mostOf, inject }: LineCallsOptions): LineRoutes {
  const open = new Map<string, OpenLine>();

  async function ask(
    id: string,
    line: OpenLine,
    { endpoint }: Batch,
    isOwn: boolean,
    body: string,
  ): Promise<LineReply> {
    open.set(id, line);
    try {
      const { statusCode, payload, headers } = await inject({
        method: 'POST',
        url: isOwn ? `/api${endpoint}` : endpoint,
        headers: { [LINE]: id, 'content-type': 'application/json', accept: 'application/json' },
        payload: body,
      });
      const requestId = (headers as Readonly<Record<string, unknown>>)[REQUEST_ID];
      return { status: statusCode, requestId: typeof requestId === 'string' ? requestId : id, body: payload };
    } finally {
      open.delete(id);
    }
  }

  const lineOf = (id: unknown): OpenLine => {
    const line = typeof id === 'string' ? open.get(id) : undefined;
    if (line === undefined) throw new GatewayStopping();
    return line;
  };

  /** The caller of a line, or the reply that says why it has no valid one. */
  async function callerOrReply(batch: Batch, id: string, run: Caller['run']): Promise<Caller | LineReply> {
    try {
      return { ...(await callerOf(batch)), run: run! };
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      const { code, message, param = null } = error;
      const status = code === 'permission_denied' ? FORBIDDEN : UNAUTHORIZED;
      return { status, requestId: id, body: JSON.stringify({ error: { message, type: code, code, param } }) };
    }
  }

  return {
    pipeline: {
      ...pipeline,
      admit: (headers) => ({ caller: lineOf(headers[LINE]).caller, rate: UNCOUNTED }),
      run(call, signal) {
        const { measure } = lineOf(call.caller.run?.call);
        if (measure === null) return pipeline.run(call, signal);
        measure.call = call;
        throw new GatewayError('unprocessable', 'This request is only measured');
      },
    },

    calls: {
      async measure(batch, body) {
        const id = newCallId();
        const caller = await callerOrReply(batch, id, { parent: id, call: id });
        if ('status' in caller) return { refused: caller, error: errorIn(caller.body) };
        const measure: { call: Call | null } = { call: null };
        const refused = await ask(id, { caller, measure }, batch, false, body);
        const { call } = measure;
        if (call === null) return { refused, error: errorIn(refused.body) };
        return { most: mostOf(call), model: call.service };
      },

      async call(batch, body, callId, parent) {
        const caller = await callerOrReply(batch, callId, { parent, call: callId });
        if ('status' in caller) return caller;
        return ask(callId, { caller, measure: null }, batch, batch.dialect === 'own', body);
      },
    },
  };
}

const FORBIDDEN = 403;
const UNAUTHORIZED = 401;

/** The error in the body of a reply. */
function errorIn(body: string): LineError {
  const reply: unknown = JSON.parse(body);
  const error = isObject(reply) && isObject(reply['error']) ? reply['error'] : {};
  const text = (value: unknown) => (typeof value === 'string' ? value : null);
  const code = text(error['code']) ?? text(error['type']) ?? 'invalid_request';
  return {
    code: CODES[code] ?? code,
    message: text(error['message']) ?? 'The request was refused',
    param: text(error['param']),
  };
}
