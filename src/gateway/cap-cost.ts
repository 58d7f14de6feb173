import { GatewayError, type JsonObject, foldName } from '#wire';
import { costAtMost, formatUsd, MoneyError, parseUsd, type MicroUsd } from '#billing';
import type { CallRequest } from './call-request.ts';

/** The most that a call may cost together with all calls under it, as named in its request. */
export interface CostCap {
  readonly amount: MicroUsd;
  /** The name that the client used for the cap. Errors use it. */
  readonly name: string;
}

/** The header for a cap, at every route. */
export const MAX_COST_HEADER = 'x-max-cost';

/** The member for a cap in the metadata of a wire. */
export const MAX_COST_META = 'tollgate/max_cost';

/**
 * The lowest of the caps that a request names. `named`: names with amounts of USD as the client sent them; undefined
 * and null are skipped. null if no cap is named. Throws GatewayError `invalid_request` for a value that is not an
 * amount.
 */
export function lowestCap(named: Iterable<readonly [name: string, said: unknown]>): CostCap | null {
  let lowest: CostCap | null = null;
  for (const [name, said] of named) {
    if (said === undefined || said === null) continue;
    const amount = amountOf(said, name);
    if (lowest === null || amount < lowest.amount) lowest = { amount, name };
  }
  return lowest;
}

/**
 * Refuses a parameter like `max_cost` beside the metadata of a wire. The chat API calls its cap that, but here the
 * parameter would have no effect. `metadata`: the name of the member that holds the metadata. Throws GatewayError
 * `invalid_request`.
 */
export function refuseCapBeside(params: JsonObject, metadata: string): void {
  const name = Object.keys(params).find((key) => foldName(key, BESIDE.length) === BESIDE);
  if (name === undefined) return;
  const right = `${metadata}["${MAX_COST_META}"]`;
  throw new GatewayError(
    'invalid_request',
    `${JSON.stringify(name)} has no effect here: give the cap in ${right}, or in the header ${MAX_COST_HEADER}`,
    {
      param: right,
    },
  );
}

const BESIDE = 'maxcost';

function amountOf(said: unknown, name: string): MicroUsd {
  try {
    return parseUsd(said, name);
  } catch (error) {
    if (!(error instanceof MoneyError)) throw error;
    throw new GatewayError('invalid_request', error.message, { param: name, cause: error });
  }
}

/**
 * The request with its cap applied: offers with a higher estimate do not serve it. For an agent the rest of the cap is
 * the budget for the calls that it makes. With null the request is unchanged.
 */
export function capCost(request: CallRequest, cap: CostCap | null): CallRequest {
  if (cap === null) return request;
  const { amount: maxCost, name } = cap;
  const capped: CallRequest = {
    ...request,
    capped: true,
    cap: { ...cap, of: request },
    estimate(offer) {
      const most = request.estimate(offer);
      const { rates } = request.price?.(offer) ?? offer.price;
      const amount = 'costMax' in most ? most.costMax : costAtMost(rates, most);
      if (amount <= maxCost) return most;
      throw new GatewayError(
        'unprocessable',
        `${name} is ${formatUsd(maxCost)} USD, but ${offer.service} may cost ${formatUsd(amount)} USD`,
        {
          param: name,
        },
      );
    },
  };
  return request.primitive === 'agent' ? { ...capped, budget: maxCost } : capped;
}
