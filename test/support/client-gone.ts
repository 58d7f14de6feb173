import type { ServerResponse } from 'node:http';
import type { Spine } from './spine.ts';

/**
 * Resolves when the gateway has noticed that the client of the next request has left. A provider that waits for this
 * never continues before the client has left, however busy the machine is.
 */
export const nextClientGone = (spine: Spine): Promise<void> =>
  new Promise((resolve) => {
    spine.app.server.server.once('request', (_request, answer: ServerResponse) => answer.once('close', resolve));
  });
