import type { FastifyRequest } from 'fastify';
import { networkOf } from '#wire';
import type { Caller } from '../call.ts';
import type { Admission } from '../limits/caller-rates.ts';

/**
 * These are properties of the request. A WeakMap would cost more, because each collection of the young heap scans all
 * its entries.
 */
const ADMISSION = Symbol('admission');
const VISITOR = Symbol('visitor');

type Known = FastifyRequest & { [ADMISSION]?: Admission; [VISITOR]?: Caller };

/** Notes the admission of a request, for its handler and for the reader of its body. */
export function noteAdmission(request: FastifyRequest, admission: Admission): void {
  (request as Known)[ADMISSION] = admission;
}

export const admissionOf = (request: FastifyRequest): Admission | undefined => (request as Known)[ADMISSION];

/** Notes the caller of a request at a route without admission, for the reader of its body. */
export function noteVisitor(request: FastifyRequest, caller: Caller): void {
  (request as Known)[VISITOR] = caller;
}

/** The caller of a request, as far as it is known before the body is read. */
export const callerOf = (request: FastifyRequest): Caller | undefined =>
  (request as Known)[ADMISSION]?.caller ?? (request as Known)[VISITOR];

/** The account whose share of what is scarce a request uses; null without one. */
export function accountOf(request: FastifyRequest): string | null {
  const caller = callerOf(request);
  return caller === undefined || caller.anonymous ? null : caller.account;
}

/** The network of the client, by which its bodies are counted. */
export const clientNetworkOf = (request: FastifyRequest): string => networkOf(addressOf(request));

/**
 * The client's address. Faster than `request.ip`, which evaluates the list of trusted proxies even without an
 * `x-forwarded-for`.
 */
export const addressOf = (request: FastifyRequest): string =>
  (request.headers['x-forwarded-for'] === undefined ? request.raw.socket.remoteAddress : undefined) ?? request.ip;
