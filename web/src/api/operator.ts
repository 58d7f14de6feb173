import { passIfSignedOut } from './api-error.ts';
import { api, call, type Schemas } from './client.ts';

/** The operator's session in this browser. Changes need the admin key, or a fresh sign-in at the company's provider. */
export type OperatorSession = Schemas['AdminSession'];

const PATH = '/admin/v1/session';
/** The headers of a request with the admin key. Empty for a person of the company, who needs none. */
export const withKey = (key: string): { authorization?: string } =>
  key === '' ? {} : { authorization: `Bearer ${key}` };

/** Set while an operator is signed in, so that the head of every page (`app/header.tsx`) knows of it. */
const OPERATOR_MARK = 'tollgate.operator';

const mark = (session: OperatorSession): OperatorSession => {
  if (session.signed_in) localStorage.setItem(OPERATOR_MARK, '1');
  else localStorage.removeItem(OPERATOR_MARK);
  return session;
};

export const NO_OPERATOR: OperatorSession = { signed_in: false, administrator: null, changes: false, expires_at: null };

export const askOperator = async (): Promise<OperatorSession> => mark(await call(api.GET(PATH)));
export const signInOperator = async (key: string): Promise<OperatorSession> =>
  mark(await call(api.POST(PATH, { headers: withKey(key) })));
/** Rejects with ApiError if the session may still exist. If it has already ended, that is no error. */
export async function signOutOperator(): Promise<void> {
  await call(api.DELETE(PATH)).catch(passIfSignedOut);
  mark(NO_OPERATOR);
}
