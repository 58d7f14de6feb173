import { cost, formatUsd, type MicroUsd } from '#billing';
import { GatewayError } from './errors.ts';
import type { CallRequest } from './pipeline.ts';

/**
 * The request within what its client wants to pay at most: offers whose estimate is higher do not serve it. An agent's calls of its own count, and so are
 * given the rest. `name`: the client's word for it, in errors.
 */
export function capCost(request: CallRequest, maxCost: MicroUsd, name: string): CallRequest {
  const capped: CallRequest = {
    ...request,
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
