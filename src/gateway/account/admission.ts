import type { FastifyInstance, FastifyRequest } from 'fastify';
import { refuseRepeatedCredentials } from '../auth/credential.ts';
import { rateHeaders } from '../limits/rate-headers.ts';
import type { Admission, Pipeline } from '../pipeline.ts';

/** Puts every route of `app` behind authentication and the rate limit, with the rate headers on every answer. Returns who was let in. */
export function requireAdmission(app: FastifyInstance, admit: Pipeline['admit']): (request: FastifyRequest) => Admission {
  const admitted = new WeakMap<FastifyRequest, Admission>();
  app.addHook('onRequest', async (request, reply) => {
    refuseRepeatedCredentials(request.raw.rawHeaders);
    const admission = await admit(request.headers, request.ip);
    admitted.set(request, admission);
    reply.headers(rateHeaders(admission.rate));
  });
  return (request) => {
    const admission = admitted.get(request);
    if (!admission) throw new Error('this route is not behind admission');
    return admission;
  };
}
