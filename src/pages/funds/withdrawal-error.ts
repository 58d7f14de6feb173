import { GatewayError } from '#wire';
import { WithdrawalProblem } from '#chains';

const RETRY_S: Readonly<Partial<Record<WithdrawalProblem['code'], number>>> = {
  rate_limit_exceeded: 3_600,
  service_unavailable: 60,
};
/** Names of the body's fields, by the names that the problems use. */
const PARAMS: Readonly<Record<string, string>> = { amount: 'amount_usd' };

/** Turns a refused withdrawal into a GatewayError. Returns any other error unchanged. */
export function withdrawalError(error: unknown): unknown {
  if (!(error instanceof WithdrawalProblem)) return error;
  const { code, message, param } = error;
  return new GatewayError(code, message, {
    ...(param === undefined ? {} : { param: PARAMS[param] ?? param }),
    ...(RETRY_S[code] === undefined ? {} : { retryAfterS: RETRY_S[code] }),
    cause: error,
  });
}
