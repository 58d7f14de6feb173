import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ACCOUNT_HEADER, letAct, letCookieCount, rateHeaders, type Admission, type Pipeline } from '#gateway';
import { refuseRepeatedCredentials } from './credential.ts';

/** On the request itself: a WeakMap costs each collection of the young heap a look at all its entries. */
const ADMISSION = Symbol('admission');

type Admitted = FastifyRequest & { [ADMISSION]?: Admission };

/** `request.ip`, which reads the list of proxies also where no proxy has said anything. */
export const addressOf = (request: FastifyRequest): string =>
  (request.headers['x-forwarded-for'] === undefined ? request.raw.socket.remoteAddress : undefined) ?? request.ip;

/**
 * Puts every route of `app` behind authentication and the rate limit, with the rate headers on every answer.
 * Returns a function that finds the admission of a request. `calls`: see Pipeline.admit; true only for routes where
 * calls are made. `cookies`: whether the cookie of a web session counts; false for the protocols of programs.
 */
export function requireAdmission(
  app: FastifyInstance,
  admit: Pipeline['admit'],
  calls = false,
  cookies = true,
): (request: FastifyRequest) => Admission {
  app.addHook('onRequest', (request, reply, done) => {
    const admitted = (admission: Admission) => {
      (request as Admitted)[ADMISSION] = admission;
      done();
    };
    let admission: Admission | Promise<Admission>;
    try {
      refuseRepeatedCredentials(request.raw.rawHeaders);
      // Nothing between may keep what is told to a session. A route can say otherwise.
      if (cookies && request.headers.cookie !== undefined && letCookieCount(request))
        void reply.header('cache-control', 'no-store');
      const { actsAs } = request.routeOptions.config;
      if (actsAs !== undefined && request.headers[ACCOUNT_HEADER] !== undefined) letAct(request.headers, actsAs);
      admission = admit(request.headers, addressOf(request), calls);
    } catch (error) {
      return done(error as Error);
    }
    if (admission instanceof Promise) void admission.then(admitted, done);
    else admitted(admission);
  });
  // What writes past Fastify adds them to its head by itself, see createHttpSink.
  app.addHook('onSend', (request, reply, _payload, done) => {
    const admission = (request as Admitted)[ADMISSION];
    if (admission) reply.headers(rateHeaders(admission.rate));
    done();
  });
  return (request) => {
    const admission = (request as Admitted)[ADMISSION];
    if (!admission) throw new Error('this route is not behind admission');
    return admission;
  };
}
