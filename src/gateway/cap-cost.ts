import { GatewayError, type JsonObject, foldName } from '#wire';
import { costAtMost, formatUsd, MoneyError, parseUsd, type MicroUsd } from '#billing';
import type { CallRequest } from './call-request.ts';

/** The most that a call may cost with all calls under it, as its request says. */
export interface CostCap {
  readonly amount: MicroUsd;
  /** The client's word for it, in errors. */
  readonly name: string;
}

/** The header that names a cap at every door. */
export const MAX_COST_HEADER = 'x-max-cost';

/** The member that names it in what a wire has for metadata. */
export const MAX_COST_META = 'tollgate/max_cost';

/**
 * The lowest of the caps that a request names: amounts of USD by their names, as they came. undefined and null say
 * nothing. null where none is named. Throws GatewayError `invalid_request` for what is no amount.
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
 * Refuses parameters of a wire that has metadata with a cap beside it, by the name that chat has for one: it would
 * bound nothing. `metadata`: the member of them that holds it. Throws GatewayError `invalid_request`.
 */
export function refuseCapBeside(params: JsonObject, metadata: string): void {
  const name = Object.keys(params).find((key) => foldName(key, BESIDE.length) === BESIDE);
  if (name === undefined) return;
  const right = `${metadata}["${MAX_COST_META}"]`;
  throw new GatewayError(
    'invalid_request',
    `${JSON.stringify(name)} bounds nothing here: name the cap in ${right}, or in the header ${MAX_COST_HEADER}`,
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
 * The request within its cap: offers whose estimate is higher do not serve it. An agent's calls of its own count,
 * and so are given the rest. null leaves the request as it is.
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
