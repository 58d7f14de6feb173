import { GatewayError } from '#wire';
import type { PageNames } from './task.ts';
import { isStorable } from './task-rows.ts';

/** The last task of a page. The next page begins after it. */
interface PageEnd {
  readonly updatedAt: number;
  readonly taskId: string;
  readonly service: string;
}

const TOKEN_LENGTH_MAX = 4096;

/**
 * An opaque URL-safe text. It contains only the position in the list and grants no access: the owner is checked
 * separately.
 */
export function toPageToken({ updatedAt, taskId, service }: PageEnd): string {
  return Buffer.from(JSON.stringify([updatedAt, taskId, service])).toString('base64url');
}

/** The names in a TaskQuery and a TaskPage. */
const OWN_NAMES: PageNames = { after: 'after', next: 'next' };

/** The inverse of toPageToken. Throws GatewayError `invalid_request` for another text. */
export function readPageToken(token: string, { after, next }: PageNames = OWN_NAMES): PageEnd {
  const parts = token.length <= TOKEN_LENGTH_MAX ? parse(Buffer.from(token, 'base64url').toString()) : null;
  if (Array.isArray(parts) && parts.length === 3) {
    const [updatedAt, taskId, service] = parts as unknown[];
    if (Number.isSafeInteger(updatedAt) && isText(taskId) && isText(service))
      return { updatedAt: updatedAt as number, taskId, service };
  }
  throw new GatewayError(
    'invalid_request',
    `${after} must be the ${next} of a page of this list. Leave it out for the first page`,
    { param: after },
  );
}

const isText = (value: unknown): value is string => typeof value === 'string' && isStorable(value);

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
