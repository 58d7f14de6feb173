import { passIfSignedOut } from './api-error.ts';
import { api, call, type Schemas } from './client.ts';

/** The operator's session in this browser. Changes need the admin key, or a fresh sign-in at the company's provider. */
export type OperatorSession = Schemas['AdminSession'];

const PATH = '/admin/v1/session';
/** The headers of a request with the admin key. Empty for a person of the company, who needs none. */
export const withKey = (key: string): { authorization?: string } =>
  key === '' ? {} : { authorization: `Bearer ${key}` };

export const askOperator = (): Promise<OperatorSession> => call(api.GET(PATH));
export const signInOperator = (key: string): Promise<OperatorSession> =>
  call(api.POST(PATH, { headers: withKey(key) }));
/** Rejects with ApiError if the session may still exist. If it has already ended, that is no error. */
export const signOutOperator = (): Promise<unknown> => call(api.DELETE(PATH)).catch(passIfSignedOut);
