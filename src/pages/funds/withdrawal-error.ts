import { GatewayError } from '#wire';
import { WithdrawalProblem } from '#chains';

const RETRY_S: Readonly<Partial<Record<WithdrawalProblem['code'], number>>> = {
  rate_limit_exceeded: 3_600,
  service_unavailable: 60,
};
/** Fields of the body, by the names that problems use. */
const PARAMS: Readonly<Record<string, string>> = { amount: 'amount_usd' };

/** A refused withdrawal as an error of ours; any other error as it is. */
export function withdrawalError(error: unknown): unknown {
  if (!(error instanceof WithdrawalProblem)) return error;
  const { code, message, param } = error;
  return new GatewayError(code, message, {
    ...(param === undefined ? {} : { param: PARAMS[param] ?? param }),
    ...(RETRY_S[code] === undefined ? {} : { retryAfterS: RETRY_S[code] }),
    cause: error,
  });
}
