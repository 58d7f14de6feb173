import { actsFor } from './acting.ts';
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
  /** Makes the request for the signed-in account, even if this tab acts for an organisation. */
  readonly own?: boolean;
}

/**
 * Sends a request to the gateway. `path` begins with `/`. The request has the session's cookie, and the header that
 * proves that it comes from the gateway's own page. Rejects with ApiError if the answer is an error. Resolves before
 * the body is read, so that streams can be read as they arrive.
 */
export async function request(path: string, options: RequestOptions = {}): Promise<Response> {
  const { method = 'GET', json, headers, signal, own = false } = options;
  const acting = own ? null : actsFor(path);
  const early = method === 'GET' && acting === null ? takeEarly(path) : null;
  let answer: Response;
  try {
    answer = await (early ??
      fetch(path, {
        method,
        headers: {
          'x-tollgate-web': '1',
          ...(acting === null ? {} : { 'x-tollgate-account': acting }),
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(json === undefined ? {} : { body: JSON.stringify(json) }),
        ...(signal ? { signal } : {}),
      }));
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw new ApiError('The gateway does not answer', { status: 0, type: 'unreachable', cause: error });
  }
  if (!answer.ok) throw await errorOf(answer);
  return answer;
}

/** Sends a request and reads the JSON answer. Resolves with null if the answer has no body. */
export async function call<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const answer = await request(path, options);
  return (answer.status === 204 ? null : await answer.json()) as T;
}

/** Sends a request and returns the member `data` of the answer, as listings have it. */
export async function data<T>(path: string, options: RequestOptions = {}): Promise<T> {
  return (await call<{ readonly data: T }>(path, options)).data;
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
