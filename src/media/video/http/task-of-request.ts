import type { FastifyRequest } from 'fastify';
import { GatewayError } from '#wire';
import { type Caller, MUST_BE } from '#gateway';

/** The id of a task, as every route describes it. */
export const idField = {
  type: 'string',
  minLength: 1,
  maxLength: 2048,
  description: 'The id of the task.',
  [MUST_BE]: 'the id from the answer of /video/queue',
};

/** The caller of an admitted request. */
export type CallerOf = (request: FastifyRequest) => Caller;

/** The error for a video whose files are no longer stored. */
export const expired = () => new GatewayError('expired', 'The files of this video are no longer stored');
