import { accountFor } from './acting.ts';
import { ApiError } from './api-error.ts';

declare global {
  interface Window {
    /** Requests by path that `web/public/early.js` started before this code was loaded. */
    tollgateEarly?: Map<string, Promise<Response>>;
  }
}

interface RequestOptions {
  readonly method?: string;
  /** Sent as JSON. */
  readonly json?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Sends a request whose answer is a stream or a file. The body is not read. Rejects with ApiError. */
export const request = (
  path: string,
  { method = 'GET', json, headers, signal }: RequestOptions = {},
): Promise<Response> =>
  send(
    new Request(path, {
      method,
      headers: { ...(json === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      ...(signal ? { signal } : {}),
    }),
  );

/**
 * Sends a request to the gateway. The request has the session's cookie, and the header that proves that it comes from
 * the gateway's own page. `account` is whom it is for: null is the signed-in account; undefined the organisation that
 * this tab acts for, or that pays. Rejects with ApiError if the answer is an error. Resolves before the body is read,
 * so that streams can be read as they arrive.
 */
export async function send(asked: Request, account?: string | null): Promise<Response> {
  const { pathname, search } = new URL(asked.url);
  const acting = account === undefined ? accountFor(pathname) : account;
  asked.headers.set('x-tollgate-web', '1');
  if (acting !== null) asked.headers.set('x-tollgate-account', acting);
  const early = asked.method === 'GET' && acting === null ? takeEarly(pathname + search) : null;
  let answer: Response;
  try {
    answer = await (early ?? fetch(asked));
  } catch (error) {
    if (asked.signal.aborted) throw error;
    throw new ApiError('The gateway does not answer', { status: 0, type: 'unreachable', cause: error });
  }
  if (!answer.ok) throw await errorOf(answer);
  return answer;
}

/** Whether the gateway answers. A proxy in front of it that answers for it has a status of 502 or higher. */
export async function isThere(): Promise<boolean> {
  try {
    return (await fetch('/health/live', { cache: 'no-store' })).status < 500;
  } catch {
    return false;
  }
}

function takeEarly(path: string): Promise<Response> | null {
  const early = window.tollgateEarly?.get(path) ?? null;
  window.tollgateEarly?.delete(path);
  return early;
}

async function errorOf(answer: Response): Promise<ApiError> {
  const requestId = answer.headers.get('x-request-id');
  const facts = { status: answer.status, requestId };
  try {
    const { error, budget } = (await answer.json()) as {
      readonly error: { readonly message: string; readonly type: string; readonly param?: string | null };
      readonly budget?: { readonly of: string };
    };
    return new ApiError(error.message, {
      ...facts,
      type: error.type,
      param: error.param ?? null,
      budget: budget?.of ?? null,
    });
  } catch (cause) {
    return new ApiError(`The gateway answered ${answer.status}`, { ...facts, type: 'unknown', cause });
  }
}
