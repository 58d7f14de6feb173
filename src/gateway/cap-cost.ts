import { cost, formatUsd, MoneyError, parseUsd, type MicroUsd } from '#billing';
import { GatewayError } from './errors.ts';
import type { CallRequest } from './pipeline.ts';

/** What a client says a call may cost, in USD. `name`: its word for it, in errors. Throws GatewayError `invalid_request`. */
export function parseMaxCost(value: unknown, name: string): MicroUsd {
  try {
    if (typeof value === 'string' || typeof value === 'number') return parseUsd(value, name);
  } catch (error) {
    if (!(error instanceof MoneyError)) throw error;
    throw new GatewayError('invalid_request', error.message, { param: name, cause: error });
  }
  throw new GatewayError('invalid_request', `${name} must be an amount of USD, such as "0.25"`, { param: name });
}

/**
 * The request within what its client wants to pay at most: offers whose estimate is higher do not serve it. An agent's calls of its own count, and so are
 * given the rest. `name`: the client's word for it, in errors.
 */
export function capCost(request: CallRequest, maxCost: MicroUsd, name: string): CallRequest {
  const capped: CallRequest = {
    ...request,
    capped: true,
    estimate(offer) {
      const most = request.estimate(offer);
      const { rates } = request.price?.(offer) ?? offer.price;
      const amount = 'costMax' in most ? most.costMax : cost(rates, most);
      if (amount <= maxCost) return most;
      throw new GatewayError('unprocessable', `${name} is ${formatUsd(maxCost)} USD, but ${offer.service} may cost ${formatUsd(amount)} USD`, {
        param: name,
      });
    },
  };
  return request.primitive === 'agent' ? { ...capped, budget: maxCost } : capped;
}
