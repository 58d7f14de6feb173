import { isPromise } from '#wire';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ACCOUNT_HEADER, type Access, type Caller, letAct, letSpend, namesInHeaders } from '#accounts';
import { addressOf, admissionOf, clientNetworkOf, letCookieCount, noteAdmission } from '#http';
import { type Admission, rateHeaders } from '#limits';
import type { Pipeline } from '#call';
import { refuseRepeatedCredentials } from './credential.ts';
import { letOldTextCount } from './full-rights.ts';
import { noteAsked } from './oauth/resources.ts';

function withNames(admission: Admission, request: FastifyRequest): Admission {
  const names = namesInHeaders(request.headers, admission.caller);
  return names === null ? admission : { ...admission, caller: { ...admission.caller, ...names } };
}

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Finds the admission of a request. Throws at a route that is not behind admission. */
export type AdmissionOf = (request: FastifyRequest) => Admission;
export type CallerOf = (request: FastifyRequest) => Caller;

/**
 * Puts every route of `app` behind authentication and the rate limit. Every response of an admitted request gets the
 * rate headers. Returns a function that finds the admission of a request. `calls`: see Pipeline.admit; true only for
 * routes that make calls. `cookies`: whether the routes accept session cookies; false for the protocols of programs.
 * `spending`: whether the session of a member may call for its account, or see what it began so.
 */
export function requireAdmission(
  app: FastifyInstance,
  admit: Pipeline['admit'],
  calls = false,
  cookies = true,
  spending = calls && cookies,
): AdmissionOf {
  app.addHook('onRequest', (request, reply, done) => {
    const admitted = (admission: Admission) => {
      try {
        noteAdmission(request, admission);
        if (calls) noteAdmission(request, withNames(admission, request));
      } catch (error) {
        return done(error as Error);
      }
      done();
    };
    let admission: Admission | Promise<Admission>;
    try {
      refuseRepeatedCredentials(request.raw.rawHeaders);
      if (cookies && request.headers.cookie !== undefined) letCookieCount(request);
      if (request.headers[ACCOUNT_HEADER] !== undefined) {
        const { actsAs } = request.routeOptions.config;
        if (actsAs !== undefined) letAct(request.headers, actsAs);
        else if (spending) letSpend(request.headers);
      }
      if (!calls && (READS.has(request.method) || request.routeOptions.config.ofCalls))
        letOldTextCount(request.headers);
      noteAsked(request);
      admission = admit(request.headers, addressOf(request), calls);
    } catch (error) {
      return done(error as Error);
    }
    if (isPromise(admission)) void admission.then(admitted, done);
    else admitted(admission);
  });
  // Responses that bypass Fastify add the rate headers themselves. See createHttpSink.
  app.addHook('onSend', (request, reply, _payload, done) => {
    const admission = admissionOf(request);
    if (admission) reply.headers(rateHeaders(admission.rate));
    done();
  });
  return (request) => {
    const admission = admissionOf(request);
    if (!admission) throw new Error('this route is not behind admission');
    return admission;
  };
}

/** The account or the network that asks for a public list, and what it may call; null for everything. */
export interface Asker {
  readonly name: string;
  readonly access: Access | null;
}
export type AskerOf = (request: FastifyRequest) => Promise<Asker>;

export const createAskerOf =
  (visitor: Pipeline['visitor']): AskerOf =>
  async (request) => {
    const { account, key } = await visitor(request.headers, addressOf(request));
    const access = key?.access ?? null;
    return { name: access === null ? clientNetworkOf(request) : account, access };
  };
