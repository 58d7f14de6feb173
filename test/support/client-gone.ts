import type { ServerResponse } from 'node:http';
import type { Spine } from './spine.ts';

/**
 * Resolves when the gateway knows that the client of the next request has left. A provider that goes on then is never
 * sooner than the client, however busy the machine is.
 */
export const nextClientGone = (spine: Spine): Promise<void> =>
  new Promise((resolve) => {
    spine.app.server.server.once('request', (_request, answer: ServerResponse) => answer.once('close', resolve));
  });
