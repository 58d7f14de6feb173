import { formatUsd, type MicroUsd, unitUsd } from '#billing/amounts';
import { byPrice, type Offer } from '#gateway';

/**
 * The price of a message to an agent, as exact decimal texts in USD. It is the price of the cheapest provider, except
 * for the maxima.
 */
export interface CardPrice {
  readonly currency: 'USD';
  /** Set if each message is charged; "0" if a message itself costs nothing. */
  readonly per_call_usd?: string;
  /** Set if all messages of a task are charged together once. */
  readonly per_task_usd?: string;
  readonly per_second_usd?: string;
  readonly per_1m_prompt_tokens_usd?: string;
  readonly per_1m_completion_tokens_usd?: string;
  /**
   * The highest cost of one message or task, by its use or at a more expensive provider. Set only if it is higher than
   * the price of a call.
   */
  readonly maximum_usd?: string;
  /**
   * The highest amount that the agent may additionally spend on its own calls in the consumer's name, unless the
   * consumer sets another budget. It is the amount of the provider with the highest one.
   */
  readonly nested_maximum_usd?: string;
}

/** The price of a service. `offers` is not empty. */
export function cardPrice(offers: readonly Offer[]): CardPrice {
  const [cheapest] = byPrice(offers) as [Offer];
  const { call = 0n, second, prompt, completion } = cheapest.price.rates;
  const most = offers.reduce((dearest, offer) => (mostOf(offer) > dearest ? mostOf(offer) : dearest), 0n);
  const nested = offers.reduce(
    (largest, { agent }) => (agent && agent.nestedMax > largest ? agent.nestedMax : largest),
    0n,
  );
  return {
    currency: 'USD',
    ...(cheapest.agent?.chargedPer === 'task' ? { per_task_usd: unitUsd(call) } : { per_call_usd: unitUsd(call) }),
    ...(second === undefined ? {} : { per_second_usd: unitUsd(second) }),
    ...(prompt === undefined ? {} : { per_1m_prompt_tokens_usd: formatUsd(prompt) }),
    ...(completion === undefined ? {} : { per_1m_completion_tokens_usd: formatUsd(completion) }),
    ...(most * UNITS > call ? { maximum_usd: formatUsd(most) } : {}),
    ...(nested > 0n ? { nested_maximum_usd: formatUsd(nested) } : {}),
  };
}

/** Rates are micro-USD per million units. */
const UNITS = 1_000_000n;

function mostOf({ price, priceCap }: Offer): MicroUsd {
  return priceCap ?? ((price.rates.call ?? 0n) + UNITS - 1n) / UNITS;
}
