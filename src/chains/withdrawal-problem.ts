/** A refused withdrawal. The message is for the caller. */
export class WithdrawalProblem extends Error {
  override readonly name = 'WithdrawalProblem';
  readonly code:
    | 'invalid_request'
    | 'insufficient_balance'
    | 'idempotency_conflict'
    | 'rate_limit_exceeded'
    | 'unprocessable'
    | 'permission_denied'
    | 'service_unavailable';
  readonly param: string | undefined;
  constructor(code: WithdrawalProblem['code'], message: string, param?: string) {
    super(message);
    this.code = code;
    this.param = param;
  }
}
