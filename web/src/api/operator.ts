import { passIfSignedOut } from './api-error.ts';
import { call } from './request.ts';

/** The operator's session in this browser. It can only read. Changes need the admin key. */
export interface OperatorSession {
  readonly signed_in: boolean;
  readonly expires_at: string | null;
}

const PATH = '/admin/v1/session';
const withKey = (key: string) => ({ authorization: `Bearer ${key}` });

export const askOperator = (): Promise<OperatorSession> => call(PATH);
export const signInOperator = (key: string): Promise<OperatorSession> =>
  call(PATH, { method: 'POST', headers: withKey(key) });
/** Rejects with ApiError if the session may still exist. If it has already ended, that is no error. */
export const signOutOperator = (): Promise<unknown> => call(PATH, { method: 'DELETE' }).catch(passIfSignedOut);

/** Makes a change as the operator. `key` is the admin key, `headers` are additional headers. */
export const change = <T>(
  key: string,
  method: 'POST' | 'PATCH' | 'DELETE',
  path: string,
  json?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<T> =>
  call<T>(`/admin/v1${path}`, {
    method,
    headers: { ...headers, ...withKey(key) },
    ...(json === undefined ? {} : { json }),
  });
